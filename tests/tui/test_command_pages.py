"""The pages that run a subcommand and show what it prints: Doctor, Advise and Calibrate."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine import until
from tests.made_runs import HOSTILE, finished
from tests.tui.screens import (
    UNSAFE,
    NotingApp,
    NotingDesk,
    app_on,
    eventually,
    opened,
    press,
    said,
    settle,
    text,
)
from tuilab.cli.front_page import VERBS
from tuilab.judging import calibration, calibration_file
from tuilab.judging.calibration_file import Trials
from tuilab.storage import places
from tuilab.tui import goodbye
from tuilab.tui.screens.command import CommandPage, Printout
from tuilab.tui.screens.page import Page
from tuilab.tui.state import subcommand
from tuilab.tui.state.settings import Settings
from tuilab.tui.state.subcommand import TUILAB, Subcommand
from tuilab.tui.terminal.textual_parts import TextualPalette


def stand_in(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Run a Python script in the place of tuilab; it gets the words of the subcommand as its arguments."""
    monkeypatch.setattr(subcommand, "TUILAB", (sys.executable, "-c", script))


def noting(root: Path) -> NotingApp:
    root.mkdir(exist_ok=True, parents=True)
    return NotingApp(NotingDesk(root, [], Settings(has_seen_hint=True)))


WAITS = "import time; print('first', flush=True); time.sleep(600)"


