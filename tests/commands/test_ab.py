"""`tuilab ab`: arms of a command, raced in fresh processes, from the command line to the verdict."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from tests.commands.fake_trainer import write_trainer
from tests.report_aids import find_misfits
from tuilab.cli.schemas import schema_of

PYTHON = (
    sys.executable
)  # a `python3` of the path may be a script that looks for one, and takes as long again
Tuilab = Callable[..., CompletedProcess[str]]


def raced(
    tuilab: Tuilab, folder: Path, *words: str, command: tuple[str, ...] = (), code: int = 0
) -> dict[str, Any]:
    """Race arms of the made-up trainer and return the result."""
    done = tuilab("ab", *words, "--json", "--", PYTHON, write_trainer(folder), *command)
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


@pytest.mark.slow
def test_where_nobody_has_set_a_seed_the_arms_are_held_against_the_chance_that_the_first_one_shows(
    tuilab: Tuilab, tmp_path: Path
) -> None:
    run = raced(
        tuilab, tmp_path, "--arm", "base", "--arm", "fast: -- --step-ms 5", command=("--seed", "-2")
    )

    assert verdicts(run) == ["SUPPORTED"]


def test_an_arm_that_fails_ends_the_race_and_is_named(tuilab: Tuilab, tmp_path: Path) -> None:
    run = raced(tuilab, tmp_path, "--arm", "base", "--arm", "bad: -- --code 3", code=4)

    assert run["state"] == "failed"
    assert run["reason"] == "arm bad: the command ended with exit code 3"


def test_an_arm_that_never_steps_says_what_was_seen(tuilab: Tuilab, tmp_path: Path) -> None:
    run = raced(tuilab, tmp_path, "--arm", "base", "--arm", "short: -- --steps 3", code=4)

    assert "arm short: " in run["reason"] and "too few to time a step" in run["reason"]


@pytest.mark.slow
def test_what_can_be_seen_is_told_before_it_starts(tuilab: Tuilab, tmp_path: Path) -> None:
    words = ["--arm", "base", "--arm", "other: A=1", "--headless"]
    command = ("--", PYTHON, write_trainer(tmp_path), "--code", "0")
    done = tuilab("ab", *words, *command)

    again = tuilab("ab", *words, *command, env={"FAILS_AFTER": "0"})  # when it is told

    first, second, *_ = done.stderr.splitlines()
    assert first == (
        "tuilab: 6 repeats of 3 processes (base runs twice, as the A/A control): "
        "a difference of 28 % is detected four times in five, "
        "if processes vary by 10 % (the usual value)"
    )
    assert (
        second
        == "tuilab: takes 18 times as long as the command (duration unknown: it has not run here before)"
    )
    assert re.match(
        r"tuilab: takes about .* s: 18 times .* s, the time of the command last time",
        again.stderr.splitlines()[1],
    )


def test_too_few_repeats_and_what_was_never_measured_are_not_foretold(
    tuilab: Tuilab, tmp_path: Path
) -> None:
    words = ["--arm", "base", "--arm", "other: A=1", "--headless"]
    few = tuilab("ab", *words, "--repeat", "1", "--", PYTHON, write_trainer(tmp_path))
    memory = tuilab(
        "ab", *words, "--measure", "memory", "--detach", "--", PYTHON, write_trainer(tmp_path)
    )

    assert (
        "1 repeat of 3 processes (base runs twice, as the A/A control): too few for verdicts, which need 6\n"
        in few.stderr
    )
    assert "the smallest detectable difference is unknown before the run" in memory.stderr
    assert "1 repeat is too few, 6 are needed" in " ".join(few.stdout.split())


@pytest.mark.slow
def test_equal_arms_come_out_as_no_meaningful_difference(tuilab: Tuilab, tmp_path: Path) -> None:
    words = ("--arm", "base", "--arm", "same: A=1", "--claim", "same 1.3x base")
    run = raced(tuilab, tmp_path, *words, command=("--luck", "0.003"), code=1)

    assert verdicts(run) == ["NO MEANINGFUL DIFFERENCE"]


def test_the_result_has_a_table_of_the_arms_and_no_word_of_the_control(
    tuilab: Tuilab, tmp_path: Path
) -> None:
    words = ("--arm", "base", "--arm", "slow: -- --step-ms 20", "--repeat", "2", "--headless")
    done = tuilab("ab", *words, "--", PYTHON, write_trainer(tmp_path))

    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["median", "of", "2", "processes", "an", "arm"] in lines
    assert ["a", "step", "10", "ms", "20", "ms"] in lines
    assert [
        "steps",
        "that",
        "count",
        "49",
        "49",
    ] in lines  # of 59 that have a beginning and an end; the first ten are not
    assert ["waits", "for", "data", "2", "ms", "4", "ms"] in lines
    assert ["forward", "+", "rest", "4", "ms", "8", "ms"] in lines
    assert not re.search(r"base again\b", done.stdout)


def test_steps_that_do_other_work_say_so_beside_each_other(tuilab: Tuilab, tmp_path: Path) -> None:
    run = raced(
        tuilab, tmp_path, "--arm", "base", "--arm", "more: -- --backwards 2", "--repeat", "1"
    )

    assert ["backwards a step", "1", "2"] in run["tables"][0]["rows"]


def test_every_view_says_what_the_arms_are_and_the_table_holds_them_against_each_other_as_the_verdict_does(
    tuilab: Tuilab, tmp_path: Path
) -> None:
    run = raced(
        tuilab, tmp_path, "--arm", "base", "--arm", "slow: A=1 -- --step-ms 15", "--repeat", "2"
    )
    row = next(row for row in run["tables"][0]["rows"] if row[0] == "base/arm, mean of repeats")
    pages = [tuilab("report", "last", "-o", "-", "--as", form).stdout for form in ("md", "html")]

    assert row[1] == "1"
    assert float(row[2]) == pytest.approx(run["claims"][0]["estimate"], rel=0.01)
    assert (
        "\n  base: as it is\n  slow: A=1 -- --step-ms 15\n"
        in tuilab("attach", "last", "--headless").stdout
    )
    assert "- base: as it is\n- slow: A=1 -- --step-ms 15\n" in pages[0]
    assert "<code>slow: A=1 -- --step-ms 15</code>" in pages[1]


def test_what_is_the_same_in_every_process_is_exact(tuilab: Tuilab, tmp_path: Path) -> None:
    words = ("--measure", "acc", "--metric", "acc=acc ([0-9.]+)")
    run = raced(
        tuilab,
        tmp_path,
        "--arm",
        "base",
        "--arm",
        "more: -- --acc 0.75",
        "--claim",
        "base 1.4x more",
        *words,
    )

    assert (run["claims"][0]["verdict"], run["claims"][0]["estimate"], run["claims"][0]["low"]) == (
        "SUPPORTED",
        1.5,
        1.5,
    )
    assert run["races"][0]["step_s"] == []
    assert run["races"][0]["measured"] == {"name": "last acc", "unit": "", "values": [0.5]}
    assert (
        ",timed,last acc,base,worker-0,0,"
        in tuilab("report", "last", "-o", "-", "--as", "csv").stdout
    )
    described = json.loads(schema_of("tuilab.report/2"))
    assert (
        find_misfits(
            json.loads(tuilab("report", "last", "-o", "-", "--as", "json").stdout),
            described,
            described,
        )
        == []
    )


@pytest.mark.slow
def test_an_arm_that_fails_later_leaves_what_was_measured_and_says_which_it_was(
    tuilab: Tuilab, tmp_path: Path
) -> None:
    words = ("--arm", "base", "--arm", "bad: FAILS_AFTER=2", "--headless")
    done = tuilab("ab", *words, "--", PYTHON, write_trainer(tmp_path), "--luck", "0.01")

    assert done.returncode == 4
    assert "RuntimeError: the disk is gone\n" in done.stdout
    assert f"hint: this was arm bad: FAILS_AFTER=2 {PYTHON} {tmp_path}/train.py" in done.stdout
    assert "median of 2 processes an arm" in done.stdout


def test_a_command_that_fails_without_a_traceback_is_quoted(tuilab: Tuilab, tmp_path: Path) -> None:
    done = tuilab(
        "ab",
        "--arm",
        "base",
        "--arm",
        "b: A=1",
        "--headless",
        "--",
        PYTHON,
        str(tmp_path / "nothere.py"),
    )

    assert done.returncode == 4
    assert re.search(
        r"failed: arm (base|b): the command ended with exit code 2; its last line: .*can't open file",
        done.stdout,
    )


@pytest.mark.slow
def test_arms_that_are_the_same_are_never_said_to_be_faster(
    tuilab: Tuilab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for lot in range(20):
        monkeypatch.setenv("LOT", str(lot))
        words = ("--arm", "base", "--arm", "same: A=1", "--claim", "same 1.3x base", "--json")
        done = tuilab("ab", *words, "--", PYTHON, write_trainer(tmp_path), "--luck", "0.1")
        found += verdicts(json.loads(done.stdout)["runs"][0])

    assert len(found) == 20
    assert "SUPPORTED" not in found
