"""Looking for words in what was printed, in lessons and in code; all of it in a pager."""

from pathlib import Path

import pytest

from tests.made_runs import FAST, finished, write
from tests.tui.pictures import recorded
from tests.tui.screens import app_on, open_run, opened, press, said, settle, text
from tests.tui.terminals import terminal
from tuilab.catalogue import catalog
from tuilab.engine.capture import HEAD, TAIL
from tuilab.record.events import OutputCaptured
from tuilab.record.journal.writer import Writer
from tuilab.record.summary import RunSummary
from tuilab.tui.screens.lab import LabPage
from tuilab.tui.screens.run import RunPage
from tuilab.tui.state.printed_output import tail, whole
from tuilab.tui.widgets.lab.source import Source
from tuilab.tui.widgets.search import Searched


def printing(root: Path, lines: int = 150) -> Path:
    """Make a run that has printed lines, two of which have a needle."""
    run_dir = finished(root, {})
    printed = [
        f"\x1b[31mstep\x1b[0m {number}{' Needle' * (number in (20, 90))}" for number in range(lines)
    ]
    (run_dir / "stdout.log").write_text("\n".join(printed) + "\n")
    return run_dir


async def test_words_are_found_in_what_was_printed_and_n_goes_on(root: Path) -> None:
    async with opened(app_on(root), size=(80, 24)) as pilot:
        await open_run(pilot, printing(root))
        await press(pilot, "slash", *"needle", "enter")
        first = text(pilot)
        await press(pilot, "n")
        second = text(pilot)
        await press(pilot, "n", "N")

        assert "step 20 Needle" in first and "step 90 Needle" not in first
        assert "step 90 Needle" in second and "step 20 Needle" not in second
        assert "match 1 of 2 for needle" in first and "match 2 of 2 for needle" in second
        assert "n next match" in first and "esc clear" in first
        assert said(pilot) == []
        assert isinstance(pilot.app.focused, Searched) and pilot.app.focused.match_line == 90


async def test_escape_ends_a_search_before_it_leaves_the_screen(root: Path) -> None:
    async with opened(app_on(root), size=(80, 24)) as pilot:
        page = await open_run(pilot, printing(root))
        await press(pilot, "slash", *"needle", "enter", "escape")
        assert isinstance(page.focused, Searched) and page.focused.words == ""
        assert pilot.app.screen is page
        await press(pilot, "escape")

        assert isinstance(pilot.app.screen, LabPage)


async def test_n_without_a_search_is_the_key_of_the_screen(root: Path) -> None:
    async with opened(app_on(root), size=(80, 24)) as pilot:
        await open_run(pilot, printing(root))
        await press(pilot, "slash", "escape", "n")

        assert said(pilot) == ["no NaN or Inf so far"]


async def test_words_that_no_line_has_are_told(root: Path) -> None:
    async with opened(app_on(root), size=(80, 24)) as pilot:
        await open_run(pilot, printing(root))
        await press(pilot, "slash", *"[/b]", "enter")

        assert "no match for [/b]" in text(pilot)
        assert said(pilot) == []


@pytest.mark.parametrize(("key", "words"), [("c", "race"), ("p", "operator")])
async def test_words_are_found_in_the_code_and_in_the_lesson(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, words: str
) -> None:
    folder = write(tmp_path / "scenarios", fast=FAST)
    monkeypatch.setattr(catalog, "scenario_dirs", lambda extra=(): [str(folder)])
    async with opened(
        app_on(tmp_path / "runs"), key, "slash", *words, "enter", size=(80, 24)
    ) as pilot:
        assert isinstance(pilot.app.focused, Searched)
        found = pilot.app.focused.lines_to_search()[pilot.app.focused.match_line]

        assert words in found.plain.lower()
        assert (
            f" of {sum(words in line.plain.lower() for line in pilot.app.focused.lines_to_search())} for {words}"
            in text(pilot)
        )
        assert isinstance(pilot.app.focused, Source) is (key == "c")


async def test_a_search_works_in_a_pane_that_fills_the_screen(root: Path) -> None:
    async with opened(app_on(root), size=(80, 24)) as pilot:
        page = await open_run(pilot, printing(root))
        await press(pilot, "z", "slash", *"needle")
        typed = text(pilot)
        await press(pilot, "enter")

        assert "/ needle" in typed
        assert isinstance(page, RunPage) and page.maximized is page.focused
        assert "step 20 Needle" in text(pilot)


async def test_the_line_of_keys_says_what_a_slash_does_to_what_has_the_focus_and_so_does_the_line_typed_into(
    tmp_path: Path,
) -> None:
    async with opened(app_on(tmp_path), size=(120, 40)) as pilot:
        page = await open_run(pilot, recorded("not-a-number", tmp_path))
        before = text(pilot).splitlines()[-1]
        await press(pilot, "slash")
        of_charts = text(pilot)
        await press(pilot, "escape")
        claims = page.panes.named("claims")
        assert claims is not None
        claims.focus()
        await settle(pilot)
        after = text(pilot).splitlines()[-1]
        await press(pilot, "slash")

        assert "/ charts" in before and "/ search" not in before
        assert "words in chart names" in of_charts
        assert "n next NaN  / search" in after and "/ charts" not in after
        assert "search the pane Claims" in text(pilot)


