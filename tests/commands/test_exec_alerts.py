"""What is worth an alert, and what ordinary training does without one."""

import json
import math
import os
import random
from pathlib import Path

import pytest

from tuilab.commands.alarm_rules import Creep, NotFinite, SlowRank, Stall
from tuilab.commands.alarm_watch import Alarms
from tuilab.commands.cpu.contention import Contention
from tuilab.commands.steps import Step
from tuilab.record.journal.writer import Writer

MS = 1_000_000
MIB = 1 << 20


def step(took_ms: float = 100.0, backward_ms: float = 40.0) -> Step:
    return Step(began=0, ended=round(took_ms * MS), backward_ns=round(backward_ms * MS))


def trained(steps: int = 50, took_ms: float = 100.0) -> tuple[Stall, float]:
    """Return what has seen so many steps, and the time."""
    stall, now = Stall(), 0.0
    for _ in range(steps):
        now += took_ms / 1000
        assert stall.step(now, [step(took_ms)]) == ""
    return stall, now


def test_a_process_that_waits_and_steps_no_more_stalls_and_that_is_told_once() -> None:
    stall, now = trained()

    assert [stall.look(now + later, is_busy=False) for later in (1, 4.9)] == ["", ""]
    assert (
        stall.look(now + 5.1, is_busy=False)
        == "no step for 5.1 s (a step usually takes 100 ms); its processes are waiting"
    )
    assert stall.look(now + 60, is_busy=False) == ""
    assert stall.step(now + 62, [step(62_000)]) == "steps continue, after 62 s without one"


def test_long_steps_are_waited_for_ten_times_as_long() -> None:
    stall, now = trained(took_ms=2000)

    assert stall.look(now + 19, is_busy=False) == ""
    assert stall.look(now + 21, is_busy=False)


def test_an_evaluation_is_no_stall() -> None:
    """Its processes work, its batches are waited for, or it prints."""
    stall, now = trained()
    assert stall.look(now + 30, is_busy=True) == ""
    stall.hear(now + 30)
    assert stall.look(now + 34, is_busy=False) == ""

    assert stall.look(now + 95, is_busy=True).endswith("its processes are working")


def test_a_pause_like_the_ones_before_is_no_stall() -> None:
    stall, now = trained()
    stall.look(now + 20, is_busy=False)
    now += 20
    stall.step(now, [step(20_000)])

    assert stall.look(now + 25, is_busy=False) == ""
    assert stall.look(now + 61, is_busy=False)


def test_what_has_not_stepped_often_does_not_stall() -> None:
    stall, now = trained(steps=4)

    assert stall.look(now + 100, is_busy=False) == Stall().look(100.0, is_busy=False) == ""


def test_the_first_root_that_is_no_number_is_told_with_its_step_and_no_other() -> None:
    roots = NotFinite()

    told = [
        roots.look("backward root", at, value)
        for at, value in enumerate((1.0, 0.5, math.nan, math.inf))
    ]
    assert told == ["", "", "backward root is NaN for the first time, in step 2", ""]
    assert (
        NotFinite()
        .look("backward root", 0, -math.inf)
        .startswith("backward root is Inf for the first time, in step 0")
    )


@pytest.mark.parametrize(
    ("skipped", "ends"),
    [
        ([0, 0, 0], "in step 2"),
        ([1, 0, 0], "only many of them in a row are a problem"),
        ([0, 0, 1], "only many of them in a row are a problem"),
    ],
)
def test_alarm_about_inf_says_that_a_scaler_skips_such_steps(
    tmp_path: Path, skipped: list[int], ends: str
) -> None:
    path = tmp_path / "worker-0.jsonl"
    alarms = Alarms(os.getpid(), Contention(os.getpid()), Writer(path), lambda: 0.0)
    steps = []
    for number, count in enumerate(skipped):
        root = math.inf if number == 2 else 1.0
        steps.append(Step(0, MS, skipped=count, roots={1: root}))

    alarms.step(os.getpid(), "", steps, lambda owner: "backward root")

    (line,) = path.read_text().splitlines()
    text = json.loads(line.partition(" ")[2])["text"]
    assert text.startswith("backward root is Inf for the first time, in step 2")
    assert text.endswith(ends)


def crept(levels: list[float]) -> list[str]:
    """Return what is told of memory in MiB, read every tenth step."""
    creep = Creep("resident memory")
    return [told for at, level in enumerate(levels) if (told := creep.read(10 * at, level * MIB))]


def test_memory_that_grows_with_every_step_is_told_once() -> None:
    (told,) = crept([500 + 5 * at for at in range(300)])

    assert told.startswith("resident memory keeps growing, from ") and told.endswith("steps")


def test_a_leak_is_seen_through_the_noise_of_a_process() -> None:
    chance = random.Random(1)

    assert len(crept([500 + 3 * at + chance.gauss(0, 10) for at in range(600)])) == 1


@pytest.mark.parametrize(
    "levels",
    [
        [500.0] * 600,
        [min(100 + 40 * at, 900) for at in range(600)],
        [900 - 800 * math.exp(-at / 60) for at in range(600)],
        [500 + 300 * ((at // 100) % 2) for at in range(600)],
        [500 + 2 * (at % 100) for at in range(600)],
        [500 + 0.05 * at for at in range(600)],
        [500 + 100 * (at > 300) for at in range(600)],
        [500 + 5 * at for at in range(50)],
    ],
    ids=[
        "flat",
        "a warm-up",
        "a cache that fills",
        "evaluations",
        "a saw",
        "hardly anything",
        "one jump",
        "a short run",
    ],
)
def test_memory_of_ordinary_training_is_not(levels: list[float]) -> None:
    assert crept(levels) == []


def test_memory_that_is_noisy_is_not_told_by_chance() -> None:
    chance = random.Random(7)

    assert [crept([900 + chance.gauss(0, 60) for _ in range(600)]) for _ in range(50)] == [[]] * 50


def ranks(*own_ms: float) -> dict[str, list[Step]]:
    """Return the steps of ranks that do so much by themselves, and wait for the slowest in their backwards."""
    longest = max(own_ms) + 40
    return {f"rank {at}": [step(longest, longest - own)] * 50 for at, own in enumerate(own_ms)}


def test_a_rank_that_has_more_to_do_is_named_when_it_has_been_so_for_a_while() -> None:
    slow = SlowRank()

    told = [slow.look(ranks(60, 60, 90, 62)) for _ in range(5)]
    assert [bool(one) for one in told] == [False, False, True, False, False]
    assert (
        told[2]
        == "rank 2 is slow: it takes 90 ms of a step before its backward, the others 60 ms, and they wait for it"
    )


def test_ranks_that_take_turns_in_being_slow_are_not_told() -> None:
    slow = SlowRank()

    assert [slow.look(ranks(60, 90) if at % 2 else ranks(90, 60)) for at in range(10)] == [""] * 10


@pytest.mark.parametrize("own_ms", [(60, 60), (60, 70), (1, 2), (60,)])
def test_ranks_that_are_about_as_fast_are_not_told(own_ms: tuple[float, ...]) -> None:
    slow = SlowRank()

    assert [slow.look(ranks(*own_ms)) for _ in range(5)] == [""] * 5


def test_ranks_of_which_one_has_hardly_stepped_are_not_compared() -> None:
    slow, seen = SlowRank(), {"rank 0": [step()] * 50, "rank 1": [step(900)] * 3}

    assert [slow.look(seen) for _ in range(5)] == [""] * 5
