"""The cell differences: whatever was on the terminal, after a frame it shows that frame, and nothing but cells was sent."""

import re
from pathlib import Path

import pyte
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style
from textual.scrollbar import ScrollBarRender

from tuilab.tui.terminal.frames import Frames

STYLES = [
    None,
    *map(
        Style.parse,
        ("red", "bold #123456 on #654321", "reverse", "on blue", "default on default", "underline"),
    ),
]
TEXTS = st.text(alphabet="ab ─█⣿漢字é", min_size=0, max_size=12)
SENT = re.compile(r"(\x1b\[[0-9;]*m|\x1b\[[0-9]+;[0-9]+H|[^\x00-\x1f\x7f-\x9f])*")


def line(width: int, parts: list[tuple[str, Style | None]]) -> list[Segment]:
    """Return a line of exactly `width` cells."""
    segments: list[Segment] = []
    for text, style in parts:
        room = width - sum(Segment(s.text).cell_length for s in segments)
        while Segment(text).cell_length > room:
            text = text[:-1]
        segments.append(Segment(text, style))
    return [*segments, Segment(" " * (width - sum(s.cell_length for s in segments)))]


frames_of = st.lists(
    st.lists(
        st.lists(st.tuples(TEXTS, st.sampled_from(STYLES)), max_size=4), min_size=4, max_size=4
    ),
    min_size=1,
)


def whole(lines: list[list[Segment]]) -> str:
    return Frames(ColorSystem.TRUECOLOR).difference(lines)


def shown(screen: pyte.Screen) -> list[list[tuple[object, ...]]]:
    return [[look(screen.buffer[y][x]) for x in range(screen.columns)] for y in range(screen.lines)]


def look(cell: pyte.screens.Char) -> tuple[object, ...]:
    """Return what is seen of a cell: of a blank one its ground."""
    is_plain = cell.data == " " and not (cell.underscore or cell.strikethrough or cell.reverse)
    return (cell.data, cell.bg) if is_plain else tuple(cell)[:8]


@settings(max_examples=40)
@given(frames_of)
def test_differences_lead_to_the_same_screen_as_whole_frames(
    described: list[list[list[tuple[str, Style | None]]]],
) -> None:
    frames = Frames(ColorSystem.TRUECOLOR)
    screen = pyte.Screen(20, 4)
    stream = pyte.Stream(screen)
    for parts in described:
        lines = [line(20, row) for row in parts]
        stream.feed(frames.difference(lines))
        fresh = pyte.Screen(20, 4)
        pyte.Stream(fresh).feed(whole(lines))

        assert shown(screen) == shown(fresh)


@pytest.mark.parametrize(
    ("before", "after", "sent"),
    [
        ("bold red", "red", "22"),
        ("red", "bold red", "1"),
        ("bold dim red", "dim red", "22;2"),
        ("reverse underline", "underline blue", "27;34"),
        ("bold red on blue", "bold red on green", "42"),
        ("bold", "underline", "0;4"),
        ("bold red", "none", "0"),
    ],
)
def test_of_a_pen_only_what_changes_is_sent(before: str, after: str, sent: str) -> None:
    drawn = whole([[Segment("a", Style.parse(before)), Segment("b", Style.parse(after))]])

    assert f"a\x1b[{sent}mb" in drawn


def test_a_blank_has_no_colour_of_its_own_but_its_ground() -> None:
    parts = [
        Segment("a", Style.parse("red on blue")),
        Segment("  ", Style.parse("green on blue")),
        Segment(" ", None),
    ]

    assert whole([parts]) == "\x1b[1;1H\x1b[0;31;44ma  \x1b[39;49m \x1b[0m"


def test_the_same_frame_again_sends_nothing() -> None:
    frames = Frames(ColorSystem.TRUECOLOR)
    frames.difference([line(20, [("loss 0.5", STYLES[1])])])

    assert frames.difference([line(20, [("loss 0.5", STYLES[1])])]) == ""


def test_a_line_that_is_not_told_stays() -> None:
    frames = Frames(ColorSystem.TRUECOLOR)
    frames.difference([line(4, [("ab", None)]), line(4, [("cd", None)])])

    assert frames.change([(0, 1, line(4, [("ce", None)]))]) == "\x1b[2;2H\x1b[0me\x1b[0m"
    assert frames.change([(0, 0, line(4, [("ab", None)]))]) == ""


