"""Absolute times of two runs: how sure a change is, and the gate that stops it."""

import math
import random
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.made_runs import started
from tests.test_compare import put
from tuilab.record import events
from tuilab.record.journal.writer import Writer
from tuilab.runs.comparing.call_times import shifts_of

Tuilab = Callable[..., "subprocess.CompletedProcess[str]"]


def test_twice_as_slow_is_apart_and_the_same_is_not() -> None:
    first = {"a": [1.0, 1.01, 0.99], "b": [2.0, 2.02, 1.98]}

    shifts = shifts_of(first, [{"a": [2.0, 2.01, 1.99], "b": [2.01, 1.99, 2.0]}])

    (a,), (b,) = shifts["a"], shifts["b"]
    assert a and a.low > 1.8 and a.high < 2.2 and math.isclose(a.ratio, 2.0, rel_tol=1e-3)
    assert b and not b.is_apart


def test_one_process_tells_nothing() -> None:
    assert shifts_of({"a": [1.0]}, [{"a": [2.0, 2.0]}]) == {"a": (None,)}
    assert shifts_of({"a": [1.0, 1.0]}, [{"a": [2.0]}, {}]) == {"a": (None, None)}


@pytest.mark.parametrize("time", [0.0, -1.0, math.inf, math.nan])
def test_a_time_without_a_logarithm_gives_no_interval(time: float) -> None:
    assert shifts_of({"a": [1.0, time]}, [{"a": [2.0, 2.0]}]) == {"a": (None,)}
    assert shifts_of({"a": [2.0, 2.0]}, [{"a": [1.0, time]}]) == {"a": (None,)}


def test_processes_that_do_not_vary_are_sure() -> None:
    ((shift,),) = shifts_of({"a": [1.0, 1.0]}, [{"a": [1.0, 1.0]}]).values()

    assert shift and (shift.low, shift.ratio, shift.high) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize("processes", [(2, 2), (3, 5), (6, 6)])
def test_alike_runs_seldom_differ(processes: tuple[int, int]) -> None:
    """One in a hundred, as the interval says; of 2000 pairs 35 would be a chance of one in a thousand."""
    drawn, count = random.Random(1), 0
    for _ in range(2000):
        one, two = (
            {"a": [math.exp(drawn.gauss(0, 0.05)) for _ in range(number)]} for number in processes
        )
        ((shift,),) = shifts_of(one, [two]).values()
        count += shift is not None and shift.is_apart

    assert count <= 35


def put_race(root: Path, end: str, times: dict[str, list[float]], model: str = "a CPU") -> str:
    """Make a run whose arms took so many seconds in each of its processes."""
    run = f"20270115T080000000Z-probe-{end}"
    (root / run / "journal").mkdir(parents=True)
    processes = max(map(len, times.values()))
    records: dict[str, list[events.Record]] = {
        "supervisor": [
            started(run=run, scenario="probe", repeats=processes),
            events.StateChanged(state="succeeded"),
        ]
    }
    for at in range(processes):
        box = events.EnvironmentRecorded(
            part="box", facts={"cpu": {"model": model, "usable_cores": 8}}
        )
        blocks = [
            events.BlockTimed(
                arm=arm, round=number, slot=0, loops=1, wall_ns=int(1e9 * found[at]), cpu_ns=1
            )
            for arm, found in times.items()
            for number in range(3)
        ]
        records[f"worker-{at}"] = [box, *blocks]
    for name, found in records.items():
        with closing(Writer(root / run / "journal" / f"{name}.jsonl")) as journal:
            assert all(map(journal.append, found))
    return end


def test_a_commit_that_makes_both_arms_slower_is_stopped(tuilab: Tuilab, root: Path) -> None:
    put_race(root, "aaaaaa", {"slow": [2.0, 2.01, 1.99], "fast": [1.0, 1.01, 0.99]})
    put_race(root, "bbbbbb", {"slow": [4.0, 4.01, 3.99], "fast": [2.0, 2.01, 1.99]})

    slower = tuilab(
        "compare", "aaaaaa", "bbbbbb", "--fail-on", "slower:20%", "--fail-on", "regression"
    )
    less = tuilab("compare", "aaaaaa", "bbbbbb", "--fail-on", "slower:120%")
    better = tuilab("compare", "bbbbbb", "aaaaaa", "--fail-on", "slower:0%")

    told = [line for line in slower.stdout.splitlines() if line.startswith("slower:20%: ")]
    assert [done.returncode for done in (slower, less, better)] == [1, 0, 0], slower.stderr
    assert told[0].startswith(
        "slower:20%: 2 runs of probe: run 2: a call of slow takes 4 s (x2 [1."
    )
    assert len(told) == 2


def test_an_arm_that_is_timed_no_more_is_stopped(tuilab: Tuilab, root: Path) -> None:
    put_race(root, "aaaaaa", {"slow": [2.0, 2.01], "fast": [1.0, 1.01]})
    put_race(root, "bbbbbb", {"fast": [1.0, 1.01]})

    done = tuilab("compare", "aaaaaa", "bbbbbb", "--fail-on", "slower:20%")

    assert done.returncode == 1 and "run 2: a call of slow was not timed" in done.stdout


@pytest.mark.parametrize(
    ("gate", "said"),
    [
        (
            "slower:5%",
            "timed slow in only one process, so the variation between processes is unknown; run it again with --repeat 6",
        ),
        ("slower", "'slower' is not a gate; use regression, difference or slower:5%"),
        ("slower:-5%", "'slower:-5%' is not a gate"),
        ("slower:٥%", "is not a gate"),
    ],
)
def test_what_cannot_be_told_is_refused(tuilab: Tuilab, root: Path, gate: str, said: str) -> None:
    put_race(root, "aaaaaa", {"slow": [2.0], "fast": [1.0]})

    done = tuilab("compare", "aaaaaa", "aaaaaa", "--fail-on", gate)

    assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1


def test_a_run_that_timed_nothing_has_no_times_to_gate(tuilab: Tuilab, root: Path) -> None:
    put(root, "not-a-number", "aaaaaa")

    done = tuilab("compare", "aaaaaa", "aaaaaa", "--fail-on", "slower:5%")

    assert done.returncode == 2 and "has no timed calls; drop --fail-on slower" in done.stderr


def test_runs_of_other_hardware_are_refused(tuilab: Tuilab, root: Path) -> None:
    put_race(root, "aaaaaa", {"a": [2.0, 2.0]})
    put_race(root, "bbbbbb", {"a": [2.0, 2.0]}, model="another CPU")

    done = tuilab("compare", "aaaaaa", "bbbbbb", "--fail-on", "slower:5%")

    assert (
        done.returncode == 2
        and "bbbbbb ran on other hardware (another CPU, not a CPU); compare" in done.stderr
    )
