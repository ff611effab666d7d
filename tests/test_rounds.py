"""The rounds of a race: when the warm-up is over."""

import time
from collections.abc import Callable
from functools import partial
from itertools import count
from types import SimpleNamespace
from typing import cast

import pytest
import torch

from tests.race_recorder import RaceRecorder
from tuilab.lab.device.devices import door
from tuilab.lab.device.interface import Clock, Device
from tuilab.lab.races import rounds
from tuilab.lab.races.rounds import Entrant, RaceTimings, Rounds, has_settled
from tuilab.lab.races.sensors import SensorReading, Sensors
from tuilab.lab.races.timing import Call, Timed
from tuilab.probes.core_work import Work
from tuilab.record.events import BlockTimed, Control
from tuilab.record.order import CYCLE


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ([3, 2, 1.01, 1, 1, 1], False),  # the three before drifted still
        ([3, 2, 1, 1.01, 1, 1, 1.02, 1], True),
        ([1, 1, 1, 1, 1], None),  # too few to tell
        ([1, 1, 1, 1.04, 1.04, 1.04], False),
    ],
)
def test_times_have_settled_when_the_last_three_are_those_before(
    times: list[float], expected: bool | None
) -> None:
    assert has_settled({"arm": times}, 3) is expected
    assert has_settled({"arm": times, "steady": [1.0] * 8}, 3) is expected


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ([], None),
        ([1, 1, 1], None),
        ([1, 1.01, 1, 1], True),
        ([2, 1.2, 1, 1], False),
        ([2, 1, 1, 1, 1], True),
    ],
)
def test_on_a_gpu_four_blocks_tell(times: list[float], expected: bool | None) -> None:
    """More than six of 50 ms would not fit the third of a race of two seconds."""
    assert has_settled({"arm": times}, 2) is expected


@pytest.mark.parametrize("others_used", [0.1, 1.9])
def test_block_that_waits_for_a_core_is_disturbed_if_others_used_the_cores(
    others_used: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two cores, the processes of the run used the rest."""
    seconds = count()
    delays_ns = count(step=10**12)

    def read_work(pid: int, cores: set[int]) -> Work:
        now = next(seconds) / 1e6  # long ago, so that each look is due
        return Work(at=now, used_s=2.0 * now, own_s=(2.0 - others_used) * now)

    def read_sensors(sensors: Sensors) -> SensorReading:
        return SensorReading(0, None, None, None, None, None, run_delay_ns=next(delays_ns))

    monkeypatch.setattr("tuilab.lab.races.rounds.usable_cores", lambda: {0, 1})
    monkeypatch.setattr("tuilab.lab.races.rounds.read_work", read_work)
    monkeypatch.setattr(Sensors, "read", read_sensors)
    lab = RaceRecorder()

    Rounds(
        lab,
        [Entrant("arm", lambda: None, loops=1, calm_share=0.1)],
        5,
        0.0,
        threads=1,
        device=door(torch.device("cpu")),
    ).run()

    blocks = lab.of(BlockTimed)
    assert {block.others_share for block in blocks} == {others_used / 2}
    assert {block.is_disturbed for block in blocks} == {others_used > 1}


def test_each_cycle_begins_with_an_untimed_block_of_the_arm_that_comes_first() -> None:
    called: list[str] = []
    slots = [Entrant(arm, partial(called.append, arm), loops=3, calm_share=1.0) for arm in "abc"]
    lab = RaceRecorder()

    Rounds(lab, slots, seed=5, seconds=0.0, threads=1, device=door(torch.device("cpu"))).run()

    timed = lab.of(BlockTimed)
    expected = []
    for turn in range(timed[-1].round + 1):
        arms = [block.arm for block in timed if block.round == turn]
        if turn % CYCLE == 0:
            expected += [arms[0]] * 3
        for arm in arms:
            expected += [arm] * 3
    assert called == expected


MS = 1_000_000


class MadeUpRace:
    """A race whose blocks take the given times on a clock that only they move."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        *,
        wall_ms: Callable[[int], float],
        thread_ms: float = 10.0,
    ) -> None:
        self.now_s = 0.0
        self.blocks = 0
        self.delay_clocks: list[Clock | None] = []
        self.lab = RaceRecorder()
        self._wall_ms = wall_ms
        self._thread_ns = round(thread_ms * MS)
        self.perf_counter_ns = count(step=7).__next__
        clock = SimpleNamespace(
            monotonic=lambda: self.now_s,
            perf_counter_ns=self.perf_counter_ns,
            thread_time_ns=time.thread_time_ns,
        )
        monkeypatch.setattr(rounds, "time", clock)
        monkeypatch.setattr(rounds, "time_block", self._time_block)

    def _time_block(self, call: Call, loops: int, device: Device, delay: Clock | None) -> Timed:
        wall_ms = self._wall_ms(self.blocks)
        self.blocks += 1
        self.now_s += wall_ms / 1000
        self.lab.records_written += 3
        self.delay_clocks.append(delay)
        return Timed(round(wall_ms * MS), self._thread_ns, self._thread_ns, 0)

    def run(
        self, *slots: Entrant, seconds: float, threads: int = 1, device: str = "cpu"
    ) -> RaceTimings:
        placed = SimpleNamespace(type=device, wait=lambda: None)
        return Rounds(self.lab, list(slots), 5, seconds, threads, cast(Device, placed)).run()

    def timed(self) -> list[BlockTimed]:
        return [block for block in self.lab.of(BlockTimed) if not block.is_warmup]


