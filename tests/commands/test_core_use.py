"""How long processes had a core, and waited for one; and when a result says that the machine was busy."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.engine import until
from tuilab.commands.alarm_watch import Alarms
from tuilab.commands.cpu.contention import Contention
from tuilab.commands.cpu.core_use import CoreUse, Threads, has_high_pressure
from tuilab.commands.steps import Step
from tuilab.probes.core_work import Work, used_s
from tuilab.record.events import CoresAwaited
from tuilab.record.journal.writer import Writer

has_schedstat = pytest.mark.skipif(
    not os.path.exists("/proc/self/schedstat"), reason="this kernel has no schedstat"
)
SPIN = "while True: pass"
SLEEP = "import time\nprint(flush=True)\nwhile True: time.sleep(1000)"


@contextmanager
def running(code: str, core: int | None = None) -> Iterator[int]:
    """Run code in a process of its own, on one core if asked for, and yield its pid."""
    process = subprocess.Popen([sys.executable, "-I", "-S", "-c", code], stdout=subprocess.PIPE)
    try:
        if core is not None:
            os.sched_setaffinity(process.pid, {core})
        if code == SLEEP:
            assert process.stdout and process.stdout.readline()
        yield process.pid
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()


@has_schedstat
def test_process_that_shares_a_core_waits_for_it() -> None:
    core = min(os.sched_getaffinity(0))
    with running(SPIN, core) as pid, running(SPIN, core):
        cores = CoreUse(pid)

        until(lambda: cores.read() and cores.threads.ran_s > 0.1 and cores.threads.waited_s > 0.1)


@has_schedstat
def test_process_that_sleeps_wants_no_core() -> None:
    with running(SLEEP) as pid:
        until(lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("S"))
        cores = CoreUse(pid, lambda: 0.0, own_clock=lambda: 0.0)
        assert cores.read()
        first = cores.threads
        assert cores.read()

        assert cores.threads == first


def test_thread_number_that_is_used_again_is_a_new_thread(tmp_path: Path) -> None:
    pid = os.getpid()
    cores = CoreUse(pid, lambda: 0.0, tmp_path, lambda: 0.0)
    for text in ("2000000000 1000000000 3", "500000000 4000000000 1"):
        thread = tmp_path / f"{pid}/task/77"
        thread.mkdir(parents=True, exist_ok=True)
        (thread / "schedstat").write_text(text)
        assert cores.read()

    assert cores.threads == Threads(ran_s=2.5, waited_s=5.0)


def test_thread_that_has_ended_stays_in_the_sum(tmp_path: Path) -> None:
    thread = tmp_path / f"{os.getpid()}/task/77/schedstat"
    thread.parent.mkdir(parents=True)
    thread.write_text("2000000000 1000000000 3")
    cores = CoreUse(os.getpid(), lambda: 0.0, tmp_path)
    cores.read()
    thread.unlink()
    cores.read()

    assert cores.threads == Threads(ran_s=2.0, waited_s=1.0)


def test_reading_that_takes_long_is_not_repeated_at_once(tmp_path: Path) -> None:
    times = iter([10.0, 11.0, 59.0, 61.0])
    costs = iter([0.0, 0.5, 0.5, 0.5])
    cores = CoreUse(os.getpid(), lambda: next(times), tmp_path, lambda: next(costs))

    assert [cores.read() for _ in range(4)] == [True, False, False, True]


def test_machine_without_these_files_tells_nothing(tmp_path: Path) -> None:
    cores = CoreUse(os.getpid(), proc=tmp_path)
    cores.read()

    assert (cores.is_known, cores.threads) == (False, Threads())
    assert used_s({0}, tmp_path) is None
    assert not has_high_pressure(tmp_path)


def test_core_use_is_that_of_the_usable_cores(tmp_path: Path) -> None:
    lines = [
        "cpu  99 99 99 99 0 0 0 0",
        "cpu0 100 0 100 7 7 0 0 9",
        "cpu1 900 0 0 0 0 0 0 0",
        "cpu10 5 0 0 0 0 0 0 0",
        "intr 1",
    ]
    (tmp_path / "stat").write_text("\n".join(lines))

    assert used_s({0}, tmp_path) == 200 / os.sysconf("SC_CLK_TCK")


def contended(ran_s: float, waited_s: float, used: float, own: float) -> Contention:
    """Return the use of two cores over ten seconds: how many were used, and how many by the command."""
    shared = Contention(os.getpid())
    shared.usable = {0, 1}
    shared.first, shared.last = Work(0.0, 100.0, 1.0), Work(10.0, 100.0 + 10 * used, 1.0 + 10 * own)
    shared.cores.threads = Threads(ran_s, waited_s)
    return shared


WAITED = "the command waited for a core 60 % of the time it wanted one, so its steps took longer than they would on a quiet machine"


@pytest.mark.parametrize(
    ("ran_s", "waited_s", "used", "own", "said"),
    [
        (4.0, 6.0, 1.9, 0.4, ["the machine was busy: other processes used 1.5 of 2 cores", WAITED]),
        (
            4.0,
            6.0,
            2.0,
            1.9,
            [
                "the machine was busy: the command's own threads and processes compete for 2 cores",
                WAITED,
            ],
        ),
        (4.0, 6.0, 0.9, 0.2, [WAITED]),
        (9.0, 1.0, 2.0, 1.0, []),
        (9.0, 1.0, 0.9, 0.9, []),
        (1.0, 9.0, 2.0, 0.1, []),
    ],
    ids=[
        "others",
        "itself",
        "a limit of its own",
        "it had its core",
        "it left cores idle",
        "it hardly worked",
    ],
)
def test_result_says_why_a_command_waited_for_a_core(
    ran_s: float, waited_s: float, used: float, own: float, said: list[str]
) -> None:
    shared = contended(ran_s, waited_s, used, own)

    assert shared.sentences() == said
    assert shared.is_starved_by_others() == any("other processes" in sentence for sentence in said)
    assert shared.are_cores_idle() == (not said and used < 1.5)


def trained_for(
    readings: list[tuple[float, float, float, bool]], monkeypatch: pytest.MonkeyPatch
) -> Contention:
    """Return what was read: when, for how long threads had waited, what others had used, and whether steps came before."""
    now, waited_s, others_s = 0.0, 0.0, 0.0
    shared = Contention(os.getpid(), lambda: now)
    shared.usable = {0, 1}
    shared.cores.is_known = True
    monkeypatch.setattr(shared.cores, "read", lambda: True)
    monkeypatch.setattr(
        "tuilab.commands.cpu.contention.read_work",
        lambda pid, cores: Work(now, others_s + now, now),
    )
    monkeypatch.setattr("tuilab.commands.cpu.contention.time.process_time", lambda: 0.0)
    for now, waited_s, others_s, has_stepped in readings:  # noqa: B007  (the functions above read them)
        shared.cores.threads = Threads(1.0, waited_s)
        if has_stepped:
            shared.step()
        assert shared.look()
    return shared


def test_waits_count_from_the_first_step_to_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither loading torch nor an evaluation at the end belongs to the time of the steps."""
    shared = trained_for(
        [
            (0, 0, 0, False),
            (10, 5, 9, False),
            (11, 6, 10, True),
            (15, 7, 16, True),
            (19, 9, 20, True),
            (60, 9, 20, False),
        ],
        monkeypatch,
    )

    assert shared.in_training() == CoresAwaited(elapsed_s=8.0, waited_s=3.0, usable=2, others=1.25)


