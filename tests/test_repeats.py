"""Repeats, budgets and races between processes: how a run measures times, without judging any."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.engine import look, newest, write_scenario

Tuilab = Callable[..., "CompletedProcess[str]"]

TIMED = """
lab.claim_ratio("slow-is-slower", "slow/fast", at_least=2)
lab.race(slow=lambda: sum(range(20000)), fast=lambda: sum(range(200)), seconds=0.05)
"""
ARMS = """
def step(lab, seconds):
    return seconds
"""
APART = """
lab.claim_ratio("two-is-slower", "two/one", at_least=1.5)
lab.race(one=lab.arm("one", step, 0.5), two=lab.arm("two", step, 1.0))
"""


@pytest.mark.slow
def test_claims_about_time_get_six_processes(tuilab: Tuilab, root: Path, tmp_path: Path) -> None:
    tuilab("run", str(write_scenario(tmp_path, TIMED)), "--detach")
    usual = look(newest(root) or root).summary.run
    tuilab("stop", "last", "--now")

    assert usual is not None and usual.repeats == 6


@pytest.mark.slow
@pytest.mark.real_torch
def test_quick_gets_one_process_and_a_busy_box_makes_no_parallel_claim(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    """With less than 64 cores free the parallel claim is inconclusive, whatever the times say."""
    body = f'lab.claim_ratio("in-parallel", "slow/fast", at_least=2, cores=64)\n{TIMED}'

    tuilab(
        "run",
        str(write_scenario(tmp_path, body)),
        "--headless",
        "--quiet",
        "--quick",
        env={"OMP_NUM_THREADS": "1"},
    )

    summary = look(newest(root) or root).summary
    assert summary.run is not None and summary.run.repeats == 1
    assert len({writer for writer, _ in summary.blocks}) == 1
    assert "within one process" in str(summary.claims["slow-is-slower"].verdict)
    verdict = summary.claims["in-parallel"].verdict
    assert verdict is not None
    assert (summary.cores[64][0] < 51.2) == (verdict.verdict == "INCONCLUSIVE")


def test_without_claims_about_time_one_process_is_enough(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    tuilab(
        "run",
        str(write_scenario(tmp_path, 'lab.claim("one-is-one", True)')),
        "--headless",
        "--quiet",
    )

    run = look(newest(root) or root).summary.run
    assert run is not None and run.repeats == 1


@pytest.mark.slow
@pytest.mark.real_torch
def test_a_budget_that_is_spent_ends_the_run_in_order(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    done = tuilab(
        "run", str(write_scenario(tmp_path, TIMED)), "--headless", "--quiet", "--budget", "1s"
    )

    summary = look(newest(root) or root).summary
    assert summary.run is not None and summary.run.looks == [6, 8, 12, 16, 24, 40]
    assert summary.state == "succeeded"
    assert re.fullmatch(
        r"the budget of 1 s is spent after (1 repeat|(?!1 )\d+ repeats)", summary.reason
    )
    assert summary.is_budget_spent
    assert "the budget of 1 s is spent" in done.stdout


def test_a_wrong_budget_is_one_sentence(tuilab: Tuilab, tmp_path: Path) -> None:
    done = tuilab("run", str(write_scenario(tmp_path, TIMED)), "--budget", "soon")

    assert done.returncode == 2
    assert "use for example 90s, 2m or 1.5h" in done.stderr


@pytest.mark.slow
def test_arms_in_processes_of_their_own_alternate_from_repeat_to_repeat(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    done = tuilab(
        "run", str(write_scenario(tmp_path, APART, ARMS)), "--json", "--quiet", "--repeat", "2"
    )

    summary = look(newest(root) or root).summary
    order = [
        worker.started.arm
        for worker in summary.workers.values()
        if worker.started and worker.started.arm
    ]
    (run,) = json.loads(done.stdout)["runs"]
    assert order == ["one", "two", "two", "one", "one"]  # the first one once more, as a control
    assert sorted(race["arm"] for race in run["races"]) == ["one", "one", "two", "two"]
    assert {race["arm"]: race["step_s"] for race in run["races"]} == {"one": [0.5], "two": [1.0]}


@pytest.mark.slow
@pytest.mark.parametrize("seconds", ["float('nan')", "float('inf')", "0.0", "-1"])
def test_an_arm_that_returns_no_time_is_refused(
    tuilab: Tuilab, root: Path, tmp_path: Path, seconds: str
) -> None:
    tuilab(
        "run",
        str(write_scenario(tmp_path, APART.replace("1.0", seconds), ARMS)),
        "--headless",
        "--quiet",
        "--repeat",
        "1",
    )

    summary = look(newest(root) or root).summary
    assert re.fullmatch(
        "ValueError: the arm two returned .* seconds for a step; return the time of one step, from 1e-9 on",
        summary.reason,
    )
    assert not summary.damage.is_any


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("options", "repeats"), [([], 6), (["--budget", "10m"], 40)], ids=["alone", "with a budget"]
)
def test_a_run_that_times_nothing_is_over_after_its_first_repeat(
    tuilab: Tuilab, root: Path, tmp_path: Path, options: list[str], repeats: int
) -> None:
    """The box lacks what the claim about time needs, and a part of the scenario is exact."""
    body = 'lab.claim("it-is-so", True)\nlab.claim_ratio("slow-is-slower", "slow/fast", at_least=2, lacks="a GPU")'

    done = tuilab(
        "run",
        str(write_scenario(tmp_path, body)),
        "--headless",
        "--report",
        "-",
        "--quiet",
        *options,
    )

    summary = look(newest(root) or root).summary
    assert summary.run is not None and summary.run.repeats == repeats
    assert list(summary.workers) == ["worker-0"]
    assert (summary.state, summary.reason) == (
        "succeeded",
        "nothing was timed: one repeat is enough",
    )
    assert (summary.is_untimed, summary.planned_repeats) == (True, 1)
    assert tuilab("verify", "last").stdout.endswith("\ncomplete and unchanged\n")
    assert (
        done.returncode == 0
        and f"of {repeats}" not in done.stdout
        and "--repeat" not in done.stdout
    )


@pytest.mark.parametrize(
    "claim",
    ["", 'lab.claim_ratio("is-slower", "slow/fast", at_least=2)'],
    ids=["exact", "about time"],
)
def test_a_run_that_lacks_what_it_needs_ends_with_that(
    tuilab: Tuilab, root: Path, tmp_path: Path, claim: str
) -> None:
    body = (
        f'from tuilab.errors import BoxLacks\n{claim}\nraise BoxLacks("a GPU with wings is needed")'
    )

    done = tuilab("run", str(write_scenario(tmp_path, body)), "--headless")

    summary = look(newest(root) or root).summary
    assert (summary.state, summary.reason) == (
        "succeeded",
        "not testable here: a GPU with wings is needed",
    )
    assert done.returncode == 3 and done.stdout.count("a GPU with wings is needed") == 1
    assert "nothing was timed" not in done.stdout + done.stderr


def test_repeats_that_were_asked_for_are_run_though_nothing_is_timed(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    body = 'lab.claim_ratio("slow-is-slower", "slow/fast", at_least=2, lacks="a GPU")'

    tuilab("run", str(write_scenario(tmp_path, body)), "--headless", "--quiet", "--repeat", "2")

    summary = look(newest(root) or root).summary
    assert len(summary.finished_repeats()) == 2
    assert (summary.reason, summary.is_untimed) == ("", False)
