"""From where on the steps of a process are steady: what a race of commands times.

What counts is their mean, so what they take together: of a loader with four workers three steps of four wait for nothing.
"""

from collections.abc import Sequence
from statistics import fmean, median

_WINDOW = 10  # steps, at least
_DRIFT = 0.05  # from one window to the next
_MOST_CUT = 0.5  # of all steps
_LEAST = 5  # steps that are needed


class Steady:
    """The mean seconds of a step, of the steady ones; `is_settled` says whether the warm-up ended."""

    def __init__(self, step_s: float, count: int, cut: int, *, is_settled: bool) -> None:
        self.step_s = step_s
        self.count = count
        self.cut = cut
        self.is_settled = is_settled


def steady(times_s: Sequence[float], own_s: Sequence[float] | None = None) -> Steady | None:
    """Cut the warm-up off: windows of steps, until one takes as long as the next; None where there are too few steps.

    The first window is always cut. Steps that never settle are halved, and told as that. `own_s` are other times of the same
    steps, by which they settle, such as their CPU time: on a busy machine the wall clock never does.
    """
    if len(times_s) < _LEAST:
        return None
    settling_s = times_s if own_s is None else own_s
    window = max(_WINDOW, len(times_s) // 20)
    last = int(len(times_s) * _MOST_CUT)
    for cut in range(min(window, last), last + 1, window):
        here, following = settling_s[cut : cut + window], settling_s[cut + window : cut + 2 * window]
        if following and abs(median(here) / median(following) - 1) < _DRIFT:
            return _from(times_s, cut, is_settled=True)
    return _from(times_s, last, is_settled=False)


def _from(times_s: Sequence[float], cut: int, *, is_settled: bool) -> Steady:
    kept = times_s[cut:]
    return Steady(fmean(kept), len(kept), cut, is_settled=is_settled)
