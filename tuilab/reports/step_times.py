"""How long the steps of watched commands took, run beside run, and what can be said of the difference.

The steps of one process follow each other, and neighbours are alike. So they are cut into stretches, and how the means of the
stretches vary gives an interval. Another process of the same command may be off by some per cent by itself: that is added, as
`tuilab calibrate` measured it, or 5 %.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist, fmean

from tuilab.commands.parts import CURVES, STEP, first_usual
from tuilab.judging.units import UNKNOWN_SD
from tuilab.reports.plain import rss_peak_bytes
from tuilab.reports.samples import pieces
from tuilab.reports.subject import Subject
from tuilab.runs.comparing.call_times import CONFIDENCE, shift_between
from tuilab.runs.comparing.claim_pairs import Shift
from tuilab.text import percent
from tuilab.words import seconds, size, unit_of

LEAST = 20  # steps, from which on there is an interval
_STRETCHES = 10
_LABELS = {STEP: "a step", **{curve: part for part, curve in CURVES.items()}}
_MOST_CURVES = 12


@dataclass(frozen=True)
class StepTimes:
    """The steps of one process of a run, without the first ones, in which torch warms up; in milliseconds."""

    means: dict[str, float]  # by curve: of a step, and of each part of it
    stretches: tuple[float, ...]  # means of the steps of each
    count: int


def is_watched(look: Subject) -> bool:
    """Return whether a run is one of a command that was watched alone, as `tuilab exec` does."""
    run = look.summary.run
    return bool(run and run.command) and not look.summary.blocks


def times_of_steps(look: Subject) -> dict[str, StepTimes]:
    """Return, by the name of a process or nothing, how long the steps of a run took; nothing where none was timed."""
    if not any(name == STEP for name, _, _ in look.summary.series):
        return {}
    curves: dict[str, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for piece in pieces(look.run_dir, look.word):
        if piece.kind == "logged" and piece.name in _LABELS:
            finite = {at: value for at, value in zip(piece.steps, piece.values, strict=True) if math.isfinite(value)}
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


def shift_of_steps(looks: Sequence[Subject], first: StepTimes, other: StepTimes) -> Shift | None:
    """Return how the steps of the second run differ from those of the first; None where one of them has too few.

    The interval covers how the steps vary, and how much a process is off by itself.
    """
    by_steps = shift_between(first.stretches, other.stretches)
    if by_steps is None:
        return None
    ratio = other.means[STEP] / first.means[STEP]
    off = math.hypot(*(_luck(look) for look in looks))
    by_processes = NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * off
    return Shift.of_logs(math.log(ratio), math.hypot(math.log(by_steps.high / by_steps.ratio), by_processes))


def _luck(look: Subject) -> float:
    """Return how far off a process of a run is by itself, as a standard deviation of logarithms."""
    luck = look.summary.run.luck if look.summary.run else None
    return UNKNOWN_SD if luck is None else luck


@dataclass(frozen=True)
class CommandRow:
    """One number of watched commands, in each of the runs; None where a run has none."""

    name: str
    values: tuple[float | None, ...]
    spell: Callable[[float], str]
    shifts: tuple[Shift | None, ...] = ()  # of each run after the first


def rows_of_commands(looks: Sequence[Subject]) -> list[CommandRow]:
    """Return what watched commands cost: their steps and the parts of them, peak memory, the ends of their curves."""
    if not all(map(is_watched, looks)):
        return []
    every = [times_of_steps(look) for look in looks]
    rows = []
    for arm in dict.fromkeys(arm for times in every for arm in times):
        for curve, label in _LABELS.items():
            means = tuple(times[arm].means.get(curve) if arm in times else None for times in every)
            shifts = shifts_of_steps(looks, every, arm) if curve == STEP else ()
            rows.append(CommandRow(f"{label} {arm}".strip(), means, _spell_ms, shifts))
    peaks = tuple(rss_peak_bytes(look.summary) or None for look in looks)
    rows.append(CommandRow("peak memory of all processes", peaks, size))
    return [row for row in [*rows, *_ends(looks)] if any(value is not None for value in row.values)]


def shifts_of_steps(looks: Sequence[Subject], every: Sequence[dict[str, StepTimes]], arm: str) -> tuple[Shift | None, ...]:
    """Return for each run after the first how the steps of a process differ from those of the first run."""
    shifts = []
    for look, times in zip(looks[1:], every[1:], strict=True):
        is_in_both = arm in every[0] and arm in times
        shifts.append(shift_of_steps([looks[0], look], every[0][arm], times[arm]) if is_in_both else None)
    return tuple(shifts)


def about_one_process(looks: Sequence[Subject]) -> str:
    """Return what the intervals of the steps cover, and how to be sure, in sentences."""
    known = {look.summary.run.luck for look in looks if look.summary.run} - {None}
    off = percent(max(map(_luck, looks)))
    how = "measured by tuilab calibrate" if known else "assumed, because this machine is not calibrated"
    return (
        f"One process of each is not enough to decide. The intervals cover how the steps vary, and a variation of {off} "
        f"between processes ({how}). To decide, compare both commands with `tuilab ab`."
    )


def _spell_ms(value: float) -> str:
    return seconds(value / 1e3)


def _ends(looks: Sequence[Subject]) -> list[CommandRow]:
    """Return a row for each curve, but those of times, with its last value in each run."""
    columns: list[dict[str, float]] = []
    for look in looks:
        lasts: dict[str, float] = {}
        for (name, arm, _), series in look.summary.series.items():
            if unit_of(name) != "ms" and series.count and math.isfinite(series.last):
                lasts.setdefault(f"last {name} {arm}".strip(), series.last)
        columns.append(lasts)
    names = dict.fromkeys(name for column in columns for name in column)
    return [CommandRow(name, tuple(column.get(name) for column in columns), _spell_end) for name in list(names)[:_MOST_CURVES]]


def _spell_end(value: float) -> str:
    return f"{value:.4g}"
