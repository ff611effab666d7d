"""The scenarios about cores and nodes give the exact values that their lessons promise; timings are not judged here."""

import os
import shutil
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

Result = Callable[..., dict[str, Any]]

SCHEDULE = "schedule"
WORKER = "proc-bind"
HANG = "hang"
THREADS = "one-thread"
PAGES = "pages"

can_bind = shutil.which("numactl") is not None and subprocess.run(["numactl", "--membind=0", "true"]).returncode == 0
several_cores = pytest.mark.skipif(len(os.sched_getaffinity(0)) == 1, reason="needs a second core")


def evidence(run: dict[str, Any]) -> dict[str, str]:
    return {claim["key"]: claim["why"] for claim in run["claims"]}


def arms_of(run: dict[str, Any], name: str) -> set[str]:
    return {series["arm"] for series in run["series"] if series["name"] == name}


@pytest.mark.library
def test_openmp_switches_pin_hang_or_do_nothing(result: Result) -> None:
    run = result("openmp")

    why = evidence(run)
    assert run["state"] == "succeeded"
    assert why[SCHEDULE] == "measured 0"
    assert why["one-thread"] == "measured 1"
    assert why[WORKER] == "measured 1"
    assert run["verdicts"][HANG] == "SUPPORTED"
    assert arms_of(run, "gflop_per_s") == {"one thread", "bound"}


@pytest.mark.library
@several_cores
def test_openmp_without_binding_and_with_a_real_list_of_cores_is_harmless(result: Result) -> None:
    run = result("openmp", "--bind", "false", "--cores", "0", "--patience", "20")

    assert run["verdicts"][WORKER] == "REFUTED"
    assert run["verdicts"][HANG] == "REFUTED"


@pytest.mark.library
def test_a_bound_process_has_one_thread_on_one_core_and_its_pages_on_one_node(result: Result) -> None:
    run = result("numa")

    assert run["state"] == "succeeded"
    assert evidence(run)[THREADS] == "measured 1"
    assert run["verdicts"]["one-core"] == "SUPPORTED"
    assert run["verdicts"][PAGES] == ("SUPPORTED" if can_bind else "NOT TESTABLE HERE")
    assert arms_of(run, "cores_busy") == {"free", "bound"}


@pytest.mark.library
@several_cores
def test_an_unbound_process_takes_every_core(result: Result) -> None:
    run = result("numa", "--bind", "none")

    assert run["verdicts"][THREADS] == "REFUTED"
    assert run["verdicts"][PAGES] == ("REFUTED" if can_bind else "NOT TESTABLE HERE")
