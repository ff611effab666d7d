"""Two runs of tuilab exec beside each other: their steps are shown, and a gate fails only where steps surely take longer."""

import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.made_runs import make_run, started
from tuilab.commands.step_blocks import OpenBlock
from tuilab.record.events import (
    BlockLogged,
    CoresAwaited,
    Event,
    Logged,
    Sampled,
    StateChanged,
    Unavailable,
)
from tuilab.reports.reported_run import read_subject
from tuilab.reports.step_times import times_of_steps

Tuilab = Callable[..., "subprocess.CompletedProcess[str]"]


QUIET = CoresAwaited(elapsed_s=10.0, waited_s=0.1, usable=2, others=0.02)


def put(
    root: Path,
    end: str,
    times_ms: Sequence[float],
    *,
    loss: float = 1.5,
    arm: str = "",
    luck: float = 0.01,
    waits: CoresAwaited | None = QUIET,
    cpu_ms: float | None = None,
    later_ms: Sequence[float] = (),
) -> Path:
    """Make a run of a command whose steps took so long; its first step is that of the warm-up.

    The steps of `later_ms` follow. They are recorded in blocks, as those of a long run.
    """
    records: list[Event] = [
        started(topic="exec", scenario="train", command=["python", "train.py"], luck=luck)
    ]
    for step, took in enumerate([9000.0, *times_ms]):
        values = {"step_ms": took, "data_ms": took / 4, "loss (printed)": loss}
        if cpu_ms is not None:
            values["cpu_ms"] = cpu_ms
        records.append(Logged(s=step, v=values, a=arm))
    records += blocks_of(later_ms, first_step=len(times_ms) + 1, arm=arm)
    if waits:
        records.append(waits)
    records.append(Sampled(processes=1, threads=1, cpu_percent=1.0, rss_bytes=300 << 20))
    return make_run(root, *records, StateChanged(state="succeeded"), name="train", end=end)


def blocks_of(times_ms: Sequence[float], *, first_step: int, arm: str = "") -> list[BlockLogged]:
    """Return the blocks that the recorder makes of steps that took so long."""
    open_block = OpenBlock(arm)
    blocks = []
    ended_ns = 0
    for step, took_ms in enumerate(times_ms, first_step):
        ended_ns += round(took_ms * 1e6)
        values = {"step_ms": took_ms, "data_ms": took_ms / 4}
        blocks.append(open_block.add(step, values, ended_ns))
    blocks.append(open_block.close())
    return [block for block in blocks if block]


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
    assert (
        "One process of each is not enough to decide." in shown
        and "compare both commands with `tuilab ab`" in shown
    )
    steps = group["commands"][0]
    assert (steps["name"], steps["values"]) == (
        "a step",
        [pytest.approx(50.0), pytest.approx(60.0)],
    )
    assert steps["shifts"][0]["low"] < steps["shifts"][0]["ratio"] < steps["shifts"][0]["high"]


def test_compare_shows_the_memory_of_commands_without_steps(tuilab: Tuilab, root: Path) -> None:
    for end in ("aaaaaa", "bbbbbb"):
        sample = Sampled(processes=1, threads=1, cpu_percent=1.0, rss_bytes=300 << 20)
        start = started(topic="exec", scenario="job", command=["python", "job.py"])
        make_run(root, start, sample, StateChanged(state="succeeded"), name="job", end=end)

    compared = compare(tuilab)

    shown = " ".join(compared.stdout.split())
    assert compared.returncode == 0
    assert "peak memory of all processes 300 MiB 300 MiB x1" in shown
    assert "not enough to decide." in shown and "The intervals cover" not in shown


