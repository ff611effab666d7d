"""Input that arrives when another screen is open than it was meant for: it ends nothing, and closes nothing else."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual.screen import Screen

from tests.tui.pictures import recorded
from tests.tui.screens import (
    NotingApp,
    NotingDesk,
    ShownApp,
    app_on,
    open_run,
    opened,
    press,
    settle,
)
from tuilab.tui.palette import Commands
from tuilab.tui.screens.history import HistoryPage
from tuilab.tui.screens.lab import LabPage
from tuilab.tui.state.settings import Settings
from tuilab.tui.terminal.textual_parts import TextualPalette
from tuilab.tui.widgets.question import ConfirmDialog

MouseKind = type[events.MouseDown] | type[events.MouseUp] | type[events.Click]


def mouse_event(kind: MouseKind, app: ShownApp, x: int, y: int) -> events.MouseEvent:
    widget = app.screen if kind is events.Click else None
    return kind(widget, x, y, 0, 0, 1, False, False, False, screen_x=x, screen_y=y)


def post_click(app: ShownApp, x: int, y: int) -> None:
    """Have a click arrive, without waiting for what comes of it."""
    app.post_message(mouse_event(events.MouseDown, app, x, y))
    app.post_message(mouse_event(events.MouseUp, app, x, y))


def background_spot(palette: Screen[Any]) -> tuple[int, int]:
    """Return a place beside the palette, where a click closes it."""
    for y in range(palette.size.height):
        if palette.get_widget_at(0, y)[0] is palette:
            return 0, y
    raise AssertionError("the palette covers the whole screen")


@pytest.mark.parametrize("second", ["escape", "click"])
async def test_palette_closed_twice_closes_no_other_screen(root: Path, second: str) -> None:
    app = app_on(root)
    async with opened(app, "ctrl+p", size=(80, 24)) as pilot:
        assert isinstance(app.screen, TextualPalette)
        x, y = background_spot(app.screen)
        post_click(app, x, y)
        if second == "escape":
            app.post_message(events.Key("escape", None))
        post_click(app, x, y)
        await settle(pilot)

        assert isinstance(app.screen, LabPage)
        assert app.screen.columns.is_attached


async def test_dialog_dismissed_twice_closes_no_other_screen(root: Path) -> None:
    app = app_on(root)
    async with opened(app, "h", size=(80, 24)) as pilot:
        question = ConfirmDialog("Delete?", ["a run"])
        app.push_screen(question)
        await settle(pilot)
        question.dismiss(False)
        question.dismiss(False)
        await settle(pilot)

        assert isinstance(app.screen, HistoryPage)


async def test_screen_below_another_is_not_dismissed(root: Path) -> None:
    app = app_on(root)
    async with opened(app, size=(80, 24)) as pilot:
        below, above = ConfirmDialog("Delete?", ["a run"]), ConfirmDialog("Stop?", ["a run"])
        app.push_screen(below)
        app.push_screen(above)
        await settle(pilot)
        below.dismiss(False)
        await settle(pilot)

        assert app.screen is above


async def test_click_on_rows_that_a_resize_took_away_ends_nothing(root: Path) -> None:
    app = app_on(root)
    async with opened(app, "ctrl+p", size=(80, 24)) as pilot:
        await pilot.resize_terminal(80, 10)
        await settle(pilot)
        for kind in (events.MouseDown, events.MouseUp):
            app.post_message(mouse_event(kind, app, 59, 11))
        app.screen.post_message(
            mouse_event(events.Click, app, 59, 11)
        )  # as if it had been on its way
        await settle(pilot)

        assert app.return_code is None
        assert isinstance(app.screen, TextualPalette)


async def palette_commands(app: ShownApp) -> Commands:
    commands = Commands(app.screen)
    await commands.startup()
    return commands


async def test_palette_command_acts_only_on_the_screen_that_it_was_chosen_on(root: Path) -> None:
    recorded("tour", root)
    app = NotingApp(NotingDesk(root, (), Settings(has_seen_hint=True)))
    async with opened(app, size=(80, 24)) as pilot:
        commands = await palette_commands(app)
        hits = [hit.command async for hit in commands.discover()]
        hits += [hit.command async for hit in commands.search("theme")]
        hits += [hit.command async for hit in commands.search("softmax")]
        await press(pilot, "h")
        before = app.screen_stack, app.theme
        for command in hits:
            app.call_later(command)
        await settle(pilot)

        assert (app.screen_stack, app.theme, app.ordered) == (*before, [])


async def test_palette_runs_one_command(root: Path) -> None:
    app = app_on(root)
    async with opened(app, size=(80, 24)) as pilot:
        commands = await palette_commands(app)
        themes = [hit.command async for hit in commands.search("theme")]
        for command in themes:
            app.call_later(command)
        await settle(pilot)

        assert len([sentence for sentence in app.said if sentence.startswith("theme ")]) == 1


async def test_pane_of_a_closed_run_is_not_focused(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late_calls: list[Callable[[], object]] = []

    def call_late(act: Callable[..., object], *values: object, **options: object) -> None:
        late_calls.append(partial(act, *values, **options))

    app = app_on(root)
    async with opened(app) as pilot:
        page = await open_run(pilot, recorded("tour", root))
        page.set_focus(None)
        app.desk.settings.pane = page.panes.name_of(page.panes.every[0])
        monkeypatch.setattr(page.panes, "call_after_refresh", call_late)
        page.views.restore_pane()
        app.pop_screen()
        await settle(pilot)
        for act in late_calls:
            app.call_later(act)
        await settle(pilot)

        assert late_calls
        assert app.return_code is None
