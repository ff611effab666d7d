"""The scenarios about numerical stability give the exact values that their lessons promise."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.lessons import reason_of

Result = Callable[..., dict[str, Any]]


def evidence(run: dict[str, Any]) -> list[str]:
    """What was measured for each claim, in order."""
    return [reason_of(claim) for claim in run["claims"]]


def refuted(run: dict[str, Any]) -> list[str]:
    return [text for text, verdict in run["verdicts"].items() if verdict != "SUPPORTED"]


def not_finite(run: dict[str, Any], name: str) -> dict[str, int]:
    """How many values of a series are no numbers, by arm."""
    return {
        series["arm"]: series["not_finite"] for series in run["series"] if series["name"] == name
    }


@pytest.mark.library
def test_xyy_finds_the_range_of_every_dtype(result: Result) -> None:
    run = result("xyy")

    assert run["exit_code"] == 0
    assert refuted(run) == []
    assert evidence(run)[:6] == [
        "measured [0, inf, nan, nan]",
        "measured 1.401e-45 and 3.403e+38",
        "measured [-45, 38, 84, 7]",
        "measured [-40, 38, 79, 12]",
        "measured [-7, 4, 12, 79]",
        "measured [inf, inf]",
    ]
    assert (
        not_finite(run, "xyy")
        == not_finite(run, "digits")
        == {"float32": 7, "bfloat16": 12, "float16": 79}
    )


@pytest.mark.library
def test_without_subnormals_the_range_of_float32_and_bfloat16_ends_at_1e_minus_37(
    result: Result,
) -> None:
    run = result("xyy", "--flush", "--device", "cpu")

    assert run["exit_code"] == 1
    assert refuted(run) == [
        "range",
        "f32",
        "bf16",
        "last-decade",
    ]
    assert not_finite(run, "digits") == {"float32": 15, "bfloat16": 15, "float16": 79}


@pytest.mark.library
def test_the_naive_softmax_ends_at_the_logarithm_of_the_largest_number(result: Result) -> None:
    run = result("softmax")

    limits = {
        claim["key"]: claim["estimate"]
        for claim in run["claims"]
        if claim["key"].startswith("limit")
    }
    assert run["exit_code"] == 0
    assert refuted(run) == []
    assert limits == pytest.approx(
        {"limit-f32": 88.7228, "limit-bf16": 88.5, "limit-f16": 11.0859}, abs=0.0001
    )
    assert evidence(run)[:2] == ["measured [nan, 0]", "measured [1, 0]"]
    assert not_finite(run, "total") == {
        "float32": 12,
        "bfloat16": 12,
        "float16": 89,
        "stable float16": 0,
    }


@pytest.mark.library
def test_a_thousand_tied_logits_lower_the_limits_by_ln_1000(result: Result) -> None:
    run = result("softmax", "--tied", "1000")

    limits = [claim["estimate"] for claim in run["claims"] if claim["key"].startswith("limit")]
    assert refuted(run) == [
        "limit-f32",
        "limit-bf16",
        "limit-f16",
    ]
    assert limits == pytest.approx([81.815, 81.5, 4.18], abs=0.001)


@pytest.mark.library
def test_the_naive_cross_entropy_is_inf_and_the_stable_one_500(result: Result) -> None:
    run = result("xent")

    assert run["exit_code"] == 0
    assert refuted(run) == []
    (gap,) = [claim["estimate"] for claim in run["claims"] if claim["key"] == "cross-entropy"]
    assert gap < 1e-5
    assert [
        why
        for claim, why in zip(run["claims"], evidence(run), strict=True)
        if claim["key"] != "cross-entropy"
    ] == [
        "measured inf",
        "measured 500",
        "measured 0.5 and -0.5",
        "measured [nan, nan]",
        "measured nan",
        "measured 10.0001",
        "measured RuntimeError",
        "measured 104",
        "measured 90",
    ]
    assert not_finite(run, "loss") == {"naive": 17, "stable": 0}
    assert not_finite(run, "gradient") == {"naive": 31, "stable": 0}


@pytest.mark.library
def test_with_the_dimension_kept_both_batches_of_the_source_come_out_right(result: Result) -> None:
    run = result("xent", "--keepdim")

    assert refuted(run) == ["square-batch", "other-batch"]
    assert "measured 0.693193, claimed 10.0001 ± 0.0001" in evidence(run)


@pytest.mark.library
def test_in_float16_the_naive_cross_entropy_fails_from_a_logit_of_18_on(result: Result) -> None:
    run = result("xent", "--dtype", "float16")

    assert refuted(run) == [
        "loss-limit",
        "gradient-limit",
    ]
    assert evidence(run)[-2:] == ["measured 18, claimed 104", "measured 12, claimed 90"]


@pytest.mark.library
def test_in_bfloat16_the_naive_cross_entropy_fails_from_a_logit_of_93_on(result: Result) -> None:
    run = result("xent", "--dtype", "bfloat16")

    assert refuted(run) == ["loss-limit"]
    assert evidence(run)[-2] == "measured 93, claimed 104"