@pytest.mark.parametrize(("slower", "code"), [(1.0, 0), (1.03, 0), (1.5, 1)])
def test_gate_fails_only_if_steps_surely_take_longer(
    tuilab: Tuilab, root: Path, slower: float, code: int
) -> None:
    put(root, "aaaaaa", waves(50.0))
    put(root, "bbbbbb", waves(50.0 * slower))

    done = compare(tuilab, "--fail-on", "slower:5%")

    assert done.returncode == code, done.stderr
    assert (
        "a step takes x1.5 [" in done.stdout or code == 0
    ) and "timed nothing" not in done.stderr


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
def test_gate_refuses_a_run_with_too_few_steps(
    tuilab: Tuilab, root: Path, times: list[float], said: str
) -> None:
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


# ---- steps in blocks


def test_compared_means_include_the_steps_in_blocks(tuilab: Tuilab, root: Path) -> None:
    put(root, "aaaaaa", waves(50.0))
    put(root, "bbbbbb", waves(50.0), later_ms=waves(100.0, 540))

    shown = " ".join(compare(tuilab).stdout.split())
    (group,) = json.loads(compare(tuilab, "--json").stdout)["comparisons"]

    rows = {row["name"]: row["values"] for row in group["commands"]}
    mean_ms = (60 * 50 + 540 * 100) / 600
    assert rows["a step"] == [pytest.approx(50.0), pytest.approx(mean_ms)]
    assert rows["waits for data"] == [pytest.approx(50.0 / 4), pytest.approx(mean_ms / 4)]
    assert (
        "Run 2 recorded 540 of its 600 compared steps in blocks of at most two seconds; the means "
        "include these steps." in shown
    )
    assert "Run 1 recorded" not in shown


@pytest.mark.parametrize(("later", "code"), [(1.0, 0), (1.5, 1)])
def test_gate_fails_if_only_the_steps_in_blocks_take_longer(
    tuilab: Tuilab, root: Path, later: float, code: int
) -> None:
    put(root, "aaaaaa", waves(50.0), later_ms=waves(50.0, 6000))
    put(root, "bbbbbb", waves(50.0), later_ms=waves(50.0 * later, 6000))

    done = compare(tuilab, "--fail-on", "slower:5%")

    assert done.returncode == code, done.stdout + done.stderr


def test_blocks_give_nearly_the_interval_of_single_steps(root: Path) -> None:
    times_ms = [20.0 + step % 7 + step / 500 for step in range(20_000)]
    alone = read_subject(put(root, "aaaaaa", times_ms))
    in_blocks = read_subject(put(root, "bbbbbb", times_ms[:1000], later_ms=times_ms[1000:]))

    (single_times,) = times_of_steps(alone).values()
    (block_times,) = times_of_steps(in_blocks).values()

    assert block_times.count == single_times.count == 20_000
    assert block_times.count_in_blocks == 19_000
    assert block_times.means == pytest.approx(single_times.means)
    # A block of 60 steps belongs to one stretch of 2,000 as a whole.
    assert block_times.stretches == pytest.approx(single_times.stretches, rel=0.01)


def test_a_block_longer_than_a_stretch_is_not_divided(root: Path) -> None:
    """One block must not count as several equal stretches: their spread would be too small."""
    subject = read_subject(put(root, "aaaaaa", waves(0.05, 1000), later_ms=waves(0.1, 9000)))

    (times,) = times_of_steps(subject).values()

    assert list(times.stretches) == pytest.approx([0.05, 0.1])


# ---- next to other processes


def busy(waited: float, others: float | None = 1.9) -> CoresAwaited:
    """Return the waits of a command whose threads had no core for a share of the time, next to others on two cores."""
    return CoresAwaited(elapsed_s=10.0, waited_s=10.0 * waited, usable=2, others=others)


