"""The last step that is expected of a series, where the progress of its run counts the steps of just that one.

Progress is written ten times a second, and steps come faster, or seldom: what was done when the progress was told is held
against the steps that the series had then, and not against those that it has now. What a command prints is read after it was
printed, and told later still, while the steps go on.
"""

from bisect import bisect_right
from collections.abc import Sequence

from tuilab.record.events import Progressed
from tuilab.record.finding_words import PROCESSES, RACING, is_whole
from tuilab.record.series import Series
from tuilab.record.summary import RunSummary

_LATE_NS = 1_000_000_000  # that what was printed may be told after it was so


def planned_end(
    summary: RunSummary, found: Sequence[Series], before: float | None = None
) -> float | None:
    """Return the last step that will come; `before` is what it was said to be last, and stays until it is known to be wrong.

    A run may count several things in turn, as epochs and the steps in each.
    """
    best = None
    late_ns = _LATE_NS if summary.run and summary.run.command else 0
    for told in summary.progress_told:
        if told.unit in (RACING, PROCESSES) or not is_whole(told):
            continue
        fits = [_fits(one, told, late_ns) for one in found if one.steps]
        is_planned = True in fits or (told.total == before and None in fits)
        if is_planned and (best is None or told.t > best.t):
            best = told
    return float(best.total) if best else None


def _fits(series: Series, told: Progressed, late_ns: int) -> bool | None:
    """Say whether a progress counts the steps of a series; None where that is not known."""
    if max(series.steps[0], series.last_step) > told.total:
        return False
    at = (
        bisect_right(series.times, told.t) - 1
    )  # the point, or the bucket of points, that was logged last before it
    if at < 0:
        return told.done <= series.steps[0] + 1
    step, is_last = series.steps[at], at == len(series.steps) - 1
    if told.done < series.steps[max(bisect_right(series.times, told.t - late_ns) - 1, 0)] - 1:
        return None if is_last or late_ns else False  # something else may have begun
    if not is_last:
        return told.done <= series.steps[at + 1] + 1
    if at == 0:
        return True  # how far apart its points are is not known
    apart = step - series.steps[at - 1]
    return True if told.done <= max(series.last_step, step + apart) + 1 else None
