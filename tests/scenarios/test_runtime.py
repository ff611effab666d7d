"""The scenarios about the runtime count what their lessons promise; timings are not judged here."""

from pathlib import Path

import pytest

from tests.lessons import check_values

# ---- op-overhead


@pytest.mark.library
def test_pieces_pay_by_the_call_and_a_formula_by_its_operators(tmp_path: Path) -> None:
    values = {
        "pieces": [1025, 1],
        "same-bytes": [2**18] * 2,
        "views": [[1, 0]] * 5,
        "rows": [127, 0],
        "one-call": [1, True],
        "nodes": [0, 2, 0],
    }
    check_values(tmp_path, "op-overhead", values)


# ---- batch-gather


@pytest.mark.library
def test_a_loop_over_rows_reads_each_index_back(tmp_path: Path) -> None:
    check_values(
        tmp_path,
        "batch-gather",
        {"loop": 257, "script": 193, "reads": [64, 0, 0, 0, 0], "negative": [True] * 2},
    )


# ---- fuse-optimizer


@pytest.mark.library
def test_fused_is_one_operator_and_needs_nothing_in_between(tmp_path: Path) -> None:
    check_values(tmp_path, "fuse-optimizer", {"fused": [1, True], "fused-peak": 0, "default": True})


# ---- fuse-pointwise


@pytest.mark.library
def test_a_script_calls_and_keeps_what_it_was_written_from(tmp_path: Path) -> None:
    check_values(
        tmp_path, "fuse-pointwise", {"written-out": [5, 3], "script": [5, 3], "library": [1, 1]}
    )


# ---- graph-breaks


@pytest.mark.library
def test_what_needs_a_number_ends_a_graph(tmp_path: Path) -> None:
    check_values(
        tmp_path,
        "graph-breaks",
        {"prints": [2] * 4, "broken": [2] * 3, "mended": [1] * 3, "loop": [1, 0], "explain": 3},
    )


# ---- compile-modes


@pytest.mark.library
def test_the_second_size_makes_a_graph_for_all_others(tmp_path: Path) -> None:
    values = {
        "epochs": 2,
        "automatic": 2,
        "symbols": 1,
        "limit": 8,
        "limits": [8, 256],
        "raised": 12,
        "accumulated": 5,
        "states": [1, 2, 3, 3, 3, 3],
    }
    check_values(tmp_path, "compile-modes", values)
