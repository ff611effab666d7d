"""Text from a run is made harmless before it is shown."""

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuilab.text.display import (
    brief_beside,
    has_colour,
    join_first,
    percent,
    plural,
    show,
    show_lines,
)


def test_what_could_steer_a_terminal_is_replaced() -> None:
    hostile = "\x1b[2Jred\x07 \x9b31m \u202eevil\u2028 \x7f \ud800"

    assert show(hostile) == "\ufffd[2Jred\ufffd \ufffd31m \ufffdevil\ufffd \ufffd \ufffd"


def test_ordinary_text_is_left_alone() -> None:
    assert show("softmax 88.72 — naïve, 数値 ✓ [/foo]") == "softmax 88.72 — naïve, 数値 ✓ [/foo]"


def test_line_breaks_stay_only_where_lines_are_asked_for() -> None:
    assert show_lines("a\r\nb\tc") == "a\nb\tc"
    assert show("a\r\nb\tc") == "a b c"


def test_a_long_name_is_cut() -> None:
    assert show("x" * 50, limit=10) == "x" * 9 + "…"


@pytest.mark.parametrize(
    ("variables", "why"),
    [
        ({"LANG": "en_US.UTF-8"}, ""),
        ({"LC_CTYPE": "C.UTF-8"}, ""),
        ({"LANG": "C"}, "the locale (C) is not UTF-8"),
        ({"LANG": "POSIX"}, "the locale (POSIX) is not UTF-8"),
        ({}, "the locale (not set) is not UTF-8"),
        ({"LANG": "C.UTF-8", "LC_ALL": "C"}, "the locale (C) is not UTF-8"),
        ({"LANG": "C.UTF-8", "TERM": "linux"}, "TERM=linux has no glyphs for more"),
        ({"LANG": "C.UTF-8", "TERM": "vt100"}, "TERM=vt100 has no glyphs for more"),
        ({"LANG": "C.UTF-8", "TERM": "vt220-8bit"}, "TERM=vt220-8bit has no glyphs for more"),
        ({"LANG": "C.UTF-8", "TERM": "xterm"}, ""),
    ],
)
def test_a_terminal_shows_ascii_alone_where_its_locale_or_its_kind_says_so(
    variables: dict[str, str], why: str
) -> None:
    """Asked in a process of its own: in a C locale Python gives itself a locale with UTF-8 before anybody can ask."""
    command = [
        sys.executable,
        "-c",
        "from tuilab.text.display import why_ascii; print(why_ascii())",
    ]
    done = subprocess.run(
        command,
        env={"PYTHONPATH": os.pathsep.join(sys.path), **variables},
        capture_output=True,
        text=True,
    )

    assert (done.stdout, done.stderr) == (f"{why}\n", "")


@given(st.text())
def test_nothing_unsafe_ever_passes(text: str) -> None:
    shown = show(text)

    assert not [c for c in shown if ord(c) < 32 or 127 <= ord(c) < 160 or 0xD800 <= ord(c) < 0xE000]
    shown.encode("utf-8")


def test_counts_have_their_plural() -> None:
    assert [plural(0, "run"), plural(1, "run"), plural(2, "process", "processes")] == [
        "0 runs",
        "1 run",
        "2 processes",
    ]


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0.0051, "0.51 %"),
        (-0.034, "-3.4 %"),
        (0.16, "16 %"),
        (0.996, "100 %"),
        (2.5, "250 %"),
        (0.0, "0 %"),
    ],
)
def test_a_share_is_told_in_two_digits_or_whole_percent(share: float, words: str) -> None:
    assert percent(share) == words


def test_an_end_of_an_interval_has_the_digits_that_tell_it_from_the_bound() -> None:
    """1.298 stays short of a claimed 1.3, which 1.3 would not say."""
    ends = [1.29838951, 1.3004, 1.3, 1.25]

    assert [brief_beside(1.3, end) for end in ends] == ["1.298", "1.3004", "1.3", "1.25"]
    assert [brief_beside(1.0, 0.9996), brief_beside(1000, 1000.2), brief_beside(2, 1234.5)] == [
        "0.9996",
        "1000.2",
        "1234",
    ]


def test_a_list_that_names_the_first_alone_says_how_many_more_there_are() -> None:
    assert [join_first("abcde", most) for most in (3, 4, 5)] == [
        "a, b, c and 2 more",
        "a, b, c, d and 1 more",
        "a, b, c, d, e",
    ]
    assert join_first(["a"], 3, 30) == "a and 29 more"


@pytest.mark.parametrize("term", ["vt100", "vt220-8bit", "xterm-mono", "linux-m", "dumb"])
def test_terminals_that_have_no_colours_are_known(
    monkeypatch: pytest.MonkeyPatch, term: str
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    found = []
    for kind in (term, "xterm", "vt525", "screen.xterm-256color", "linux"):
        monkeypatch.setenv("TERM", kind)
        found.append(has_colour())

    assert found == [False, True, True, True, True]


def test_an_empty_no_color_asks_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    found = []
    for value in ("", "1"):
        monkeypatch.setenv("NO_COLOR", value)
        found.append(has_colour())

    assert found == [True, False]
