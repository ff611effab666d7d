"""Lines of a width in cells, in which a wide character takes two."""

import re
import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.content import Content

from tests.made_runs import make_run, started
from tuilab.drawings.glyphs import Style
from tuilab.record import events
from tuilab.reports.reported_run import read_subject
from tuilab.reports.result_text import render
from tuilab.text.wrapping import cell_width, flow, wrap, wrap_indented
from tuilab.tui.looks.lesson_layout import wrap_lines

MIXED = st.text(alphabet="ab -，。（）数值稳定性é", max_size=60)


def test_a_wide_character_takes_two_cells() -> None:
    assert [cell_width(text) for text in ("abc", "数值", "é", "e\u0301", "（a）")] == [
        3,
        4,
        1,
        1,
        5,
    ]


def test_lines_end_between_wide_characters_and_not_before_a_mark() -> None:
    assert wrap("先减去最大的 logit，再取指数。", 12) == ["先减去最大的", "logit，再取", "指数。"]


def test_words_stay_whole_where_they_fit() -> None:
    assert wrap("原文的 torch.reduce_max 不存在", 16) == ["原文的", "torch.reduce_max", "不存在"]
    assert wrap("见 https://example.com/a-long-address", 12) == [
        "见",
        "https://exa",
        "mple.com/a-l",
        "ong-address",
    ]
    assert wrap("见 https://example.com/a-long-address", 12, keeps_words=True) == [
        "见",
        "https://example.com/a-long-address",
    ]


def test_a_blank_that_was_written_stays_and_one_that_a_line_end_stands_for_is_as_the_language_has_it() -> (
    None
):
    assert flow("y = 10^横坐标 时\n  还剩 ２５６ 行") == "y = 10^横坐标 时还剩 ２５６ 行"
    assert flow("가장 큰 값을\n먼저 뺀다") == "가장 큰 값을 먼저 뺀다"
    assert wrap("가장 큰 로짓을 먼저\n뺀다", 14) == ["가장 큰 로짓을", "먼저 뺀다"]


def test_a_mark_above_or_below_takes_no_cell_and_stays_with_its_character() -> None:
    assert cell_width("ภาษาที่นี่") == 6
    assert wrap("数值\u0301" * 3, 4) == ["数值\u0301"] * 3


@pytest.mark.parametrize(
    "text", ["it takes 5 % of 16 KiB in 4.0 s", "es dauert – 5 % von 16 KiB in 250 µs"]
)
def test_no_line_ends_between_a_number_and_its_unit(text: str) -> None:
    for width in range(10, 40):
        lines = [*wrap(text, width), *(line.plain for line in wrap_lines(Content(text), width))]

        assert "\xa0" not in "".join(lines)
        assert [line for line in lines if re.match(r"(%|KiB|s|µs)( |$)", line)] == []


def test_no_line_begins_with_blanks_however_many_stood_where_the_one_before_ends() -> None:
    text = "✓ succeeded  4 ✓  in 7.7 s"

    assert [
        line for width in range(8, 26) for line in wrap(text, width) if line != line.strip()
    ] == []
    assert [
        line
        for width in range(8, 26)
        for line in wrap_lines(Content(text), width)
        if line.plain[:1] == " "
    ] == []


def test_where_there_is_no_room_a_line_has_one_cell() -> None:
    assert [[line.plain for line in wrap_lines(Content(text), 0)] for text in ("ab", "数值")] == [
        ["a", "b"],
        ["数", "值"],
    ]


def test_a_line_that_stands_in_hangs_two_cells_further_in() -> None:
    assert wrap_indented("  a delay of 5 % of all that is there", 24) == [
        "  a delay of 5 % of all",
        "    that is there",
    ]


def test_lines_after_the_first_hang() -> None:
    assert wrap("- 朴素写法得到 nan", 10, hang="  ") == ["- 朴素写法", "  得到 nan"]


@given(MIXED, st.integers(6, 30))
def test_no_line_is_wider_than_it_may_be_and_nothing_is_lost(text: str, width: int) -> None:
    lines = wrap(text, width)

    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(cell_len(line) <= width for line in lines)


@given(st.text(alphabet="ab -c,.", max_size=60), st.integers(6, 30))
def test_plain_text_is_wrapped_as_ever(text: str, width: int) -> None:
    assert wrap(text, width, hang="  ") == textwrap.wrap(text, width, subsequent_indent="  ")


def test_a_text_of_a_run_is_folded_by_cells_and_keeps_its_blanks(tmp_path: Path) -> None:
    run_dir = make_run(
        tmp_path, started(), events.TextShown(text="宽" * 100 + "\n  列    二", title="表")
    )
    summary, style = read_subject(run_dir).summary, Style(has_colour=False, is_utf8=True)
    said = render(summary, "succeeded", run_dir, style, 80, has_chart=False)

    assert "  " + "宽" * 39 + "\n" in said
    assert "\n    列    二\n" in said
    assert max(cell_width(line) for line in said.splitlines() if "宽" in line) == 80
