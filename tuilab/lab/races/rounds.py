"""The rounds of a race: each has one block of every slot, in an order drawn at random, until the time is used up."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from tuilab.lab.device.interface import Clock, Device
from tuilab.lab.races.sensors import Sensors, is_disturbed, is_starved
from tuilab.lab.races.timing import Call, time_block
from tuilab.lab.recorder import RaceRecorder
from tuilab.probes.core_work import Work, read_work, usable_cores, use_between
from tuilab.record import events
from tuilab.record.order import CYCLE, order_of_round

_WINDOW_S = 0.25  # that a look covers at the least; a tick of the kernel is 10 ms
_SHORT_WINDOW_S = 0.05  # that is taken instead for a block whose thread had to wait


_MOST_ROUNDS = 200
_UNITS = 6  # rounds of one process, or processes, that an interval needs at least
_WARM_SHARE = 0.3  # of the time
_DRIFT = 0.03
_LAST = {
    "cpu": 3,
    "cuda": 2,
}  # blocks of an arm that are held against as many before: of a GPU they are longer, and fewer
_LEAST_WARM = {
    "cpu": 0,
    "cuda": 8,
}  # rounds that the times are given to settle in, a second or two: a GPU's clocks ramp
_ON_CORE_SHARE = 0.9  # CPU time of wall time, of an arm that does not wait


class OtherWork:
    """The work of other processes between one look and the next.

    A thread that waits for a core may wait for another process of its own run, for example for the workers of its DataLoader.
    That is what the arm does, and no disturbance of it.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._cores = usable_cores()
        self._last = self._read()
        self._share: float | None = None

    def look(self, window_s: float = _WINDOW_S) -> None:
        """Look again, if the last look was so long ago."""
        if self._last is not None and self._clock() - self._last.at < window_s:
            return  # before anything is read: a reading asks for every process of the run
        work = self._read()
        if work is None:
            return
        use = use_between(self._last, work)
        # Both are counted in ticks, so that their difference may come out a little below 0.
        self._share = None if use is None else round(max(use.others, 0.0) / len(self._cores), 3)
        self._last = work

    def share(self) -> float | None:
        """Return the share of the usable cores that others used around now; None if it is not known."""
        self.look(_SHORT_WINDOW_S)
        return self._share

    def _read(self) -> Work | None:
        return read_work(os.getpid(), self._cores)


@dataclass(frozen=True)
class Entrant:
    """One of those that take turns: an arm of the race, or a control."""

    arm: str
    call: Call
    loops: int
    calm_share: float  # CPU time of wall time when nothing interferes
    control: events.Control = ""
    step_s: float = 0.0  # about


class RaceTimings(NamedTuple):
    """What the rounds gave."""

    step_s: dict[str, list[float]]  # of each arm, by round
    record_ns: int  # what writing a record cost
    is_settled: (
        bool | None
    )  # the times had stopped drifting before the first round that counts; None: too few to tell


