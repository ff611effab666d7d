"""The scenarios about cores and nodes give the exact values that their lessons promise; timings are not judged here."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.lessons import check_values, reason_of, source_of

Result = Callable[..., dict[str, Any]]

THREADS = "one-thread"
PAGES = "pages"
IN_LIBIOMP = {"iomp", "both", "settings", "blocktime", "affinity"}

can_bind = (
    shutil.which("numactl") is not None
    and subprocess.run(["numactl", "--membind=0", "true"]).returncode == 0
)
several_cores = pytest.mark.skipif(len(os.sched_getaffinity(0)) == 1, reason="needs a second core")


def evidence(run: dict[str, Any]) -> dict[str, str]:
    return {claim["key"]: reason_of(claim) for claim in run["claims"]}


def refuted_by(mistakes: dict[str, str], lesson: str, folder: Path, result: Result) -> set[str]:
    """Return which claims are REFUTED in a copy of a lesson with mistakes; one that starts processes is run as a user does."""
    source = source_of(lesson)
    for right, wrong in mistakes.items():
        assert right in source
        source = source.replace(right, wrong)
    copy = folder / f"{lesson}-wrong.py"
    copy.write_text(source)
    run = result(str(copy), "--repeat", "1")
    assert run["state"] == "succeeded", run["reason"]
    return {
        claim["key"]
        for claim in run["claims"]
        if claim["verdict"] == "REFUTED" and claim["measured"]
    }


def arms_of(run: dict[str, Any], name: str) -> set[str]:
    return {series["arm"] for series in run["series"] if series["name"] == name}


@pytest.mark.library
def test_process_takes_all_cores_and_a_rank_one_thread(as_it_comes: Result) -> None:
    run = as_it_comes("omp-threads")

    why = evidence(run)
    assert (why["one-thread"], why["torchrun"]) == ("measured 1", "measured 1")
    if len(os.sched_getaffinity(0)) > 1:
        assert why["too-late"] == "measured [[1, 1], [2, 1]]"
    assert run["verdicts"]["by-hand"] == "SUPPORTED"
    assert arms_of(run, "gflop_per_s") == {"OMP_NUM_THREADS=1", "not set"}
    assert arms_of(run, "matmul_ms") == {"one thread", "all threads"}


@pytest.mark.library
@several_cores
def test_torch_that_ignores_the_variable_refutes_the_claims_about_it(
    result: Result, tmp_path: Path
) -> None:
    mistakes = {
        '{"OMP_NUM_THREADS": str(threads)}': '{"OMP_NUM_THREAD": str(threads)}',
        'os.environ["OMP_NUM_THREADS"]': 'os.environ["OMP_NUM_THREAD"]',
        "change_the_variable, env=variable": 'change_the_variable, prefix=["env"], env=variable',
    }

    assert refuted_by(mistakes, "omp-threads", tmp_path, result) == {"one-thread", "too-late"}


@pytest.mark.library
def test_ranks_end_with_their_race() -> None:
    lesson: dict[str, Any] = {"__name__": "rank-threads"}
    exec(source_of("rank-threads"), lesson)
    before = set(psutil.Process().children())
    with lesson["start_ranks"](2, 8) as make_step:
        assert make_step(1)[1] == 2

    assert set(psutil.Process().children()) <= before


@pytest.mark.library
def test_binding_leaves_all_loader_workers_one_core_and_the_list_of_the_source_hangs(
    as_it_comes: Result,
) -> None:
    run = as_it_comes("omp-bind")

    assert evidence(run)["schedule"] == "measured 0"
    assert run["verdicts"]["hang"] == "SUPPORTED"
    bound = "SUPPORTED" if len(os.sched_getaffinity(0)) > 1 else "NOT TESTABLE HERE"
    assert (run["verdicts"]["proc-bind"], run["verdicts"]["main"]) == (bound, bound)
    assert arms_of(run, "cores") == {"free", "bound"}


@pytest.mark.library
def test_a_bound_process_has_one_thread_on_one_core_and_its_pages_on_one_node(
    as_it_comes: Result,
) -> None:
    run = as_it_comes("numa")

    assert evidence(run)[THREADS] == "measured 1"
    assert run["verdicts"]["one-core"] == "SUPPORTED"
    assert run["verdicts"]["first-touch"] == "SUPPORTED"
    assert run["verdicts"][PAGES] == ("SUPPORTED" if can_bind else "NOT TESTABLE HERE")
    assert arms_of(run, "cores_busy") == {"free", "bound"}
    (in_memory,) = [
        series["last"] for series in run["series"] if series["name"] == "in_memory_percent"
    ]
    assert in_memory == 100


@pytest.mark.library
def test_other_malloc_variables_refute_the_claims_about_page_faults(
    result: Result, tmp_path: Path
) -> None:
    mistakes = {
        '"glibc learns": {}': '"glibc learns": {"MALLOC_TOP_PAD_": "0"}',
        '{"MALLOC_MMAP_THRESHOLD_": "131072"}': "{}",
        'HEAP = {"MALLOC_MMAP_MAX_": "0", ': "HEAP = {",
    }

    assert refuted_by(mistakes, "malloc", tmp_path, result) == {"fixed", "learned", "heap", "kept"}


@pytest.mark.library
@several_cores
def test_variables_that_libgomp_reads_refute_the_claims_about_kmp(
    result: Result, tmp_path: Path
) -> None:
    mistakes = {
        '"KMP_BLOCKTIME": str(blocktime), "KMP_AFFINITY": affinity': (
            '"OMP_WAIT_POLICY": "passive", "OMP_PROC_BIND": "close"'
        ),
        '"library": library_of("GOMP_parallel")': '"library": library_of("dladdr")',
        "free_cores > 1.8": "free_cores",  # threads that sleep need no free core
    }

    refuted = refuted_by(mistakes, "iomp", tmp_path, result)
    assert refuted - IN_LIBIOMP == {"own", "no-kmp", "no-affinity"}


@pytest.mark.library
def test_where_no_tool_binds_a_process_that_is_what_the_box_lacks(
    tmp_path: Path, result: Result
) -> None:
    copy = tmp_path / "numa.py"
    copy.write_text(
        source_of("numa")
        .replace('which("numactl")', 'which("-")')
        .replace('["taskset"', '["no-such-tool"')
    )

    verdicts = result(str(copy), "--quick")["verdicts"]

    assert (verdicts[THREADS], verdicts["one-core"], verdicts["first-touch"]) == (
        "NOT TESTABLE HERE",
    ) * 2 + ("SUPPORTED",)


@pytest.mark.library
@several_cores
def test_launcher_claims_fail_with_other_cores_and_tools(result: Result, tmp_path: Path) -> None:
    mistakes = {
        "[*prefix, *LAUNCHER, ": '[*prefix, *LAUNCHER, *(["--core-list=1"] if prefix else []), ',
        '"1,0,0,0",': '"1,1,0,0",',
        '"numactl": "': '"missing": "',
        'OMP_NUM_THREADS="3"': "TERM='dumb'",
        'f"{library}.2"': "library",
        ' -m ': ' -i ',
    }  # fmt: skip

    refuted = refuted_by(mistakes, "run-cpu", tmp_path, result)
    assert refuted - {"memory"} == {"taskset", "limits", "set-before", "debian", "siblings"}
    assert "memory" in refuted or not can_bind


@pytest.mark.library
def test_lookups_have_no_flops_and_a_gradient_as_large_as_their_tables(tmp_path: Path) -> None:
    check_values(tmp_path, "embedding-bound", {"no-flops": 0, "dense": 16 * 50_000 * 32 * 4})


@pytest.mark.library
def test_ranks_on_cpus_hand_over_the_bytes_of_their_parameters(tmp_path: Path) -> None:
    check_values(
        tmp_path,
        "cpu-ddp",
        {"same-start": [True, True], "bytes": [4 * (64 * 64 + 64 + 64 + 1)] * 4},
    )
