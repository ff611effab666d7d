"""A race: functions timed against each other in alternating blocks, so that drift and luck of the slot cancel.

A block is as many calls of one arm as fill 10 ms (50 ms on a GPU). A round has one block of every arm; two arms alternate
as AB BA BA AB, more rotate. Blocks before the times have settled are recorded as warm-up and not judged.
"""

import math
import time
from collections.abc import Callable
from statistics import median
from typing import TYPE_CHECKING, Any

import torch

from tuilab import device as devices
from tuilab import events

if TYPE_CHECKING:
    from tuilab.lab import Lab

Arms = dict[str, Callable[[], object]]

_BLOCK_S = {"cpu": 0.010, "cuda": 0.050}
_ROUNDS = (6, 200)  # at least and at most
_WARM_SHARE = 0.3  # of the time
_DRIFT = 0.03


class Race:
    """What a race gave, for a scenario that wants to show it; the verdict is reached from the records."""

    def __init__(self, step_s: dict[str, list[float]]) -> None:
        self.step_s = step_s

    def median_s(self, arm: str) -> float:
        """Return the median time of one call."""
        return median(self.step_s[arm])

    def ratio(self, over: str, under: str) -> float:
        """Return the median over the rounds of how many times longer `over` takes than `under`."""
        return median(a / b for a, b in zip(self.step_s[over], self.step_s[under], strict=True))


def run_race(
    lab: "Lab", arms: Arms, same: float | Callable[[Any, Any], bool] | None, seconds: float, threads: int, device: torch.device
) -> Race:
    """Run the arms against each other for about `seconds` and return their times."""
    if len(arms) < 2:
        raise TypeError("a race takes two arms or more")
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        is_same, difference = _compare(arms, same)
        loops = {name: _calibrate(arm, device) for name, arm in arms.items()}
        lab.record(events.RaceStarted(arms=list(arms), threads=threads, device=device.type, loops=loops))
        step_s = _run_rounds(lab, arms, loops, seconds, device)
        lab.record(events.RaceFinished(arms=list(arms), is_same=is_same, difference=difference))
    finally:
        torch.set_num_threads(before)
    return Race(step_s)


def _compare(arms: Arms, same: float | Callable[[Any, Any], bool] | None) -> tuple[bool | None, str]:
    """Call every arm once and say whether all compute what the first one does."""
    outputs = {name: arm() for name, arm in arms.items()}
    if same is None:
        return None, ""
    (first, expected), *others = outputs.items()
    for name, output in others:
        if callable(same):
            if not same(expected, output):
                return False, f"{name} does not give what {first} gives"
        elif not _are_close(expected, output, same):
            return False, f"{name} differs from {first} by more than {same:g}"
    return True, ""


def _are_close(a: Any, b: Any, tolerance: float) -> bool:
    return torch.allclose(torch.as_tensor(a).double(), torch.as_tensor(b).double(), rtol=tolerance, atol=tolerance)


def _calibrate(arm: Callable[[], object], device: torch.device) -> int:
    """Return how many calls fill a block."""
    goal = _BLOCK_S[device.type]
    loops = 1
    while True:
        wall_s = _time_block(arm, loops, device)[0] / 1e9
        if wall_s >= goal / 2:
            return max(1, math.ceil(loops * goal / wall_s))
        loops *= 4 if wall_s < goal / 8 else 2


def _run_rounds(lab: "Lab", arms: Arms, loops: dict[str, int], seconds: float, device: torch.device) -> dict[str, list[float]]:
    names = list(arms)
    warm: dict[str, list[float]] = {name: [] for name in names}
    step_s: dict[str, list[float]] = {name: [] for name in names}
    began = time.monotonic()
    is_warming = True
    for turn in range(10 * _ROUNDS[1]):
        elapsed = time.monotonic() - began
        if is_warming and (_has_settled(warm) or elapsed > _WARM_SHARE * seconds):
            is_warming = False
        done = len(step_s[names[0]])
        if done >= _ROUNDS[0] and (elapsed > seconds or done >= _ROUNDS[1]):
            break
        for slot, name in enumerate(_order(names, turn)):
            block_s = _run_block(lab, name, arms[name], loops[name], turn, slot, device, is_warming)
            (warm if is_warming else step_s)[name].append(block_s)
        lab.progress(min(int(elapsed * 1000), int(seconds * 1000)), int(seconds * 1000), "ms of racing")
    return step_s


def _run_block(
    lab: "Lab", name: str, arm: Callable[[], object], loops: int, turn: int, slot: int, device: torch.device, is_warmup: bool
) -> float:
    wall_ns, cpu_ns, device_ns = _time_block(arm, loops, device)
    block = events.BlockTimed(arm=name, round=turn, slot=slot, loops=loops, wall_ns=wall_ns, cpu_ns=cpu_ns, device_ns=device_ns)
    block.is_warmup = is_warmup
    lab.record(block)
    return (device_ns or wall_ns) / loops / 1e9


def _time_block(arm: Callable[[], object], loops: int, device: torch.device) -> tuple[int, int, int | None]:
    """Return the wall, CPU and device time of `loops` calls in nanoseconds; a GPU is waited for once, at the end."""
    span = _DeviceSpan() if device.type == "cuda" else None
    devices.synchronize(device)
    cpu_ns = time.process_time_ns()
    wall_ns = time.perf_counter_ns()
    if span:
        span.begin()
    for _ in range(loops):
        arm()
    if span:
        span.end()
    devices.synchronize(device)
    wall_ns = time.perf_counter_ns() - wall_ns
    cpu_ns = time.process_time_ns() - cpu_ns
    return wall_ns, cpu_ns, span.elapsed_ns() if span else None


class _DeviceSpan:
    """Time on the GPU between two events."""

    def __init__(self) -> None:
        self._events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]

    def begin(self) -> None:
        self._events[0].record()

    def end(self) -> None:
        self._events[1].record()

    def elapsed_ns(self) -> int:
        return int(self._events[0].elapsed_time(self._events[1]) * 1e6)


def _order(names: list[str], turn: int) -> list[str]:
    """Return the order of a round: AB BA BA AB for two, a Latin rotation that is reversed every other time for more."""
    if len(names) == 2:
        return names if turn % 4 in (0, 3) else names[::-1]
    shift = turn % len(names)
    rotated = names[shift:] + names[:shift]
    return rotated if (turn // len(names)) % 2 == 0 else rotated[::-1]


def _has_settled(warm: dict[str, list[float]]) -> bool:
    """Say whether no arm's last three blocks drifted from the three before."""
    return all(len(times) >= 6 and abs(median(times[-3:]) / median(times[-6:-3]) - 1) < _DRIFT for times in warm.values())
