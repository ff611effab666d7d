"""How long the calls of an arm take in one run and in another, and whether that is more than chance.

A process has one time: the median of its blocks. Processes of one run differ, and how much is what the interval goes by; where
a run has one process nobody knows. What slows all processes of a run alike, a neighbour or a hot day, no interval covers.
"""

import math
from collections.abc import Mapping, Sequence
from statistics import median

from tuilab.judging.stats import sample_sd, t_quantile
from tuilab.record.blocks import counted
from tuilab.record.summary import RunSummary
from tuilab.record.timing.clocks import CPU, WALL, cpu_times
from tuilab.runs.comparing.claim_pairs import Shift

CONFIDENCE = 0.99  # of each arm: a run has several, and one that fails for nothing is one too many

Times = Mapping[str, Sequence[float]]


def times_of_processes(summary: RunSummary, clock: str = WALL) -> dict[str, list[float]]:
    """Return, by arm, the seconds that a call took in each process on a clock."""
    found: dict[str, list[float]] = {}
    for (_, arm), blocks in summary.blocks.items():
        those = counted(blocks)
        times = cpu_times(those) if clock == CPU else [block.step_s for block in those]
        if times:
            found.setdefault(arm, []).append(median(times))
    return found


def shifts_of(first: Times, others: Sequence[Times]) -> dict[str, tuple[Shift | None, ...]]:
    """Return, by arm, how each later run's times differ from the first one's; None where one of them has too few processes."""
    return {
        arm: tuple(shift_between(times, other.get(arm, ())) for other in others)
        for arm, times in first.items()
    }


def shift_between(first: Sequence[float], other: Sequence[float]) -> Shift | None:
    """Return the ratio of two times with the interval of Welch."""
    if len(first) < 2 or len(other) < 2:
        return None
    one, two = ([*map(math.log, times)] for times in (first, other))
    middle = sum(two) / len(two) - sum(one) / len(one)
    errors = [sample_sd(logs) ** 2 / len(logs) for logs in (one, two)]
    weights = [error**2 / (len(logs) - 1) for error, logs in zip(errors, (one, two), strict=True)]
    freedom = int(sum(errors) ** 2 / sum(weights)) if sum(weights) else len(one) + len(two) - 2
    half = t_quantile((1 + CONFIDENCE) / 2, max(freedom, 1)) * math.sqrt(sum(errors))
    return Shift.of_logs(middle, half)
