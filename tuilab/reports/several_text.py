"""The summary of several runs as text for a terminal.

It has a line for each run, what was surprising, and what to do next: at most 40 lines. The whole
result of each run is one command away.
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
from tuilab.reports.result import ResultClaim, claim_of, with_key
from tuilab.runs import command_line, store
from tuilab.text.display import plural, show
from tuilab.text.words import seconds
from tuilab.text.wrapping import wrap

MOST_LINES = 40
_MOST_RUNS = 20  # more runs than this have one line for each topic
_SURPRISING = (  # verdicts, the most important first
    Verdict.INVALID,
    Verdict.REFUTED,
    Verdict.WEAKER,
    Verdict.NO_DIFFERENCE,
    Verdict.INCONCLUSIVE,
)
_MOST_REASONS = 3  # reasons why claims could not be tested
_MOST_NAMED = 9  # runs that the suggested command names one by one


@dataclass(frozen=True)
class FinishedRun:
    """A run with the state in which it ended."""

    summary: RunSummary
    state: str
    run_dir: Path

    @property
    def scenario(self) -> str:
        run = self.summary.run
        if run is None:
            return show(self.run_dir.name)
        return show(run.scenario)

    @property
    def label(self) -> str:
        """The scenario with the node of a cluster, because each node may have a run of it."""
        run = self.summary.run
        if run and run.node:
            return f"{self.scenario} on {show(run.node, 60)}"
        return self.scenario

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


def overview(runs: Sequence[FinishedRun], style: Style, width: int) -> str:
    """Return the summary of several runs, in `MOST_LINES` lines if the other parts allow it.

    Surprising runs and claims get the lines that the other parts leave.
    """
    if len(runs) <= _MOST_RUNS:
        table = _list_runs(runs, style)
    else:
        table = _list_topics(runs, style)
    count = [_count(runs)]
    untestable = _list_untestable(runs, style, width)
    next_steps = _list_next_steps(runs, width)
    # Surprises get the lines that are left; an empty line follows each part.
    max_surprises = MOST_LINES
    for lines in (table, count, untestable, next_steps):
        max_surprises -= len(lines) + 1
    surprises = _list_surprises(runs, style, width, max_surprises)
    parts = []
    for lines in (table, count, surprises, untestable, next_steps):
        if lines:
            parts.append("\n".join(lines))
    return "\n\n".join(parts)


def line_of(run: FinishedRun, style: Style) -> str:
    """Return the duration and the verdicts of a run in one line.

    If the run did not succeed, the line begins with its state.
    """
    tally = style.tally(claim.outcome for claim in run.claims)
    line = f"{seconds(run.summary.elapsed_s)}  {tally}".rstrip()
    if run.state != RunState.SUCCEEDED:
        line = f"{run.state}  {line}"
    return line


def _list_runs(runs: Sequence[FinishedRun], style: Style) -> list[str]:
    """Return a line for each run: its name, its id, how it ended and its verdicts."""
    width = max(len(run.name) for run in runs)
    lines = []
    for run in runs:
        run_id = store.short_id(run.run_dir.name)
        lines.append(f"{run.name.ljust(width)}  {run_id}  {line_of(run, style)}")
    return lines


def _list_topics(runs: Sequence[FinishedRun], style: Style) -> list[str]:
    """Return a line for each topic: how many runs it has, how many failed, and their verdicts."""
    topics: dict[str, list[FinishedRun]] = {}
    for run in runs:
        topics.setdefault(run.topic, []).append(run)
    width = max(len(topic) for topic in topics)
    lines = []
    for topic, members in topics.items():
        failed = 0
        elapsed_s = 0.0
        outcomes = []
        for run in members:
            if run.state != RunState.SUCCEEDED:
                failed += 1
            elapsed_s += run.summary.elapsed_s
            outcomes += [claim.outcome for claim in run.claims]
        tally = style.tally(outcomes)
        count = plural(len(members), "run")
        line = f"{topic.ljust(width)}  {count:>7} in {seconds(elapsed_s)}"
        if failed:
            line += f"  {failed} failed"
        if tally:
            line += f"  {tally}"
        lines.append(line)
    return lines


def _count(runs: Sequence[FinishedRun]) -> str:
    """Return how many runs there are, and how many of their claims are supported."""
    claims = 0
    supported = 0
    for run in runs:
        claims += len(run.claims)
        supported += sum(claim.outcome == Verdict.SUPPORTED for claim in run.claims)
    return f"{plural(len(runs), 'run')}, {supported} of {plural(claims, 'claim')} supported"


def _list_surprises(
    runs: Sequence[FinishedRun], style: Style, width: int, max_lines: int
) -> list[str]:
    """Return the runs that failed, and the claims that do not hold or are not decided.

    The most important ones come first, each whole. If lines are too few, the last line counts the
    rest.
    """
    entries = []
    for run in runs:
        if run.state != RunState.SUCCEEDED:
            mark = style.mark(Verdict.INVALID)
            entries.append([f"{mark} {run.name} {run.state}: {_reason(run)}"])
    for verdict in _SURPRISING:
        for run in runs:
            for claim in run.claims:
                if _is_surprising(claim, verdict):
                    entries.append(_entry(run, claim, style, width))
    lines: list[str] = []
    for number, entry in enumerate(entries):
        remaining = len(entries) - number
        needed = len(entry)
        if remaining > 1:
            needed += 1  # for the line that counts the entries left out
        if len(lines) + needed > max_lines:
            lines.append(f"and {remaining} more; --verbose shows them")
            break
        lines += entry
    return lines


def _is_surprising(claim: ResultClaim, verdict: Verdict) -> bool:
    if claim.outcome != verdict:
        return False
    return claim.is_contradicted or verdict == Verdict.INCONCLUSIVE


def _entry(run: FinishedRun, claim: ResultClaim, style: Style, width: int) -> list[str]:
    """Return a claim and what was measured for it, a line each."""
    text = f"{run.label}: {with_key(claim.key, claim.text)}"
    measured = show(claim.evidence)
    verdict = f"{style.mark(claim.outcome)} {style.verdict(claim.outcome)}"
    text_width = max(width - len(claim.outcome) - 4, 30)
    lines = [f"{verdict}  {_first_line(text, text_width)}"]
    if measured:
        lines.append("  " + style.dim(_first_line(measured, width - 2)))
    return lines


def _first_line(text: str, width: int) -> str:
    """Return as many whole words as fit into a line, with an ellipsis if words are left out."""
    first, *rest = wrap(text, width - 2) or [""]
    if rest:
        first += " …"
    return first


def _reason(run: FinishedRun) -> str:
    """Return why a run did not succeed."""
    failure = next(iter(run.summary.failures.values()), None)
    if failure is not None:
        return show(f"{failure.type}: {failure.message}", 200)
    return show(run.summary.reason, 200) or "the record gives no reason"


def _list_untestable(runs: Sequence[FinishedRun], style: Style, width: int) -> list[str]:
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
    left_out = len(reasons) - _MOST_REASONS
    if left_out > 0:
        words = f"and for {plural(left_out, 'other reason')}"
        lines.append(f"{style.mark(Verdict.NOT_TESTABLE)} {words}")
    return lines


def _list_next_steps(runs: Sequence[FinishedRun], width: int) -> list[str]:
    """Return the commands that show more, each behind its purpose."""
    root_option = command_line.root_option(runs[0].run_dir.parent)
    first = _most_surprising(runs)
    ids = ["all"]
    if len(runs) <= _MOST_NAMED:
        ids = [store.short_id(run.run_dir.name) for run in runs]
    attach = ["tuilab", "attach", store.short_id(first.run_dir.name), *root_option]
    report = ["tuilab", "report", *ids, "-o", "report.html", *root_option]
    commands = {f"whole result of {first.label}:": attach, "all results on one page:": report}
    label_width = max(len(label) for label in commands)
    lines = []
    for label, words in commands.items():
        start, *rest = _command_lines(words, width - label_width - 2)
        lines.append(f"{label.ljust(label_width)}  {start}")
        for line in rest:
            lines.append(" " * (label_width + 2) + line)
    return lines


def _command_lines(words: Sequence[str], width: int) -> list[str]:
    """Return a command in lines that a shell reads as one: all but the last end in a backslash."""
    lines = [show(command_line.line(words[:1]))]
    for word in words[1:]:
        quoted = show(command_line.line([word]))
        if len(lines[-1]) + len(f" {quoted} \\") > width:
            lines[-1] += " \\"
            lines.append(f"  {quoted}")
        else:
            lines[-1] += f" {quoted}"
    return lines


def _most_surprising(runs: Sequence[FinishedRun]) -> FinishedRun:
    """Return the run to look at first: a failed one, else one with a claim that does not hold.

    Without such a run it is the first with an undecided claim, else the first of all.
    """
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
