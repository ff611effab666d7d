"""The sensors of disturbance: what the kernel counts round a block, and which blocks it speaks against."""

import os
from pathlib import Path

import pytest

from tuilab.lab.races.sensors import (
    SensorCounts,
    SensorReading,
    Sensors,
    is_disturbed,
    is_robbed,
    steal_in,
)
from tuilab.lab.races.timing import Timed

CALM = SensorCounts(
    switches=0, pressure_us=0, steal_ticks=0, core_steal_ticks=0, throttled=0, run_delay_ns=0
)
MS = 1_000_000


def test_steal_is_that_of_the_core_that_the_thread_is_on() -> None:
    allowed = os.sched_getaffinity(0)
    core = max(allowed)
    os.sched_setaffinity(0, {core})
    try:
        before = Path("/proc/stat").read_text()
        with Sensors() as sensors:
            reading = sensors.read()
        after = Path("/proc/stat").read_text()
    finally:
        os.sched_setaffinity(0, allowed)

    low, high = (
        int(line.split()[8])
        for text in (before, after)
        for line in text.splitlines()
        if f"cpu{core} " in line
    )
    assert reading.core == core and reading.core_steal_ticks is not None
    assert low <= reading.core_steal_ticks <= high


def test_what_was_stolen_of_two_cores_is_not_known_of_either() -> None:
    here = SensorReading(
        switches=0,
        pressure_us=0,
        steal_ticks=10,
        core=0,
        core_steal_ticks=5,
        throttled=None,
        run_delay_ns=7,
    )
    there = here._replace(steal_ticks=12, core=1, core_steal_ticks=7)

    assert there.since(here) == CALM._replace(steal_ticks=2, core_steal_ticks=None, throttled=None)


def test_where_a_container_hides_the_line_of_a_core_its_steal_is_not_known() -> None:
    text = b"cpu  1 2 3 4 5 6 7 80 0 0\ncpu1 1 2 3 4 5 6 7 30 0 0\nintr 1\n"

    assert [steal_in(text, core) for core in (0, 1, 11, None)] == [
        (80, None),
        (80, 30),
        (80, None),
        (80, None),
    ]
    assert steal_in(text[:40], 1) == (80, None)
    assert steal_in(b"", 1) == (None, None)


@pytest.mark.parametrize(
    ("ticks", "wall_ms", "cores", "expected"),
    [
        (1, 10, 1, False),  # a tick that was full in this block may have been stolen before it
        (2, 10, 1, True),
        (1, 100, 1, False),
        (2, 100, 1, True),
        (2, 1000, 1, False),  # between 1 and 2 % of a second
        (4, 1000, 1, True),
        (4, 1000, 64, False),  # of all the time of 64 cores next to nothing
        (None, 10, 1, False),
    ],
)
def test_steal_speaks_against_a_block_only_where_ticks_can_tell(
    ticks: int, wall_ms: int, cores: int, expected: bool
) -> None:
    assert is_robbed(ticks, wall_ms * MS, cores) == expected


def block(share: float, waits: int | None = 0) -> Timed:
    return Timed(10 * MS, int(10 * MS * share), int(10 * MS * share), waits, None)


def test_a_block_that_was_off_its_core_for_a_tenth_is_disturbed() -> None:
    assert is_disturbed(CALM, block(0.85), calm_share=1.0, threads=1)
    assert not is_disturbed(CALM, block(0.95), calm_share=1.0, threads=1)
    assert not is_disturbed(CALM, block(0.1), calm_share=0.3, threads=1)  # it mostly waits


def test_an_arm_that_waits_by_itself_is_not_disturbed_by_its_own_doing() -> None:
    waited = block(0.5, waits=1)

    assert not is_disturbed(CALM, waited, calm_share=1.0, threads=1)
    assert is_disturbed(CALM._replace(throttled=1), waited, calm_share=1.0, threads=1)
    assert is_disturbed(
        CALM, waited, calm_share=2.0, threads=2
    )  # threads that share their work wait for each other


def test_where_no_waits_are_counted_the_share_alone_tells() -> None:
    assert is_disturbed(CALM, block(0.5, waits=None), calm_share=1.0, threads=1)


@pytest.mark.parametrize(("delay_ms", "expected"), [(None, False), (0.9, False), (1.1, True)])
@pytest.mark.parametrize("waits", [0, 5])
def test_thread_that_waited_for_a_core_a_tenth_of_the_time_is_disturbed(
    waits: int, delay_ms: float | None, expected: bool
) -> None:
    """An arm that waits by itself is off its core as well, but wants none meanwhile."""
    delay_ns = None if delay_ms is None else int(delay_ms * 1e6)
    timed = Timed(wall_ns=10_000_000, cpu_ns=9_900_000, thread_ns=9_900_000, waits=waits)

    assert is_disturbed(CALM._replace(run_delay_ns=delay_ns), timed, 1.0, 1) is expected


@pytest.mark.parametrize(
    ("others_share", "expected"),
    [(None, True), (0.0, False), (0.24, False), (0.25, True), (1.0, True)],
)
def test_thread_that_waited_for_processes_of_its_own_run_is_not_disturbed(
    others_share: float | None, expected: bool
) -> None:
    """An arm with loader workers waits for them on a quiet machine as well."""
    timed = Timed(wall_ns=10_000_000, cpu_ns=5_000_000, thread_ns=5_000_000, waits=70)
    waited = CALM._replace(run_delay_ns=3_000_000, others_share=others_share)

    assert is_disturbed(waited, timed, calm_share=0.5, threads=1) is expected


def test_run_delay_is_that_of_the_thread_that_reads() -> None:
    with Sensors() as sensors:
        delay_ns = sensors.read().run_delay_ns
        counted = Path("/proc/thread-self/schedstat").read_text().split()[1]

    assert delay_ns is not None
    assert delay_ns <= int(counted)


def test_kernel_without_schedstat_leaves_the_run_delay_unknown() -> None:
    before = SensorReading(0, None, None, None, None, None, None)

    assert before.since(before).run_delay_ns is None
