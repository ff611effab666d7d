"""Times the rounds of a race until the time is used up.

A round has one block of every participant, in an order drawn at random. A block is some calls of
one arm, which are timed together.
"""

import math
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

_WINDOW_S = 0.25  # between two readings at least; a tick of the kernel is 10 ms
_SHORT_WINDOW_S = 0.05  # the same after a block whose thread had to wait

_MOST_ROUNDS = 200  # that count, without the warm-up
_UNITS = 6  # rounds of one process, or processes, that an interval needs at least
_WARM_SHARE = 0.3  # of the time, after which the warm-up ends in any case
_DRIFT = 0.03  # a smaller relative change of the times means that they have settled
# Blocks of an arm that are compared with as many before; blocks on a GPU are longer, and fewer.
_LAST = {"cpu": 3, "cuda": 2}
# Rounds of warm-up at least; on a GPU a second or two, because its clocks ramp up.
_LEAST_WARM = {"cpu": 0, "cuda": 8}
_ON_CORE_SHARE = 0.9  # CPU time of wall time, for an arm that does not wait


class OtherWork:
    """The work of other processes between two readings.

    A thread that waits for a core may wait for another process of its own run, for example for the
    workers of its DataLoader. This is a part of the arm, and no disturbance.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._cores = usable_cores()
        self._last = self._read()
        self._share: float | None = None

    def update(self, window_s: float = _WINDOW_S) -> None:
        """Read the work again, if the last reading is old enough.

        If a reading fails, the last one stays, and so does the share.
        """
        # The age is checked first, because a reading asks for every process of the run.
        if self._last is not None and self._clock() - self._last.at < window_s:
            return
        work = self._read()
        if work is None:
            return
        use = use_between(self._last, work)
        if use is None:
            self._share = None
        else:
            # Both are counted in ticks, so that their difference may be a little below 0.
            self._share = round(max(use.others, 0.0) / len(self._cores), 3)
        self._last = work

    def share(self) -> float | None:
        """Return the recent share of the usable cores that others used; None if it is not known."""
        self.update(_SHORT_WINDOW_S)
        return self._share

    def _read(self) -> Work | None:
        return read_work(os.getpid(), self._cores)


@dataclass(frozen=True)
class Entrant:
    """A participant of a race: an arm, or a control."""

    arm: str
    call: Call
    loops: int
    calm_share: float  # CPU time of wall time when nothing interferes
    control: events.Control = ""
    step_s: float = 0.0  # an estimate


class RaceTimings(NamedTuple):
    """The results of the rounds."""

    step_s: dict[str, list[float]]  # by arm, of each round
    record_ns: int  # the cost of writing a record
    # whether the times had stopped drifting before the first round that counts; None if too few
    is_settled: bool | None


class Rounds:
    """Times the participants of a race, round after round."""

    def __init__(
        self,
        lab: RaceRecorder,
        entrants: list[Entrant],
        seed: int,
        seconds: float,
        threads: int,
        device: Device,
    ) -> None:
        self._lab = lab
        self._entrants = entrants
        self._seed = seed
        self._seconds = seconds
        self._threads = threads
        self._device = device
        self._warm: dict[str, list[float]] = {entrant.arm: [] for entrant in entrants}
        self._times: dict[str, list[float]] = {entrant.arm: [] for entrant in entrants}
        self._record_ns: list[int] = []

    def run(self) -> RaceTimings:
        """Warm up until the times have settled, at most for a third of the time; then time.

        Every block and the progress are recorded. Call this once.
        """
        self._other_work = OtherWork()
        with Sensors() as self._sensors:
            return self._run()

    def _run(self) -> RaceTimings:
        """Run whole cycles of rounds until there are enough, and return the times."""
        began_s = time.monotonic()
        is_warmup = True
        is_settled = None
        turn = 0
        while True:
            elapsed_s = time.monotonic() - began_s
            # Only whole cycles are run: else differences between the turns would not cancel.
            is_new_cycle = turn % CYCLE == 0
            if is_new_cycle:
                if is_warmup:
                    is_settled = has_settled(self._warm, _LAST[self._device.type])
                    is_warmup = not (is_settled or self._has_warmed_enough(turn, elapsed_s))
                if self._is_enough(elapsed_s):
                    return RaceTimings(self._times, int(median(self._record_ns)), is_settled)
            order = order_of_round(self._seed, turn, len(self._entrants))
            if is_new_cycle:
                self._other_work.update()
                self._lead_in(self._entrants[order[0]])
            for place, number in enumerate(order):
                self._run_block(self._entrants[number], turn, place, is_warmup)
            turn += 1
            done_ms = int(min(elapsed_s, self._seconds) * 1000)
            total_ms = int(self._seconds * 1000)
            self._lab.progress(done_ms, total_ms, "ms of racing")
            self._lab.tell_holdings()

    def _has_warmed_enough(self, turn: int, elapsed_s: float) -> bool:
        """Say whether the warm-up ends although the times have not settled."""
        least_rounds = _LEAST_WARM[self._device.type]
        return elapsed_s > _WARM_SHARE * self._seconds and turn >= least_rounds

    def _is_enough(self, elapsed_s: float) -> bool:
        """Say whether the race ends: its time is used up, or it has the most rounds possible.

        It never ends with fewer rounds than an interval needs.
        """
        done = len(self._times[self._entrants[0].arm])
        units = math.ceil(_UNITS / self._lab.repeats)
        if done < max(CYCLE, units):
            return False
        return elapsed_s > self._seconds or done >= _MOST_ROUNDS

    def _lead_in(self, entrant: Entrant) -> None:
        """Run a block that is not timed, so that the first block of a cycle follows its own arm.

        Within a cycle the last block of the first round follows itself as well: the second round
        mirrors the first. Over many cycles each arm then follows each arm equally often, itself
        included, and what an arm leaves to the next one affects all arms alike.
        """
        self._device.wait()
        for _ in range(entrant.loops):
            entrant.call()

    def _run_block(self, entrant: Entrant, turn: int, place: int, is_warmup: bool) -> None:
        """Time a block and record it; keep its time, unless it is of a control."""
        block = self._time(entrant, turn, place)
        block.is_warmup = is_warmup
        began_ns = time.perf_counter_ns()
        self._lab.record(block)
        self._record_ns.append(time.perf_counter_ns() - began_ns)
        if entrant.control:
            return
        if is_warmup:
            self._warm[entrant.arm].append(self._own_ns(entrant, block) / block.loops)
        else:
            self._times[entrant.arm].append(block.wall_ns / block.loops / 1e9)

    def _time(self, entrant: Entrant, turn: int, place: int) -> events.BlockTimed:
        """Time a block, and return its record with the sensors around it."""
        delay = None
        if entrant.control == "delayed":
            delay = self._clock(entrant)
        before = self._sensors.read()
        written = self._lab.records_written
        timed = time_block(entrant.call, entrant.loops, self._device, delay)
        counts = self._sensors.read().since(before)
        if is_starved(counts, timed.wall_ns):
            counts = counts._replace(others_share=self._other_work.share())
        block = events.BlockTimed(
            arm=entrant.arm,
            round=turn,
            slot=place,
            loops=entrant.loops,
            **timed._asdict(),
            **counts._asdict(),
        )
        block.control = entrant.control
        block.records = self._lab.records_written - written
        block.is_disturbed = is_disturbed(counts, timed, entrant.calm_share, self._threads)
        return block

    def _own_ns(self, entrant: Entrant, block: events.BlockTimed) -> int:
        """Return the time by which an arm settles: CPU time if it does not wait, else wall time.

        On a busy machine the wall time of an arm on one core never settles.
        """
        if self._is_on_core(entrant) and block.thread_ns:
            return block.thread_ns
        return block.wall_ns

    def _clock(self, entrant: Entrant) -> Clock:
        """Return the clock of the known delay: CPU time for an arm that is always on its core."""
        if self._is_on_core(entrant):
            return time.thread_time_ns
        return time.perf_counter_ns

    def _is_on_core(self, entrant: Entrant) -> bool:
        """Say whether an arm is always on its core when nothing interferes.

        Such an arm neither shares its work with other threads nor waits. A thread that waits for a
        GPU is on its core as well, but does nothing there.
        """
        if self._device.type != "cpu" or self._threads != 1:
            return False
        return entrant.calm_share > _ON_CORE_SHARE


def has_settled(warm: dict[str, list[float]], last: int) -> bool | None:
    """Say whether the last blocks of all arms took as long as those before; None if too few."""
    if any(len(times) < 2 * last for times in warm.values()):
        return None
    for times in warm.values():
        ratio = median(times[-last:]) / median(times[-2 * last : -last])
        if not abs(ratio - 1) < _DRIFT:
            return False
    return True
