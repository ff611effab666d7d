"""The CPU time of steps: from the readings in a process to what a race and a result say of it."""

import json
import math
import os
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.commands.fake_trainer import write_trainer
from tests.commands.made_marks import MS, cut, make_mark
from tests.commands.test_ab import Tuilab, raced, verdicts
from tests.commands.watched_script import Watch
from tuilab.commands.cpu.core_time import (
    CoreTime,
    CoreTimeReading,
    CoreTimeReadings,
    CoreTimes,
    total,
)
from tuilab.commands.cpu.helpers import Helpers
from tuilab.commands.marks import Mark
from tuilab.commands.watcher._tuilab_watch import core_time, layout
from tuilab.commands.watcher._tuilab_watch.data import has_workers

STEPPED = layout.last_of(layout.STEPPED, 1)


def reading(
    thread_ms: int, waits: int = 1, delay_ms: float | None = None, process_ms: int | None = None
) -> CoreTimeReading:
    process_ns = (thread_ms if process_ms is None else process_ms) * MS
    return CoreTimeReading(
        thread_ms * MS, process_ns, waits, None if delay_ms is None else delay_ms * MS
    )


def taken(*ends: tuple[int, CoreTimeReading | None]) -> list[CoreTime | None]:
    """Return what readings at the ends of steps amount to, given by milliseconds."""
    readings = CoreTimeReadings()
    return [readings.take(ended_ms * MS, one) for ended_ms, one in ends]


def test_time_off_the_core_of_a_thread_that_never_waits_is_delay() -> None:
    assert taken((0, reading(5, delay_ms=3)), (100, reading(25)))[1] == CoreTime(
        steps=1,
        wall_ns=100 * MS,
        thread_ns=20 * MS,
        process_ns=20 * MS,
        delayed_ns=80 * MS,
        waited_ns=0,
    )


def test_time_off_the_core_of_a_thread_that_waits_is_delay_as_far_as_the_kernel_counts_it() -> None:
    _, calm, waiting = taken(
        (0, reading(0, 1, 7)), (100, reading(20)), (200, reading(40, 2, 7 + 80 + 50))
    )

    assert calm is not None and (calm.delayed_ns, calm.waited_ns) == (80 * MS, 0)
    assert waiting is not None and (waiting.delayed_ns, waiting.waited_ns) == (50 * MS, 30 * MS)


@pytest.mark.parametrize("delays_ms", [(None, None), (7, None), (None, 60)])
def test_thread_that_waits_has_no_delay_if_the_kernel_does_not_count_it(
    delays_ms: tuple[float | None, ...],
) -> None:
    before, after = delays_ms
    _, waiting = taken((0, reading(0, 1, before)), (100, reading(20, 2, after)))

    assert waiting is not None and (waiting.delayed_ns, waiting.waited_ns) == (0, 80 * MS)


def test_delay_is_never_longer_than_the_time_off_the_core() -> None:
    _, waiting = taken((0, reading(0, 1, 0)), (100, reading(20, 2, 9000)))

    assert waiting is not None and (waiting.delayed_ns, waiting.waited_ns) == (80 * MS, 0)


def test_one_reading_covers_the_steps_before_it_that_have_none() -> None:
    first, second, third = taken((0, reading(0)), (10, None), (20, reading(20)))

    assert (first, second) == (None, None)
    assert third is not None and (third.steps, third.wall_ns, third.is_disturbed) == (
        2,
        20 * MS,
        False,
    )


@pytest.mark.parametrize("thread_ns", [-1, 2**63 - 1])
def test_made_up_readings_are_no_time(thread_ns: int) -> None:
    odd = CoreTimeReading(thread_ns, 5, 1, None)

    assert taken((0, reading(0)), (100, odd))[1] is None


def marks_of_steps(values: list[float], *, optimizers: int = 1) -> list[Mark]:
    """Return the marks of steps that take 10 ms, of which a thread works 4 ms."""
    marks = []
    for at, value in enumerate(values):
        for optimizer in range(1, optimizers + 1):
            thread_ms, process_ms, wall_ms = 4 * at, 6 * at, 10 * at + optimizer / MS
            used = make_mark(
                layout.USED, thread_ms, process_ms, value=value, number=1, name=optimizer
            )
            stepped = make_mark(layout.STEPPED, wall_ms, wall_ms, name=optimizer)
            marks += [used, stepped]
    return marks


@pytest.mark.parametrize("optimizers", [1, 2])
@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf, 5.0])
def test_step_has_the_cpu_time_between_the_readings_at_its_ends(
    optimizers: int, value: float
) -> None:
    _, (first, *others) = cut(marks_of_steps([value] * 5, optimizers=optimizers))

    assert first.core_time is None
    assert [step.core_time for step in others] == [
        CoreTime(1, 10 * MS, 4 * MS, 6 * MS, 6 * MS, 0)
    ] * 4


