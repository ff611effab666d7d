"""What is found out about an arm before it is raced, and what its blocks take."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

from tuilab.lab.device.devices import Cpu
from tuilab.lab.races import timing
from tuilab.lab.races.timing import Pace, Timed, calibrate, known_delay, time_block, wait_for_pools

CPU = Cpu()
MS = 1_000_000


def scripted(monkeypatch: pytest.MonkeyPatch, *blocks: Timed) -> None:
    script: Iterator[Timed] = iter(blocks)
    monkeypatch.setattr(timing, "time_block", lambda call, loops, device: next(script))


def ms(wall: float, thread: float, process: float = 0, waits: int | None = None) -> Timed:
    return Timed(int(wall * 1e6), int((process or thread) * 1e6), int(thread * 1e6), waits)


def test_on_a_busy_box_the_calmest_block_tells_what_an_arm_does_undisturbed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The arm is on its core for 55 % of most blocks, but of one for all of it: what it did there is what it does."""
    scripted(monkeypatch, ms(10, 5.5), ms(20, 11), ms(10, 10), ms(18, 9))

    assert calibrate(print, CPU) == Pace(loops=1, step_s=0.010, calm_share=1.0)


def test_one_thread_that_never_waits_would_have_been_on_its_core_all_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a box so busy that no block was calm; of two threads, which wait for each other, the calmest block has to tell."""
    busy = [ms(10, 5.5, waits=0), ms(10, 6, waits=1), ms(10, 5, waits=0), ms(10, 5, waits=0)]
    scripted(monkeypatch, *busy, *busy)

    assert calibrate(print, CPU, threads=1).calm_share == 1.0
    assert calibrate(print, CPU, threads=2).calm_share == 0.6


def test_one_that_waits_in_every_block_does_so_undisturbed(monkeypatch: pytest.MonkeyPatch) -> None:
    scripted(monkeypatch, *[ms(10, 4, waits=3)] * 4)

    assert calibrate(print, CPU).calm_share == 0.4


def test_a_block_in_which_its_thread_sleeps_has_its_waits() -> None:
    timed = time_block(lambda: time.sleep(0.001), 3, CPU)

    assert timed.waits is not None and timed.waits >= 3


def test_blocks_that_are_short_beside_the_clocks_tell_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One call takes 0.5 ms, of which the clocks see more CPU time than passed; 4 calls take 2 ms, 8 calls 6 ms."""
    scripted(
        monkeypatch, ms(0.5, 0.6), ms(2, 1.6), ms(6, 3), ms(6, 3), ms(12, 6), ms(12, 6), ms(12, 6)
    )

    assert calibrate(print, CPU) == Pace(loops=14, step_s=0.012 / 14, calm_share=0.8)


@pytest.mark.parametrize(("wall", "most"), [(10, 3), (60, 2), (400, 2)])
def test_a_call_that_takes_long_is_not_called_often_before_it_is_raced(
    monkeypatch: pytest.MonkeyPatch, wall: float, most: int
) -> None:
    scripted(monkeypatch, *[ms(wall, wall)] * most)

    assert calibrate(print, CPU) == Pace(loops=1, step_s=wall / 1e3, calm_share=1.0)


def test_a_pool_that_still_spins_is_no_part_of_an_arm_on_one_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Three cores are busy in its blocks, one of them with the arm; an arm on two threads has two of them at most."""
    spinning = [ms(10, 10, process=30)] * 8
    scripted(monkeypatch, *spinning)

    assert calibrate(print, CPU, threads=1).calm_share == 1.0
    assert calibrate(print, CPU, threads=2).calm_share == 2.0


def test_a_block_has_the_time_of_its_thread_apart_from_that_of_the_others() -> None:
    timed = time_block(lambda: sum(range(1000)), 100, CPU)

    assert 0 < timed.thread_ns <= timed.cpu_ns
    assert timed.share(1) == timed.thread_ns / timed.wall_ns
    assert timed.share(2) == timed.cpu_ns / timed.wall_ns


@pytest.mark.parametrize(("loops", "extra"), [(20, 1), (29, 1), (30, 2), (1000, 50)])
def test_where_calls_are_many_the_known_delay_is_whole_calls(loops: int, extra: int) -> None:
    calls: list[None] = []

    time_block(lambda: calls.append(None), loops, CPU, time.thread_time_ns)

    assert len(calls) == loops + extra
    assert known_delay(loops) == extra / loops


@pytest.mark.parametrize("loops", [1, 19])
def test_where_calls_are_few_the_known_delay_is_a_share_of_their_time(loops: int) -> None:
    """By the clock that is asked for: here each call takes 1000 of it, and each look at it one."""
    ticks = Counter[str]()

    def look() -> int:
        ticks["looks"] += 1
        return ticks["work"] + ticks["looks"]

    time_block(lambda: ticks.update(work=1000), loops, CPU, look)

    assert ticks["work"] == 1000 * loops
    assert ticks["looks"] == pytest.approx(0.05 * 1000 * loops, abs=5)
    assert known_delay(loops) == 0.05


def test_a_race_waits_until_a_pool_rests() -> None:
    cores = iter([1.7, 0.9, 0.02, 5.0])

    wait_for_pools(cores.__next__)

    assert next(cores) == 5.0


def test_threads_that_work_for_ever_are_not_waited_for() -> None:
    began = time.monotonic()

    wait_for_pools(lambda: 1.0)

    assert time.monotonic() - began >= 0.5


def test_cores_of_others_are_the_cpu_time_of_the_process_without_this_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In 10 ms the process uses 30 ms of CPU time, and this thread 5 ms of it."""
    clocks = {
        "perf_counter_ns": [0, 10 * MS],
        "process_time_ns": [100 * MS, 130 * MS],
        "thread_time_ns": [50 * MS, 55 * MS],
    }
    made_up = SimpleNamespace(
        sleep=lambda seconds: None, **{name: iter(times).__next__ for name, times in clocks.items()}
    )
    monkeypatch.setattr(timing, "time", made_up)

    assert timing.cores_of_others() == pytest.approx(2.5)


def test_number_of_calls_grows_fourfold_while_a_block_is_very_short(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two blocks of 5 ms are wanted; twice as many calls follow a block that is not shorter than a quarter of that."""
    called: list[int] = []

    def time_block(call: Callable[[], object], loops: int, device: Cpu) -> Timed:
        called.append(loops)
        return ms(loops / 2, loops / 2)

    monkeypatch.setattr(timing, "time_block", time_block)

    assert calibrate(print, CPU).loops == 20
    assert called[:5] == [1, 4, 8, 16, 16]
