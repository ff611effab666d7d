"""A race between arms in processes of their own: what it records of them, and of what happened round them."""

import os
from collections.abc import Callable
from typing import Self

import pytest

from tuilab.lab.races.races import run_process_race
from tuilab.lab.races.sensors import SensorReading, Sensors
from tuilab.record import events
from tuilab.record.blocks import tick_ns


class Notes:
    """As much of a lab as a race uses; keeps what is recorded."""

    repeats = 6
    records_written = 0

    def __init__(self, repeat: int) -> None:
        self.repeat = repeat
        self.blocks: list[events.BlockTimed] = []
        self.started: list[events.RaceStarted] = []
        self.steps: list[tuple[int, int]] = []

    def record(self, event: events.Event) -> None:
        if isinstance(event, events.BlockTimed):
            self.blocks.append(event)
        elif isinstance(event, events.RaceStarted):
            self.started.append(event)

    def progress(self, done: int, total: int, unit: str) -> None:
        self.steps.append((done, total))

    def tell_holdings(self) -> None:
        pass


def raced(repeat: int, **seconds: float) -> Notes:
    def arm(value: float) -> Callable[[], float]:
        return lambda: value

    notes = Notes(repeat)
    run_process_race(notes, {name: arm(value) for name, value in seconds.items()})
    return notes


def test_a_race_of_processes_leaves_no_file_open() -> None:
    before = sorted(os.listdir("/proc/self/fd"))

    raced(0, one=1.0, two=2.0)

    assert sorted(os.listdir("/proc/self/fd")) == before


def test_in_every_second_repeat_the_first_arm_runs_once_more_at_the_end() -> None:
    even, odd = raced(0, one=1.0, two=2.0, three=3.0), raced(1, one=1.0, two=2.0, three=3.0)

    assert [(block.arm, block.control) for block in even.blocks] == [
        ("one", ""),
        ("two", ""),
        ("three", ""),
    ]
    assert [(block.arm, block.control) for block in odd.blocks] == [
        ("three", ""),
        ("two", ""),
        ("one", ""),
        ("one", "same"),
    ]
    assert [(block.round, block.slot) for block in odd.blocks] == [(0, 0), (0, 1), (0, 2), (0, 3)]
    assert [race.base for race in even.started + odd.started] == ["one", "one"]
    assert all(
        race.loops == {"one": 1, "two": 1, "three": 1} and race.has_instances
        for race in even.started + odd.started
    )
    assert odd.steps == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_what_a_race_of_processes_gives_is_without_its_control() -> None:
    times = iter([1.0, 2.0, 1.5])

    race = run_process_race(Notes(1), {"one": times.__next__, "two": times.__next__})

    assert race.step_s == {"two": [1.0], "one": [2.0]}


def test_a_block_of_a_process_has_what_the_box_did_meanwhile_and_nothing_of_the_process_that_waits() -> (
    None
):
    (block, _) = raced(0, one=0.25, two=1.0).blocks

    assert (block.wall_ns, block.loops, block.cpu_ns) == (250_000_000, 1, 0)
    assert (block.thread_ns, block.waits, block.core_steal_ticks, block.switches) == (
        None,
        None,
        None,
        0,
    )
    assert block.steal_ticks is not None and block.steal_ticks >= 0


class FakeSensors(Sensors):
    """Sensors of a machine whose counters rise by given numbers from one reading to the next."""

    throttled: int | None = 0
    stolen: int | None = 0

    def __init__(self) -> None:
        self.readings = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        pass

    def read(self) -> SensorReading:
        self.readings += 1
        throttled = None if self.throttled is None else self.throttled * self.readings
        stolen = None if self.stolen is None else self.stolen * self.readings
        return SensorReading(0, 0, stolen, None, None, throttled, 0)


@pytest.mark.parametrize(
    ("throttled", "stolen", "is_disturbed"),
    [
        (0, 0, False),
        (1, 0, True),
        (0, 1, False),
        (0, 2, True),
        (1, 2, True),
        (None, None, False),
        (None, 2, True),
        (1, None, True),
    ],
)
def test_block_of_a_throttled_or_robbed_process_is_disturbed(
    monkeypatch: pytest.MonkeyPatch,
    throttled: int | None,
    stolen: int | None,
    *,
    is_disturbed: bool,
) -> None:
    """The arms return at once, so two stolen ticks of 10 ms are more than 2 % of their time."""
    monkeypatch.setattr(FakeSensors, "throttled", throttled)
    monkeypatch.setattr(FakeSensors, "stolen", stolen)
    monkeypatch.setattr("tuilab.lab.races.races.Sensors", FakeSensors)

    (block, _) = raced(0, one=0.25, two=1.0).blocks

    assert (block.throttled, block.steal_ticks, block.is_disturbed) == (
        throttled,
        stolen,
        is_disturbed,
    )


def test_a_time_is_recorded_to_the_nearest_nanosecond() -> None:
    (block, _) = raced(0, one=0.57, two=1.0).blocks  # 0.57 * 1e9 is 569999999.9999999

    assert block.wall_ns == 570_000_000


@pytest.mark.parametrize(
    ("times_ns", "expected"),
    [
        ([7_000_000, 7_000_000, 8_000_000], 1_000_000),
        ([7_300_000, 8_000_000], 100_000),
        ([7_312_345, 8_000_001], 1),
        ([10, 20], 10),
        ([0], 1),
        ([], 1),
    ],
)
def test_a_coarse_clock_shows_in_the_times_that_were_read_from_it(
    times_ns: list[int], expected: int
) -> None:
    assert tick_ns(times_ns) == expected
