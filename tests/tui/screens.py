"""Tools for tests of screens: the app on a folder of runs, what it shows as text, and waiting until it has read everything."""

import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from textual.pilot import Pilot

from tuilab.tui.app import TuilabApp
from tuilab.tui.state.session import Desk
from tuilab.tui.state.settings import Settings

UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029\ud800-\udfff]")
_PATIENT = ("question", "live")  # workers that wait for the user, or for as long as a screen is open


@asynccontextmanager
async def opened(
    root: Path, *keys: str, size: tuple[int, int] = (100, 30), theme: str = "tuilab-dark"
) -> AsyncIterator["Pilot[int]"]:
    """Open the app, press keys, and wait after each until everything is read."""
    app = TuilabApp(Desk(root, (), Settings(theme=theme)))
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        await press(pilot, *keys)
        yield pilot


async def press(pilot: "Pilot[int]", *keys: str) -> None:
    """Press keys, one after another, each when what came of the last is shown."""
    for key in keys:
        await pilot.press(key)
        await settle(pilot)


async def settle(pilot: "Pilot[int]") -> None:
    """Wait until no screen reads anything any more."""
    while True:
        await pilot.pause()
        if workers := [worker for worker in pilot.app.workers if worker.group not in _PATIENT]:
            await pilot.app.workers.wait_for_complete(workers)
        elif not getattr(pilot.app.screen, "is_reading", False):
            break
    await pilot.pause()


def text(pilot: "Pilot[int]") -> str:
    """Return what the screen shows."""
    lines = ["".join(segment.text for segment in strip) for strip in pilot.app.screen._compositor.render_strips()]
    return "\n".join(line.rstrip() for line in lines)


def said(pilot: "Pilot[int]") -> list[str]:
    """Return the sentences at the edge of the screen."""
    return [notification.message for notification in pilot.app._notifications]


async def shown(pilot: "Pilot[int]", words: str, patience_s: float = 20.0) -> str:
    """Wait until the screen shows these words, and return what it shows."""
    deadline = time.monotonic() + patience_s
    while words not in (seen := text(pilot)):
        assert time.monotonic() < deadline, f"{words!r} is not on the screen:\n{seen}"
        await pilot.pause(0.05)
    return seen
