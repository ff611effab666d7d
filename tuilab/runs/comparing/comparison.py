"""Compare runs by their summaries: first their settings and machines, then their results.

The first run is the one with which the others are compared.
"""

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import unified_diff
from statistics import median
from typing import NamedTuple

from tuilab.record.blocks import measure_of, times_of
from tuilab.record.summary import RunSummary
from tuilab.record.timing.clocks import CLOCK_NAMES, CPU, WALL, ArmTimes, arm_times, cpu_times_of
from tuilab.record.verdicts import Verdict
from tuilab.runs.comparing.call_times import shifts_of, times_of_processes
from tuilab.runs.comparing.claim_pairs import ClaimPair, Shift, Side, are_apart, pairs_of
from tuilab.runs.comparing.differences import ABSENT, Difference, absent, box_of, differing
from tuilab.text.display import brief, plural
from tuilab.text.words import seconds

_MAX_CHANGED_LINES = 200  # of two sources
_RANKS: dict[str, int] = {
    Verdict.SUPPORTED: 3,
    Verdict.WEAKER: 2,
    Verdict.NO_DIFFERENCE: 1,
    Verdict.REFUTED: 0,
    Verdict.INVALID: 0,
}

Values = tuple[float | None, ...]  # a number of each run; None if a run does not have it
Row = tuple[str, Values]


@dataclass(frozen=True)
class Comparison:
    """The result of a comparison of runs. A field with a row for each arm or name is a table."""

    names: tuple[str, ...]  # the scenario of each run
    differences: tuple[Difference, ...]
    same: int  # facts that are the same in all runs
    claims: tuple[ClaimPair, ...]
    times: tuple[Row, ...]  # by arm: the median seconds of a call
    # By arm: how that time differs from the first run's, for each run after the first.
    shifts: Mapping[str, tuple[Shift | None, ...]]
    sizes: tuple[Row, ...]  # measured memory and other values
    # Of each run: the words that are shown instead of a missing number, with the reason.
    lacks: tuple[str, ...]
    series: tuple[str, ...]  # names of curves, those of the most runs first
    of: str = "call"  # the unit that the times are of: a call or a step
    cpu_times: tuple[Row, ...] = ()  # medians of CPU time; empty if no verdict rests on it
    cpu_shifts: Mapping[str, tuple[Shift | None, ...]] = field(default_factory=dict)
    # Arms that were judged by CPU time in every run that timed them.
    judged_on_cpu: frozenset[str] = frozenset()
    boxes: tuple[str, ...] = ()  # where each run was made; empty if all were made on one machine


def compare(summaries: Sequence[RunSummary], running: Container[int] = ()) -> Comparison:
    """Return what differs between runs, the first of which the others are compared with.

    `running` are the positions of the runs that are running and may record more. At least one run
    is needed.
    """
    names = [summary.run.scenario if summary.run else ABSENT for summary in summaries]
    differences, same = differing(summaries, running)
    first_times, *later_times = [times_of_processes(summary) for summary in summaries]
    times_of_runs = [arm_times(summary) for summary in summaries]
    on_cpu = _arms_on(CPU, times_of_runs)
    cpu_medians: list[dict[str, float]] = []
    cpu_shifts: dict[str, tuple[Shift | None, ...]] = {}
    if on_cpu:
        cpu_medians = [_medians_of(cpu_times_of(summary)) for summary in summaries]
        first_cpu, *later_cpu = [times_of_processes(summary, CPU) for summary in summaries]
        cpu_shifts = shifts_of(first_cpu, later_cpu)
    lacks = []
    for position, summary in enumerate(summaries):
        if position in running:
            lacks.append(f"{ABSENT}: not yet")
        else:
            lacks.append(absent(summary, "parameter"))
    boxes = [box_of(summary) for summary in summaries]
    if len(set(boxes)) < 2:
        boxes = []
    median_times = [_median_times(summary) for summary in summaries]
    sizes = [_sizes(summary) for summary in summaries]
    return Comparison(
        names=tuple(names),
        differences=tuple(differences),
        same=same,
        claims=pairs_of(summaries, running),
        times=_table(median_times),
        shifts=shifts_of(first_times, later_times),
        sizes=_table(sizes),
        lacks=tuple(lacks),
        series=_shared_series(summaries),
        of=measure_of(summaries[0]).of,
        cpu_times=_table(cpu_medians),
        cpu_shifts=cpu_shifts,
        judged_on_cpu=frozenset(on_cpu - _arms_on(WALL, times_of_runs)),
        boxes=tuple(boxes),
    )


