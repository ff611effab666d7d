"""The scenarios about memory give the exact values that their lessons promise; timings are not judged here."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.lessons import claimed, reason_of, source_of
from tuilab.record.exact_claims import holds

Result = Callable[..., dict[str, Any]]

UNJUDGED = {
    "gpu",
    "large-time",
    "gpu-expandable",
    "gpu-peak",
    "slower",
    "small-time",
    "time",
}


def refuted(run: dict[str, Any]) -> set[str]:
    return {
        text
        for text, verdict in run["verdicts"].items()
        if verdict != "SUPPORTED" and text not in UNJUDGED and not text.startswith("gpu-")
    }


def why(run: dict[str, Any], key: str) -> str:
    """Return what was measured for the claim with this key."""
    (reason,) = [reason_of(claim) for claim in run["claims"] if claim["key"] == key]
    return str(reason)


def of_arms(run: dict[str, Any], name: str, meter: str) -> list[tuple[str, float]]:
    return [
        (memory["arm"], memory["values"][meter])
        for memory in run["memory"]
        if memory["name"] == name
    ]


# ---- ckpt-mlp


@pytest.mark.library
def test_the_second_cell_reads_30_34_mb_in_both_orders(result: Result) -> None:
    run = result("ckpt-mlp")

    assert refuted(run) == set()
    assert why(run, "alone") == "measured 19.67 and 19.67"
    assert why(run, "second-cell") == "measured 30.34 and 30.34"
    assert of_arms(run, "alone", "peak_bytes") == [("ckpt", 11_150_336), ("plain", 11_150_336)]
    assert of_arms(run, "alone", "live_bytes") == [("ckpt", 0), ("plain", 0)]
    assert of_arms(run, "alone", "saved_bytes") == [("ckpt", 7_864_320), ("plain", 7_864_320)]
    assert of_arms(run, "notebook", "peak_bytes") == [
        ("ckpt, plain", 21_817_344),
        ("plain, ckpt", 21_817_344),
    ]
    assert run["series"][0]["name"] == "live_bytes"


@pytest.mark.library
def test_a_tidy_notebook_reads_19_67_mb_in_both_orders(result: Result) -> None:
    run = result("ckpt-mlp", "--tidy")

    assert refuted(run) == {"second-cell", "excess"}
    assert why(run, "second-cell") == "measured 19.67 and 19.67, claimed 30.34 and 30.34"


@pytest.mark.library
def test_a_checkpoint_around_both_layers_has_something_to_drop(result: Result) -> None:
    run = result("ckpt-mlp", "--wrap", "middle")

    assert "saved-bytes" in refuted(run)
    assert of_arms(run, "alone", "saved_bytes") == [
        ("ckpt", 7_864_320 - 1024 * 256 * 4),
        ("plain", 7_864_320),
    ]


# ---- ckpt-segments


@pytest.mark.library
def test_segments_lower_the_peak_and_repeat_the_products(result: Result) -> None:
    run = result("ckpt-segments", "--blocks", "32", "--rows", "2048")

    saved = dict(of_arms(run, "step", "saved_bytes"))
    assert refuted(run) == set()
    assert why(run, "products-again") == "measured 60"
    assert why(run, "valley") == "measured 1.662"
    assert why(run, "batch-norm") == "measured 2"
    assert saved["0 segments"] == 96 * 2048 * 64 * 4
    assert saved["4 segments"] == 4 * 2048 * 64 * 4
    assert {arm: round(peak / 1e6, 1) for arm, peak in of_arms(run, "step", "peak_bytes")} == {
        "0 segments": 52.5,
        "1 segments": 52.0,
        "2 segments": 27.9,
        "4 segments": 16.0,
        "8 segments": 11.7,
        "16 segments": 12.7,
        "32 segments": 19.5,
    }


@pytest.mark.library
def test_dropout_is_drawn_again_as_it_was(result: Result) -> None:
    run = result("ckpt-segments", "--dropout", "0.1")

    assert run["verdicts"]["gradients"] == "SUPPORTED"


# ---- ckpt-targets


@pytest.mark.library
def test_a_gelu_with_the_linear_after_it_is_the_target_that_repeats_no_product(
    result: Result,
) -> None:
    run = result("ckpt-targets")

    saved = dict(of_arms(run, "step", "saved_bytes"))
    assert refuted(run) == set()
    assert why(run, "free") == "measured [0, 0, 8]"
    assert saved == {
        name: kept * 8 * 256 * 64 * 4
        for name, kept in [("none", 3), ("alone", 3), ("with-linear", 2), ("block", 1)]
    }


@pytest.mark.library
def test_a_checkpoint_around_a_relu_costs_memory(result: Result) -> None:
    run = result("ckpt-targets", "--activation", "relu")

    saved = dict(of_arms(run, "step", "saved_bytes"))
    assert (saved["none"], saved["alone"]) == (2 * 8 * 256 * 64 * 4, 3 * 8 * 256 * 64 * 4)


# ---- saved-tensors


@pytest.mark.library
def test_a_chain_keeps_the_input_of_the_square_and_the_output_of_the_sigmoid(
    result: Result,
) -> None:
    run = result("saved-tensors")

    assert refuted(run) == set()
    assert why(run, "kept") == "measured y p"
    assert why(run, "bytes") == "measured 8388608 B"
    assert of_arms(run, "chain", "saved_bytes") == [
        ("recorded", 8_388_608),
        ("checkpoint", 8_388_608),
        ("no gradient", 0),
    ]
    assert of_arms(run, "chain", "peak_bytes")[2] == ("no gradient", 12_582_912)


# ---- no-grad


@pytest.mark.library
def test_without_gradients_two_activations_live_of_24(result: Result) -> None:
    run = result("no-grad")

    assert refuted(run) == set()
    assert why(run, "kept") == "measured [24, 0]"
    assert why(run, "peak") == "measured [24, 2]"
    assert why(run, "losses") == "measured [96, 0]"
    assert of_arms(run, "forward", "peak_bytes") == [
        ("recorded", 24 * 262_144),
        ("no_grad", 2 * 262_144),
    ]


# ---- zero-grad


@pytest.mark.library
def test_none_releases_the_gradients_and_zeros_move_a_layer_out_of_use(result: Result) -> None:
    run = result("zero-grad")

    assert refuted(run) == set()
    assert why(run, "writes") == "measured [20, 0]"
    assert why(run, "released") == "measured [0, 660480] B"
    assert why(run, "peak") == "measured 660480 B"
    assert why(run, "none-stands") == "measured []"
    assert why(run, "buckets") == "measured [660480, 0] B"


# ---- grad-accum


@pytest.mark.library
def test_accumulated_gradients_are_those_of_the_whole_batch_but_behind_a_batch_norm(
    result: Result,
) -> None:
    run = result("grad-accum")

    peaks = {
        series["arm"]: series["last"] for series in run["series"] if series["name"] == "peak_bytes"
    }
    assert refuted(run) == set()
    assert peaks == {"divided": 123_904, "one backward": 1_101_312}
    assert why(run, "steps") == "measured [2, True]"


# ---- sdpa-backends


@pytest.mark.library
def test_fused_attention_keeps_four_rows_and_a_number_at_every_length(result: Result) -> None:
    run = result("sdpa-backends")

    kept = {
        series["arm"]: series["last"] for series in run["series"] if series["name"] == "kept_bytes"
    }
    assert refuted(run) == set()
    assert kept == {
        "written out": 4 * 1024 * 1216 * 4,
        "second": 4 * 1024 * 257 * 4,
        "math": 4 * 1024 * 1216 * 4,
    }


# ---- selective-ckpt


@pytest.mark.library
def test_a_policy_that_keeps_the_first_product_halves_what_a_block_holds(result: Result) -> None:
    run = result("selective-ckpt")

    peaks = {arm: round(peak / 1024, 1) for arm, peak in of_arms(run, "step", "peak_bytes")}
    assert refuted(run) == set()
    assert why(run, "cheap") == "measured [[0, 0], [8, 8], [8, 8], [8, 8]]"
    assert why(run, "first") == "measured 5"
    assert (peaks["full"], peaks["wrong name"]) == (1876.5, 1876.5)


# ---- prealloc

MIB = 1024 * 1024


def model_of_allocator(*, is_expandable: bool) -> Any:
    """Return a new model of the allocator of the scenario."""
    module = ModuleType("prealloc")
    exec(source_of("prealloc"), vars(module))
    return module.AllocatorModel(is_expandable)


@pytest.mark.library
def test_longest_batch_first_leaves_nothing_to_ask_for(result: Result) -> None:
    run = result("prealloc")

    reserved = {series["arm"]: series["last"] for series in run["series"]}
    assert refuted(run) == set()
    assert reserved["rising"] > 2 * reserved["rising, longest first"]
    assert reserved["rising"] > 2 * reserved["rising, expandable"]


@pytest.mark.library
@pytest.mark.parametrize(
    ("size", "reserved"),
    [
        (1, 2 * MIB),
        (MIB, 2 * MIB),
        (MIB + 1, 20 * MIB),
        (10 * MIB - 512, 20 * MIB),
        (10 * MIB, 10 * MIB),
        (11 * MIB, 12 * MIB),
    ],
)
def test_segment_of_the_model_has_the_size_of_torch(size: int, reserved: int) -> None:
    model = model_of_allocator(is_expandable=False)

    model.replay([(1, size)])

    assert model.reserved == reserved


@pytest.mark.library
def test_blocks_of_the_model_merge_inside_of_their_segment() -> None:
    model = model_of_allocator(is_expandable=False)

    model.replay([(1, 6 * MIB), (2, 6 * MIB), (3, 6 * MIB), (1, 0), (3, 0), (2, 0)])
    model.replay([(4, 20 * MIB)])

    assert (model.segments, model.reserved) == (1, 20 * MIB)


@pytest.mark.library
@pytest.mark.parametrize(("is_expandable", "reserved"), [(False, 48 * MIB), (True, 40 * MIB)])
def test_blocks_of_two_segments_merge_only_if_segments_expand(
    is_expandable: bool, reserved: int
) -> None:
    model = model_of_allocator(is_expandable=is_expandable)

    model.replay([(1, 12 * MIB), (2, 12 * MIB), (1, 0), (2, 0), (3, 24 * MIB)])

    assert model.reserved == reserved
    assert model.peak == 24 * MIB


# ---- linear-xent


@pytest.mark.library
def test_linear_xent_measures_the_loop_by_hand_if_torch_lacks_the_function(tmp_path: Path) -> None:
    source = source_of("linear-xent").replace('hasattr(nn, "LinearCrossEntropyOptions")', "False")

    claims = claimed(tmp_path, source.replace("F.linear_cross_entropy(", "F.missing("))

    assert claims.keys() == {"logits", "by-hand", "by-hand-peak", "by-hand-work"}
    assert all(map(holds, claims.values()))