@pytest.mark.parametrize("is_first_busy", [False, True])
def test_gate_blames_no_code_for_a_busy_machine(
    tuilab: Tuilab, root: Path, is_first_busy: bool
) -> None:
    """The code is the same: only the neighbour of one run makes its steps longer."""
    put(
        root,
        "aaaaaa",
        waves(92.0 if is_first_busy else 50.0),
        waits=busy(0.46) if is_first_busy else QUIET,
        cpu_ms=49,
    )
    put(
        root,
        "bbbbbb",
        waves(50.0 if is_first_busy else 92.0),
        waits=QUIET if is_first_busy else busy(0.46),
        cpu_ms=49,
    )

    done = compare(tuilab, "--fail-on", "slower:5%")

    at = 1 if is_first_busy else 2
    assert done.returncode == 0
    assert (
        f"not decided, as in run {at} other processes used 1.9 of 2 cores, and no core was free for up to 46 % of the time of "
        "its steps; compare both commands with `tuilab ab`"
    ) in done.stderr


def test_gate_finds_slower_code_beside_other_processes(tuilab: Tuilab, root: Path) -> None:
    """Half of the time is lost to others, but what remains is three times as long."""
    put(root, "aaaaaa", waves(50.0), cpu_ms=49)
    put(root, "bbbbbb", waves(300.0), waits=busy(0.5), cpu_ms=149)

    done = compare(tuilab, "--fail-on", "slower:5%")

    assert done.returncode == 1
    assert (
        "a step takes x6 [" in done.stdout
        and "as long; in run 2 other processes used 1.9 of 2 cores" in done.stdout
    )


def test_gate_passes_no_slower_code_because_the_first_run_was_busy(
    tuilab: Tuilab, root: Path
) -> None:
    put(root, "aaaaaa", waves(100.0), waits=busy(0.5), cpu_ms=49)
    put(root, "bbbbbb", waves(75.0), cpu_ms=73)

    done = compare(tuilab, "--fail-on", "slower:5%")

    assert (
        done.returncode == 0
        and "a step takes x0.75 [" in done.stderr
        and "not decided" in done.stderr
    )


def test_steps_that_wait_for_own_threads_are_slower_code(tuilab: Tuilab, root: Path) -> None:
    """On a quiet machine the threads of a command may compete for the cores: no other process is to blame."""
    put(root, "aaaaaa", waves(50.0), cpu_ms=80)
    put(root, "bbbbbb", waves(75.0), waits=busy(0.6, others=0.05), cpu_ms=120)

    assert compare(tuilab, "--fail-on", "slower:5%").returncode == 1


def test_steps_on_a_gpu_lose_only_the_time_without_a_core(tuilab: Tuilab, root: Path) -> None:
    """On a machine with many cores, others that use some of them slow no GPU down."""
    waits = CoresAwaited(elapsed_s=10.0, waited_s=0.1, usable=64, others=40.0)
    put(root, "aaaaaa", waves(50.0), waits=waits)
    put(root, "bbbbbb", waves(60.0), waits=waits)

    assert compare(tuilab, "--fail-on", "slower:5%").returncode == 1


@pytest.mark.parametrize(
    "waits",
    [
        None,
        CoresAwaited(elapsed_s=0.0, waited_s=1.0, usable=2),
        busy(-1.0),
        busy(float("nan")),
        busy(1.0, -5.0),
    ],
)
def test_gate_says_that_waits_for_cores_are_not_known(
    tuilab: Tuilab, root: Path, waits: CoresAwaited | None
) -> None:
    put(root, "aaaaaa", waves(50.0), waits=waits)
    put(root, "bbbbbb", waves(90.0))

    done = compare(tuilab, "--fail-on", "slower:5%")

    assert done.returncode == 1
    assert "as long; how long run 1 waited for a core was not recorded" in done.stdout


def test_comparison_says_which_run_was_beside_others(tuilab: Tuilab, root: Path) -> None:
    put(root, "aaaaaa", waves(50.0), cpu_ms=49)
    put(root, "bbbbbb", waves(92.0), waits=busy(0.46), cpu_ms=50)

    shown = " ".join(compare(tuilab).stdout.split())

    assert "CPU time of a step 49 ms 50 ms x1.02" in shown
    assert (
        "a variation of 25 % between processes (assumed, because other processes used the cores). In run 2"
        in shown
    )
