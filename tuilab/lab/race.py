"""A race: arms timed against each other in alternating blocks, so that drift and luck of the slot cancel.

A block is as many calls of one arm as fill 10 ms (50 ms on a GPU). A round has one block of every arm, in an order that rotates
and is reversed every other round. Two more arms are controls: the fastest arm once more (A/A), and once more with a known delay
of 5 %. Blocks before the times have settled are recorded as warm-up; a block that the sensors say was disturbed is marked, and
counts as it is: one that ran again would run warm, and would hide what an arm itself does. Nothing is judged here.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch

from tuilab.lab.given import MOST, checked, number, number_in, told, words
from tuilab.lab.recorder import RaceRecorder
from tuilab.lab.sensors import Sensors, is_disturbed
from tuilab.lab.timing import calibrate, time_block, wait_for_pools
from tuilab.record import events

Call = Callable[[], object]

DELAY = 0.05
_MOST_ROUNDS = 200
_CYCLE = 4  # rounds: forward, back, back, forward
_UNITS = 6  # rounds of one process, or processes, that an interval needs at least
_WARM_SHARE = 0.3  # of the time
_DRIFT = 0.03
_LONGEST_STEP_S = 1e9


class Race:
    """What a race gave, for a scenario that wants to show it; the verdict is reached from the records."""

    def __init__(self, step_s: dict[str, list[float]]) -> None:
        self.step_s = step_s

    def ratio(self, over: str, under: str) -> float:
        """Return the median over the rounds of how many times longer `over` takes than `under`."""
        times = zip(self._times_of("over", over), self._times_of("under", under), strict=True)
        return median(a / b for a, b in times)

    def _times_of(self, argument: str, arm: str) -> list[float]:
        if words(argument, arm) not in self.step_s:
            raise ValueError(f"{argument} takes one of {', '.join(map(repr, self.step_s))}, not {told(arm)}")
        return self.step_s[arm]


@dataclass(frozen=True)
class _Slot:
    """One of the arms that take turns: an arm of the race, or a control."""

    arm: str
    call: Call
    loops: int
    calm_share: float  # CPU time of wall time when nothing interferes
    control: events.Control = ""


def check_race(arms: Mapping[str, Any], same: Any, device: Any, threads: int) -> None:
    """Raise TypeError or ValueError for what no race can be made of, before any arm is called."""
    for name, arm in arms.items():
        if not callable(arm):
            raise TypeError(f"{name} takes a function or an arm, not {told(arm)}")
    if len(arms) < 2:
        raise TypeError("a race takes two arms or more")
    if not isinstance(device, torch.device):
        raise TypeError(f"device takes a torch.device, not {told(device)}")
    if same is not None and not callable(same):
        number_in("same", same, 0)
    loops = dict.fromkeys(arms, MOST)
    checked(events.RaceStarted(arms=list(arms), threads=threads, device="process", loops=loops, base=max(arms, key=len)))


def run_race(
    lab: RaceRecorder, arms: dict[str, Call], same: float | Callable[[Any, Any], bool] | None, seconds: float, threads: int,
    device: torch.device,
) -> Race:  # fmt: skip
    """Run the arms against each other for about `seconds` and return their times."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        is_same, difference = _compare(lab, arms, same)
        slots = _prepare(lab, arms, threads, device)
        times, record_ns = _Rounds(lab, slots, seconds, threads, device).run()
        finished = events.RaceFinished(arms=list(arms), is_same=is_same, difference=difference, record_ns=record_ns)
        lab.record(finished)
    finally:
        torch.set_num_threads(before)
    return Race(times)


def _compare(
    lab: RaceRecorder, arms: dict[str, Call], same: float | Callable[[Any, Any], bool] | None
) -> tuple[bool | None, str]:
    """Call every arm for the first time and say whether all compute what the first one does."""
    outputs = {}
    for name, arm in arms.items():
        began = time.perf_counter_ns()
        outputs[name] = arm()
        lab.record(events.FirstCalled(arm=name, wall_ns=time.perf_counter_ns() - began))
    if same is None:
        return None, ""
    (first, expected), *others = outputs.items()
    for name, output in others:
        is_equal = same(expected, output) if callable(same) else _are_close(expected, output, same)
        if not is_equal:
            return False, f"{name} does not compute what {first} does"
    return True, ""


def _are_close(a: Any, b: Any, tolerance: float) -> bool:
    return torch.allclose(torch.as_tensor(a).double(), torch.as_tensor(b).double(), rtol=tolerance, atol=tolerance)


