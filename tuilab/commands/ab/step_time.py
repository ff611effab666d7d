"""What the steady steps of one process took: on the wall clock, and of CPU time where that was read."""

from collections.abc import Sequence
from statistics import fmean, median
from typing import NamedTuple

from tuilab.commands.cpu.core_time import CoreTime, total
from tuilab.commands.run_command import CommandEnd
from tuilab.commands.watched import Lane
from tuilab.judging.clock import is_single_threaded
from tuilab.text.display import plural

_MOST_UNREAD = 0.1  # of the steady steps


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

    What counts is the mean of the steps that are kept, so what they take together: with a loader of four workers, three
    steps of four wait for nothing. The first window is always cut. Steps that never settle are halved, and told as that.
    `own_s` are other times of the same steps, by which they settle, such as their CPU time: on a busy machine the wall
    clock never does.
    """
    if len(times_s) < _LEAST:
        return None
    settling_s = times_s if own_s is None else own_s
    window = max(_WINDOW, len(times_s) // 20)
    last = int(len(times_s) * _MOST_CUT)
    for cut in range(min(window, last), last + 1, window):
        here, following = (
            settling_s[cut : cut + window],
            settling_s[cut + window : cut + 2 * window],
        )
        if following and abs(median(here) / median(following) - 1) < _DRIFT:
            return _from(times_s, cut, is_settled=True)
    return _from(times_s, last, is_settled=False)


def _from(times_s: Sequence[float], cut: int, *, is_settled: bool) -> Steady:
    kept = times_s[cut:]
    return Steady(fmean(kept), len(kept), cut, is_settled=is_settled)


class StepCpu(NamedTuple):
    """The CPU time of a step, the mean of the steady steps of a process, in nanoseconds."""

    thread_ns: int  # of the thread that steps
    whole_ns: int  # of all threads, and of the processes below
    waited_ns: int  # in which the thread wanted no core
    steps: int  # that were read
    disturbed_steps: int


def steady_of(lane: Lane) -> Steady | None:
    """Return the steady steps of a process.

    Steps that are the work of one thread settle by its CPU time: on a busy machine their wall clock never does.
    """
    whole = total(lane.core_times.since(0))
    if whole is None or lane.steps.has_workers or not _is_of_one_thread(whole):
        return steady(lane.times_s)
    return steady(lane.times_s, lane.core_times.thread_s(len(lane.times_s)))


def slowest(ended: CommandEnd) -> Lane | None:
    """Return the lane whose steady steps take longest, for which the others wait; None where nothing can be timed."""
    timed = {
        lane: steady.step_s for lane in ended.watched.lanes.values() if (steady := steady_of(lane))
    }
    return max(timed, key=lambda lane: timed[lane], default=None)


def cpu_of(lane: Lane, steady: Steady) -> StepCpu | None:
    """Return the CPU time of the steady steps; None where too few of them were read."""
    times = lane.core_times.since(steady.cut)
    sums = total(times)
    if sums is None or sums.steps < (1 - _MOST_UNREAD) * steady.count:
        return None
    helpers_ns = lane.helpers.cores * sums.wall_ns
    return StepCpu(
        thread_ns=round(sums.thread_ns / sums.steps),
        whole_ns=round((sums.process_ns + helpers_ns) / sums.steps),
        waited_ns=round(sums.waited_ns / sums.steps),
        steps=sums.steps,
        disturbed_steps=sum(time.steps for time in times if time.is_disturbed),
    )


def helpers_of(ended: CommandEnd) -> str:
    """Return which other processes take part in the steps of a command, or nothing."""
    lanes = ended.watched.lanes.values()
    if len(lanes) > 1:
        return f"{plural(len(lanes), 'process', 'processes')} that step"
    if any(lane.steps.has_workers for lane in lanes):
        return "workers of a DataLoader"
    return ""


def _is_of_one_thread(times: CoreTime) -> bool:
    return is_single_threaded(times.thread_ns, times.process_ns, times.waited_ns)