async def test_the_pane_says_that_there_is_more_and_where_it_is_kept(root: Path) -> None:
    run_dir = printing(root, 9000)
    async with opened(app_on(root), size=(200, 50)) as pilot:
        page = await open_run(pilot, run_dir)
        await press(pilot, "slash", *"end of", "enter")
        output = page.panes.named("output")

        assert output and f"v shows all of it: {run_dir}/stdout.log" in output.as_text()
        assert "v shows all of it" in text(pilot)


def cut(root: Path, lines: int) -> Path:
    """Make a run of which the middle of what it printed was dropped: half of what is kept stands before the gap."""
    run_dir = finished(root, {})
    half = b"".join(b"line %05d\n" % number for number in range(lines))
    (run_dir / "stdout.log").write_bytes(half + half)
    output = OutputCaptured(
        stream="stdout", bytes_total=9_000_000, bytes_head=len(half), bytes_tail=len(half)
    )
    journal = Writer(run_dir / "journal" / "capture.jsonl")
    journal.append(output)
    journal.close()
    return run_dir


@pytest.mark.parametrize("lines", [20, 5000])
async def test_a_gap_in_what_was_printed_is_told_in_the_pane_and_marked_in_the_pager(
    root: Path, lines: int
) -> None:
    run_dir = cut(root, lines)
    async with opened(app_on(root), size=(200, 50)) as pilot:
        page = await open_run(pilot, run_dir)
        output = page.panes.named("output")
        dropped = f"stdout: {9_000_000 - 22 * lines} of 9000000 bytes in the middle were dropped"

        assert output and dropped in output.as_text()
        assert "v shows all of it" not in output.as_text()
        assert ("v shows all kept output" in output.as_text()) is (lines > 100)
        paged = whole(run_dir, page.source.summary).splitlines()
        assert paged[lines : lines + 3] == [
            f"line {lines - 1:05}",
            f"--- {dropped} ---",
            "line 00000",
        ]


async def test_a_search_that_saw_only_the_end_says_so(root: Path) -> None:
    run_dir = cut(root, 5000)
    async with opened(app_on(root), size=(80, 24)) as pilot:
        await open_run(pilot, run_dir)
        await press(pilot, "slash", *"needle", "enter")

        assert "no match for needle; only the end was searched, v shows all kept output" in text(
            pilot
        )


def test_a_run_that_prints_on_tells_of_the_gap_before_it_is_recorded(root: Path) -> None:
    run_dir = finished(root, {})
    (run_dir / "stdout.log").write_bytes(b"x" * (HEAD - 1) + b"\n" + b"y" * TAIL)
    paged = whole(run_dir, RunSummary()).splitlines()

    assert paged[2] == "--- stdout: only its first 512 KiB and last 512 KiB are kept ---"
    assert paged[3] == "y" * TAIL


def test_what_was_printed_and_cannot_be_read_is_not_taken_for_nothing(root: Path) -> None:
    run_dir = finished(root, {})
    (run_dir / "stdout.log").unlink(missing_ok=True)
    (run_dir / "stdout.log").mkdir()

    assert (
        whole(run_dir, RunSummary())
        == f"== {run_dir}/stdout.log\n--- cannot be read: it is not a regular file ---"
    )


def test_of_a_long_file_the_end_is_read_and_for_a_pager_all_of_it(root: Path) -> None:
    run_dir = printing(root, 9000)
    (run_dir / "stderr.log").write_bytes(b"10 %\r50 %\r100 %\r\nbad \xff\n")
    end = tail(run_dir / "stdout.log")

    assert (len(end.lines), end.lines[-1], end.is_whole) == (200, "\x1b[31mstep\x1b[0m 8999", False)
    assert tail(run_dir / "stderr.log").lines == ["100 %", "bad \ufffd"]
    assert len(whole(run_dir, RunSummary()).splitlines()) == 9000 + 2 + 1 + 4
    assert whole(run_dir, RunSummary()).splitlines()[-4:] == ["10 %", "50 %", "100 %", "bad \ufffd"]
    assert tail(run_dir / "none.log").lines == [] and whole(root, RunSummary()) == ""


PAGER = """#!/bin/sh
echo found $(grep -c Needle), $(stty -a </dev/tty | grep -o -- '-\\?icanon'); read line </dev/tty
"""


def test_the_pager_has_the_terminal_and_the_screens_come_back_whole(
    root: Path, tmp_path: Path
) -> None:
    pager = tmp_path / "pager"
    pager.write_text(PAGER)
    pager.chmod(0o755)
    run_dir = printing(root, 9000)
    (run_dir / "stderr.log").write_text("needle \x1b]0;owned\x07\n")
    with terminal(
        tmp_path, "attach", "last", columns=100, rows=30, env={"PAGER": str(pager)}
    ) as term:
        term.wait_for("Output", "quit")
        before = term.text
        term.type("v")
        term.wait_for("found 2, icanon")
        term.type("\x1a")  # there is no shell to go back to
        term.type("\x03")  # ends the pager alone
        term.wait_for("kept in", "quit")
        term.type("q")

        assert term.wait() == 0
        assert "Output" in before
        assert term.is_restored()
        assert b"owned" not in term.sent


def test_a_pager_that_is_not_there_is_one_sentence(root: Path, tmp_path: Path) -> None:
    printing(root)
    with terminal(
        tmp_path, "attach", "last", columns=100, rows=30, env={"PAGER": "/not/there"}
    ) as term:
        term.wait_for("Output", "quit")
        term.type("v")

        term.wait_for("cannot start the pager /not/there", "quit")