def test_steps_without_readings_have_no_cpu_time() -> None:
    marks = [mark for mark in marks_of_steps([0.0] * 5) if mark.kind != layout.USED]

    _, steps = cut(marks)
    assert [step.core_time for step in steps] == [None] * 5


def test_sums_of_core_times_take_whole_readings_only() -> None:
    times = CoreTimes()
    times.add(3, CoreTime(2, 20, 10, 10, 0, 0))
    times.add(5, CoreTime(2, 40, 30, 30, 0, 0))

    assert total(times.since(2)) == total(times.since(3)) == CoreTime(2, 40, 30, 30, 0, 0)
    assert total(times.since(4)) is None
    assert times.thread_s(5) == [5e-9, 5e-9, 5e-9, 15e-9, 15e-9]
    assert times.thread_s(6) is None


# ---- in the process


class Marked:
    """A watcher that keeps what is put, and fails for nothing."""

    def __init__(self) -> None:
        self.put_marks: list[tuple[int, int, float, int]] = []
        self.torch: Any = None

    def put(self, *mark: Any) -> None:
        self.put_marks.append(mark)

    def fail(self, problem: BaseException) -> None:
        raise problem


def test_reading_is_put_once_a_millisecond_for_each_optimizer() -> None:
    marked = Marked()
    times = core_time.CoreTimeReader(marked)
    for now in (0, 1, 500_000, 1_000_000, 1_900_000, 2_000_000):
        times.mark(now, STEPPED)
    times.mark(2_000_000, layout.last_of(layout.STEPPED, 2))

    kinds = [(last >> 56, last >> 32 & 0xFFFF) for *_, last in marked.put_marks]
    assert kinds == [(layout.USED, 1)] * 3 + [(layout.USED, 2)]
    thread_ns, process_ns, _, _ = marked.put_marks[0]
    assert 0 < thread_ns <= process_ns


def test_readings_end_if_another_thread_steps() -> None:
    marked = Marked()
    times = core_time.CoreTimeReader(marked)
    times.mark(0, STEPPED)
    other = threading.Thread(target=times.mark, args=(10 * MS, STEPPED))
    other.start()
    other.join()
    times.mark(20 * MS, STEPPED)

    assert len(marked.put_marks) == 1


@pytest.mark.parametrize("what", ["parameter", "cuda"])
def test_readings_end_if_an_accelerator_is_used(what: str) -> None:
    marked = Marked()
    marked.torch = SimpleNamespace(cuda=SimpleNamespace(is_initialized=lambda: what == "cuda"))
    times = core_time.CoreTimeReader(marked)
    times.check_parameters([SimpleNamespace(is_cpu=True), SimpleNamespace(is_cpu=what == "cuda")])
    times.check_accelerators()
    times.mark(0, STEPPED)

    assert marked.put_marks == []


def test_kernel_that_counts_neither_waits_nor_delays_is_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    marked = Marked()
    never = SimpleNamespace(getrusage=lambda _: SimpleNamespace(ru_nvcsw=0), RUSAGE_THREAD=1)
    monkeypatch.setattr(core_time, "resource", never)
    monkeypatch.setattr(core_time, "_SCHEDSTAT", "/nowhere")
    core_time.CoreTimeReader(marked).mark(0, STEPPED)

    assert marked.put_marks == []


