"""Finds the last step that a series will have, if the progress of its run counts the same steps.

Progress is written ten times a second, while steps come faster or more seldom. So the progress is
compared with the step that the series had at that time, not with its newest step. The output of a
command is read after it was printed, so its progress is recorded late, while the steps continue.
"""

from bisect import bisect_right
from collections.abc import Sequence

from tuilab.record.events import Progressed
from tuilab.record.finding_words import PROCESSES, RACING, is_whole
from tuilab.record.series import Series
from tuilab.record.summary import RunSummary

_LATE_NS = 1_000_000_000  # the progress of a command is recorded up to so much late


def planned_end(
    summary: RunSummary, lines: Sequence[Series], before: float | None = None
) -> float | None:
    """Return the last step that the series will have; None if it is not known.

    `before` is the previous answer, which stays until it is known to be wrong. A run may count
    several things in turn, for example epochs and the steps in each.
    """
    newest = None
    late_ns = 0
    if summary.run and summary.run.command:
        late_ns = _LATE_NS
    for progress in summary.progress_by_total:
        if progress.unit in (RACING, PROCESSES) or not is_whole(progress):
            continue
        fits = [_fits(series, progress, late_ns) for series in lines if series.steps]
        is_planned = True in fits or (progress.total == before and None in fits)
        if is_planned and (newest is None or progress.t > newest.t):
            newest = progress
    return float(newest.total) if newest else None


def _fits(series: Series, progress: Progressed, late_ns: int) -> bool | None:
    """Say whether a progress counts the steps of a series; None if that is not known."""
    steps = series.steps
    done = progress.done
    if max(steps[0], series.last_step) > progress.total:
        return False
    # the point (or the bucket of points) that was logged last before the progress
    position = bisect_right(series.times, progress.t) - 1
    if position < 0:
        return done <= steps[0] + 1
    is_last = position == len(steps) - 1
    earliest = max(bisect_right(series.times, progress.t - late_ns) - 1, 0)
    if done < steps[earliest] - 1:
        if is_last or late_ns:
            return None  # the run may count something else by now
        return False
    if not is_last:
        return done <= steps[position + 1] + 1
    if position == 0:
        return True  # the distance between its points is not known
    distance = steps[position] - steps[position - 1]
    next_step = max(series.last_step, steps[position] + distance)
    if done <= next_step + 1:
        return True
    return None
