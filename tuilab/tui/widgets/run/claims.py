"""The claims of a run, each with its verdict or its state: the answer of the run."""

from collections.abc import Mapping, Sequence

from textual.content import Content

from tuilab.drawings.interval_line import draw_interval
from tuilab.drawings.symbols import Symbols
from tuilab.judging import prediction
from tuilab.judging.interim_results import InterimJudge, InterimResult, describe_interim_result
from tuilab.judging.judge_run import judge_without_times
from tuilab.record.finding_words import reason_words, why_not_judged
from tuilab.record.summary import RunSummary
from tuilab.record.summary_parts import Claim
from tuilab.record.verdicts import NOT_JUDGED, Verdict
from tuilab.reports.result import claim_of
from tuilab.runs.command_line import deciding_line
from tuilab.text.display import show
from tuilab.tui.looks.lesson_layout import hang, inline, wrap_lines
from tuilab.tui.looks.marks import mark, to_content
from tuilab.tui.state.lesson_card import LessonCard
from tuilab.tui.state.run_source import RunSource
from tuilab.tui.state.view import View
from tuilab.tui.widgets.drawing import symbols_of
from tuilab.tui.widgets.pane import TextPane

_INTERVAL_WIDTH = 48  # columns of the interval of a ratio
_RETRY_S = 0.2  # until interim results that are still loading are asked for again
_UNKNOWN_WIDTH = 1000  # columns of a pane that is not on the screen yet


class ClaimsPane(TextPane):
    """One claim after another: the mark of its verdict, its text, and the evidence."""

    def __init__(self) -> None:
        super().__init__("Claims")
        self._interim_judge = InterimJudge()
        self.earlier: Mapping[str, str] = {}  # by claim: how often it was judged here before
        self.card: LessonCard | None = None  # of a finished lesson, for a user who learns
        self._last: tuple[RunSource, View] | None = None
        self._will_retry = False

    def on_resize(self) -> None:
        self._show_again()

    def show(self, run: RunSource, view: View) -> None:
        """Show the claims with their verdicts or interim results, and count the judged ones."""
        self._last = run, view
        states = self._describe_claims(run)
        self.note(Content(_count_judged(states)))
        lines = self._lay_out(run, states)
        if not lines:
            reason = "no claims" if run.is_over else "no claims yet"
            lines.append(Content.styled(reason, "$text-muted"))
        self.put(lines)

    def _describe_claims(self, run: RunSource) -> dict[str, tuple[str, str]]:
        """Return the verdict and the evidence of each claim, by name."""
        interim_results = {}
        if not run.is_over:
            for result in self._interim_judge.results(run.summary):
                interim_results[result.claim.claim_id] = result
        if self._interim_judge.is_loading and not self._will_retry:
            # A paused replay is shown only once, so the pane has to ask again.
            self._will_retry = True
            self.set_timer(_RETRY_S, self._show_again)
        states = {}
        for name, claim in run.summary.claims.items():
            interim_result = interim_results.get(name)
            states[name] = _describe_claim(claim, run.summary, interim_result, is_over=run.is_over)
        return states

    def _lay_out(self, run: RunSource, states: Mapping[str, tuple[str, str]]) -> list[Content]:
        """Return the lines: the card of a lesson or the prediction, the claims, and the next step.

        The next step is the command that settles inconclusive claims.
        """
        width = max((self.content_size.width or _UNKNOWN_WIDTH) - 1, 8)  # 1: the scroll bar
        claims = run.summary.claims
        lines = []
        if self.card is not None:
            lines += _lay_out_card(self.card, width)
        else:
            answer = prediction.describe_prediction(run.summary.run, list(claims.values()))
            if answer:
                lines.append(to_content(answer, 300, "bold"))
        if run.is_over:
            claims = contradicted_first(claims)
        for name, claim in claims.items():
            verdict, evidence = states[name]
            earlier = self.earlier.get(name, "")
            details = [detail for detail in (evidence, earlier) if detail]
            lines += _lay_out_claim(claim.text, verdict, details, width)
            interval = _draw_interval(claim, width, symbols_of(self.app))
            if interval:
                lines.append(Content.assemble("  ", interval))
        if run.is_over:
            command = deciding_line(run.summary, run.run_dir.parent)
            if command:
                next_step = f"to settle the inconclusive claims: {command}"
                lines += hang(Content(" "), to_content(next_step, 1000, "$text-muted"), width)
        return lines

    def _show_again(self) -> None:
        """Show the claims again, for another width or because interim results are loaded now."""
        self._will_retry = False
        if self._last is not None:
            self.show(*self._last)


