"""Who used the cores while a race went on: the processes of the run, or others."""

import os

import pytest

from tests.commands.test_core_use import SPIN, running
from tests.engine import until
from tuilab.lab.races.rounds import OtherWork
from tuilab.probes.core_work import Use, Work, read_work, usable_cores, use_between


class Machine:
    """A machine of two cores, of which a test says how much they have worked."""

    def __init__(self) -> None:
        self.work: Work | None = Work(0.0, 0.0, 0.0)
        self.now = 0.0
        self.readings = 0

    def go_on(self, at: float, used_s: float, own_s: float) -> None:
        self.now = at
        self.work = Work(at, used_s, own_s)

    def read(self, pid: int, cores: set[int]) -> Work | None:
        self.readings += 1
        return self.work


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine()
    monkeypatch.setattr("tuilab.lab.races.rounds.usable_cores", lambda: {0, 1})
    monkeypatch.setattr("tuilab.lab.races.rounds.read_work", machine.read)
    return machine


def test_share_is_what_others_used_since_the_last_look(machine: Machine) -> None:
    others = OtherWork(lambda: machine.now)

    machine.go_on(1.0, used_s=2.0, own_s=1.5)
    assert others.share() == 0.25
    machine.go_on(2.0, used_s=3.0, own_s=1.5)
    assert others.share() == 0.5


def test_look_that_comes_too_soon_reads_nothing_and_keeps_the_share(machine: Machine) -> None:
    others = OtherWork(lambda: machine.now)

    machine.go_on(0.04, used_s=0.08, own_s=0.0)
    assert (others.share(), machine.readings) == (None, 1)
    machine.go_on(1.0, used_s=2.0, own_s=1.5)
    assert (others.share(), machine.readings) == (0.25, 2)
    machine.go_on(1.04, used_s=2.08, own_s=1.5)
    assert (others.share(), machine.readings) == (0.25, 2)


def test_look_of_the_rounds_waits_for_a_longer_window(machine: Machine) -> None:
    others = OtherWork(lambda: machine.now)

    machine.go_on(0.2, used_s=0.4, own_s=0.0)
    others.update()
    assert machine.readings == 1
    machine.go_on(0.3, used_s=0.6, own_s=0.3)
    others.update()
    machine.go_on(0.31, used_s=0.62, own_s=0.3)

    assert others.share() == 0.5


def test_share_is_unknown_where_the_kernel_tells_nothing(machine: Machine) -> None:
    machine.work = None
    others = OtherWork(lambda: machine.now)

    assert others.share() is None
    machine.go_on(1.0, used_s=1.0, own_s=1.0)
    assert others.share() is None


def test_ticks_make_no_share_negative(machine: Machine) -> None:
    others = OtherWork(lambda: machine.now)

    machine.go_on(1.0, used_s=1.0, own_s=1.05)

    assert others.share() == 0.0


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
