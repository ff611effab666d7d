"""The parameters of a scenario: what a user types becomes a value or a sentence that helps."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuilab.catalogue.params import (
    check_values,
    default_overrides,
    describe,
    parse,
    spell,
    with_comment,
)
from tuilab.catalogue.scenario import Param
from tuilab.errors import UsageError

ROWS = Param("rows", "int", 500, low=1, high=10000, quick=100)
RATE = Param("lr", "float", 0.001, low=1e-6, high=1)
AMP = Param("amp", "bool", True)
NOTE = Param("note", "str", "")
DEVICE = Param("device", "choice", "auto", choices=("auto", "cpu", "cuda"))
ALL = (ROWS, RATE, AMP, NOTE, DEVICE)


def complaint(param: Param, text: str) -> str:
    with pytest.raises(UsageError) as caught:
        parse(param, text)
    return str(caught.value)


@pytest.mark.parametrize(
    ("param", "text", "value"),
    [
        (ROWS, "5", 5),
        (ROWS, " +5 ", 5),
        (ROWS._replace(low=-9), "-3", -3),
        (RATE, "1e-3", 0.001),
        (RATE, "1", 1.0),
        (RATE, ".5", 0.5),
        (RATE, "1.", 1.0),
        (AMP, "true", True),
        (AMP, "Yes", True),
        (AMP, "on", True),
        (AMP, "1", True),
        (AMP, "FALSE", False),
        (AMP, "no", False),
        (AMP, "off", False),
        (AMP, "0", False),
        (NOTE, " as it is ", " as it is "),
        (DEVICE, "cpu", "cpu"),
        (DEVICE, "cuda:0", "cuda:0"),
        (DEVICE, " cuda:13 ", "cuda:13"),
        (Param("size", "choice", 32, choices=(32, 64)), "64", 64),
    ],
)
def test_text_becomes_a_value_of_the_parameters_type(
    param: Param, text: str, value: object
) -> None:
    parsed = parse(param, text)

    assert (parsed, type(parsed)) == (value, type(value))


@pytest.mark.parametrize(
    "text",
    ["", "abc", "1_000", "1e3", "5.0", "0x10", "５", "--5", "nan", "9" * 19, "9" * 5000, "1\n2"],
)
def test_a_whole_number_is_written_in_plain_digits(text: str) -> None:
    assert "is not a whole number; it takes 1..10000 (default 500)" in complaint(ROWS, text)


@pytest.mark.parametrize(
    "text", ["", "nan", "inf", "-inf", "Infinity", "1_0.0", "1e999", "0x1p3", "1,5", "."]
)
def test_a_number_is_finite_and_plain(text: str) -> None:
    assert "is not a number; it takes 1e-06..1 (default 0.001)" in complaint(RATE, text)


def test_the_complaint_names_the_parameter_what_it_takes_and_the_default() -> None:
    assert (
        complaint(ROWS, "abc")
        == 'rows: "abc" is not a whole number; it takes 1..10000 (default 500)'
    )
    assert (
        complaint(ROWS, "20000") == "rows: 20000 is out of range; it takes 1..10000 (default 500)"
    )
    assert (
        complaint(DEVICE, "gpu")
        == 'device: "gpu" is not one of auto, cpu, cuda, cuda:N (default auto)'
    )
    assert complaint(AMP, "maybe") == (
        'amp: "maybe" is not true or false; it takes true, yes, on, 1 or false, no, off, 0 (default true)'
    )


@pytest.mark.parametrize(
    "text",
    ["cuda:", "cuda:x", "cuda:-1", "cuda:03", "cuda:٣", "cuda:1,2", "cuda:N", "mps", "cuda:99999"],
)
def test_a_gpu_is_named_by_its_number(text: str) -> None:
    assert (
        complaint(DEVICE, text)
        == f'device: "{text}" is not one of auto, cpu, cuda, cuda:N (default auto)'
    )


@pytest.mark.parametrize("text", ["MIG-3f2a", "GPU-3f2a"])
def test_who_gives_the_name_of_a_gpu_or_of_a_slice_is_told_where_it_belongs(text: str) -> None:
    assert complaint(DEVICE, text).endswith(
        "(default auto); to choose a GPU by its UUID, set CUDA_VISIBLE_DEVICES"
    )


@pytest.mark.parametrize(
    "param",
    [
        DEVICE._replace(name="kind"),
        DEVICE._replace(choices=("auto", "cpu")),
        NOTE._replace(name="device"),
    ],
)
def test_only_a_device_that_may_be_cuda_takes_a_gpu(param: Param) -> None:
    assert "cuda:N" not in describe(param)
    assert param.type == "str" or "is not one of" in complaint(param, "cuda:1")


def test_a_hostile_value_is_shown_harmless_and_short() -> None:
    said = complaint(ROWS, "\x1b[2J" + "x" * 10_000)

    assert "\x1b" not in said
    assert len(said) < 200


@pytest.mark.parametrize("text", ["a\0b", "\ud800", "x" * 1001])
def test_text_that_cannot_be_recorded_is_refused(text: str) -> None:
    assert "is not text; it takes up to 1000 characters (default empty)" in complaint(NOTE, text)


@given(st.sampled_from(ALL), st.text() | st.integers().map(str) | st.floats().map(str))
def test_any_text_is_a_value_in_range_or_a_usage_error(param: Param, text: str) -> None:
    try:
        value = parse(param, text)
    except UsageError as problem:
        assert str(problem).startswith(f"{param.name}: ")
        return

    assert type(value).__name__ == {"choice": "str"}.get(param.type, param.type)
    assert isinstance(value, str) or math.isfinite(value)
    assert (
        param.low is None
        or param.high is None
        or isinstance(value, str)
        or param.low <= value <= param.high
    )


@given(st.integers(-(2**63) + 1, 2**63 - 1))
def test_every_whole_number_of_64_bits_comes_back(number: int) -> None:
    assert parse(Param("n", "int", 0), str(number)) == number


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_number_comes_back(number: float) -> None:
    assert parse(Param("x", "float", 0.0), repr(number)) == number


def test_values_are_completed_with_the_defaults() -> None:
    values = check_values(ALL, {"rows": "7", "amp": False})

    assert values == {"rows": 7, "lr": 0.001, "amp": False, "note": "", "device": "auto"}


def test_values_that_are_no_text_are_checked_as_well() -> None:
    with pytest.raises(UsageError, match="rows: 0 is out of range"):
        check_values(ALL, {"rows": 0})
    with pytest.raises(UsageError, match=r'rows: "5\.5" is not a whole number'):
        check_values(ALL, {"rows": 5.5})
    with pytest.raises(UsageError, match='lr: "nan" is not a number'):
        check_values(ALL, {"lr": math.nan})


def test_an_unknown_parameter_gets_a_suggestion() -> None:
    with pytest.raises(UsageError) as caught:
        check_values(ALL, {"row": "5"})

    assert str(caught.value) == "no parameter row; did you mean rows?"


def test_a_parameter_like_no_other_gets_the_list() -> None:
    with pytest.raises(UsageError) as caught:
        check_values(ALL, {"zzz": "5"})

    assert str(caught.value) == "no parameter zzz; there are rows, lr, amp, note, device"


def test_quick_values_stand_in_for_defaults_only() -> None:
    assert default_overrides(ALL) == {}
    assert default_overrides(ALL, is_quick=True) == {"rows": 100}
    assert check_values(ALL, {**default_overrides(ALL, is_quick=True), "rows": 3})["rows"] == 3


def test_the_device_that_the_user_has_set_stands_in_for_the_default_where_a_scenario_can_take_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TUILAB_DEVICE", "cuda:3")
    assert default_overrides(ALL) == {"device": "cuda:3"}
    assert check_values(ALL, {**default_overrides(ALL), "device": "auto"})["device"] == "auto"
    assert default_overrides([DEVICE._replace(choices=("auto", "cpu"))]) == {}

    monkeypatch.setenv("TUILAB_DEVICE", "GPU-1")
    with pytest.raises(UsageError) as caught:
        default_overrides(ALL)
    assert str(caught.value) == (
        "TUILAB_DEVICE is GPU-1; it takes auto, cpu, cuda or a GPU such as cuda:3; "
        "to choose a GPU by its UUID, set CUDA_VISIBLE_DEVICES"
    )


def test_a_phrase_says_what_a_parameter_takes() -> None:
    assert [describe(param) for param in ALL] == [
        "a whole number, 1..10000",
        "a number, 1e-06..1",
        "true or false",
        "text",
        "one of auto, cpu, cuda, cuda:N",
    ]


@pytest.mark.parametrize(
    ("comment", "label", "low", "high", "quick"),
    [
        (
            "# operator calls in the loop, 1..10000 (quick 100)",
            "operator calls in the loop",
            1,
            10000,
            100,
        ),
        ("# operator calls in the loop, 1..10000", "operator calls in the loop", 1, 10000, None),
        ("# operator calls in the loop (quick 100)", "operator calls in the loop", None, None, 100),
        ("#operator   calls", "operator calls", None, None, None),
        ("# 1..10000", "", 1, 10000, None),
        ("# calls (one for each row), -5..1e4", "calls (one for each row)", -5, 10000, None),
        ("", "", None, None, None),
    ],
)
def test_a_comment_is_label_range_and_quick_value(
    comment: str, label: str, low: float | None, high: float | None, quick: int | None
) -> None:
    param = with_comment(Param("rows", "int", 500), comment)

    assert (param.label, param.low, param.high, param.quick) == (label, low, high, quick)


def test_numbers_of_a_range_may_have_points_and_exponents() -> None:
    param = with_comment(Param("lr", "float", 1), "# learning rate, 1e-6..2.5 (quick 0.1)")

    assert (param.low, param.high, param.quick, param.default) == (1e-6, 2.5, 0.1, 1.0)


@pytest.mark.parametrize(
    "comment", ["# 1..10", "# 600..1", "# 1..1000 (quick 5000)", "# calls (quick many)"]
)
def test_a_default_or_quick_value_that_breaks_its_own_rule_is_refused(comment: str) -> None:
    with pytest.raises(UsageError):
        with_comment(Param("rows", "int", 500), comment)


def test_values_are_spelled_as_a_user_types_them() -> None:
    assert [spell(value) for value in (True, 5.0, 1e-6, 1e300, "x", None)] == [
        "true",
        "5",
        "1e-06",
        "1e+300",
        "x",
        "",
    ]
