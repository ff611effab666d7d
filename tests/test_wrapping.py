"""Lines of a width in cells, in which a wide character takes two."""

import textwrap

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tuilab.wrapping import cells, wrap

MIXED = st.text(alphabet="ab -，。（）数值稳定性é", max_size=60)


def test_a_wide_character_takes_two_cells() -> None:
    assert [cells(text) for text in ("abc", "数值", "é", "e\u0301", "（a）")] == [3, 4, 1, 1, 5]


def test_lines_end_between_wide_characters_and_not_before_a_mark() -> None:
    assert wrap("先减去最大的 logit，再取指数。", 12) == ["先减去最大的", "logit，再取", "指数。"]


def test_words_stay_whole_where_they_fit() -> None:
    assert wrap("原文的 torch.reduce_max 不存在", 16) == ["原文的", "torch.reduce_max", "不存在"]
    assert wrap("见 https://example.com/a-long-address", 12) == ["见", "https://exa", "mple.com/a-l", "ong-address"]
    assert wrap("见 https://example.com/a-long-address", 12, keeps_words=True) == ["见", "https://example.com/a-long-address"]


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
