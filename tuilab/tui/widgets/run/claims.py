"""The claims of a run with what is known of each: the answer that the run was made for."""

from collections.abc import Mapping

from textual.content import Content

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
from tuilab.tui.looks.lesson_layout import hang
from tuilab.tui.looks.marks import mark, to_content
from tuilab.tui.state.run_source import RunSource
from tuilab.tui.state.view import View
from tuilab.tui.widgets.pane import TextPane

_SOON_S = 0.2


class ClaimsPane(TextPane):
    """One claim after another: its mark, its words, what was measured."""

    def __init__(self) -> None:
        super().__init__("Claims")
        self._standings = InterimJudge()
        self.before: Mapping[str, str] = {}  # by claim: how often it was judged on this box before
        self._last: tuple[RunSource, View] | None = None
        self._shows_soon = False

    def on_resize(self) -> None:
        self._show_again()

    def show(self, run: RunSource, view: View) -> None:
        self._last = run, view
        width = max(
            (self.content_size.width or 1000) - 1, 8
        )  # beside the bar, if there is one; 0: not on the screen yet
        known = run.summary.claims
        claims = list(known.values())
        standings = (
            {}
            if run.is_over
            else {found.claim.claim_id: found for found in self._standings.results(run.summary)}
        )
        if (
            self._standings.is_loading and not self._shows_soon
        ):  # what is played and held is shown once
            self._shows_soon = True
            self.set_timer(_SOON_S, self._show_again)
        told = {
            name: _known(known[name], run.summary, standings.get(name), is_over=run.is_over)
            for name in known
        }
        done = sum(bool(verdict) for verdict, _ in told.values())
        self.note(Content(f"{done}/{len(claims)}" if claims else ""))
        lines = [
            line
            for name, claim in (against_first(known) if run.is_over else known).items()
            for line in _lines(claim.text, *told[name], self.before.get(name, ""), width)
        ]
        if run.is_over and (decide := deciding_line(run.summary, run.run_dir.parent)):
            lines += hang(
                Content(" "),
                to_content(f"to settle the inconclusive claims: {decide}", 1000, "$text-muted"),
                width,
            )
        if said := prediction.describe_prediction(run.summary.run, claims):
            lines.insert(0, to_content(said, 300, "bold"))
        self.put(
            lines
            or [Content.styled("no claims" if run.is_over else "no claims yet", "$text-muted")]
        )

    def _show_again(self) -> None:
        self._shows_soon = False
        if self._last is not None:
            self.show(*self._last)


def in_a_line(claim: Claim, summary: RunSummary) -> str:
    """Return a claim in one line, as the printed result has it: its verdict, its words, its numbers."""
    verdict, words = _known(claim, summary, None, is_over=summary.is_over)
    sign = f"{mark(verdict or 'pending').plain} {verdict}".rstrip()
    return "  ".join(show(part) for part in (sign, claim.text, words) if part)


def against_first(claims: Mapping[str, Claim]) -> dict[str, Claim]:
    """Return judged claims in the order in which they are wanted: what stands against one may be all that can be seen."""
    return dict(sorted(claims.items(), key=lambda named: not named[1].is_contradicted))


def _lines(text: str, verdict: str, words: str, before: str, width: int) -> list[Content]:
    """Return a claim's words, and what is known of it, in lines of a width."""
    said = to_content(text, 400)
    if verdict not in ("", Verdict.SUPPORTED):
        said = Content.assemble(said, "  ", to_content(verdict.lower(), 40, "bold"))
    more = [to_content(line, 600, "$text-muted") for line in (words, before) if line]
    return [
        *hang(mark(verdict or "pending"), said, width),
        *(row for line in more for row in hang(Content(" "), line, width)),
    ]


def _known(
    claim: Claim, summary: RunSummary, standing: InterimResult | None, *, is_over: bool
) -> tuple[str, str]:
    """Return the verdict on a claim and what it rests on; while the run goes on, what there is so far."""
    if claim.verdict is not None:
        return claim.verdict.verdict, claim_of(claim, summary).evidence
    if standing is not None:
        return "", describe_interim_result(standing)
    if claim.measured or claim.needs:
        found = judge_without_times(claim, summary)
        return (found.verdict, reason_words(found.verdict, found.why)) if found else ("", "")
    if is_over:
        return "", f"{NOT_JUDGED}: {why_not_judged(claim, summary)}"
    if claim.declared is not None:
        return (
            "",
            f"claimed {claim.declared.op.replace('_', ' ')} {claim.declared.bound:g}; being measured",
        )
    return "", ""
