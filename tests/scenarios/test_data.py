"""The scenarios about loading data give the exact values that their lessons promise; timings are not judged here."""

import runpy
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.lessons import check_values, reason_of

Result = Callable[..., dict[str, Any]]

SLOW = "slow-items"


def evidence(run: dict[str, Any]) -> dict[str, str]:
    return {claim["key"]: reason_of(claim) for claim in run["claims"]}


def arms_of(run: dict[str, Any], name: str) -> set[str]:
    return {series["arm"] for series in run["series"] if series["name"] == name}


@pytest.mark.library
def test_n_workers_are_n_processes_and_every_item_comes_once(result: Result) -> None:
    run = result("loader-workers")

    why = evidence(run)
    assert run["state"] == "succeeded"
    assert why["processes"] == "measured [0, 2, 4]"
    assert run["verdicts"]["order"] == "SUPPORTED"
    assert run["verdicts"]["in-turn"] == "SUPPORTED"
    assert (
        arms_of(run, "wait_ms")
        == arms_of(run, "batches_ready")
        == {"0 workers", "2 workers", "4 workers"}
    )


@pytest.mark.library
def test_one_batch_keeps_one_worker_busy_and_free_items_leave_nothing_to_hide(
    result: Result,
) -> None:
    run = result("loader-workers", "--batch", "16", "--item-ms", "0")

    why = evidence(run)
    assert why["processes"] == "measured [0, 1, 1], claimed [0, 2, 4]"
    assert run["verdicts"][SLOW] != "SUPPORTED"
    assert run["exit_code"] == 1


@pytest.mark.library
def test_a_worker_uses_shared_memory_and_the_loader_pins_only_for_a_gpu(result: Result) -> None:
    run = result("pin-memory")

    assert run["state"] == "succeeded"
    assert evidence(run)["shared"] == "measured [False, True]"
    assert run["verdicts"]["loader-pins"] == "SUPPORTED"
    assert arms_of(run, "gb_per_s") >= {"staged", "direct", "in pieces"}


@pytest.mark.library
def test_the_loader_finds_a_tensor_in_containers_and_passes_by_a_dataclass(result: Result) -> None:
    run = result("pin-custom")

    why = evidence(run)
    assert why["found"] == "all 5 hold"
    assert (why["not-found"], why["returned"]) == ("measured False", "holds")
    assert why["set"] == "measured False"
    assert why["nested"] == "measured [False, True]"
    assert run["verdicts"]["without-method"] in ("NOT TESTABLE HERE", "SUPPORTED")


@pytest.mark.library
def test_a_forked_worker_inherits_all_and_the_hang_and_the_others_nothing(
    as_it_comes: Result,
) -> None:
    run = as_it_comes("loader-start")

    why = evidence(run)
    assert (
        why["memory"] == 'measured ["of the parent", "of the file", "of the file", "of the file"]'
    )
    assert why["file"] == "measured [False, True, True, True]"
    assert why["lock"] == "measured [True, False, False, False]"
    assert why["lambda"] == "measured [False, True, True]"
    assert run["verdicts"]["private"] == "SUPPORTED"
    assert why["hang"] in ("measured [True, False]", "GNU OpenMP (libgomp) in torch")


