"""Compute what the steady steps of a process took: wall time, and CPU time if that was read.

A step is steady if it comes after the warm-up. A lane has the steps of one process.
"""

from collections.abc import Sequence
from statistics import fmean, median
from typing import NamedTuple

from tuilab.commands.cpu.core_time import CoreTime, total
from tuilab.commands.run_command import CommandEnd
from tuilab.commands.watched import Lane
from tuilab.judging.clock import is_single_threaded
from tuilab.text.display import plural

_MOST_UNREAD = 0.1  # share of the steady steps
_WINDOW = 10  # fewest steps of a window
_DRIFT = 0.05  # largest relative change from one window to the next for steady steps
_MOST_CUT = 0.5  # share of all steps that may be cut as warm-up
_LEAST = 5  # fewest steps that can be timed


class Steady:
    """The mean seconds of the steady steps; `is_settled` says whether the warm-up ended.

    `count` is the number of steady steps, `cut` the number of steps before them.
    """

    def __init__(self, step_s: float, count: int, cut: int, *, is_settled: bool) -> None:
        self.step_s = step_s
        self.count = count
        self.cut = cut
        self.is_settled = is_settled


def steady(times_s: Sequence[float], own_s: Sequence[float] | None = None) -> Steady | None:
    """Cut off the warm-up, and return the steady steps; None if there are too few steps.

    Whole windows of steps are cut, until a window takes as long as the next one. The first window
    is always cut. If the steps never settle, the first half is cut, and the result says so.

    The result is the mean of the steps that are kept, so the time that they take together counts:
    with a loader of four workers, three of four steps wait for nothing.

    `own_s` are other times of the same steps, such as their CPU time. If given, they decide
    when the steps have settled: on a busy machine, wall time never settles.
    """
    if len(times_s) < _LEAST:
        return None
    settling_s = times_s if own_s is None else own_s
    window = max(_WINDOW, len(times_s) // 20)
    most_cut = int(len(times_s) * _MOST_CUT)
    for cut in range(min(window, most_cut), most_cut + 1, window):
        window_s = settling_s[cut : cut + window]
        next_window_s = settling_s[cut + window : cut + 2 * window]
        if next_window_s and abs(median(window_s) / median(next_window_s) - 1) < _DRIFT:
            return _cut_off(times_s, cut, is_settled=True)
    return _cut_off(times_s, most_cut, is_settled=False)


def _cut_off(times_s: Sequence[float], cut: int, *, is_settled: bool) -> Steady:
    kept_s = times_s[cut:]
    return Steady(fmean(kept_s), len(kept_s), cut, is_settled=is_settled)


class StepCpu(NamedTuple):
    """The mean CPU time of the steady steps of a process, in nanoseconds per step."""

    thread_ns: int  # of the thread that steps
    whole_ns: int  # of all threads, and of the descendants of the process
    waited_ns: int  # in which the thread needed no core
    steps: int  # steps that were read
    disturbed_steps: int


def steady_of(lane: Lane) -> Steady | None:
    """Return the steady steps of a process; None if it made too few steps.

    If the steps are the work of one thread, its CPU time decides when they have settled: on a busy
    machine, their wall time never settles.
    """
    sums = total(lane.core_times.since(0))
    if sums is None or lane.steps.has_workers or not _is_of_one_thread(sums):
        return steady(lane.times_s)
    thread_s = lane.core_times.thread_s(len(lane.times_s))
    return steady(lane.times_s, thread_s)


def slowest(ended: CommandEnd) -> Lane | None:
    """Return the lane whose steady steps take longest; None if no lane can be timed.

    The processes of the other lanes wait for that one.
    """
    step_s_of: dict[Lane, float] = {}
    for lane in ended.watched.lanes.values():
        steady_steps = steady_of(lane)
        if steady_steps:
            step_s_of[lane] = steady_steps.step_s
    return max(step_s_of, key=lambda lane: step_s_of[lane], default=None)


def most_steps(ended: CommandEnd) -> int:
    """Return how many steps the process made that made most; 0 if no process made any."""
    return max((lane.count for lane in ended.watched.lanes.values()), default=0)


def cpu_of(lane: Lane, steady_steps: Steady) -> StepCpu | None:
    """Return the CPU time of the steady steps; None if too few of them were read."""
    times = lane.core_times.since(steady_steps.cut)
    sums = total(times)
    if sums is None or sums.steps < (1 - _MOST_UNREAD) * steady_steps.count:
        return None
    helpers_ns = lane.helpers.cores * sums.wall_ns
    disturbed_steps = sum(time.steps for time in times if time.is_disturbed)
    return StepCpu(
        thread_ns=round(sums.thread_ns / sums.steps),
        whole_ns=round((sums.process_ns + helpers_ns) / sums.steps),
        waited_ns=round(sums.waited_ns / sums.steps),
        steps=sums.steps,
        disturbed_steps=disturbed_steps,
    )


def helpers_of(ended: CommandEnd) -> str:
    """Return in words which processes share the steps of a command; empty if there is only one."""
    lanes = ended.watched.lanes.values()
    if len(lanes) > 1:
        return f"{plural(len(lanes), 'process', 'processes')} that step"
    if any(lane.steps.has_workers for lane in lanes):
        return "workers of a DataLoader"
    return ""


def _is_of_one_thread(times: CoreTime) -> bool:
    return is_single_threaded(times.thread_ns, times.process_ns, times.waited_ns)
