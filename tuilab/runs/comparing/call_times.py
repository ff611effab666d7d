"""Compare how long the calls of an arm take in two runs, and whether that is more than chance.

An arm is one of the variants that a scenario times. A process has one time for each arm: the median
of its blocks, which are timed batches of calls. The interval of the comparison comes from how much
the processes of a run differ. For a run with one process, this is not known. An interval does not
cover anything that slows all processes of a run alike, such as another user or a hot day.
"""

import math
from collections.abc import Mapping, Sequence
from statistics import median

from tuilab.judging.stats import sample_sd, t_quantile
from tuilab.record.blocks import counted
from tuilab.record.summary import RunSummary
from tuilab.record.timing.clocks import CPU, WALL, cpu_times
from tuilab.runs.comparing.claim_pairs import Shift

CONFIDENCE = 0.99  # of each arm: a run has several, and one false alarm is one too many

Times = Mapping[str, Sequence[float]]  # seconds of a call in each process, by arm


def times_of_processes(summary: RunSummary, clock: str = WALL) -> dict[str, list[float]]:
    """Return, by arm, the seconds that a call took in each process on a clock."""
    times_of_arms: dict[str, list[float]] = {}
    for (_, arm), blocks in summary.blocks.items():
        counted_blocks = counted(blocks)
        if clock == CPU:
            times = cpu_times(counted_blocks)
        else:
            times = [block.step_s for block in counted_blocks]
        if times:
            times_of_arms.setdefault(arm, []).append(median(times))
    return times_of_arms


def shifts_of(first: Times, later: Sequence[Times]) -> dict[str, tuple[Shift | None, ...]]:
    """Return, by arm, how the times of each later run differ from those of the first one.

    None if one of the two runs has too few processes.
    """
    shifts = {}
    for arm, times in first.items():
        shifts[arm] = tuple(shift_between(times, run.get(arm, ())) for run in later)
    return shifts


def shift_between(first: Sequence[float], later: Sequence[float]) -> Shift | None:
    """Return the ratio of the times of two runs, with Welch's interval.

    None if one of them has fewer than two processes, or a time that has no logarithm: a clock may
    advance too rarely for a short call, and a damaged record may contain any number.
    """
    if len(first) < 2 or len(later) < 2:
        return None
    if not all(0 < time < math.inf for time in (*first, *later)):
        return None
    first_logs = [math.log(time) for time in first]
    later_logs = [math.log(time) for time in later]
    first_mean = sum(first_logs) / len(first_logs)
    later_mean = sum(later_logs) / len(later_logs)
    center = later_mean - first_mean
    # The squared standard errors of both means, and what each adds to Welch's degrees of freedom.
    first_error = sample_sd(first_logs) ** 2 / len(first_logs)
    later_error = sample_sd(later_logs) ** 2 / len(later_logs)
    first_weight = first_error**2 / (len(first_logs) - 1)
    later_weight = later_error**2 / (len(later_logs) - 1)
    error = first_error + later_error
    weight = first_weight + later_weight
    freedom = len(first_logs) + len(later_logs) - 2
    if weight:
        freedom = int(error**2 / weight)
    quantile = t_quantile((1 + CONFIDENCE) / 2, max(freedom, 1))
    return Shift.of_logs(center, quantile * math.sqrt(error))
