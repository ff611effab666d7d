"""What a call raises or warns of, as a lesson claims it."""

import gc
import warnings
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tuilab.errors import BoxLacks
from tuilab.lab.arms import ArmFailed
from tuilab.lab.lesson_helpers import raised_by, warned_by


class Odd(Exception):
    """Cannot be told."""

    def __str__(self) -> str:
        raise RuntimeError("no words for it")


def throw(problem: BaseException) -> None:
    raise problem


@pytest.fixture
def without_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize(
    ("problem", "told"),
    [
        (TypeError("first line\nsecond line"), "TypeError: first line"),
        (KeyError("item"), "KeyError: 'item'"),
        (ArmFailed("hang: timed out after 2 s"), "ArmFailed: hang: timed out after 2 s"),
        (ValueError(), "ValueError"),
        (ValueError("\n  \nin the second line"), "ValueError: in the second line"),
        (ValueError("caf\udce9"), "ValueError: caf\\udce9"),
        (Odd(), "Odd: (its text cannot be read: RuntimeError)"),
    ],
)
def test_what_a_call_raises_is_told_in_one_line(problem: Exception, told: str) -> None:
    assert raised_by(throw, (problem,)) == told


def test_what_a_call_held_is_gone_although_its_error_refers_to_itself(
    without_collector: None,
) -> None:
    held = []

    def hold() -> None:
        mine = Odd()
        held.append(weakref.ref(mine))
        problem = ValueError("as a DataLoader says again what a worker raised")
        raise problem

    raised_by(hold, ())

    assert [one() for one in held] == [None]


def test_a_call_that_raises_nothing_has_nothing_to_tell() -> None:
    assert raised_by(torch.add, (1, 2)) == ""


def test_shapes_that_do_not_fit_are_told_in_the_words_of_torch() -> None:
    told = raised_by(torch.add, (torch.ones(3, 2), torch.ones(3, 4)))

    assert told.startswith(
        "RuntimeError: The size of tensor a (2) must match the size of tensor b (4)"
    )


@pytest.mark.parametrize("problem", [KeyboardInterrupt(), SystemExit(3), BoxLacks("a second GPU")])
def test_what_ends_a_run_passes(problem: BaseException) -> None:
    for complaint in (raised_by, warned_by):
        with pytest.raises(type(problem)):
            complaint(throw, (problem,))


def test_every_warning_is_told_in_its_order_although_it_was_given_before() -> None:
    def warn() -> None:
        for text in ("one\nmore", "one\nmore", ""):
            warnings.warn(text, DeprecationWarning, stacklevel=1)

    assert (
        warned_by(warn, ())
        == warned_by(warn, ())
        == ["DeprecationWarning: one", "DeprecationWarning: one", "DeprecationWarning"]
    )


def test_torch_tells_again_what_it_tells_once_a_process() -> None:
    prediction, target = torch.ones(8, 1), torch.ones(8)
    stuck = torch.ones(2, requires_grad=True) * 2

    for _ in range(2):
        (told,) = warned_by(F.mse_loss, (prediction, target))
        assert told.startswith(
            "UserWarning: Using a target size (torch.Size([8])) that is different to the input size"
        )
        assert ["non-leaf" in one for one in warned_by(lambda: stuck.grad, ())] == [True]
    assert not torch.is_warn_always_enabled()


def test_what_a_call_raises_leaves_the_filters_as_they_were() -> None:
    before, always = list(warnings.filters), torch.is_warn_always_enabled()

    with pytest.raises(ValueError, match="mine"):
        warned_by(throw, (ValueError("mine"),))

    assert (warnings.filters, torch.is_warn_always_enabled()) == (before, always)


def test_a_call_is_made_once_with_its_arguments() -> None:
    seen: list[Any] = []

    assert (raised_by(seen.append, (1,)), warned_by(seen.append, (2,))) == ("", [])
    assert seen == [1, 2]
