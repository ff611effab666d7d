"""What a run printed keeps its colours, and can do nothing else to the terminal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tui.screens import UNSAFE
from tuilab.tui.looks.sgr import coloured, uncoloured


def spans(*lines: str, style: str = "") -> list[list[tuple[str, str]]]:
    """Return the styled pieces of each line, with their styles."""
    return [
        [(line.plain[span.start : span.end], str(span.style)) for span in line.spans if span.style]
        for line in coloured(lines, style)
    ]


@pytest.mark.parametrize(
    ("text", "style"),
    [
        ("\x1b[31mloss\x1b[0m", "$text-error"),
        ("\x1b[1;32mloss\x1b[m", "bold $text-success"),
        ("\x1b[91mloss", "$text-error"),
        ("\x1b[38;5;196mloss", "$text-error"),
        ("\x1b[38;2;255;0;0mloss", "$text-error"),
        ("\x1b[38:5:10mloss", "$text-success"),
        ("\x1b[48;5;21;33mloss", "$text-warning"),
        ("\x1b[31;42mloss", "$text-error"),
        ("\x1b[31m\x1b[1mloss", "$text-error bold"),
    ],
)
def test_a_colour_becomes_the_nearest_one_of_the_theme(text: str, style: str) -> None:
    assert spans(text) == [[("loss", style)]]


def test_a_colour_lasts_over_lines_until_it_is_ended() -> None:
    assert spans("\x1b[31ma", "b\x1b[39mc", "d", style="x") == [
        [("a", "$text-error")],
        [("b", "$text-error"), ("c", "x")],
        [("d", "x")],
    ]


@pytest.mark.parametrize(
    "text",
    [
        "a\x1b[2Jb",
        "a\x1b]0;owned\x07b",
        "a\x1b]52;c;AAAA\x1b\\b",
        "a\x1b[10;10Hb",
        "a\x1bcb",
        "a\x1bP1$q\x1b\\b",
        "a\x1b(0b",
        "ab\x1b[1",
    ],
)
def test_every_other_sequence_is_taken_out(text: str) -> None:
    assert [line.plain for line in coloured([text])] == ["ab"]
    assert uncoloured(text) == "ab"


@given(st.text(alphabet=st.sampled_from("\x1b[]0138;:m\x07\\PX?ab\x9b\u202e")))
def test_nothing_that_steers_ever_passes(text: str) -> None:
    (line,) = coloured([text])

    assert UNSAFE.findall(line.plain + uncoloured(text).replace("\n", "")) == []


@given(st.lists(st.integers(0, 300), max_size=12))
def test_no_parameters_raise(numbers: list[int]) -> None:
    assert [line.plain for line in coloured([f"\x1b[{';'.join(map(str, numbers))}ma"])] == ["a"]
