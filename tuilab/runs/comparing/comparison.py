"""What differs between runs: first in what was asked and where it ran, then in what came out; pure, from their summaries.

The first run is the one that the others are compared with.
"""

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

_CHANGED_LINES = 200  # of two sources
_RANKS: dict[str, int] = {
    Verdict.SUPPORTED: 3,
    Verdict.WEAKER: 2,
    Verdict.NO_DIFFERENCE: 1,
    Verdict.REFUTED: 0,
    Verdict.INVALID: 0,
}


@dataclass(frozen=True)
class Comparison:
    """Everything there is to say about runs side by side."""

    names: tuple[str, ...]  # the scenario of each
    differences: tuple[Difference, ...]
    same: int  # facts that are the same in all
    claims: tuple[ClaimPair, ...]
    times: tuple[
        tuple[str, tuple[float | None, ...]], ...
    ]  # arm: median seconds of a call in each run
    shifts: Mapping[str, tuple[Shift | None, ...]]  # arm: of that time, of each run after the first
    sizes: tuple[tuple[str, tuple[float | None, ...]], ...]  # measured memory and other values
    lacks: tuple[str, ...]  # what stands for a number that a run has not, with the reason
    series: tuple[str, ...]  # names of curves that more than one run has
    of: str = "call"  # what the times are of
    cpu_times: tuple[
        tuple[str, tuple[float | None, ...]], ...
    ] = ()  # medians on CPU time; none if no verdict rests on it
    cpu_shifts: Mapping[str, tuple[Shift | None, ...]] = field(default_factory=dict)
    judged_on_cpu: frozenset[str] = (
        frozenset()
    )  # the arms that every run which has them judged on CPU time
    boxes: tuple[str, ...] = ()  # where each was made, if not all were made on one box


def compare(summaries: Sequence[RunSummary], going_on: Container[int] = ()) -> Comparison:
    """Return what differs between runs; `going_on` are the places of those that have not said all yet."""
    differences, same = differing(summaries, going_on)
    first, *others = map(times_of_processes, summaries)
    of_arms = [arm_times(summary) for summary in summaries]
    has_cpu = any(one.clock == CPU for times in of_arms for one in times.values())
    first_cpu, *others_cpu = [
        times_of_processes(summary, CPU) if has_cpu else {} for summary in summaries
    ]
    boxes = tuple(map(box_of, summaries))
    return Comparison(
        names=tuple(summary.run.scenario if summary.run else ABSENT for summary in summaries),
        differences=tuple(differences),
        same=same,
        claims=pairs_of(summaries, going_on),
        times=_table([_medians(summary) for summary in summaries]),
        shifts=shifts_of(first, others),
        sizes=_table([_sizes(summary) for summary in summaries]),
        lacks=tuple(
            f"{ABSENT}: not yet" if at in going_on else absent(run, "parameter")
            for at, run in enumerate(summaries)
        ),
        series=_shared_series(summaries),
        of=measure_of(summaries[0]).of,
        cpu_times=_table(
            [_middles(cpu_times_of(summary)) if has_cpu else {} for summary in summaries]
        ),
        cpu_shifts=shifts_of(first_cpu, others_cpu),
        judged_on_cpu=frozenset(_judged_on_cpu(of_arms)),
        boxes=boxes if len(set(boxes)) > 1 else (),
    )


def source_changes(first: str, other: str) -> list[str]:
    """Return the lines that differ between two sources, as `diff -u` has them, without a heading."""
    lines = list(unified_diff(first.splitlines(), other.splitlines(), lineterm="", n=1))[2:]
    kept = lines[:_CHANGED_LINES]
    return (
        [*kept, f"… and {plural(len(lines) - len(kept), 'line')} more"]
        if len(lines) > len(kept)
        else kept
    )


def no_claims(found: Comparison) -> str:
    """Return what stands where none of the runs claims anything."""
    return (
        "Commands have no claims; `tuilab ab` compares ways to run a command, with verdicts."
        if found.of == "step"
        else "No claims."
    )


def claim_groups(found: Comparison) -> dict[str, list[ClaimPair]]:
    """Return the claims by how the runs differ on them, what needs looking at first; without groups that are empty."""
    shared = [pair for pair in found.claims if None not in pair.sides]
    differing = [pair for pair in shared if verdict_words(pair)]
    groups = {
        "Different": differing,
        "Not decided yet": [pair for pair in shared if pair.is_open and pair not in differing],
        "The same": [pair for pair in shared if not pair.is_open and pair not in differing],
        "Not claimed in every run": [pair for pair in found.claims if None in pair.sides],
    }
    return {title: pairs for title, pairs in groups.items() if pairs}


def verdict_words(pair: ClaimPair) -> str:
    """Return how the runs differ on a claim, in a few words; nothing when they agree."""
    if pair.has_other_verdicts:
        return "different verdicts" + (
            f", on different GPUs: {' and '.join(pair.gpus)}" if len(pair.gpus) > 1 else ""
        )
    if any(shift is not None and shift.is_apart for shift in pair.shifts):
        return "different estimates"
    return "different values" if pair.has_other_values else ""


def key_words(pair: ClaimPair) -> str:
    """Return that a claim has another key than it had; nothing when it has not."""
    return (
        f"claim {' and '.join(f'[{key}]' for key in pair.former_keys)} is [{pair.key}] now"
        if pair.former_keys
        else ""
    )


