"""Take pictures of the screens as any kind of terminal shows them, and compare them with goldens."""

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
    """Return what a terminal shows of the app now, from the bytes that it would get."""
    frames = Frames(COLOURS[colours], is_utf8=is_utf8)
    terminal = pyte.Screen(app.size.width, app.size.height)
    pyte.Stream(terminal).feed(frames.difference(rendered(app.screen)))
    return terminal


def text_of(terminal: pyte.Screen) -> str:
    """Return the text on a terminal."""
    return "\n".join(line.rstrip() for line in terminal.display) + "\n"


def compare(name: str, text: str) -> None:
    """Compare a picture with its golden. TUILAB_GOLDENS=write stores it as the golden instead."""
    path = GOLDENS / f"{name}.txt"
    if os.environ.get("TUILAB_GOLDENS") == "write":
        GOLDENS.mkdir(exist_ok=True)
        path.write_text(text)
    golden = path.read_text()
    difference = unified_diff(
        golden.splitlines(), text.splitlines(), "kept", "shown", n=0, lineterm=""
    )
    assert text == golden, "\n".join(difference)