def source_changes(first: str, other: str) -> list[str]:
    """Return the lines that differ between two sources, as in `diff -u` without its heading."""
    lines = list(unified_diff(first.splitlines(), other.splitlines(), lineterm="", n=1))[2:]
    listed = lines[:_MAX_CHANGED_LINES]
    if len(lines) > len(listed):
        listed.append(f"… and {plural(len(lines) - len(listed), 'line')} more")
    return listed


def no_claims(comparison: Comparison) -> str:
    """Return the sentence for runs without claims."""
    if comparison.of == "step":
        return "Commands have no claims; `tuilab ab` compares ways to run a command, with verdicts."
    return "No claims."


def claim_groups(comparison: Comparison) -> dict[str, list[ClaimPair]]:
    """Return the claims by how the runs differ on them, the most important group first.

    Empty groups are left out.
    """
    groups: dict[str, list[ClaimPair]] = {
        "Different": [],
        "Not decided yet": [],
        "The same": [],
        "Not claimed in every run": [],
    }
    for pair in comparison.claims:
        if None in pair.sides:
            title = "Not claimed in every run"
        elif difference_words(pair):
            title = "Different"
        elif pair.is_open:
            title = "Not decided yet"
        else:
            title = "The same"
        groups[title].append(pair)
    return {title: pairs for title, pairs in groups.items() if pairs}


def difference_words(pair: ClaimPair) -> str:
    """Return how the runs differ on a claim: in its verdict, its estimate or its exact value.

    The words are empty if the runs agree.
    """
    if pair.has_other_verdicts:
        if len(pair.gpus) > 1:
            return f"different verdicts, on different GPUs: {' and '.join(pair.gpus)}"
        return "different verdicts"
    if pair.has_other_estimates:
        return "different estimates"
    return "different values" if pair.has_other_values else ""


def key_words(pair: ClaimPair) -> str:
    """Return that a claim has another key than before; empty if it does not."""
    if not pair.former_keys:
        return ""
    former_keys = " and ".join(f"[{key}]" for key in pair.former_keys)
    return f"claim {former_keys} is [{pair.key}] now"


def regressions(comparison: Comparison) -> list[str]:
    """Return a sentence for each claim whose result is worse in a later run than in the first.

    A result of another GPU is not worse, because it is about another GPU: `difference_words` says
    so. A missing verdict (inconclusive, not testable) is not worse, only unknown. An estimate is
    worse only if the interval of the ratio excludes 1 and covers the variation between processes.
    """
    sentences = []
    for pair in comparison.claims:
        first, *later = pair.sides
        for position, side in enumerate(later):
            shift = pair.shifts[position] if position < len(pair.shifts) else None
            problem = _describe_regression(first, side, shift)
            if problem:
                sentences.append(f"run {position + 2}: {pair.text}: {problem}")
    return sentences


class TimeRow(NamedTuple):
    """The median times of an arm on one clock, in every run."""

    arm: str
    clock: str  # empty: every time of the comparison is wall-clock time
    values: Values
    shifts: tuple[Shift | None, ...]

    @property
    def label(self) -> str:
        """The arm, and the clock if there are several."""
        if not self.clock:
            return self.arm
        return f"{self.arm}, {CLOCK_NAMES[self.clock]}"


def time_rows(comparison: Comparison) -> list[TimeRow]:
    """Return the rows of times.

    If a verdict rests on CPU time, an arm has a row for each clock, the judged one first.
    """
    cpu_times = dict(comparison.cpu_times)
    wall_clock = WALL if cpu_times else ""
    rows = []
    for arm, values in comparison.times:
        wall = TimeRow(arm, wall_clock, values, comparison.shifts.get(arm, ()))
        if arm not in cpu_times:
            rows.append(wall)
            continue
        cpu = TimeRow(arm, CPU, cpu_times[arm], comparison.cpu_shifts.get(arm, ()))
        if arm in comparison.judged_on_cpu:
            rows += [cpu, wall]
        else:
            rows += [wall, cpu]
    return rows


