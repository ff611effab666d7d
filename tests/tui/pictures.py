"""Pictures of the screens as a terminal of any kind would show them, and the ones that are kept to compare with."""

import os
import shutil
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pyte
from rich.color import ColorSystem
from textual.app import App

from tests.record_journals import JOURNALS
from tuilab.tui.terminal.frames import Frames
from tuilab.tui.terminal.textual_parts import rendered

GOLDENS = Path(__file__).parent / "goldens"
COLOURS = {
    "truecolour": ColorSystem.TRUECOLOR,
    "256": ColorSystem.EIGHT_BIT,
    "16": ColorSystem.STANDARD,
    "none": None,
}


def recorded(name: str, root: Path) -> Path:
    """Put a recorded run into a folder of runs and return it."""
    run_dir = root / f"20260102T030405000Z-{name}-abc123"
    shutil.copytree(JOURNALS / name, run_dir)
    return run_dir


def picture(app: App[Any], *, colours: str = "truecolour", is_utf8: bool = True) -> pyte.Screen:
    """Return what a terminal shows of the app as it is now, by way of the bytes that it would be sent."""
    terminal = pyte.Screen(app.size.width, app.size.height)
    pyte.Stream(terminal).feed(
        Frames(COLOURS[colours], is_utf8=is_utf8).difference(rendered(app.screen))
    )
    return terminal


def text_of(terminal: pyte.Screen) -> str:
    return "\n".join(line.rstrip() for line in terminal.display) + "\n"


def compare(name: str, text: str) -> None:
    """Compare with the kept picture; TUILAB_GOLDENS=write keeps this one instead, to be looked at before it is committed."""
    kept = GOLDENS / f"{name}.txt"
    if os.environ.get("TUILAB_GOLDENS") == "write":
        GOLDENS.mkdir(exist_ok=True)
        kept.write_text(text)
    before = kept.read_text()
    assert text == before, "\n".join(
        unified_diff(before.splitlines(), text.splitlines(), "kept", "shown", n=0, lineterm="")
    )