@pytest.mark.library
def test_a_run_on_the_cpu_pins_nothing_for_the_gpu_of_the_box(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To pin takes memory of the GPU, for a context; others may have all of it."""
    import torch

    from tests.engine import read_stream
    from tuilab.catalogue import catalog
    from tuilab.engine import messages
    from tuilab.engine.spawn import socket_pair
    from tuilab.lab.lab import Lab
    from tuilab.record import events
    from tuilab.record.journal.writer import Writer

    (scenario,) = [found.path for found in catalog.load() if found.id == "pin-memory"]
    shutil.copy(scenario, tmp_path / "scenario.py")
    journal = Writer(tmp_path / "worker-0.jsonl")
    order = messages.WorkerOrder(
        run_dir=str(tmp_path), writer="worker-0", source_dir=str(tmp_path), quick=True
    )
    before = torch.get_num_threads()
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(
        torch.Tensor, "pin_memory", lambda *given: pytest.fail("CUDA was asked to pin")
    )

    ours, theirs = socket_pair()
    with ours, theirs:
        runpy.run_path(str(tmp_path / "scenario.py"))["run"](
            Lab(journal, tmp_path, messages.WorkerLine(ours), order, "cpu"), mb=1
        )
    journal.close()
    torch.set_num_threads(before)

    untested = [
        item
        for item in read_stream(tmp_path / "worker-0.jsonl")
        if isinstance(item, events.ClaimNotTestable)
    ]
    assert [(claim.key, claim.needs) for claim in untested] == [
        ("loader-pins", "leave to use the GPU"),
        ("grid", "leave to use the GPU"),
        ("thread", "a CUDA device"),
        ("pageable", "a CUDA device"),
        ("figure", "a CUDA device"),
    ]


# ---- what every epoch begins with


@pytest.mark.library
def test_new_workers_start_with_every_epoch_and_persistent_ones_keep_their_dataset(
    tmp_path: Path,
) -> None:
    check_values(
        tmp_path,
        "loader-persist",
        {
            "started": [6, 2],
            "left": [0, 2],
            "stale": [[0, 1, 2], [0, 0, 0]],
            "shared": [[0, 1, 2], [0, 1, 2]],
            "cache": [48, 16],
            "look": [2, 0],
            "init": [[0, 0, 0, 1, 1, 1], [0, 1], []],
            "refused": ["ValueError", "ValueError"],
            "ahead": [3, 5, 9],
        },
    )


# ---- who decides what comes when


@pytest.mark.library
def test_the_number_of_workers_leaves_the_first_order_as_it_is_and_not_what_items_draw(
    tmp_path: Path,
) -> None:
    check_values(
        tmp_path,
        "sampler-order",
        {
            "one-order": 1,
            "second": [False, True],
            "own": [1, 1],
            "drawn": [3, True],
            "main": [True, 4],
            "numpy": 32,
            "set-epoch": [1, 3],
            "refused": ["ValueError"] * 4,
        },
    )


# ---- what a worker drops


@pytest.mark.library
def test_every_worker_drops_a_last_batch_of_its_own(tmp_path: Path) -> None:
    check_values(
        tmp_path,
        "iterable-droplast",
        {
            "stream": [60, 60, 40],
            "map": [60, 60, 60],
            "batches": [60, 60, 60],
            "never": [24, 0],
            "nothing": 0,
            "small": [[1, 2, 4], [64, 64, 64]],
            "length": [6, 7, 4, 8],
        },
    )


# ---- a stream and its workers


@pytest.mark.library
def test_every_worker_reads_the_whole_stream_until_they_share_it_out(tmp_path: Path) -> None:
    check_values(
        tmp_path,
        "tar-dupes",
        {
            "copies": [64, 64, 128, 256],
            "again": True,
            "once": [True, True, True],
            "init-fn": [True, True, True, True],
            "bytes": 64 * 2048,
            "printed": "AttributeError",
            "mismatch": ["ValueError", "ValueError", True],
        },
    )


# ---- what an item raises


@pytest.mark.library
def test_a_worker_sends_an_error_as_text_and_a_stop_ends_the_epoch(tmp_path: Path) -> None:
    check_values(
        tmp_path,
        "map-dataset-bugs",
        {
            "index": 1.0,
            "bugs": ["TypeError", "TypeError", "TypeError", "NotImplementedError", "NameError"],
            "glob": [0, 0, "ValueError"],
            "collate": ["TypeError", "RuntimeError"],
            "message": [False, True],
            "frames": [True, False],
            "class": ["KeyError", "RuntimeError"],
            "stop": 8,
        },
    )