def slowdowns(comparison: Comparison, share: float) -> list[str]:
    """Return a sentence for each arm that is missing in a later run, or surely slower than before.

    It is slower if the interval of the ratio is above 1 plus the share. The times are CPU times if
    the verdicts of all runs rest on them, else wall-clock times.
    """
    sentences = []
    described_arms: set[str] = set()
    for row in time_rows(comparison):
        if row.arm in described_arms:
            continue  # the second row of an arm is on the clock that was not judged
        described_arms.add(row.arm)
        of_clock = " of CPU time" if row.clock == CPU else ""
        for position, shift in enumerate(row.shifts, 1):
            value = row.values[position]
            if value is None:
                sentences.append(f"run {position + 1}: a call of {row.arm} was not timed")
            elif shift is not None and shift.low > 1 + share:
                time = f"{seconds(value)}{of_clock}"
                sentences.append(
                    f"run {position + 1}: a call of {row.arm} takes {time} ({shift.words})"
                )
    return sentences


def _describe_regression(first: Side | None, later: Side | None, shift: Shift | None) -> str:
    """Return how a result is worse than the first one; empty if it is not, or if it is unknown.

    A claim that the later run does not make counts as worse, unless the first verdict was REFUTED
    or INVALID or the claim had none.
    """
    if first is None:
        return ""
    first_rank = _RANKS.get(first.verdict)
    if later is None:
        return f"no longer claimed, was {first.verdict}" if first_rank else ""
    if are_apart(first.gpu, later.gpu):
        return ""
    later_rank = _RANKS.get(later.verdict)
    if first_rank is not None and later_rank is not None and later_rank < first_rank:
        return f"{later.verdict}, was {first.verdict}"
    if shift is None or not shift.is_apart or shift.lone:
        return ""
    # A smaller ratio is worse for a claim of at least so much, a larger one for at most so much.
    worse_for = "at_least" if shift.ratio < 1 else "at_most"
    if later.op != worse_for:
        return ""
    return f"{brief(later.estimate or 0)}, was {brief(first.estimate or 0)} ({shift.words})"


# ---- tables


def _median_times(summary: RunSummary) -> dict[str, float]:
    """Return the median time of a call of each arm; empty if the arms were compared by no time."""
    if measure_of(summary).unit != "s":
        return {}
    return _medians_of(times_of(summary))


def _medians_of(times: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return {arm: median(arm_times) for arm, arm_times in times.items()}


def _arms_on(clock: str, times_of_runs: Sequence[Mapping[str, ArmTimes]]) -> set[str]:
    """Return the arms that have a clock as their first one in some run."""
    arms = set()
    for times_of_arms in times_of_runs:
        for arm, times in times_of_arms.items():
            if times.clock == clock:
                arms.add(arm)
    return arms


def _sizes(summary: RunSummary) -> dict[str, float]:
    """Return what was measured with lab.memory, by the name, the arm and the name of the value."""
    sizes = {}
    for measured in summary.memory:
        prefix = f"{measured.name} {measured.arm}".strip()
        for name, value in measured.values.items():
            sizes[f"{prefix} {name}"] = value
    return sizes


def _table(columns: Sequence[Mapping[str, float]]) -> tuple[Row, ...]:
    """Return a row for each name, from a column for each run."""
    names: dict[str, None] = {}
    for column in columns:
        names |= dict.fromkeys(column)
    rows = []
    for name in names:
        values = tuple(column.get(name) for column in columns)
        rows.append((name, values))
    return tuple(rows)


def _shared_series(summaries: Sequence[RunSummary]) -> tuple[str, ...]:
    """Return the names of series, those of the most runs first."""
    counts: Counter[str] = Counter()
    for summary in summaries:
        names = dict.fromkeys(name for name, _, _ in summary.series)
        counts.update(list(names))
    return tuple(name for name, _ in counts.most_common())