def _prepare(lab: RaceRecorder, arms: dict[str, Call], threads: int, device: torch.device) -> list[_Slot]:
    """Find how many calls fill a block of each arm, and add the controls, made from the fastest arm."""
    paces = {}
    for name, arm in arms.items():
        wait_for_pools()
        paces[name] = calibrate(arm, device, threads)
    slots = [_Slot(name, arm, paces[name].loops, paces[name].calm_share) for name, arm in arms.items()]
    base = min(slots, key=lambda slot: paces[slot.arm].step_s)
    started = events.RaceStarted(arms=list(arms), threads=threads, device=device.type, loops={s.arm: s.loops for s in slots})
    started.base, started.delay = base.arm, DELAY
    lab.record(started)
    controls: tuple[events.Control, ...] = ("same", "delayed")
    return [*slots, *(_Slot(base.arm, base.call, base.loops, base.calm_share, control) for control in controls)]


class _Rounds:
    """The rounds of a race."""

    def __init__(self, lab: RaceRecorder, slots: list[_Slot], seconds: float, threads: int, device: torch.device) -> None:
        self._lab = lab
        self._slots = slots
        self._seconds = seconds
        self._threads = threads
        self._device = device
        self._sensors = Sensors()
        self._warm: dict[str, list[float]] = {slot.arm: [] for slot in slots}
        self._times: dict[str, list[float]] = {slot.arm: [] for slot in slots}
        self._record_ns: list[int] = []

    def run(self) -> tuple[dict[str, list[float]], int]:
        """Return the times of a call of each arm by round, and what writing a record cost."""
        least = max(2, -(-_UNITS // self._lab.repeats))
        began = time.monotonic()
        is_warming = True
        turn = 0
        while True:
            elapsed = time.monotonic() - began
            if turn % _CYCLE == 0:  # only whole cycles, else what the slots differ in would not cancel
                is_warming = is_warming and not (_has_settled(self._warm) or elapsed > _WARM_SHARE * self._seconds)
                done = len(self._times[self._slots[0].arm])
                if done >= least and (elapsed > self._seconds or done >= _MOST_ROUNDS):
                    return self._times, int(median(self._record_ns))
            for slot_number, slot in enumerate(_order(self._slots, turn)):
                self._run_slot(slot, turn, slot_number, is_warming)
            turn += 1
            done_ms, total_ms = int(min(elapsed, self._seconds) * 1000), int(self._seconds * 1000)
            self._lab.progress(done_ms, total_ms, "ms of racing")

    def _run_slot(self, slot: _Slot, turn: int, number: int, is_warmup: bool) -> None:
        block = self._time(slot, turn, number)
        block.is_warmup = is_warmup
        began = time.perf_counter_ns()
        self._lab.record(block)
        self._record_ns.append(time.perf_counter_ns() - began)
        if not slot.control:
            step_s = (block.device_ns or block.wall_ns) / block.loops / 1e9
            (self._warm if is_warmup else self._times)[slot.arm].append(step_s)

    def _time(self, slot: _Slot, turn: int, number: int) -> events.BlockTimed:
        before, written = self._sensors.read(), self._lab.records_written
        timed = time_block(slot.call, slot.loops, self._device, DELAY if slot.control == "delayed" else 0.0)
        seen = self._sensors.read().since(before)
        block = events.BlockTimed(arm=slot.arm, round=turn, slot=number, loops=slot.loops, **timed._asdict(), **seen._asdict())
        block.control = slot.control
        block.records = self._lab.records_written - written
        share = timed.share(self._threads)
        block.is_disturbed = is_disturbed(seen, timed.wall_ns, share, slot.calm_share, self._threads)
        return block


def _order(slots: list[_Slot], turn: int) -> list[_Slot]:
    """Return the order of a round: a rotation, reversed every other turn, so that each arm meets each slot and neighbour."""
    shift = (turn // 2) % len(slots)
    rotated = slots[shift:] + slots[:shift]
    return rotated if turn % 4 in (0, 3) else rotated[::-1]


def _has_settled(warm: dict[str, list[float]]) -> bool:
    """Say whether no arm's last three blocks drifted from the three before."""
    return all(len(times) >= 6 and abs(median(times[-3:]) / median(times[-6:-3]) - 1) < _DRIFT for times in warm.values())


def run_process_race(lab: RaceRecorder, arms: Mapping[str, Callable[[], float]]) -> Race:
    """Race arms that need a process each: one after another, in an order that alternates from repeat to repeat.

    Each returns the seconds that one step of it took.
    """
    names = list(arms) if lab.repeat % 2 == 0 else list(arms)[::-1]
    lab.record(events.RaceStarted(arms=list(arms), threads=0, device="process", loops=dict.fromkeys(arms, 1)))
    times: dict[str, list[float]] = {}
    for slot, name in enumerate(names):
        step_s = number(f"as the seconds of a step, the arm {name}", arms[name]())
        if not 1e-9 <= step_s < _LONGEST_STEP_S:
            raise ValueError(f"the arm {name} returned {step_s:g} seconds for a step")
        times[name] = [step_s]
        lab.record(events.BlockTimed(arm=name, round=0, slot=slot, loops=1, wall_ns=int(step_s * 1e9), cpu_ns=0))
        lab.progress(slot + 1, len(names), "arms")
    lab.record(events.RaceFinished(arms=list(arms)))
    return Race(times)
