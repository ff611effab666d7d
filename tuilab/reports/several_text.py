"""The summary of several runs as text for a terminal: a line for each, what was surprising, what to do next.

It has at most 40 lines. The whole result of each run is one command away.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tuilab.drawings.glyphs import Style
from tuilab.record.states import RunState
from tuilab.record.summary import RunSummary
from tuilab.record.verdicts import Verdict
from tuilab.reports.result import ResultClaim, claim_of, keyed
from tuilab.runs import command_line, store
from tuilab.text.display import plural, show
from tuilab.text.words import seconds
from tuilab.text.wrapping import wrap

MOST_LINES = 40
_MOST_RUNS = 20  # more runs than this have one line for each topic
_MOST_REASONS = 3  # reasons why claims could not be tested
_MOST_NAMED = 9  # runs that the suggested command names one by one


@dataclass(frozen=True)
class Finished:
    """A run, and the state in which it ended."""

    summary: RunSummary
    state: str
    run_dir: Path

    @property
    def scenario(self) -> str:
        run = self.summary.run
        return show(run.scenario) if run else show(self.run_dir.name)

    @property
    def label(self) -> str:
        """The scenario, and the node of a cluster on which it ran: there may be one run for each node."""
        run = self.summary.run
        return f"{self.scenario} on {show(run.node, 60)}" if run and run.node else self.scenario

    @property
    def topic(self) -> str:
        run = self.summary.run
        return show(run.topic) if run else "n/a"

    @property
    def name(self) -> str:
        return f"{self.topic}/{self.label}"

    @cached_property
    def claims(self) -> list[ResultClaim]:
        return [claim_of(claim, self.summary) for claim in self.summary.claims.values()]


def overview(runs: Sequence[Finished], style: Style, width: int) -> str:
    """Return the summary of several runs."""
    table = _list_runs(runs, style) if len(runs) <= _MOST_RUNS else _list_topics(runs, style)
    parts = [table, [_count(runs)]]
    untestable = _list_untestable(runs, style, width)
    following = _list_next_steps(runs, width)
    used = sum(len(part) + 1 for part in (*parts, untestable, following))
    parts += [_list_surprises(runs, style, width, MOST_LINES - used), untestable, following]
    return "\n\n".join("\n".join(part) for part in parts if part)


def line_of(run: Finished, style: Style) -> str:
    """Return how a run ended, in one line."""
    state = "" if run.state == RunState.SUCCEEDED else f"{run.state}  "
    tally = style.tally(claim.outcome for claim in run.claims)
    return f"{state}{seconds(run.summary.elapsed_s)}  {tally}".rstrip()


def _list_runs(runs: Sequence[Finished], style: Style) -> list[str]:
    width = max(len(run.name) for run in runs)
    lines = []
    for run in runs:
        lines.append(
            f"{run.name.ljust(width)}  {store.short_id(run.run_dir.name)}  {line_of(run, style)}"
        )
    return lines


def _list_topics(runs: Sequence[Finished], style: Style) -> list[str]:
    """Return a line for each topic: how many runs it has, how many failed, and their verdicts."""
    topics: dict[str, list[Finished]] = {}
    for run in runs:
        topics.setdefault(run.topic, []).append(run)
    width = max(len(topic) for topic in topics)
    lines = []
    for topic, members in topics.items():
        failed = sum(run.state != RunState.SUCCEEDED for run in members)
        tally = style.tally(claim.outcome for run in members for claim in run.claims)
        elapsed = seconds(sum(run.summary.elapsed_s for run in members))
        words = [f"{topic.ljust(width)}  {plural(len(members), 'run'):>7} in {elapsed}"]
        words += [f"{failed} failed"] if failed else []
        words += [tally] if tally else []
        lines.append("  ".join(words))
    return lines


def _count(runs: Sequence[Finished]) -> str:
    claims = [claim for run in runs for claim in run.claims]
    supported = sum(claim.outcome == Verdict.SUPPORTED for claim in claims)
    return f"{plural(len(runs), 'run')}, {supported} of {plural(len(claims), 'claim')} supported"


def _list_surprises(runs: Sequence[Finished], style: Style, width: int, room: int) -> list[str]:
    """Return what failed, and each claim that is not as claimed or not decided, in so many lines at most."""
    entries = []
    for run in runs:
        if run.state != RunState.SUCCEEDED:
            entries.append(
                [f"{style.mark(Verdict.INVALID)} {run.name} {run.state}: {_reason(run)}"]
            )
    for verdict in (
        Verdict.INVALID,
        Verdict.REFUTED,
        Verdict.WEAKER,
        Verdict.NO_DIFFERENCE,
        Verdict.INCONCLUSIVE,
    ):
        for run in runs:
            entries += [
                _entry(run, claim, style, width)
                for claim in run.claims
                if _is_surprising(claim, verdict)
            ]
    lines: list[str] = []
    for number, entry in enumerate(entries):
        left = len(entries) - number
        needed = len(entry) + (
            1 if left > 1 else 0
        )  # keep a line for the number of the entries left out
        if len(lines) + needed > room:
            lines.append(f"and {left} more; --verbose shows them")
            break
        lines += entry
    return lines


def _is_surprising(claim: ResultClaim, verdict: Verdict) -> bool:
    if claim.outcome != verdict:
        return False
    return claim.is_contradicted or verdict == Verdict.INCONCLUSIVE


def _entry(run: Finished, claim: ResultClaim, style: Style, width: int) -> list[str]:
    """Return a claim and what was measured for it, a line each."""
    said = f"{run.label}: {keyed(claim.key, claim.text)}"
    measured = show(claim.evidence)
    head = f"{style.mark(claim.outcome)} {style.verdict(claim.outcome)}  "
    room = max(width - len(claim.outcome) - 4, 30)
    lines = [head + _first_line(said, room)]
    if measured:
        lines.append("  " + style.dim(_first_line(measured, width - 2)))
    return lines


def _first_line(text: str, width: int) -> str:
    """Return as many whole words as fit into a line."""
    first, *rest = wrap(text, width - 2) or [""]
    return f"{first} …" if rest else first


def _reason(run: Finished) -> str:
    """Return why a run did not succeed."""
    failure = next(iter(run.summary.failures.values()), None)
    if failure is not None:
        return show(f"{failure.type}: {failure.message}", 200)
    return show(run.summary.reason, 200) or "the record gives no reason"


def _list_untestable(runs: Sequence[Finished], style: Style, width: int) -> list[str]:
    """Return why claims could not be tested on this machine, the most frequent reason first."""
    reasons: Counter[str] = Counter()
    for run in runs:
        for claim in run.claims:
            if claim.verdict == Verdict.NOT_TESTABLE:
                reasons[show(claim.evidence)] += 1
    lines = []
    for reason, count in reasons.most_common(_MOST_REASONS):
        line = _first_line(f"{plural(count, 'claim')} not testable here; {reason}", width - 2)
        lines.append(f"{style.mark(Verdict.NOT_TESTABLE)} {line}")
    others = len(reasons) - _MOST_REASONS
    if others > 0:
        lines.append(f"{style.mark(Verdict.NOT_TESTABLE)} and for {plural(others, 'other reason')}")
    return lines


def _list_next_steps(runs: Sequence[Finished], width: int) -> list[str]:
    """Return the commands that show more; a long one is continued on the next line, as a shell reads it."""
    root = runs[0].run_dir.parent
    ids = [store.short_id(run.run_dir.name) for run in runs]
    first = _most_surprising(runs)
    named = ids if len(ids) <= _MOST_NAMED else ["all"]
    where = command_line.root_option(root)
    steps = [
        (f"whole result of {first.label}:", ["attach", store.short_id(first.run_dir.name), *where]),
        ("all results on one page:", ["report", *named, "-o", "report.html", *where]),
    ]
    label_width = max(len(label) for label, _ in steps)
    lines = []
    for label, words in steps:
        start, *rest = _command_lines(["tuilab", *words], width - label_width - 2)
        lines.append(f"{label.ljust(label_width)}  {start}")
        lines += [" " * (label_width + 2) + line for line in rest]
    return lines


def _command_lines(words: Sequence[str], width: int) -> list[str]:
    """Return a command in lines of at most so many characters; all but the last end in a backslash."""
    lines = [show(command_line.line(words[:1]))]
    for word in words[1:]:
        quoted = show(command_line.line([word]))
        if len(lines[-1]) + len(f" {quoted} \\") > width:
            lines.append(f"  {quoted}")
        else:
            lines[-1] += f" {quoted}"
    return [f"{line} \\" for line in lines[:-1]] + lines[-1:]


def _most_surprising(runs: Sequence[Finished]) -> Finished:
    """Return the run that is most worth a look: one that failed, one with a claim that is not as claimed, or the first."""
    for run in runs:
        if run.state != RunState.SUCCEEDED:
            return run
    for run in runs:
        if any(claim.is_contradicted for claim in run.claims):
            return run
    for run in runs:
        if any(claim.outcome == Verdict.INCONCLUSIVE for claim in run.claims):
            return run
    return runs[0]
