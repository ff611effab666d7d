"""How long the steps of watched commands took, run by run, and what their difference means.

The steps of one process follow each other, and neighbours are alike. So they are cut into
stretches, and the spread of the means of the stretches gives an interval. Another process of the
same command may be off by some per cent by itself. This variation is added: as `tuilab calibrate`
measured it, or 5 %.

The later steps of a long run are recorded in blocks, each with the sum and the count of its values.
So the mean of all steps and the means of the stretches are known without the single steps. A block
belongs to one stretch as a whole.

Other processes that use the cores make steps longer, whatever the code does. So the interval
reaches to the time that the steps may have taken without them: it leaves out the time in which
threads of the command waited for a core, as far as others used the cores.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from statistics import NormalDist, fmean
from typing import NamedTuple

from tuilab.commands.step_parts import CPU, CURVES, STEP, first_usual
from tuilab.judging.intervals import DISTURBED_SD, UNKNOWN_SD
from tuilab.probes.core_work import OTHERS_SHARE
from tuilab.record.events import CoresAwaited
from tuilab.reports.numbers import rss_peak_bytes
from tuilab.reports.reported_run import ReportedRun
from tuilab.reports.samples import SamplePiece, read_samples
from tuilab.runs.comparing.call_times import CONFIDENCE, shift_between
from tuilab.runs.comparing.claim_pairs import Shift
from tuilab.text.display import join, percent, plural
from tuilab.text.words import seconds, size, unit_of

LEAST = 20  # steps that an interval needs
_STRETCHES = 10
_LABELS = {STEP: "a step", CPU: "CPU time of a step"}  # by curve
for _part, _curve in CURVES.items():
    _LABELS[_curve] = _part
_MOST_CURVES = 12
_MOST_LOST = 0.99  # of the time of the steps; the end of an interval is divided by the rest
_NOTABLE_LOST = 0.05  # of the time of the steps: from here on a sentence names it


@dataclass(frozen=True)
class StepTimes:
    """The steps of one process of a run, in milliseconds, without the warm-up of torch."""

    means: dict[str, float]  # by curve: of a step, and of each part of it
    stretches: tuple[float, ...]  # the mean of the steps of each stretch
    count: int
    count_in_blocks: int = 0  # of these steps: those that share a record with other steps


class _Group(NamedTuple):
    """Consecutive steps of which a curve has the mean: one step, or the steps of a block."""

    steps: int
    mean: float


@dataclass
class _StepCurve:
    """The finite values of one curve of a process, by step; a block has its first step."""

    values: dict[int, float] = field(default_factory=dict)
    blocks: dict[int, _Group] = field(default_factory=dict)

    def groups_of(self, steps: Sequence[int]) -> list[_Group]:
        """Return the values of single steps, as groups of one, and then all blocks."""
        groups = [_Group(1, self.values[step]) for step in steps if step in self.values]
        for first_step in sorted(self.blocks):
            groups.append(self.blocks[first_step])
        return groups


def is_watched(subject: ReportedRun) -> bool:
    """Say whether a run is of a command that was watched alone, as `tuilab exec` does."""
    run = subject.summary.run
    return bool(run and run.command) and not subject.summary.blocks


# Gates, tables and sentences ask for the same runs, and a long run takes seconds to read.
@lru_cache(maxsize=8)
def times_of_steps(subject: ReportedRun) -> dict[str, StepTimes]:
    """Return how long the steps of each process of a run took; nothing if no step was timed.

    A process is known by its arm, which is empty if there is only one.
    """
    names = {name for name, _, _ in subject.summary.series}
    if STEP not in names:
        return {}
    curves: dict[str, dict[str, _StepCurve]] = {}  # by arm and name
    for piece in read_samples(subject.run_dir, subject.word):
        if piece.kind not in ("logged", "block") or piece.name not in _LABELS:
            continue
        curve = curves.setdefault(piece.arm, {}).setdefault(piece.name, _StepCurve())
        _add_piece(curve, piece)
    times = {}
    for arm, curves_of_arm in curves.items():
        curve_of_steps = curves_of_arm.get(STEP)
        if curve_of_steps and (curve_of_steps.values or curve_of_steps.blocks):
            times[arm] = _step_times(curves_of_arm)
    return times


def _add_piece(curve: _StepCurve, piece: SamplePiece) -> None:
    """Add single values or means of blocks to a curve; those that are not finite are left out."""
    if piece.kind == "logged":
        for step, value in zip(piece.steps, piece.values, strict=True):
            if math.isfinite(value):
                curve.values[step] = value
        return
    for step, mean, count in zip(piece.steps, piece.values, piece.counts, strict=True):
        if mean is not None:
            curve.blocks[step] = _Group(count, mean)


def _step_times(curves: Mapping[str, _StepCurve]) -> StepTimes:
    """Return the means over the steps after the warm-up, which no block has."""
    values = curves[STEP].values
    steps = sorted(values)
    steady = steps
    if steps:
        steady = steps[first_usual([values[step] for step in steps]) :]
    means = {}
    for name in _LABELS:
        groups = curves.get(name, _StepCurve()).groups_of(steady)
        if groups:
            means[name] = _mean_of(groups)
    groups = curves[STEP].groups_of(steady)
    count = sum(group.steps for group in groups)
    return StepTimes(means, _stretches(groups), count, count - len(steady))


def _mean_of(groups: Sequence[_Group]) -> float:
    """Return the mean of all steps of some groups."""
    return fmean([group.mean for group in groups], [group.steps for group in groups])


def _stretches(groups: Sequence[_Group]) -> tuple[float, ...]:
    """Return the means of stretches of consecutive steps; nothing if there are too few steps.

    The stretches are as long as each other, except that a block is not divided. A block that is
    longer than a stretch may leave the next one without steps, and then there are fewer stretches.
    """
    count = sum(group.steps for group in groups)
    if count < LEAST:
        return ()
    groups_of: dict[int, list[_Group]] = {}  # by the number of the stretch
    steps_before = 0
    for group in groups:
        middle = steps_before + group.steps // 2
        # The last stretch that begins at this step or before: stretch k begins at count * k // 10.
        number = ((middle + 1) * _STRETCHES - 1) // count
        groups_of.setdefault(number, []).append(group)
        steps_before += group.steps
    return tuple(_mean_of(groups_of_stretch) for groups_of_stretch in groups_of.values())


def shift_of_steps(
    subjects: Sequence[ReportedRun], first: StepTimes, other: StepTimes
) -> Shift | None:
    """Return how the steps of the second run differ from those of the first.

    None means that one of them has too few steps. The interval covers how the steps vary, how much
    a process is off by itself, and the time that other processes may have added.
    """
    by_steps = shift_between(first.stretches, other.stretches)
    if by_steps is None:
        return None
    log_ratio = math.log(other.means[STEP] / first.means[STEP])
    first_sd = _variation(subjects[0], first).sd
    other_sd = _variation(subjects[1], other).sd
    process_sd = math.hypot(first_sd, other_sd)
    half_by_steps = math.log(by_steps.high / by_steps.ratio)
    half_by_processes = NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * process_sd
    shift = Shift.of_logs(log_ratio, math.hypot(half_by_steps, half_by_processes))
    lost_by_first = lost_to_others(subjects[0]) or 0.0
    lost_by_other = lost_to_others(subjects[1]) or 0.0
    return Shift(shift.ratio, shift.low * (1 - lost_by_other), shift.high / (1 - lost_by_first))


class ProcessVariation(NamedTuple):
    """How much a process differs from others of the same command, and the source of the number."""

    sd: float  # standard deviation of logarithms
    source: str


def _variation(subject: ReportedRun, times: StepTimes) -> ProcessVariation:
    """Return how much a process of a run varies.

    While other processes run, even a step with a core of its own takes longer: they share its
    caches and its memory.
    """
    measured = None
    if subject.summary.run:
        measured = subject.summary.run.luck
    is_on_cpu = CPU in times.means
    if is_on_cpu and is_beside_others(subject) and (measured is None or measured < DISTURBED_SD):
        return ProcessVariation(DISTURBED_SD, "assumed, because other processes used the cores")
    if measured is None:
        return ProcessVariation(UNKNOWN_SD, "assumed, because this machine is not calibrated")
    return ProcessVariation(measured, "measured by tuilab calibrate")


def lost_to_others(subject: ReportedRun) -> float | None:
    """Return the largest share of its time that a command may have lost to other processes.

    None means that it is not known. A thread that waits for a core may wait for other threads of
    the command. So the share is never more than others used of the cores.
    """
    waits = core_waits(subject)
    if waits is None:
        return None
    lost = min(waits.waited_s / waits.elapsed_s, _MOST_LOST)
    if waits.others is not None:
        lost = min(lost, waits.others)
    return lost


def is_beside_others(subject: ReportedRun) -> bool:
    """Say whether other processes used many of the cores while a command trained."""
    waits = core_waits(subject)
    if waits is None or waits.others is None:
        return False
    return waits.others >= OTHERS_SHARE * waits.usable


def core_waits(subject: ReportedRun) -> CoresAwaited | None:
    """Return how long a command waited for cores; None if its record has none or is impossible."""
    waits = subject.summary.core_waits
    if waits is None:
        return None
    numbers = [waits.elapsed_s, waits.waited_s]
    if waits.others is not None:
        numbers.append(waits.others)
    for number in numbers:
        if not math.isfinite(number) or number < 0:
            return None
    if waits.elapsed_s == 0:
        return None
    return waits


def about_others(subjects: Mapping[int, ReportedRun]) -> str:
    """Return in which runs other processes used the cores, and of which runs that is not known.

    The runs are given by their numbers. Nothing is returned about a quiet machine.
    """
    sentences = []
    for number, subject in subjects.items():
        waits = core_waits(subject)
        lost = lost_to_others(subject)
        if waits is None or lost is None:
            continue
        if is_beside_others(subject) or lost >= _NOTABLE_LOST:
            sentences.append(_about_waits(number, waits, lost))
    unknown = []
    for number, subject in subjects.items():
        if core_waits(subject) is None:
            unknown.append(f"run {number}")
    if unknown:
        sentences.append(f"how long {join(unknown)} waited for a core was not recorded")
    return "; ".join(sentences)


def _about_waits(number: int, waits: CoresAwaited, lost: float) -> str:
    share = f"no core was free for up to {100 * lost:.0f} % of the time of its steps"
    if waits.others is None:
        return f"in run {number} {share}"
    cores = f"{min(waits.others, waits.usable):.1f} of {plural(waits.usable, 'core')}"
    return f"in run {number} other processes used {cores}, and {share}"


@dataclass(frozen=True)
class CommandRow:
    """One number of watched commands, in each of the runs; None for a run without the number."""

    name: str
    values: tuple[float | None, ...]
    spell: Callable[[float], str]
    shifts: tuple[Shift | None, ...] = ()  # of each run after the first

    @property
    def has_value(self) -> bool:
        return any(value is not None for value in self.values)


def rows_of_commands(subjects: Sequence[ReportedRun]) -> list[CommandRow]:
    """Return the numbers of watched commands: steps and their parts, peak memory, ends of curves.

    The list is empty if one of the runs is not of a watched command.
    """
    if not all(map(is_watched, subjects)):
        return []
    times_of_runs = [times_of_steps(subject) for subject in subjects]
    rows = []
    for arm in dict.fromkeys(chain.from_iterable(times_of_runs)):
        for curve, label in _LABELS.items():
            means: list[float | None] = []
            for times in times_of_runs:
                mean = None
                if arm in times:
                    mean = times[arm].means.get(curve)
                means.append(mean)
            shifts: tuple[Shift | None, ...] = ()
            if curve == STEP:
                shifts = shifts_of_steps(subjects, times_of_runs, arm)
            rows.append(CommandRow(f"{label} {arm}".strip(), tuple(means), _spell_ms, shifts))
    peaks = [rss_peak_bytes(subject.summary) or None for subject in subjects]
    rows.append(CommandRow("peak memory of all processes", tuple(peaks), size))
    rows += _ends_of_curves(subjects)
    return [row for row in rows if row.has_value]


def shifts_of_steps(
    subjects: Sequence[ReportedRun], times_of_runs: Sequence[dict[str, StepTimes]], arm: str
) -> tuple[Shift | None, ...]:
    """Return for each run after the first how the steps of a process differ from the first run."""
    first_times = times_of_runs[0]
    shifts: list[Shift | None] = []
    for subject, times in zip(subjects[1:], times_of_runs[1:], strict=True):
        if arm in first_times and arm in times:
            shifts.append(shift_of_steps([subjects[0], subject], first_times[arm], times[arm]))
        else:
            shifts.append(None)
    return tuple(shifts)


def about_one_process(subjects: Sequence[ReportedRun]) -> str:
    """Return in sentences what the intervals of the steps cover, and how to be sure.

    Without steps there are no intervals.
    """
    variations = []
    for subject in subjects:
        for times in times_of_steps(subject).values():
            variations.append(_variation(subject, times))
    sentences = ["One process of each is not enough to decide."]
    if variations:
        largest = max(variations, key=lambda variation: variation.sd)
        sentences.append(
            f"The intervals cover how the steps vary, and a variation of {percent(largest.sd)} "
            f"between processes ({largest.source})."
        )
    sentences += _about_blocks(subjects)
    about = about_others(dict(enumerate(subjects, 1)))
    if about:
        sentences.append(f"{about[0].upper()}{about[1:]}.")
    sentences.append("To decide, compare both commands with `tuilab ab`.")
    return " ".join(sentences)


def _about_blocks(subjects: Sequence[ReportedRun]) -> list[str]:
    """Return a sentence for each run that recorded some of its steps in blocks."""
    sentences = []
    for number, subject in enumerate(subjects, 1):
        all_times = times_of_steps(subject).values()
        count = sum(times.count for times in all_times)
        count_in_blocks = sum(times.count_in_blocks for times in all_times)
        if count_in_blocks:
            sentences.append(
                f"Run {number} recorded {count_in_blocks:,} of its {count:,} compared steps in "
                "blocks of at most two seconds; the means include these steps."
            )
    return sentences


def _spell_ms(value: float) -> str:
    return seconds(value / 1e3)


def _ends_of_curves(subjects: Sequence[ReportedRun]) -> list[CommandRow]:
    """Return a row for each curve, except those of times, with its last value in each run."""
    columns: list[dict[str, float]] = []
    for subject in subjects:
        ends: dict[str, float] = {}
        for (name, arm, _), series in subject.summary.series.items():
            if unit_of(name) != "ms" and series.count and math.isfinite(series.last):
                ends.setdefault(f"last {name} {arm}".strip(), series.last)
        columns.append(ends)
    rows = []
    names = list(dict.fromkeys(chain.from_iterable(columns)))
    for name in names[:_MOST_CURVES]:
        values = tuple(column.get(name) for column in columns)
        rows.append(CommandRow(name, values, _spell_end))
    return rows


def _spell_end(value: float) -> str:
    return f"{value:.4g}"