class Rounds:
    """Times the slots of a race, round after round."""

    def __init__(
        self,
        lab: RaceRecorder,
        slots: list[Entrant],
        seed: int,
        seconds: float,
        threads: int,
        device: Device,
    ) -> None:
        self._lab = lab
        self._slots = slots
        self._seed = seed
        self._seconds = seconds
        self._threads = threads
        self._device = device
        self._warm: dict[str, list[float]] = {slot.arm: [] for slot in slots}
        self._times: dict[str, list[float]] = {slot.arm: [] for slot in slots}
        self._record_ns: list[int] = []

    def run(self) -> RaceTimings:
        """Warm up until the times have settled, or for a third of the time; then time until it is used up."""
        self._other_work = OtherWork()
        with Sensors() as self._sensors:
            return self._run()

    def _run(self) -> RaceTimings:
        began = time.monotonic()
        is_warmup, is_settled, turn = True, None, 0
        while True:
            elapsed = time.monotonic() - began
            if (
                turn % CYCLE == 0
            ):  # only whole cycles, else what the slots differ in would not cancel
                if is_warmup:
                    is_settled = has_settled(self._warm, _LAST[self._device.type])
                    is_late = (
                        elapsed > _WARM_SHARE * self._seconds
                        and turn >= _LEAST_WARM[self._device.type]
                    )
                    is_warmup = not (is_settled or is_late)
                if self._is_enough(elapsed):
                    return RaceTimings(self._times, int(median(self._record_ns)), is_settled)
            places = order_of_round(self._seed, turn, len(self._slots))
            if turn % CYCLE == 0:
                self._other_work.look()
                self._lead_in(self._slots[places[0]])
            for place, number in enumerate(places):
                self._run_slot(self._slots[number], turn, place, is_warmup)
            turn += 1
            done_ms, total_ms = int(min(elapsed, self._seconds) * 1000), int(self._seconds * 1000)
            self._lab.progress(done_ms, total_ms, "ms of racing")
            self._lab.tell_holdings()

    def _is_enough(self, elapsed: float) -> bool:
        done = len(self._times[self._slots[0].arm])
        least = max(CYCLE, -(-_UNITS // self._lab.repeats))
        return done >= least and (elapsed > self._seconds or done >= _MOST_ROUNDS)

    def _lead_in(self, slot: Entrant) -> None:
        """Run a block that is not timed, so that the first block of a cycle follows its own arm.

        Within a cycle the last block of the first round follows itself as well: the second round
        mirrors the first. Over many cycles each arm then follows each arm equally often, itself
        included, and what an arm leaves to the next one falls on all arms alike.
        """
        self._device.wait()
        for _ in range(slot.loops):
            slot.call()

    def _run_slot(self, slot: Entrant, turn: int, place: int, is_warmup: bool) -> None:
        block = self._time(slot, turn, place)
        block.is_warmup = is_warmup
        began = time.perf_counter_ns()
        self._lab.record(block)
        self._record_ns.append(time.perf_counter_ns() - began)
        if is_warmup and not slot.control:
            self._warm[slot.arm].append(self._own_ns(slot, block) / block.loops)
        elif not slot.control:
            self._times[slot.arm].append(block.wall_ns / block.loops / 1e9)

    def _time(self, slot: Entrant, turn: int, place: int) -> events.BlockTimed:
        before, written = self._sensors.read(), self._lab.records_written
        timed = time_block(
            slot.call,
            slot.loops,
            self._device,
            self._clock(slot) if slot.control == "delayed" else None,
        )
        seen = self._sensors.read().since(before)
        if is_starved(seen, timed.wall_ns):
            seen = seen._replace(others_share=self._other_work.share())
        block = events.BlockTimed(
            arm=slot.arm,
            round=turn,
            slot=place,
            loops=slot.loops,
            **timed._asdict(),
            **seen._asdict(),
        )
        block.control = slot.control
        block.records = self._lab.records_written - written
        block.is_disturbed = is_disturbed(seen, timed, slot.calm_share, self._threads)
        return block

    def _own_ns(self, slot: Entrant, block: events.BlockTimed) -> int:
        """Return the time that tells whether an arm drifts: on a busy box the wall clock of one on a core never settles."""
        own_ns = block.thread_ns if self._is_on_core(slot) else None
        return own_ns or block.wall_ns

    def _clock(self, slot: Entrant) -> Clock:
        return time.thread_time_ns if self._is_on_core(slot) else time.perf_counter_ns

    def _is_on_core(self, slot: Entrant) -> bool:
        """Say whether an arm is on the core all the time when nothing interferes: it neither shares its work nor waits.

        Whoever waits for a GPU is on its core as well, and does nothing there.
        """
        return (
            self._device.type == "cpu" and self._threads == 1 and slot.calm_share > _ON_CORE_SHARE
        )


def has_settled(warm: dict[str, list[float]], last: int) -> bool | None:
    """Say whether no arm's last blocks drifted from as many before; None where there are fewer."""
    if any(len(times) < 2 * last for times in warm.values()):
        return None
    return all(
        abs(median(times[-last:]) / median(times[-2 * last : -last]) - 1) < _DRIFT
        for times in warm.values()
    )