async def test_a_page_shows_the_output_in_colour_with_the_messages_last(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = "import os, sys; print('message', file=sys.stderr); print('\\x1b[31mred\\x1b[0m', os.environ['COLUMNS'])"
    stand_in(monkeypatch, f"{script}; print(*os.get_terminal_size(1)); sys.exit(1)")
    async with opened(app_on(root), "b", "d", size=(80, 12)) as pilot:
        first, *rest = text(pilot).splitlines()

    assert (
        first.startswith(" tuilab  doctor  finished in ")
        and ", exit code 1  tuilab doctor" in first
    )
    assert [line.strip() for line in rest[:3]] == ["red 77", "80 12", "message"]


async def test_a_page_shows_output_while_the_subcommand_is_running(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(monkeypatch, WAITS)
    async with opened(app_on(root)) as pilot:
        pilot.app.action_open_doctor()  # type: ignore[attr-defined]
        await eventually(pilot, lambda: "first" in text(pilot), "the first line")
        lines = text(pilot).splitlines()
        await pilot.press("s")
        await settle(pilot)
        stopped = text(pilot).splitlines()

    assert "running for" in lines[0] and "s stop" in lines[-1]
    assert (
        "stopped" in stopped[0] and "s stop" not in stopped[-1] and "r check again" in stopped[-1]
    )


async def test_leaving_a_page_stops_its_subcommand(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(monkeypatch, WAITS)
    async with opened(app_on(root)) as pilot:
        pilot.app.action_open_doctor()  # type: ignore[attr-defined]
        await eventually(pilot, lambda: "first" in text(pilot), "the first line")
        page = pilot.app.screen
        assert isinstance(page, CommandPage)
        started = page._subcommand  # noqa: SLF001
        await pilot.press("escape", "q")
    assert started is not None
    until(lambda: not started.is_running)

    assert pilot.app.return_code == 0


async def test_a_key_shows_every_check_and_r_shows_them_again(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(monkeypatch, "import sys; print(*sys.argv[1:])")
    async with opened(app_on(root), "b", "d", "a", "r", size=(120, 12)) as pilot:
        assert (said(pilot), text(pilot).splitlines()[1][:13]) == ([], " doctor --all")


async def test_a_search_finds_words_in_the_output(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(monkeypatch, "print(*range(100, 200), sep='\\n')")
    async with opened(app_on(root), "b", "d", "slash", *"150", "enter", size=(80, 12)) as pilot:
        assert "150" in text(pilot)
        assert "match 1 of 1 for 150" in text(pilot) and said(pilot) == []


async def test_output_does_not_steer_the_terminal(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(monkeypatch, f"print({HOSTILE.replace(chr(0xD800), '')!r})")
    async with opened(app_on(root), "b", "d", size=(80, 60)) as pilot:
        assert UNSAFE.findall(text(pilot).replace("\n", "")) == []


async def test_long_lines_are_folded_where_the_terminal_is_narrower(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(monkeypatch, "print('word ' * 30 + 'last')")
    async with opened(app_on(root), "b", "d", size=(60, 20)) as pilot:
        assert "last" in text(pilot)


async def test_a_page_whose_program_cannot_start_says_why(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subcommand, "TUILAB", ("/not/here",))
    async with opened(app_on(root), "b", "d") as pilot:
        assert "cannot start tuilab doctor: No such file or directory" in text(pilot)


@pytest.mark.parametrize("word", ["doctor", "advise", "calibrate"])
async def test_the_palette_opens_the_pages_from_everywhere(
    root: Path, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    stand_in(monkeypatch, "pass")
    async with opened(app_on(root), "h", "ctrl+p", *word) as pilot:
        await settle(pilot)
        await press(pilot, *(["enter"] if isinstance(pilot.app.screen, TextualPalette) else []))
        await press(pilot, *(["enter"] if isinstance(pilot.app.screen, TextualPalette) else []))

        assert isinstance(pilot.app.screen, Page) and word == pilot.app.screen.PLACE
        assert pilot.app.screen.command().split()[1] in VERBS


async def test_advise_shows_what_the_command_line_prints(root: Path) -> None:
    finished(root, {"a": "SUPPORTED"})
    app = noting(root)
    async with opened(app, "b", "a", "c", size=(200, 40)):
        pass
    printed = subprocess.run(
        [*TUILAB, "advise", "--root", root], capture_output=True, text=True, check=True
    )

    assert app.copied == [printed.stdout.rstrip("\n")]


def unfold(picture: str) -> str:
    """Return the text of a dialog in one line: a long path is folded where the frame ends."""
    return "".join(line.strip(" │") for line in picture.splitlines())


async def test_a_calibration_is_asked_about_shown_and_stopped(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(monkeypatch, f"import sys\nif '--show' not in sys.argv: {WAITS}")
    app = app_on(root)
    async with opened(app, "b", "c", "enter") as pilot:
        asked = text(pilot)
        await press(pilot, "n")
        refused = app.desk.calibration
        await press(pilot, "enter", "y")
        await eventually(pilot, lambda: "first" in text(pilot), "the first line")
        going = text(pilot)
        await press(pilot, "escape", "c")
        again = text(pilot)
        await press(pilot, "s", "y")
        await eventually(pilot, lambda: "  stopped  " in text(pilot), "its end")
        ended = text(pilot)

    assert "busy for 2 minutes" in asked
    assert str(places.calibration_file()) in unfold(asked)
    assert refused is None
    assert (
        "measuring this machine: " in going
        and " of about 2:00" in going
        and "s stop" in going.splitlines()[-1]
    )
    assert "first" in again and "measuring this machine: " in again
    assert "enter calibrate" in ended.splitlines()[-1]


async def test_calibrate_shows_the_latest_calibrations(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUILAB_ROOT", str(root))
    calibration_file.save(
        {"within one process": Trials(trials=10, false=1, delays=10, seen=9)}, 0.01
    )
    app = noting(root)
    async with opened(app, "b", "c", "c", size=(300, 40)):
        pass

    assert "1 false verdict in 10 trials" in app.copied[0]
    assert [line for line in calibration.describe_saved() if line not in app.copied[0]] == []


def test_a_calibration_continues_when_nobody_reads_its_output(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = root / "done"
    stand_in(
        monkeypatch,
        f"import sys; sys.stdin.read(); print('x', file=sys.stderr); open({str(path)!r}, 'w')",
    )
    root.mkdir()
    started = Subcommand(["calibrate"], 80)
    started.close()
    started.close()
    until(lambda: path.exists() and not started.is_running)

    assert started.read() == ""


def test_a_running_calibration_is_named_at_the_end(
    root: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(goodbye, "open_again", lambda fd: fd)
    stand_in(monkeypatch, WAITS)
    desk = NotingDesk(root, [], Settings())
    desk.calibration = Subcommand(["calibrate"], 80)
    goodbye.say_goodbye(desk)
    desk.calibration.stop()
    until(lambda: not (desk.calibration and desk.calibration.is_running))

    assert "1 run continues: tuilab runs" in capfd.readouterr().out


@pytest.mark.slow
def test_a_stopped_calibration_keeps_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUILAB_ROOT", str(root))
    started = Subcommand(["calibrate", "--device", "cpu"], 80)
    until(lambda: list(root.glob("*calibration*/journal/supervisor.jsonl")))
    started.stop()
    until(lambda: not started.is_running)

    assert started.was_stopped
    assert not calibration_file.load().trials_of_method


async def test_the_printed_text_has_the_focus(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, "pass")
    async with opened(app_on(root), "b", "d") as pilot:
        assert isinstance(pilot.app.focused, Printout)
