"""The scenarios about the GPU give the exact values that their lessons promise, as far as a CPU shows them."""

from pathlib import Path

import pytest

from tests.lessons import check_values


@pytest.mark.library
def test_a_step_waits_six_times_and_a_mended_loop_when_it_reads(tmp_path: Path) -> None:
    values = {
        "read": [1] * 9,
        "blind": [0, 0, 0],
        "meta": ["print"],
        "free": [],
        "copy": [1, 1, 0, 0],
        "step": 6,
        "epoch": [600, 5],
        "detached": 0,
    }

    check_values(tmp_path, "sync-count", values)


@pytest.mark.library
def test_moved_tensors_cost_host_memory_and_made_ones_none(tmp_path: Path) -> None:
    values = {
        "operators": [2, 1],
        "host": [4_000_000, 0],
        "mask": [2_097_152, 0],
        "model": [[9, 19_752], [0, 0]],
        "checkpoint": 0,
        "like": [[1, 0]] * 3,
        "draws": [True, False],
        "forgotten": ["RuntimeError", ""],
    }

    check_values(tmp_path, "create-on-device", values)


@pytest.mark.library
def test_last_batch_adds_a_shape_and_im2col_has_other_bits(tmp_path: Path) -> None:
    check_values(tmp_path, "conv-algos", {"off": False, "shapes": 5, "bits": True})


@pytest.mark.library
def test_a_replay_sees_what_is_written_and_not_what_is_assigned(tmp_path: Path) -> None:
    values = {
        "assigned": 0,
        "copied": 20,
        "python": 0,
        "result": 1,
        "number": False,
        "weights": [True, False],
    }

    check_values(tmp_path, "cuda-graphs", values | {"dropout": False, "shape": ["RuntimeError", 1]})
