"""Who used the cores while a race went on: the processes of the run, or others."""

import os

import pytest

from tests.commands.test_core_use import SPIN, running
from tests.engine import until
from tuilab.lab.races.other_work import OtherWork
from tuilab.probes.core_work import Use, Work, read_work, usable_cores, use_between


def other_work(*readings: Work | None) -> OtherWork:
    """Return the work of others by these readings, the first of which is the start of the race."""
    queue = iter(readings)
    return OtherWork(lambda: next(queue))


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuilab.lab.races.other_work.usable_cores", lambda: {0, 1})


def test_share_is_what_others_used_since_the_last_look() -> None:
    work = other_work(Work(0.0, 0.0, 0.0), Work(1.0, 2.0, 1.5), Work(2.0, 3.0, 1.5))

    assert [work.share(), work.share()] == [0.25, 0.5]


def test_look_that_comes_too_soon_keeps_the_share_of_the_last_one() -> None:
    work = other_work(Work(0.0, 0.0, 0.0), Work(0.04, 0.08, 0.0), Work(1.0, 2.0, 1.5), Work(1.04, 2.08, 1.5))

    assert [work.share(), work.share(), work.share()] == [None, 0.25, 0.25]


def test_look_of_the_rounds_waits_for_a_longer_window() -> None:
    work = other_work(Work(0.0, 0.0, 0.0), Work(0.2, 0.4, 0.0), Work(0.3, 0.6, 0.3), Work(0.31, 0.62, 0.3))

    work.look()
    work.look()

    assert work.share() == 0.5


def test_share_is_unknown_where_the_kernel_tells_nothing() -> None:
    assert other_work(None, None).share() is None
    assert other_work(None, Work(1.0, 1.0, 1.0)).share() is None


def test_ticks_make_no_share_negative() -> None:
    assert other_work(Work(0.0, 0.0, 0.0), Work(1.0, 1.0, 1.05)).share() == 0.0


def test_work_of_a_process_contains_that_of_its_children() -> None:
    cores = usable_cores()
    first = read_work(os.getpid(), cores)
    with running(SPIN):
        until(lambda: _own_s(cores) > (first.own_s if first else 0.0) + 0.1)
    last = read_work(os.getpid(), cores)
    use = use_between(first, last)

    assert first
    assert last
    assert use
    assert last.own_s >= first.own_s + 0.1  # also after the child has ended
    assert use.others == pytest.approx(use.all - (last.own_s - first.own_s) / (last.at - first.at))


def test_use_is_unknown_without_two_readings() -> None:
    reading = Work(1.0, 1.0, 1.0)

    assert use_between(None, reading) is None
    assert use_between(reading, None) is None
    assert use_between(reading, reading) is None
    assert use_between(reading, Work(3.0, 3.0, 2.0)) == Use(all=1.0, others=0.5)


def _own_s(cores: set[int]) -> float:
    work = read_work(os.getpid(), cores)
    return work.own_s if work else 0.0