def test_forked_child_reads_its_own_thread() -> None:
    marked = Marked()
    times = core_time.CoreTimeReader(marked)
    times.mark(0, STEPPED)
    child = os.fork()
    if not child:
        times.forget()
        times.mark(1, STEPPED)
        is_own = (
            len(marked.put_marks) == 2 and marked.put_marks[1][0] < marked.put_marks[0][0] + 10**9
        )
        os._exit(0 if is_own else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_loader_with_workers_is_known_by_them() -> None:
    assert has_workers(SimpleNamespace(num_workers=2)) and has_workers(
        SimpleNamespace(_num_workers=1)
    )
    assert not has_workers(SimpleNamespace(num_workers=0)) and not has_workers(SimpleNamespace())


@pytest.mark.real_torch
def test_sleep_in_a_step_is_waiting_and_work_is_cpu_time(watch: Watch) -> None:
    seen = watch(
        """
        import time
        from torch.utils.data import DataLoader
        o = sgd()
        for at, _ in enumerate(DataLoader(range(6))):
            until = time.thread_time() + 0.002
            while time.thread_time() < until: pass
            if at == 4: time.sleep(0.03)
            loss().backward(); o.step()
        """
    )

    times = [step.core_time for step in seen.steps]
    known = [one for one in times[2:] if one]
    assert times[:2] == [None, None] and len(known) == 4
    # The work lies between two readings. The clocks of one reading are not read at the same time.
    assert all(one.thread_ns >= 2 * MS and one.process_ns >= 2 * MS for one in known)
    assert known[2].waited_ns >= 29 * MS


# ---- processes below


def test_helpers_count_what_processes_below_used_since_the_first_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = iter([0.0, 0.0, 0.1, 1.0, 2.0])
    used = {7: 500, 8: 0}
    monkeypatch.setattr(
        "tuilab.commands.cpu.helpers.presence.descendants",
        lambda pid: [one for one in used if used[one]],
    )
    fields = lambda pid: ["S", *["0"] * 10, str(used[pid]), *["0"] * 7, "1"]  # noqa: E731
    monkeypatch.setattr("tuilab.commands.cpu.helpers.presence.stat_fields", fields)
    helpers = Helpers(1, lambda: next(clock))
    ticks = os.sysconf("SC_CLK_TCK")

    for _ in range(2):  # the second is too early
        helpers.look()
    assert helpers.cores == 0.0
    used[7], used[8] = 500 + ticks // 2, ticks // 2
    helpers.look()
    assert helpers.cores == pytest.approx(1.0)
    used[7] = 0  # it has ended
    helpers.look()
    assert helpers.cores == pytest.approx(0.5)


# ---- from the command line


def test_race_on_a_busy_machine_is_judged_on_cpu_time(tuilab: Tuilab, tmp_path: Path) -> None:
    words = (
        "--arm",
        "base",
        "--arm",
        "slow: -- --cpu-ms 13 --step-ms 117",
        "--claim",
        "base 1.1x slow",
    )
    command = ("--cpu-ms", "10", "--step-ms", "90", "--luck", "0.005")
    run = raced(tuilab, tmp_path, *words, command=command)

    assert verdicts(run) == ["SUPPORTED"]
    claim = run["claims"][0]
    assert claim["measure"] == "cpu" and claim["estimate"] == pytest.approx(1.3, rel=0.05)
    assert "judged on CPU time: 100 % of the steps were disturbed" in claim["why"]
    rows = run["tables"][0]["rows"]
    assert [row[0] for row in rows[:4]] == [
        "CPU time of a step",
        "fastest",
        "slowest",
        "base/arm of CPU time, mean of repeats",
    ]
    assert [row[0] for row in rows[4:8:3]] == [
        "a step on the wall clock",
        "base/arm on the wall clock, mean of repeats",
    ]
    assert "thread_s" in tuilab("report", "last", "-o", "-", "--as", "csv").stdout
    assert tuilab("verify", "last").returncode == 0


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("--others-ms 5", "slow works on more than one thread or process"),
        ("--asleep-ms 20", "slow waits 61 % of its time for something other than a core"),
        ("--workers", "slow has workers of a DataLoader"),
    ],
)
def test_race_of_other_work_stays_on_the_wall_clock_and_says_why(
    tuilab: Tuilab, tmp_path: Path, options: str, reason: str
) -> None:
    words = ("--arm", "base", "--arm", f"slow: -- --cpu-ms 13 {options}", "--repeat", "1")
    run = raced(tuilab, tmp_path, *words, command=("--cpu-ms", "10", "--step-ms", "90"))

    assert run["claims"][0]["measure"] == "wall"
    assert (
        f"judged on the wall clock, though 100 % of the steps were disturbed: {reason}"
        in run["claims"][0]["why"]
    )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--cpu-ms", "10"), "CPU time of a step: 10 ms; it waited 30 ms (75 %) for a core"),
        (("--cpu-ms", "40", "--others-ms", "40"), "CPU time of a step: 80 ms"),
        (("--cpu-ms", "39"), ""),
        ((), ""),
    ],
)
def test_result_of_exec_has_the_cpu_time_if_it_differs_clearly(
    tuilab: Tuilab, tmp_path: Path, options: tuple[str, ...], sentence: str
) -> None:
    done = tuilab(
        "exec", "--json", "--", sys.executable, write_trainer(tmp_path), "--step-ms", "40", *options
    )

    (run,) = json.loads(done.stdout)["runs"]
    found = [line for line in run["texts"][0]["text"].splitlines() if line.startswith("CPU time")]
    assert found == ([sentence] if sentence else [])
    curves = [one["name"] for one in run["series"]]
    assert ("cpu_ms" in curves) == bool(options)