def test_what_stands_beside_a_part_of_a_line_stays() -> None:
    frames = Frames(ColorSystem.TRUECOLOR)
    frames.difference([line(6, [("abcdef", None)])])

    assert frames.change([(2, 0, [Segment("xd")])]) == "\x1b[1;3H\x1b[0mx\x1b[0m"
    assert frames.difference([line(6, [("abxdef", None)])]) == ""


def test_one_changed_cell_costs_a_move_a_pen_and_the_cell() -> None:
    frames = Frames(ColorSystem.TRUECOLOR)
    frames.difference([line(20, [("loss 0.5", STYLES[1])])])

    assert frames.difference([line(20, [("loss 0.4", STYLES[1])])]) == "\x1b[1;8H\x1b[0;31m4\x1b[0m"


@given(st.text(max_size=30))
def test_no_control_character_is_ever_sent(text: str) -> None:
    sent = whole([[Segment(text + "\x1b]0;owned\x07\x9b31m", Style(link="https://x"))]])

    assert SENT.fullmatch(sent), repr(sent)


def test_what_is_drawn_on_white_with_16_colours_is_neither_yellow_nor_white() -> None:
    of_light_theme = [
        Style.parse(f"{colour} on #fafafa") for colour in ("#8a5a00", "#cfd5e2", "#b3213c")
    ]
    sent = Frames(ColorSystem.STANDARD).difference(
        [line(3, [("x", style) for style in of_light_theme])]
    )

    assert re.findall(r"[\[;](3\d|9\d)(?=[;m])", sent) == ["30", "90", "31"]


def test_without_colours_only_attributes_are_sent() -> None:
    assert (
        Frames(None).difference([line(4, [("ab", Style.parse("bold red on blue"))])])
        == "\x1b[1;1H\x1b[0;1mab  \x1b[0m"
    )


def test_a_terminal_without_utf8_gets_ascii_of_the_same_width() -> None:
    sent = Frames(None, is_utf8=False).difference([line(12, [("┌─█▸…漢é", None)])])

    assert sent == "\x1b[1;1H\x1b[0m+-#>~???    \x1b[0m"


def test_in_ascii_degrees_are_a_blank() -> None:
    assert "61  C" in Frames(None, is_utf8=False).difference([line(5, [("61 °C", None)])])


def test_in_ascii_nothing_that_the_screens_draw_becomes_a_question_mark() -> None:
    drawn = {*ScrollBarRender.VERTICAL_BARS, *ScrollBarRender.HORIZONTAL_BARS}
    for golden in (Path(__file__).parent / "goldens").glob("*.txt"):
        drawn |= {sign for sign in golden.read_text() if not sign.isascii() and not sign.isalpha()}
    drawn = {sign for sign in drawn if not "\u2800" <= sign <= "\u28ff"} - {"\ufffd"}

    frames = Frames(None, is_utf8=False)
    assert [
        sign for sign in sorted(drawn) if "?" in frames.difference([line(3, [(f"a{sign}", None)])])
    ] == []


def test_after_a_character_of_doubtful_width_the_place_is_told_again() -> None:
    sent = whole([line(6, [("☕ab", None)])])

    assert sent == "\x1b[1;1H\x1b[0m☕\x1b[1;3Hab  \x1b[0m"


def test_near_changes_are_joined_and_far_ones_are_not() -> None:
    frames = Frames(ColorSystem.TRUECOLOR)
    frames.difference([line(20, [("a" * 20, None)])])

    sent = frames.difference([line(20, [("baabaaaaaaaaaaaaaaab", None)])])

    assert sent == "\x1b[1;1H\x1b[0mbaab\x1b[15Cb\x1b[0m"


def test_what_one_pen_draws_is_drawn_before_the_next_one_is_taken() -> None:
    frame, words = Style.parse("blue"), Style.parse("red")
    sent = whole([[Segment("│", frame), Segment("ab  ", words), Segment("│", frame)]] * 2)

    assert (
        sent
        == "\x1b[1;1H\x1b[0;34m│\x1b[4C│\x1b[2;1H│\x1b[4C│\x1b[1;2H\x1b[31mab  \x1b[2;2Hab  \x1b[0m"
    )