def _count_judged(states: Mapping[str, tuple[str, str]]) -> str:
    """Return how many of the claims have a verdict; nothing without claims."""
    if not states:
        return ""
    verdicts = [verdict for verdict, _ in states.values() if verdict]
    return f"{len(verdicts)}/{len(states)}"


def describe_in_one_line(claim: Claim, summary: RunSummary) -> str:
    """Return a claim in one line, as the printed result has it: verdict, text, numbers."""
    verdict, evidence = _describe_claim(claim, summary, None, is_over=summary.is_over)
    sign = mark(verdict or "pending").plain
    parts = [f"{sign} {verdict}".rstrip(), claim.text, evidence]
    return "  ".join(show(part) for part in parts if part)


def contradicted_first(claims: Mapping[str, Claim]) -> dict[str, Claim]:
    """Return the claims with the contradicted ones first: a small pane may show only those."""
    return dict(sorted(claims.items(), key=lambda item: not item[1].is_contradicted))


def _lay_out_card(card: LessonCard, width: int) -> list[Content]:
    """Return the lines of a card: the place, the answer, the advice, the score, what is next."""
    lines = [Content.styled(card.place, "bold $text-primary")]
    if card.answer:
        lines.append(to_content(card.answer, 300, "bold"))
    if card.advice:
        lines += wrap_lines(inline(card.advice), width)
    lines.append(to_content(card.score, 300, "$text-muted"))
    if card.upcoming:
        next_lesson = to_content(f"next lesson: {card.upcoming}", 100)
        lines.append(Content.assemble(("enter", "bold $text-accent"), "  ", next_lesson))
    lines.append(Content(""))
    return lines


def _draw_interval(claim: Claim, width: int, symbols: Symbols) -> str:
    """Return the interval of a judged ratio next to its bound; empty for other claims."""
    if claim.declared is None or claim.verdict is None:
        return ""
    verdict = claim.verdict
    if verdict.low is None or verdict.estimate is None or verdict.high is None:
        return ""
    bound = claim.declared.bound
    room = min(width - 2, _INTERVAL_WIDTH)
    return draw_interval(verdict.low, verdict.estimate, verdict.high, bound, room, symbols)


def _lay_out_claim(text: str, verdict: str, details: Sequence[str], width: int) -> list[Content]:
    """Return a claim and its details in lines of a width."""
    line = to_content(text, 400)
    if verdict not in ("", Verdict.SUPPORTED):
        line = Content.assemble(line, "  ", to_content(verdict.lower(), 40, "bold"))
    lines = hang(mark(verdict or "pending"), line, width)
    for detail in details:
        lines += hang(Content(" "), to_content(detail, 600, "$text-muted"), width)
    return lines


def _describe_claim(
    claim: Claim, summary: RunSummary, interim_result: InterimResult | None, *, is_over: bool
) -> tuple[str, str]:
    """Return the verdict on a claim and its evidence.

    The verdict is empty if there is none yet. The text then says what is known so far.
    """
    if claim.verdict is not None:
        return claim.verdict.verdict, claim_of(claim, summary).evidence
    if interim_result is not None:
        return "", describe_interim_result(interim_result)
    if claim.measured or claim.needs:
        judgement = judge_without_times(claim, summary)
        if not judgement:
            return "", ""
        return judgement.verdict, reason_words(judgement.verdict, judgement.why)
    if is_over:
        return "", f"{NOT_JUDGED}: {why_not_judged(claim, summary)}"
    if claim.declared is not None:
        operator = claim.declared.op.replace("_", " ")
        return "", f"claimed {operator} {claim.declared.bound:g}; being measured"
    return "", ""
