"""How long a GPU works at a call: it is told ahead, while it is kept busy, and then waits for nothing."""

import math
import time

from tuilab.lab.device.asked import Device
from tuilab.lab.device.cuda import Cuda
from tuilab.lab.races.timing import Call

_AHEAD_NS = 2_000_000  # of calls that are told together: so few that no queue is full
_SEVERAL = 10  # calls: they may differ, as where gradients are accumulated
_ONE_BY_ONE_NS = 100_000_000  # of calls that are told one by one
_LONGEST_BUSY_NS = 1_000_000_000  # a driver may end a kernel that takes longer where the GPU has a display, too


def gpu_ns(call: Call, step_s: float, device: Device) -> int | None:
    """Return how long the GPU works at a call at most.

    Calls that wait for the GPU themselves, or fill its queue, are told ahead one by one. None on the CPU, of calls that take
    too long to try it, and of those that enter another stream: what the current one does is not all of their work.
    """
    step_ns = step_s * 1e9
    if not isinstance(device, Cuda) or 2 * step_ns > _LONGEST_BUSY_NS:
        return None
    with device.streams_entered() as entered:
        worked_ns = _tell(call, step_ns, device)
    return None if entered else round(worked_ns)


def _tell(call: Call, step_ns: float, device: Cuda) -> float:
    together = math.ceil(_AHEAD_NS / step_ns)
    if together >= _SEVERAL:
        worked_ns, is_ahead = _tell_ahead(call, together, step_ns, device)
        if is_ahead:
            return worked_ns / together
    count = max(1, min(_SEVERAL, int(_ONE_BY_ONE_NS / step_ns)))
    return sum(_tell_ahead(call, 1, step_ns, device)[0] for _ in range(count)) / count


def _tell_ahead(call: Call, calls: int, step_ns: float, device: Cuda) -> tuple[int, bool]:
    """Return how long the GPU worked, and whether it had been told all before."""
    device.wait()
    device.delay(2 * calls * step_ns, time.perf_counter_ns)
    device.begin()
    for _ in range(calls):
        call()
    is_ahead = not device.has_begun()
    device.end()
    device.wait()
    return device.stream_ns(), is_ahead
