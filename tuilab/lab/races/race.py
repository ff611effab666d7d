"""A race: arms timed against each other in alternating blocks, so that drift and luck of the slot cancel.

A block is as many calls of one arm as fill 10 ms (50 ms on a GPU), from a device that has nothing to do until it has done all
of them. A round has one block of every arm, in an order drawn at random; every other round mirrors the one before. Two more
arms are controls: a fast arm once more (A/A), and once more with a known delay of 5 %. Blocks before the times have
settled are recorded as warm-up; a block that the sensors say was disturbed is marked, and counts as it is: one that ran again
would run warm, and would hide what an arm itself does. Nothing is judged here.
"""

import gc
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from secrets import randbits
from statistics import median
from typing import Any

import torch

from tuilab.judging import calibration_file
from tuilab.lab.arguments import MOST, checked, describe_value, flag, number_in, words
from tuilab.lab.device.cuda import Cuda
from tuilab.lab.device.devices import all_in_use, door
from tuilab.lab.device.interface import Device
from tuilab.lab.races import switches
from tuilab.lab.races.first_calls import Same, first_calls
from tuilab.lab.races.rounds import Entrant, Rounds
from tuilab.lab.races.timing import Call, Pace, calibrate, known_delay, wait_for_pools
from tuilab.lab.recorder import RaceRecorder
from tuilab.record import events
from tuilab.record.order import BEFORE, order

_AHEAD_NS = 2_000_000  # of calls that are told together: so few that no queue is full
_SEVERAL = 10  # calls: they may differ, as where gradients are accumulated
_ONE_BY_ONE_NS = 100_000_000  # of calls that are told one by one
_LONGEST_BUSY_NS = (
    1_000_000_000  # a driver may end a kernel that takes longer where the GPU has a display, too
)


_ABOUT_AS_FAST = 1.4  # times the fastest arm: more than the luck of a process
_LEFT = 0.02  # of a block, that a GPU which is not waited for may go on after it
_LOOKS = 2  # more, as whoever waits may lose the core meanwhile


def gpu_ns(call: Call, step_s: float, device: Device) -> int | None:
    """Return how long the GPU works at a call at most: it gets the calls while it is kept busy, and then waits for nothing.

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


class Race:
    """What a race gave, for a scenario that wants to show it; the verdict is reached from the records."""

    def __init__(self, step_s: dict[str, list[float]], lacks: str = "") -> None:
        self.step_s = step_s
        self._lacks = lacks  # for which there are no times

    def ratio(self, over: str, under: str) -> float:
        """Return the median over the rounds of how many times longer `over` takes than `under`."""
        times = zip(self._times_of("over", over), self._times_of("under", under), strict=True)
        return median(a / b for a, b in times)

    def _times_of(self, argument: str, arm: str) -> list[float]:
        if self._lacks:
            raise ValueError(
                f"{argument} has no times: the race was skipped, because this machine lacks {self._lacks}"
            )
        if words(argument, arm) not in self.step_s:
            raise ValueError(
                f"{argument} takes one of {', '.join(map(repr, self.step_s))}, not {describe_value(arm)}"
            )
        return self.step_s[arm]


def check_race(
    arms: Mapping[str, Any], same: Any, device: Any, threads: int, factories: Any
) -> None:
    """Raise TypeError or ValueError for what no race can be made of, before any arm is called."""
    flag("factories", factories)
    for name, arm in arms.items():
        if not name or "/" in name:
            raise ValueError(
                f"an arm takes a name without /, which separates the two arms of a ratio, not {describe_value(name)}"
            )
        if not callable(arm):
            raise TypeError(f"{name} takes a function or an arm, not {describe_value(arm)}")
    if len(arms) < 2:
        raise TypeError(f"lab.race takes at least two arms, not {len(arms)}")
    if not isinstance(device, torch.device):
        raise TypeError(f"device takes a torch.device, not {describe_value(device)}")
    if same is not None and not callable(same):
        number_in("same", same, 0)
    loops = dict.fromkeys(arms, MOST)
    checked(
        events.RaceStarted(
            arms=list(arms), threads=threads, device="process", loops=loops, base=max(arms, key=len)
        )
    )


def run_race(
    lab: RaceRecorder, arms: Mapping[str, Callable[[], Any]], same: Same, seconds: float, threads: int, device: torch.device,
    factories: bool,
) -> Race:  # fmt: skip
    """Run the arms against each other for about `seconds` and return their times; `factories` make what is timed."""
    seed = randbits(32)  # another one in each process, whatever the scenario seeds
    before, raced = torch.get_num_threads(), door(device)
    torch.set_num_threads(threads)
    try:
        with raced.selected(), _little_to_collect():
            return _run(lab, arms, same, seconds, threads, raced, factories, seed)
    finally:
        torch.set_num_threads(before)


@contextmanager
def _little_to_collect() -> Iterator[None]:
    """Let the collector of garbage go through what the arms make, and not through all that torch and the lab have loaded."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _run(
    lab: RaceRecorder, arms: Mapping[str, Callable[[], Any]], same: Same, seconds: float, threads: int, device: Device,
    factories: bool, seed: int,
) -> Race:  # fmt: skip
    refuse_left = switches.watch()
    calls = _make_all(arms, seed, refuse_left) if factories else dict(arms)
    is_same, difference = first_calls(lab, calls, list(arms), same, device, refuse_left)
    lab.record(events.EnvironmentRecorded(part="switches", facts=switches.read()))
    lab.tell_holdings()
    prepared, base = _prepare(calls, list(arms), threads, device, refuse_left)
    slots = [prepared[name] for name in arms]
    before = _gpu_ns(slots, device)
    loops = {slot.arm: slot.loops for slot in slots}
    started = events.RaceStarted(
        arms=list(arms), threads=threads, device=device.type, loops=loops, base=base.arm
    )
    started.delay, started.seed, started.has_instances = known_delay(base.loops), seed, factories
    started.uuid, started.device_index = device.uuid, device.index
    started.luck = (
        calibration_file.load(device.uuid).process_sd if device.uuid and lab.repeats == 1 else None
    )
    lab.record(started)
    controls = _controls(base, arms[base.arm] if factories else None)
    refuse_left(base.arm)
    found = Rounds(lab, slots + controls, seed, seconds, threads, device).run()
    refuse_left("")
    finished = events.RaceFinished(arms=list(arms), is_same=is_same, difference=difference)
    finished.record_ns, finished.is_settled = found.record_ns, found.is_settled
    after = _gpu_ns(
        slots, device
    )  # again, as its clocks may be lower by now, or somebody else may use it
    finished.gpu_ns = {arm: max(before[arm], after[arm]) for arm in before if arm in after}
    lab.record(finished)
    return Race(found.step_s)