def slot(arm: str = "arm", *, calm_share: float = 1.0, control: Control = "") -> Entrant:
    return Entrant(arm, lambda: None, 1, calm_share, control)


def test_race_ends_with_the_first_cycle_after_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two arms of 10 ms: a cycle of two rounds takes 40 ms."""
    race = MadeUpRace(monkeypatch, wall_ms=lambda block: 10)

    found = race.run(slot("one"), slot("two"), seconds=1.01)

    assert race.now_s == pytest.approx(1.04)  # after 1.00 s there is still time
    assert found.is_settled
    assert len(found.step_s["one"]) == len(found.step_s["two"]) == len(race.timed()) / 2
    assert set(found.step_s["one"]) == {0.01}


@pytest.mark.parametrize(("repeats", "expected"), [(1, 6), (3, 2), (6, 2)])
def test_race_without_time_has_the_rounds_that_an_interval_needs(
    monkeypatch: pytest.MonkeyPatch, repeats: int, expected: int
) -> None:
    race = MadeUpRace(monkeypatch, wall_ms=lambda block: 10)
    race.lab.repeats = repeats

    assert len(race.run(slot(), seconds=0.0).step_s["arm"]) == expected


def test_race_of_short_blocks_ends_after_200_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    race = MadeUpRace(monkeypatch, wall_ms=lambda block: 0.01)

    assert len(race.run(slot(), seconds=1000.0).step_s["arm"]) == 200


def test_warmup_that_never_settles_ends_after_a_third_of_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each block takes 10 % longer than the one before."""
    race = MadeUpRace(monkeypatch, wall_ms=lambda block: 10 * 1.1**block)

    found = race.run(slot(calm_share=0.5), seconds=1.0)

    first = race.timed()[0].round
    assert found.is_settled is False
    assert sum(10 * 1.1**block for block in range(first)) > 300
    assert sum(10 * 1.1**block for block in range(first - CYCLE)) <= 300


def test_warmup_on_a_gpu_has_at_least_eight_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks are so long that a third of the time is over at once, and they drift."""
    race = MadeUpRace(monkeypatch, wall_ms=lambda block: 1000 * 1.1**block)

    race.run(slot(), seconds=1.0, device="cuda")

    assert race.timed()[0].round == 8


@pytest.mark.parametrize(
    ("threads", "calm_share", "device", "is_on_core"),
    [
        (1, 1.0, "cpu", True),
        (2, 1.0, "cpu", False),
        (1, 0.9, "cpu", False),
        (1, 1.0, "cuda", False),
    ],
)
def test_arm_on_its_core_settles_and_is_delayed_by_its_cpu_time(
    monkeypatch: pytest.MonkeyPatch,
    threads: int,
    calm_share: float,
    device: str,
    *,
    is_on_core: bool,
) -> None:
    """On the wall clock each block takes 10 % longer than the one before; its CPU time stays the same."""
    race = MadeUpRace(monkeypatch, wall_ms=lambda block: 10 * 1.1**block)
    delayed = slot(calm_share=calm_share, control="delayed")

    found = race.run(
        slot(calm_share=calm_share), delayed, seconds=1.0, threads=threads, device=device
    )

    assert found.is_settled is is_on_core
    clocks = {delay for delay in race.delay_clocks if delay is not None}
    assert clocks == {time.thread_time_ns if is_on_core else race.perf_counter_ns}


def test_block_has_the_records_that_its_calls_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    race = MadeUpRace(monkeypatch, wall_ms=lambda block: 10)

    found = race.run(slot(), seconds=0.1)

    assert {block.records for block in race.lab.of(BlockTimed)} == {3}
    assert found.record_ns == 7  # the step of the made-up clock


def test_progress_of_a_race_is_its_time_and_never_more(monkeypatch: pytest.MonkeyPatch) -> None:
    race = MadeUpRace(monkeypatch, wall_ms=lambda block: 30)
    shown: list[tuple[int, int, str]] = []
    monkeypatch.setattr(race.lab, "progress", lambda *progress: shown.append(progress))

    race.run(slot(), seconds=0.1)

    assert shown[:5] == [(0, 100, "ms of racing")] + [
        (done, 100, "ms of racing") for done in (30, 60, 90, 100)
    ]
