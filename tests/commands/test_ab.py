"""`tuilab ab`: arms of a command, raced in fresh processes, from the command line to the verdict."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from tests.commands.made_up import trainer

PYTHON = "python3"
Tuilab = Callable[..., CompletedProcess[str]]


def raced(tuilab: Tuilab, folder: Path, *words: str, command: tuple[str, ...] = (), code: int = 0) -> dict[str, Any]:
    """Race arms of the made-up trainer and return the result."""
    done = tuilab("ab", *words, "--json", "--", PYTHON, trainer(folder), *command)
    assert done.returncode == code, done.stdout + done.stderr
    (run,) = json.loads(done.stdout)["runs"]
    found: dict[str, Any] = run
    return found


def verdicts(run: dict[str, Any]) -> list[str]:
    return [claim["verdict"] for claim in run["claims"]]


def test_an_arm_that_takes_half_as_long_again_is_slower(tuilab: Tuilab, tmp_path: Path) -> None:
    run = raced(
        tuilab, tmp_path, "--arm", "base", "--arm", "slow: -- --step-ms 15", "--claim", "base 1.3x slow",
        command=("--luck", "0.02"),
    )  # fmt: skip

    assert verdicts(run) == ["SUPPORTED"]
    assert run["claims"][0]["estimate"] == pytest.approx(1.5, rel=0.1)


def test_arms_that_learn_something_else_are_no_race(tuilab: Tuilab, tmp_path: Path) -> None:
    words = ("--arm", "base", "--arm", "other: -- --seed 7 --step-ms 5")
    run = raced(tuilab, tmp_path, *words, code=1)

    assert verdicts(run) == ["INVALID"]
    assert "other learns something else than base" in run["claims"][0]["why"]
    assert verdicts(raced(tuilab, tmp_path, *words, "--different-learning")) == ["SUPPORTED"]


def test_where_nobody_has_set_a_seed_the_arms_are_held_against_the_chance_that_the_first_one_shows(
    tuilab: Tuilab, tmp_path: Path
) -> None:
    run = raced(tuilab, tmp_path, "--arm", "base", "--arm", "fast: -- --step-ms 5", command=("--seed", "-2"))

    assert verdicts(run) == ["SUPPORTED"]


def test_an_arm_that_fails_ends_the_race_and_is_named(tuilab: Tuilab, tmp_path: Path) -> None:
    run = raced(tuilab, tmp_path, "--arm", "base", "--arm", "bad: -- --code 3", code=4)

    assert run["state"] == "failed"
    assert run["reason"] == "arm bad: the command ended with exit code 3"


def test_an_arm_that_never_steps_says_what_was_seen(tuilab: Tuilab, tmp_path: Path) -> None:
    run = raced(tuilab, tmp_path, "--arm", "base", "--arm", "short: -- --steps 3", code=4)

    assert "arm short: " in run["reason"] and "too few to time one" in run["reason"]


def test_what_can_be_seen_is_told_before_it_starts(tuilab: Tuilab, tmp_path: Path) -> None:
    words = ["--arm", "base", "--arm", "other: A=1", "--repeat", "2", "--headless"]
    done = tuilab("ab", *words, "--", PYTHON, trainer(tmp_path), "--code", "0")

    again = tuilab("ab", *words, "--", PYTHON, trainer(tmp_path), "--code", "0")

    first, second, *_ = done.stderr.splitlines()
    assert first.startswith("tuilab: 2 repeats of 3 processes, base once more as its control: a difference of ")
    assert first.endswith("where a process is 10 % off by itself, as processes usually are")
    assert second == "tuilab: it takes 6 times as long as the command, which was not run here before"
    assert re.match(r"tuilab: it takes .* s: 6 times .* s, as the command took last time", again.stderr.splitlines()[1])


@pytest.mark.slow
def test_arms_that_are_the_same_are_never_said_to_be_faster(
    tuilab: Tuilab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for lot in range(20):
        monkeypatch.setenv("LOT", str(lot))
        words = ("--arm", "base", "--arm", "same: A=1", "--claim", "same 1.3x base", "--json")
        done = tuilab("ab", *words, "--", PYTHON, trainer(tmp_path), "--luck", "0.1")
        found += verdicts(json.loads(done.stdout)["runs"][0])

    assert len(found) == 20
    assert "SUPPORTED" not in found
