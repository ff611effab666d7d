"""What the steady steps of one process took: on the wall clock, and of CPU time where that was read."""

from typing import NamedTuple

from tuilab.commands.ab.settling import Steady, steady
from tuilab.commands.cpu.core_time import CoreTime, total
from tuilab.commands.running import Ended
from tuilab.commands.watched import Lane
from tuilab.judging.clock import is_single_threaded
from tuilab.text import plural

_MOST_UNREAD = 0.1  # of the steady steps


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


def slowest(ended: Ended) -> Lane | None:
    """Return the lane whose steady steps take longest, for which the others wait; None where nothing can be timed."""
    timed = {lane: one.step_s for lane in ended.watched.lanes.values() if (one := steady_of(lane))}
    return max(timed, key=lambda lane: timed[lane], default=None)


def cpu_of(lane: Lane, found: Steady) -> StepCpu | None:
    """Return the CPU time of the steady steps; None where too few of them were read."""
    times = lane.core_times.since(found.cut)
    sums = total(times)
    if sums is None or sums.steps < (1 - _MOST_UNREAD) * found.count:
        return None
    helpers_ns = lane.helpers.cores * sums.wall_ns
    return StepCpu(
        thread_ns=round(sums.thread_ns / sums.steps),
        whole_ns=round((sums.process_ns + helpers_ns) / sums.steps),
        waited_ns=round(sums.waited_ns / sums.steps),
        steps=sums.steps,
        disturbed_steps=sum(one.steps for one in times if one.is_disturbed),
    )


def helpers_of(ended: Ended) -> str:
    """Return which other processes take part in the steps of a command, or nothing."""
    lanes = ended.watched.lanes.values()
    if len(lanes) > 1:
        return f"{plural(len(lanes), 'process', 'processes')} that step"
    if any(lane.steps.has_workers for lane in lanes):
        return "workers of a DataLoader"
    return ""


def _is_of_one_thread(times: CoreTime) -> bool:
    return is_single_threaded(times.thread_ns, times.process_ns, times.waited_ns)