def regressions(found: Comparison) -> list[str]:
    """Return a sentence for each claim that came out worse in a later run than in the first.

    What was measured on another GPU is not worse, but about another GPU: `verdict_words` says so.
    A verdict that could not be reached (inconclusive, not testable) is not worse, only unknown. Of an estimate the interval of
    the ratio has to leave out 1, and to cover how much processes differ.
    """
    sentences = []
    for pair in found.claims:
        for at, side in enumerate(pair.sides[1:], 1):
            shift = pair.shifts[at - 1] if at <= len(pair.shifts) else None
            if why := _worse(pair.sides[0], side, shift):
                sentences.append(f"run {at + 1}: {pair.text}: {why}")
    return sentences


class TimeRow(NamedTuple):
    """The median times of an arm on one clock, in every run."""

    arm: str
    clock: str  # empty: every time of the comparison is on the wall clock
    values: tuple[float | None, ...]
    shifts: tuple[Shift | None, ...]

    @property
    def label(self) -> str:
        """The arm, and the clock if there are several."""
        return f"{self.arm}, {CLOCK_NAMES[self.clock]}" if self.clock else self.arm


def time_rows(found: Comparison) -> list[TimeRow]:
    """Return the rows of times. If a verdict rests on CPU time, an arm has a row for each clock, the judged one first."""
    cpu_times = dict(found.cpu_times)
    rows = []
    for arm, values in found.times:
        wall = TimeRow(arm, WALL if cpu_times else "", values, found.shifts.get(arm, ()))
        if arm not in cpu_times:
            rows.append(wall)
            continue
        cpu = TimeRow(arm, CPU, cpu_times[arm], found.cpu_shifts.get(arm, ()))
        rows += [cpu, wall] if arm in found.judged_on_cpu else [wall, cpu]
    return rows


def slower(found: Comparison, share: float) -> list[str]:
    """Return a sentence for each arm whose calls take longer in a later run, surely by more than a share, or are gone.

    The times are those on the clock that the verdicts of all runs rest on, else on the wall clock.
    """
    sentences = []
    seen: set[str] = set()
    for row in time_rows(found):
        if row.arm in seen:
            continue  # a second row is on the clock that was not judged
        seen.add(row.arm)
        of_clock = " of CPU time" if row.clock == CPU else ""
        for at, shift in enumerate(row.shifts, 1):
            if row.values[at] is None:
                sentences.append(f"run {at + 1}: a call of {row.arm} was not timed")
            elif shift is not None and shift.low > 1 + share:
                takes = f"takes {seconds(row.values[at] or 0)}{of_clock}"
                sentences.append(f"run {at + 1}: a call of {row.arm} {takes} ({shift.words})")
    return sentences


def _worse(first: Side | None, other: Side | None, shift: Shift | None) -> str:
    """Return how one side is worse than another, in words; nothing when it is not, or cannot be told."""
    if first is not None and other is None and _RANKS.get(first.verdict, 0) > 0:
        return f"no longer claimed, was {first.verdict}"
    if first is None or other is None or are_apart(first.gpu, other.gpu):
        return ""
    ranks = [_RANKS.get(side.verdict) for side in (first, other)]
    if ranks[0] is not None and ranks[1] is not None and ranks[1] < ranks[0]:
        return f"{other.verdict}, was {first.verdict}"
    is_lower_worse = {"at_least": True, "at_most": False}.get(other.op)
    if shift is None or not shift.is_apart or shift.lone or is_lower_worse is None:
        return ""
    if (shift.ratio < 1) != is_lower_worse:
        return ""
    return f"{brief(other.estimate or 0)}, was {brief(first.estimate or 0)} ({shift.words})"


def _medians(summary: RunSummary) -> dict[str, float]:
    """Return the median time of a call of each arm."""
    is_time = measure_of(summary).unit == "s"
    return _middles(times_of(summary)) if is_time else {}


def _middles(times: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Return the median time of each arm."""
    return {arm: median(found) for arm, found in times.items()}


def _judged_on_cpu(of_runs: Sequence[Mapping[str, ArmTimes]]) -> set[str]:
    """Return the arms that have CPU time as their first clock in every run that timed them."""
    on_cpu: set[str] = set()
    on_wall: set[str] = set()
    for times in of_runs:
        for arm, one in times.items():
            (on_cpu if one.clock == CPU else on_wall).add(arm)
    return on_cpu - on_wall


def _sizes(summary: RunSummary) -> dict[str, float]:
    return {
        f"{m.name} {m.arm}".strip() + f" {name}": value
        for m in summary.memory
        for name, value in m.values.items()
    }


def _table(
    columns: Sequence[Mapping[str, float]],
) -> tuple[tuple[str, tuple[float | None, ...]], ...]:
    names = dict.fromkeys(name for column in columns for name in column)
    return tuple((name, tuple(column.get(name) for column in columns)) for name in names)


def _shared_series(summaries: Sequence[RunSummary]) -> tuple[str, ...]:
    """Return the names of series, those first that most runs have."""
    counts: dict[str, int] = {}
    for summary in summaries:
        for name in dict.fromkeys(name for name, _, _ in summary.series):
            counts[name] = counts.get(name, 0) + 1
    return tuple(sorted(counts, key=lambda name: -counts[name]))