@pytest.mark.parametrize(
    "readings", [[], [(1.0, 0.0, 0.0, False)], [(1.0, 0.0, 0.0, True), (2.0, 0.0, 0.0, False)]]
)
def test_training_that_was_read_once_has_no_waits(
    readings: list[tuple[float, float, float, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert trained_for(readings, monkeypatch).in_training() is None


class TrainedCommand:
    """The alarms of a command that has made 50 steps of 100 ms, by a clock of their own."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.worked_s = 0.0
        self.path = folder / "worker-0.jsonl"
        monkeypatch.setattr("tuilab.commands.alarm_watch.worked_s", lambda pid: self.worked_s)
        self.contention = Contention(os.getpid())
        monkeypatch.setattr(self.contention, "look", lambda: True)
        self.contention.cores.is_known = True
        self.alarms = Alarms(os.getpid(), self.contention, Writer(self.path), lambda: self.now)
        self.step(50)

    def step(self, count: int = 1) -> None:
        for _ in range(count):
            self.now += 0.1
            at_ns = round(self.now * 1e9)
            self.alarms.step(
                os.getpid(), "", [Step(at_ns - 100_000_000, at_ns)], lambda owner: "backward root"
            )

    def wait(self, seconds: int, *, worked: float = 0.0, waited: float = 0.0) -> str:
        """Let time pass without a step, with so much of a core, and so much waiting for one; return the record."""
        for _ in range(seconds):
            self.now += 1.0
            self.worked_s += worked
            threads = self.contention.cores.threads
            self.contention.cores.threads = Threads(
                threads.ran_s + worked, threads.waited_s + waited
            )
            self.alarms.turn()
        return self.path.read_text()


@pytest.fixture
def trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TrainedCommand:
    return TrainedCommand(tmp_path, monkeypatch)


def test_process_that_waits_for_nothing_but_a_core_is_no_stall(trained: TrainedCommand) -> None:
    assert "no step" not in trained.wait(50, worked=0.1, waited=0.8)
    assert "its processes are waiting for a core" in trained.wait(20, worked=0.1, waited=0.8)


def test_process_that_waits_for_data_for_ever_is_a_stall_on_a_busy_machine(
    trained: TrainedCommand,
) -> None:
    assert 'its processes are waiting"' in trained.wait(8, worked=0.01, waited=0.1)


def test_script_that_has_ended_misses_no_step(trained: TrainedCommand) -> None:
    trained.alarms.leave(os.getpid(), "", round(trained.now * 1e9))

    assert "no step" not in trained.wait(500)


def test_step_that_is_told_late_leaves_an_ended_script_ended(trained: TrainedCommand) -> None:
    trained.alarms.leave(os.getpid(), "", round((trained.now + 5) * 1e9))
    trained.step()

    assert "no step" not in trained.wait(500)


def test_thread_that_steps_on_after_the_script_can_stall(trained: TrainedCommand) -> None:
    trained.alarms.leave(os.getpid(), "", round(trained.now * 1e9))
    trained.step(3)

    assert "no step for" in trained.wait(8)


def test_high_pressure_counts_where_the_kernel_tells_of_no_thread(
    trained: TrainedCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained.contention.cores.is_known = False
    monkeypatch.setattr("tuilab.commands.alarm_watch.has_high_pressure", lambda: True)

    assert "no step" not in trained.wait(50)
