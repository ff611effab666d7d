"""How long the steps of watched commands took, run beside run, and what can be said of the difference.

The steps of one process follow each other, and neighbours are alike. So they are cut into stretches, and how the means of the
stretches vary gives an interval. Another process of the same command may be off by some per cent by itself: that is added, as
`tuilab calibrate` measured it, or 5 %.

Other processes that use the cores make steps longer, whatever the code does. So the interval reaches to what the steps may have
taken without them: it leaves out the time in which threads of the command waited for a core, as far as others used the cores.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist, fmean
from typing import NamedTuple

from tuilab.commands.step_parts import CPU, CURVES, STEP, first_usual
from tuilab.judging.intervals import DISTURBED_SD, UNKNOWN_SD
from tuilab.probes.core_work import OTHERS_SHARE
from tuilab.record.events import CoresAwaited
from tuilab.reports.numbers import rss_peak_bytes
from tuilab.reports.reported_run import ReportedRun
from tuilab.reports.samples import read_samples
from tuilab.runs.comparing.call_times import CONFIDENCE, shift_between
from tuilab.runs.comparing.claim_pairs import Shift
from tuilab.text.display import join, percent, plural
from tuilab.text.words import seconds, size, unit_of

LEAST = 20  # steps, from which on there is an interval
_STRETCHES = 10
_LABELS = {
    STEP: "a step",
    CPU: "CPU time of a step",
    **{curve: part for part, curve in CURVES.items()},
}
_MOST_CURVES = 12
_MOST_LOST = 0.99  # of the time of the steps: nothing is known of the rest, either
_NOTABLE_LOST = 0.05  # of the time of the steps, from which on a sentence names it


@dataclass(frozen=True)
class StepTimes:
    """The steps of one process of a run, without the first ones, in which torch warms up; in milliseconds."""

    means: dict[str, float]  # by curve: of a step, and of each part of it
    stretches: tuple[float, ...]  # means of the steps of each
    count: int


def is_watched(subject: ReportedRun) -> bool:
    """Return whether a run is one of a command that was watched alone, as `tuilab exec` does."""
    run = subject.summary.run
    return bool(run and run.command) and not subject.summary.blocks


def times_of_steps(subject: ReportedRun) -> dict[str, StepTimes]:
    """Return, by the name of a process or nothing, how long the steps of a run took; nothing where none was timed."""
    if not any(name == STEP for name, _, _ in subject.summary.series):
        return {}
    curves: dict[str, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for piece in read_samples(subject.run_dir, subject.word):
        if piece.kind == "logged" and piece.name in _LABELS:
            finite = {
                at: value
                for at, value in zip(piece.steps, piece.values, strict=True)
                if math.isfinite(value)
            }
            curves[piece.arm][piece.name].update(finite)
    return {arm: _step_times(found) for arm, found in curves.items() if found.get(STEP)}


def _step_times(curves: dict[str, dict[int, float]]) -> StepTimes:
    steps = sorted(curves[STEP])
    steady = steps[first_usual([curves[STEP][step] for step in steps]) :]
    kept = set(steady)
    means = {}
    for name in _LABELS:
        values = [value for step, value in curves.get(name, {}).items() if step in kept]
        if values:
            means[name] = fmean(values)
    times = [curves[STEP][step] for step in steady]
    return StepTimes(means, _stretches(times), len(times))


def _stretches(times: Sequence[float]) -> tuple[float, ...]:
    """Return the means of stretches of steps that follow each other; nothing of too few steps."""
    if len(times) < LEAST:
        return ()
    ends = [len(times) * at // _STRETCHES for at in range(_STRETCHES + 1)]
    return tuple(fmean(times[begin:end]) for begin, end in pairwise(ends))


def shift_of_steps(
    subjects: Sequence[ReportedRun], first: StepTimes, other: StepTimes
) -> Shift | None:
    """Return how the steps of the second run differ from those of the first; None where one of them has too few.

    The interval covers how the steps vary, how much a process is off by itself, and what other processes may have added.
    """
    by_steps = shift_between(first.stretches, other.stretches)
    if by_steps is None:
        return None
    ratio = other.means[STEP] / first.means[STEP]
    off = math.hypot(_variation(subjects[0], first).sd, _variation(subjects[1], other).sd)
    by_processes = NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * off
    shift = Shift.of_logs(
        math.log(ratio), math.hypot(math.log(by_steps.high / by_steps.ratio), by_processes)
    )
    lost_by_first, lost_by_other = (lost_to_others(subject) or 0.0 for subject in subjects)
    return Shift(shift.ratio, shift.low * (1 - lost_by_other), shift.high / (1 - lost_by_first))


class ProcessVariation(NamedTuple):
    """How much a process of a run differs from others of the same command, and where that number is from."""

    sd: float  # standard deviation of logarithms
    source: str


def _variation(subject: ReportedRun, times: StepTimes) -> ProcessVariation:
    """Return how much a process of a run varies.

    While other processes run, even a step with a core of its own takes longer: they share its caches and its memory.
    """
    measured = subject.summary.run.luck if subject.summary.run else None
    is_on_cpu = CPU in times.means
    if is_on_cpu and is_beside_others(subject) and (measured is None or measured < DISTURBED_SD):
        return ProcessVariation(DISTURBED_SD, "assumed, because other processes used the cores")
    if measured is None:
        return ProcessVariation(UNKNOWN_SD, "assumed, because this machine is not calibrated")
    return ProcessVariation(measured, "measured by tuilab calibrate")


def lost_to_others(subject: ReportedRun) -> float | None:
    """Return the share of the time of its steps that a command lost to other processes, at most; None if it is not known.

    A thread that waits for a core may wait for other threads of the command. So no more counts than others used of the cores.
    """
    waits = core_waits(subject)
    if waits is None:
        return None
    waited = waits.waited_s / waits.elapsed_s
    others = 1.0 if waits.others is None else waits.others
    return min(waited, others, _MOST_LOST)


def is_beside_others(subject: ReportedRun) -> bool:
    """Return whether other processes used many of the cores while a command trained."""
    waits = core_waits(subject)
    return (
        waits is not None
        and waits.others is not None
        and waits.others >= OTHERS_SHARE * waits.usable
    )


def core_waits(subject: ReportedRun) -> CoresAwaited | None:
    """Return how long a command waited for cores, if its record says what can be true."""
    waits = subject.summary.core_waits
    if waits is None:
        return None
    numbers = [waits.elapsed_s, waits.waited_s, 0.0 if waits.others is None else waits.others]
    is_possible = all(map(math.isfinite, numbers)) and min(numbers) >= 0 and waits.elapsed_s > 0
    return waits if is_possible else None


def about_others(subjects: Mapping[int, ReportedRun]) -> str:
    """Return in which runs, by their places, others used the cores, and where that is not known; nothing of a quiet machine."""
    sentences = []
    for at, subject in subjects.items():
        waits = core_waits(subject)
        lost = lost_to_others(subject)
        if waits is None or lost is None:
            continue
        if is_beside_others(subject) or lost >= _NOTABLE_LOST:
            sentences.append(_about_waits(at, waits, lost))
    unknown = [f"run {at}" for at, subject in subjects.items() if core_waits(subject) is None]
    if unknown:
        sentences.append(f"how long {join(unknown)} waited for a core was not recorded")
    return "; ".join(sentences)


def _about_waits(at: int, waits: CoresAwaited, lost: float) -> str:
    share = f"no core was free for up to {100 * lost:.0f} % of the time of its steps"
    if waits.others is None:
        return f"in run {at} {share}"
    cores = plural(waits.usable, "core")
    return f"in run {at} other processes used {min(waits.others, waits.usable):.1f} of {cores}, and {share}"


@dataclass(frozen=True)
class CommandRow:
    """One number of watched commands, in each of the runs; None where a run has none."""

    name: str
    values: tuple[float | None, ...]
    spell: Callable[[float], str]
    shifts: tuple[Shift | None, ...] = ()  # of each run after the first


def rows_of_commands(subjects: Sequence[ReportedRun]) -> list[CommandRow]:
    """Return what watched commands cost: their steps and the parts of them, peak memory, the ends of their curves."""
    if not all(map(is_watched, subjects)):
        return []
    every = [times_of_steps(subject) for subject in subjects]
    rows = []
    for arm in dict.fromkeys(arm for times in every for arm in times):
        for curve, label in _LABELS.items():
            means = tuple(times[arm].means.get(curve) if arm in times else None for times in every)
            shifts = shifts_of_steps(subjects, every, arm) if curve == STEP else ()
            rows.append(CommandRow(f"{label} {arm}".strip(), means, _spell_ms, shifts))
    peaks = tuple(rss_peak_bytes(subject.summary) or None for subject in subjects)
    rows.append(CommandRow("peak memory of all processes", peaks, size))
    return [
        row for row in [*rows, *_ends(subjects)] if any(value is not None for value in row.values)
    ]


def shifts_of_steps(
    subjects: Sequence[ReportedRun], every: Sequence[dict[str, StepTimes]], arm: str
) -> tuple[Shift | None, ...]:
    """Return for each run after the first how the steps of a process differ from those of the first run."""
    shifts = []
    for subject, times in zip(subjects[1:], every[1:], strict=True):
        is_in_both = arm in every[0] and arm in times
        shifts.append(
            shift_of_steps([subjects[0], subject], every[0][arm], times[arm])
            if is_in_both
            else None
        )
    return tuple(shifts)


def about_one_process(subjects: Sequence[ReportedRun]) -> str:
    """Return what the intervals of the steps cover, and how to be sure, in sentences."""
    variations = [
        _variation(subject, times)
        for subject in subjects
        for times in times_of_steps(subject).values()
    ]
    largest = max(variations, key=lambda variation: variation.sd)
    sentences = [
        f"One process of each is not enough to decide. The intervals cover how the steps vary, and a variation of "
        f"{percent(largest.sd)} between processes ({largest.source})."
    ]
    if others := about_others(dict(enumerate(subjects, 1))):
        sentences.append(f"{others[0].upper()}{others[1:]}.")
    sentences.append("To decide, compare both commands with `tuilab ab`.")
    return " ".join(sentences)


def _spell_ms(value: float) -> str:
    return seconds(value / 1e3)


def _ends(subjects: Sequence[ReportedRun]) -> list[CommandRow]:
    """Return a row for each curve, but those of times, with its last value in each run."""
    columns: list[dict[str, float]] = []
    for subject in subjects:
        lasts: dict[str, float] = {}
        for (name, arm, _), series in subject.summary.series.items():
            if unit_of(name) != "ms" and series.count and math.isfinite(series.last):
                lasts.setdefault(f"last {name} {arm}".strip(), series.last)
        columns.append(lasts)
    names = dict.fromkeys(name for column in columns for name in column)
    return [
        CommandRow(name, tuple(column.get(name) for column in columns), _spell_end)
        for name in list(names)[:_MOST_CURVES]
    ]


def _spell_end(value: float) -> str:
    return f"{value:.4g}"
