"""Two runs of tuilab exec beside each other: their steps are shown, and a gate fails only where steps surely take longer."""

import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.tui.made_up import make_run, started
from tuilab.record.events import Event, Logged, Sampled, StateChanged, Unavailable

Tuilab = Callable[..., "subprocess.CompletedProcess[str]"]


def put(root: Path, end: str, times_ms: Sequence[float], *, loss: float = 1.5, arm: str = "", luck: float = 0.01) -> Path:
    """Make a run of a command whose steps took so long; its first step is that of the warm-up."""
    records: list[Event] = [started(topic="exec", scenario="train", command=["python", "train.py"], luck=luck)]
    for step, took in enumerate([9000.0, *times_ms]):
        values = {"step_ms": took, "data_ms": took / 4, "loss (printed)": loss}
        records.append(Logged(s=step, v=values, a=arm))
    records.append(Sampled(processes=1, threads=1, cpu_percent=1.0, rss_bytes=300 << 20))
    return make_run(root, *records, StateChanged(state="succeeded"), name="train", end=end)


def waves(mean: float, count: int = 60) -> list[float]:
    """Return times that vary by 2 % about a mean."""
    return [mean * (1.02 if step % 2 else 0.98) for step in range(count)]


def compare(tuilab: Tuilab, *words: str) -> "subprocess.CompletedProcess[str]":
    return tuilab("compare", "aaaaaa", "bbbbbb", *words)


def test_compare_shows_steps_memory_and_losses_with_ratios(tuilab: Tuilab, root: Path) -> None:
    put(root, "aaaaaa", waves(50.0))
    put(root, "bbbbbb", waves(60.0), loss=3.0)

    shown = " ".join(compare(tuilab).stdout.split())
    (group,) = json.loads(compare(tuilab, "--json").stdout)["comparisons"]

    assert "a step 50 ms 60 ms x1.2 [" in shown
    assert "waits for data 12.5 ms 15 ms x1.2" in shown
    assert "peak memory of all processes 300 MiB 300 MiB x1" in shown
    assert "last loss (printed) 1.5 3 x2" in shown
    assert "One process each decides nothing for sure." in shown and "tuilab ab races both commands" in shown
    steps = group["commands"][0]
    assert (steps["name"], steps["values"]) == ("a step", [pytest.approx(50.0), pytest.approx(60.0)])
    assert steps["shifts"][0]["low"] < steps["shifts"][0]["ratio"] < steps["shifts"][0]["high"]


@pytest.mark.parametrize(("slower", "code"), [(1.0, 0), (1.03, 0), (1.5, 1)])
def test_gate_fails_only_if_steps_surely_take_longer(tuilab: Tuilab, root: Path, slower: float, code: int) -> None:
    put(root, "aaaaaa", waves(50.0))
    put(root, "bbbbbb", waves(50.0 * slower))

    done = compare(tuilab, "--fail-on", "slower:5%")

    assert done.returncode == code, done.stderr
    assert ("a step takes x1.5 [" in done.stdout or code == 0) and "timed nothing" not in done.stderr


def test_gate_says_what_it_cannot_decide_and_passes(tuilab: Tuilab, root: Path) -> None:
    put(root, "aaaaaa", waves(50.0), luck=0.05)
    put(root, "bbbbbb", waves(55.0), luck=0.05)

    done = compare(tuilab, "--fail-on", "slower:5%")
    document = json.loads(compare(tuilab, "--fail-on", "slower:5%", "--json").stdout)

    assert done.returncode == 0
    assert (
        "slower:5%: run 2: a step takes x1.1 [" in done.stderr
        and "not decided; compare both commands with `tuilab ab`" in done.stderr
    )
    assert (document["exit_code"], document["found"], len(document["undecided"])) == (0, [], 1)


def test_gate_takes_a_process_to_be_off_by_itself(tuilab: Tuilab, root: Path) -> None:
    """Steps that hardly vary prove nothing about the next process."""
    put(root, "aaaaaa", [50.0] * 60, luck=0.1)
    put(root, "bbbbbb", [58.0] * 60, luck=0.1)

    assert compare(tuilab, "--fail-on", "slower:5%").returncode == 0


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ([50.0] * 5, "bbbbbb has 5 steps after its first ones, but 20 are needed"),
        ([], "no step of bbbbbb was timed (no torch)"),
    ],
)
def test_gate_refuses_a_run_with_too_few_steps(tuilab: Tuilab, root: Path, times: list[float], said: str) -> None:
    put(root, "aaaaaa", waves(50.0))
    if times:
        put(root, "bbbbbb", times)
    else:
        start = started(topic="exec", scenario="train", command=["python", "train.py"])
        why = Unavailable(what="steps", reason="no torch")
        make_run(root, start, why, StateChanged(state="succeeded"), name="train", end="bbbbbb")

    done = compare(tuilab, "--fail-on", "slower:5%")

    assert done.returncode == 2 and said in done.stderr
    assert done.stderr.count("\n") == 1


def test_steps_of_several_processes_stand_apart(tuilab: Tuilab, root: Path) -> None:
    put(root, "aaaaaa", waves(50.0), arm="rank 1")
    put(root, "bbbbbb", waves(90.0), arm="rank 1")

    done = compare(tuilab, "--fail-on", "slower:5%")

    assert done.returncode == 1 and "a step of rank 1 takes x1.8 [" in done.stdout
    assert "a step rank 1" in done.stdout
