"""Terminals without colours, or without more than ASCII: nothing is sent that they cannot show, and all can be read."""

import re
from pathlib import Path

import pytest

from tests.made_runs import finished
from tests.slow_cases import slow_cases
from tests.tui.screens import opened, shown
from tests.tui.terminals import terminal
from tuilab.tui.terminal.textual_parts import rendered

GOOD = {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "COLORTERM": "truecolor"}
COLOURED = re.compile(rb"\x1b\[[0-9;]*\b([34][0-8]|9[0-7]|10[0-7])\b[0-9;]*m")


@pytest.mark.parametrize(
    "kind", [{"NO_COLOR": "1"}, {"TERM": "vt100", "COLORTERM": ""}], ids=["NO_COLOR", "vt100"]
)
def test_where_colours_are_not_wanted_or_not_there_none_is_sent(
    tmp_path: Path, kind: dict[str, str]
) -> None:
    with terminal(tmp_path, kind={**GOOD, **kind}) as term:
        term.wait_for("tensor-basics", "quit", " cores")
        term.type("?")
        term.wait_for("Here: lab")

        assert COLOURED.findall(bytes(term.sent)) == []
        assert re.search(rb"\x1b\[(0;)?1m", bytes(term.sent))
        assert not re.search(rb"\x1b\[[0-9;]*\b2[1-9]\b[0-9;]*m", bytes(term.sent))


@pytest.mark.parametrize(
    ("keys", "words"),
    [((), "Scenarios"), (("h",), "3 runs"), (("ctrl+p",), "open ")],
    ids=["lab", "history", "palette"],
)
async def test_without_colours_the_chosen_line_is_underlined(
    root: Path, monkeypatch: pytest.MonkeyPatch, keys: tuple[str, ...], words: str
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    for number in range(3):
        finished(root, {}, at_s=1.8e9 + number, end=f"{number:06}")
    async with opened(root, *keys) as pilot:
        await shown(pilot, words)
        lines = rendered(pilot.app.screen)
        styled = [
            [segment for segment in line if segment.style and segment.style.underline]
            for line in lines
        ]

    assert [line for line in styled if sum(segment.cell_length for segment in line) > 20] != []


@pytest.mark.parametrize(
    "kind",
    [
        {"TERM": "xterm-256color", "LANG": "C"},
        *slow_cases(
            {"TERM": "xterm-256color"},
            {"TERM": "linux", "LANG": "C.UTF-8"},
            {"TERM": "vt100", "LANG": "C.UTF-8"},
        ),
    ],
    ids=str,
)
def test_where_utf8_is_not_promised_the_screens_are_ascii(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: dict[str, str]
) -> None:
    for name in ("LANG", "LC_ALL", "LC_CTYPE", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    with terminal(tmp_path, kind=kind) as term:
        term.wait_for("tensor-basics", "quit", " cores")

        assert term.sent.isascii()