def _gpu_ns(slots: Sequence[Entrant], device: Device) -> dict[str, int]:
    """Return, by arm, how long the GPU works at a call at most, where that can be said."""
    found = {slot.arm: gpu_ns(slot.call, slot.step_s, device) for slot in slots}
    return {arm: worked_ns for arm, worked_ns in found.items() if worked_ns is not None}


def _make_all(
    factories: Mapping[str, Callable[[], Any]], seed: int, refuse_left: Callable[[str], object]
) -> dict[str, Call]:
    """Make the arms in an order of their own: who allocates first would else be the same one in every process."""
    names, made = list(factories), {}
    for i in order(seed, BEFORE, len(names)):
        made[names[i]] = _make(names[i], factories[names[i]])
        refuse_left(names[i])
    return made


def _make(name: str, factory: Callable[[], Any]) -> Call:
    made = factory()
    if not callable(made):
        raise TypeError(
            f"with factories=True {name} has to return the function to time, but it returned {describe_value(made)}"
        )
    return made  # type: ignore[no-any-return]


def _prepare(
    arms: Mapping[str, Call],
    names: list[str],
    threads: int,
    device: Device,
    refuse_left: Callable[[str], object],
) -> tuple[dict[str, Entrant], Entrant]:
    """Find how many calls of each arm fill a block; return the arms, and the one of them that the controls use."""
    paces = {}
    for name, arm in arms.items():
        wait_for_pools()
        paces[name] = calibrate(arm, device, threads)
        refuse_left(name)
        _refuse_work_elsewhere(name, arm, paces[name], device)
    device.make_ready()  # at the speed that the arms have brought it to
    slots = {
        name: Entrant(name, arms[name], pace.loops, pace.calm_share, step_s=pace.step_s)
        for name, pace in paces.items()
    }
    return slots, slots[base_of({name: paces[name] for name in names})]


def base_of(paces: Mapping[str, Pace]) -> str:
    """Return the arm that the controls are made of: the first one that is about as fast as the fastest.

    The fastest itself would, of arms that are alike, be the one with the luck of the process, another one in each process; the
    controls do not share that luck, and would come out slower in all of them.
    """
    fastest = min(pace.step_s for pace in paces.values())
    return next(name for name, pace in paces.items() if pace.step_s <= _ABOUT_AS_FAST * fastest)


def _refuse_work_elsewhere(name: str, arm: Call, pace: Pace, device: Device) -> None:
    """Raise ValueError where an arm has left work on a GPU that is not waited for: its calls would be timed, not its work."""
    for gpu in all_in_use():
        if gpu.index != device.index and (not gpu.is_idle() or _goes_on(gpu, arm, pace)):
            waited_for = "the CPU" if device.index is None else f"cuda:{device.index}"
            raise ValueError(
                f"{name} leaves work on cuda:{gpu.index}, but the race waits only for {waited_for}; "
                f'pass device=torch.device("cuda:{gpu.index}")'
            )


def _goes_on(gpu: Cuda, arm: Call, pace: Pace) -> bool:
    """Say whether a GPU goes on after a block of an arm: streams beside the current one tell only whoever waits for all."""
    most_ns = _LEFT * pace.loops * pace.step_s * 1e9
    if _waited_ns(gpu) <= most_ns:
        return False
    for _ in range(_LOOKS):
        for _ in range(pace.loops):
            arm()
        if _waited_ns(gpu) <= most_ns:
            return False
    return True


def _waited_ns(gpu: Cuda) -> int:
    began = time.perf_counter_ns()
    gpu.wait()
    return time.perf_counter_ns() - began


def _controls(base: Entrant, factory: Callable[[], Any] | None) -> list[Entrant]:
    """Return the controls: an arm twice more, where there is a factory as instances with memory of their own."""
    controls: tuple[events.Control, ...] = ("same", "delayed")
    calls = [_make(base.arm, factory) if factory else base.call for _ in controls]
    for call in calls:
        call()  # what the first call costs is no part of a round
    return [
        replace(base, call=call, control=control)
        for call, control in zip(calls, controls, strict=True)
    ]
