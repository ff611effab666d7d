"""Open the app in tests of its screens, wait until it has read everything, and read its text."""

import asyncio
import inspect
import os
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from textual.pilot import Pilot
from textual.worker import Worker, WorkerCancelled

from tuilab.engine.messages import RunOrder
from tuilab.tui.app import TuilabApp
from tuilab.tui.screens.following import FollowingPage
from tuilab.tui.screens.lab import LabPage
from tuilab.tui.screens.run import RunPage
from tuilab.tui.state.session import Session
from tuilab.tui.state.settings import Settings
from tuilab.tui.terminal.textual_parts import rendered

UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029\ud800-\udfff]")
PATIENCE_S = 120.0  # on a machine with many busy processes a page takes seconds
_SOON_S = 0.002  # between two looks at a screen that is busy
# Groups of workers that wait for the user, or for as long as a screen is open.
_PATIENT = ("question", "live")


class NotingDesk(Session):
    """Count the orders to start a process ahead. Starting it took a tenth of a test of a screen."""

    prepared = 0

    def prepare(self) -> None:
        self.prepared += 1


class ShownApp(TuilabApp):
    """The app, which stores its messages at the edge of the screen."""

    # Textual would look for it next to this file.
    CSS_PATH = str(Path(inspect.getfile(TuilabApp)).with_name("tuilab.tcss"))

    def __init__(
        self, desk: Session, show: Path | None = None, orders: Sequence[RunOrder] = ()
    ) -> None:
        super().__init__(desk, orders, show=show)
        self.said: list[str] = []

    def notify(self, message: str, **more: Any) -> None:
        self.said.append(message)
        super().notify(message, **more)


class NotingApp(ShownApp):
    """Store orders, messages, and texts to copy, instead of acting on them."""

    def __init__(self, desk: Session) -> None:
        super().__init__(desk)
        self.ordered: list[RunOrder] = []
        self.copied: list[str] = []
        self.edited: list[tuple[str, int]] = []

    def run_orders(self, orders: list[RunOrder]) -> None:
        self.ordered += orders

    def tell(self, text: str, *, is_problem: bool = True) -> None:
        self.said.append(text)

    def copy(self, text: str) -> None:
        self.copied.append(text)

    def edit(self, path: str, line: int = 1) -> bool:
        self.edited.append((path, line))
        return True

    @property
    def page(self) -> LabPage:
        assert isinstance(self.screen, LabPage)
        return self.screen


def app_on(
    root: Path,
    settings: Settings | None = None,
    *,
    folders: Sequence[str] = (),
    is_read_only: bool = False,
) -> ShownApp:
    """Return the app on a folder of runs, without the hint for new users. It stores no settings."""
    root.mkdir(exist_ok=True, parents=True)
    if settings is None:
        settings = Settings(has_seen_hint=True)
    return ShownApp(NotingDesk(root, folders, settings, is_read_only=is_read_only))


@asynccontextmanager
async def opened(
    where: Path | ShownApp,
    *keys: str,
    size: tuple[int, int] = (100, 30),
    theme: str = "tuilab-dark",
) -> AsyncIterator["Pilot[int]"]:
    """Open an app, or the app on a folder of runs, and press keys. Wait after each key."""
    if isinstance(where, ShownApp):
        app = where
    else:
        app = ShownApp(NotingDesk(where, (), Settings(theme=theme)))
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        await press(pilot, *keys)
        yield pilot


def drive(
    body: Callable[[NotingApp, "Pilot[int]"], Awaitable[None]],
    folder: Path,
    root: Path,
    *,
    size: tuple[int, int] = (120, 40),
    settings: Settings | None = None,
) -> NotingApp:
    """Open the Lab screen on the scenario `fast` of a folder, and call `body`. Nothing is run."""
    if settings is None:
        settings = Settings(scenario="fast", has_seen_hint=True)
    app = NotingApp(NotingDesk(root, [str(folder)], settings))

    async def main() -> None:
        async with opened(app, size=size) as pilot:
            await body(app, pilot)

    asyncio.run(main())
    return app


async def open_run(pilot: "Pilot[int]", run_dir: Path) -> RunPage:
    """Open a run and wait until all of it is shown."""
    assert isinstance(pilot.app, TuilabApp)
    pilot.app.open_run(run_dir)
    await pilot.pause()
    page = pilot.app.screen
    assert isinstance(page, RunPage)
    await eventually(pilot, lambda: page.source.is_caught_up, "the end of the record")
    page.show_panes()
    await pilot.pause()
    await pilot.pause()
    return page


async def press(pilot: "Pilot[int]", *keys: str) -> None:
    """Press keys, one after another, each when what came of the last is shown."""
    for key in keys:
        await pilot.press(key)
        await settle(pilot)


async def settle(pilot: "Pilot[int]") -> None:
    """Wait until no screen reads or moves any more, and all typed keys have acted."""
    is_settled = False
    while not is_settled:
        await pilot.pause()
        await pilot.app.animator.wait_until_complete()  # what was scrolled to is on its way
        await pilot.pause()
        workers = [worker for worker in pilot.app.workers if worker.group not in _PATIENT]
        if workers:
            await asyncio.gather(*map(_over, workers))
        is_settled = not (workers or is_busy(pilot))
        if not is_settled:
            await asyncio.sleep(_SOON_S)


def is_busy(pilot: "Pilot[int]") -> bool:
    """Whether the open screen still reads, has data to show, or has not acted on a key yet."""
    app = pilot.app
    if app.is_running and getattr(app, "has_pending_keys", False):
        return True
    page = app.screen
    if isinstance(page, FollowingPage) and page.is_current and not page.source.is_frozen:
        if not os.path.lexists(page.run_dir):  # there is nothing to read, and nothing will come
            return False
        return not page.source.is_caught_up or page.source.has_news
    return bool(getattr(page, "is_reading", False))


async def _over(worker: Worker[object]) -> None:
    """Wait until a worker has ended. A page cancels its worker when it closes or reads again."""
    with suppress(WorkerCancelled):
        await worker.wait()


def text(pilot: "Pilot[int]") -> str:
    """Return what the screen shows."""
    lines = []
    for segments in rendered(pilot.app.screen):
        line = "".join(segment.text for segment in segments)
        lines.append(line.rstrip())
    return "\n".join(lines)


def said(pilot: "Pilot[int]") -> list[str]:
    """Return the sentences at the edge of the screen."""
    assert isinstance(pilot.app, ShownApp)
    return pilot.app.said


async def eventually(
    pilot: "Pilot[Any]",
    condition: Callable[[], bool],
    what: str = "",
    patience_s: float = PATIENCE_S,
) -> None:
    """Wait until a condition holds; fail with what the screen shows if it never does."""
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline, (
            f"{what or 'what was waited for'} never came:\n{text(pilot)}"
        )
        await pilot.pause(0.01)


async def shown(pilot: "Pilot[int]", words: str, patience_s: float = PATIENCE_S) -> str:
    """Wait until the screen shows these words, and return what it shows."""
    deadline = time.monotonic() + patience_s
    picture = text(pilot)
    while words not in picture:
        assert time.monotonic() < deadline, f"{words!r} is not on the screen:\n{picture}"
        await pilot.pause(0.05)
        picture = text(pilot)
    return picture
