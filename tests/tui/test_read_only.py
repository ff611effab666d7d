"""`--read-only`: one looks, and nothing is started, ended, changed or written, whatever is pressed, clicked or named."""

import os
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.screen import Screen

from tests.made_runs import FAST, finished, make_run, started, write
from tests.tui.pictures import recorded
from tests.tui.screens import (
    NotingDesk,
    ShownApp,
    app_on,
    open_run,
    opened,
    press,
    said,
    settle,
    text,
)
from tests.tui.test_help_page import hits
from tests.tui.test_queue_page import enter
from tuilab.engine import launch, spare
from tuilab.record.events import StateChanged
from tuilab.tui.keys import BY_NAME, CHANGES, KEYS, READ_ONLY
from tuilab.tui.palette import Commands
from tuilab.tui.screens.page import Page
from tuilab.tui.screens.run import RunPage
from tuilab.tui.shown_keys import changes, is_change
from tuilab.tui.state import settings
from tuilab.tui.terminal import editor, foreground
from tuilab.tui.widgets.keybar import KeyBar
from tuilab.tui.widgets.lab.catalogue import Catalogue

PAGES: dict[str, tuple[str, ...]] = {  # the keys that lead from the Lab to each
    "lab": (),
    "form": ("f",),
    "lesson": ("p",),
    "code": ("c",),
    "past runs": ("r",),
    "history": ("h",),
    "run": ("h", "enter"),
    "compare": ("h", "space", "down", "space", "m"),
    "queue": ("Q",),
    "doctor": ("b", "d"),
    "advise": ("b", "a"),
    "calibrate": ("b", "c"),
    "box": ("b",),
}
_LEAVE = {"q", "ctrl+q", "ctrl+z", "ctrl+c"}


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ShownApp:
    """The app on runs of all kinds, of which one goes on; what must not be called fails."""
    monkeypatch.delenv("TMUX", raising=False)
    root = tmp_path / "runs"
    monkeypatch.setenv("TUILAB_ROOT", str(root))
    for end in ("aaaaaa", "bbbbbb"):
        finished(root, {"sum is fast": "REFUTED"}, name="fast", end=end)
    recorded("tour", root)
    make_run(root, started(is_alive=True), StateChanged(state="running"), at_s=1.9e9, end="cccccc")
    enter(root, "one")
    enter(root, "three")
    for module, name in (
        (launch, "start"),
        (launch, "stop"),
        (spare, "prepare"),
        (foreground.Foreground, "run"),
        (editor, "command"),
    ):
        monkeypatch.setattr(module, name, _never(name))
    folder = write(tmp_path / "scenarios", fast=FAST)
    return app_on(
        root,
        settings.Settings(scenario="fast", has_seen_hint=True),
        folders=[str(folder)],
        is_read_only=True,
    )


def _never(what: str) -> Callable[..., None]:
    def fail(*given: object, **more: object) -> None:
        raise AssertionError(f"{what} was called")

    return fail


def files(folder: Path) -> dict[str, tuple[int, int]]:
    """Return every file below a folder, with its size and when it was written."""
    return {
        str(path): (path.lstat().st_size, path.lstat().st_mtime_ns) for path in folder.rglob("*")
    }


async def back_to(page: Screen[Any], pilot: "Pilot[int]") -> None:
    """Go back to a screen from what was opened on it, or open it again."""
    while pilot.app.screen is not page and page in pilot.app.screen_stack:
        pilot.app.pop_screen()
        await settle(pilot)
    if pilot.app.screen is not page:
        pilot.app.push_screen(page)
        await settle(pilot)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
async def test_no_key_of_any_screen_changes_anything(
    app: ShownApp, tmp_path: Path, page: str
) -> None:
    before = files(tmp_path)
    async with opened(app, *PAGES[page]) as pilot:
        assert isinstance(app.screen, Page)
        places = [*app.screen.places(), "everywhere"]
        every = [
            key
            for place in places
            for key in KEYS[place]
            if key.key not in _LEAVE | {"ctrl+p", "escape"}
        ]
        offered, refused = {key.key for key in app.screen.keys_now()}, []
        page_, focused = app.screen, app.focused
        for key in dict.fromkeys(key.key for key in every):
            app.said.clear()
            app.clear_notifications()
            await press(pilot, key)
            assert files(tmp_path) == before, key
            refused += [key] if key in offered and READ_ONLY in app.said else []
            await back_to(page_, pilot)
            if focused is not None and focused.is_attached:
                focused.focus()
    assert files(tmp_path) == before
    assert refused == []


@pytest.mark.parametrize("page", PAGES)
async def test_keys_that_would_change_something_are_not_offered_and_pressed_say_one_sentence(
    app: ShownApp, page: str
) -> None:
    async with opened(app, *PAGES[page], size=(200, 50)) as pilot:
        assert isinstance(app.screen, Page)
        places = app.screen.places()
        offered = {(key.key, key.action) for key in app.screen.keys_now()}
        denied = [
            key for place in places for key in KEYS[place] if key.action and is_change(key.action)
        ]
        footer = app.screen.query_one(KeyBar).render()
        told = []
        for key in denied:
            if any(
                other.key == key.key
                for place in places[:1]
                for other in KEYS[place]
                if other is not key
            ):
                continue  # what has the focus takes the key for something else
            app.said.clear()
            app.clear_notifications()
            await app.screen.run_action(key.action)
            await settle(pilot)
            told.append(tuple(app.said))
        await press(pilot, "f1" if page in ("form",) else "question_mark")
        help_text = text(pilot)

    assert offered & {(key.key, key.action) for key in denied} == set()
    assert all(
        f" {key.word} " not in f" {footer} "
        for key in denied
        if key.is_in_footer and key.word not in ("open",)
    )
    assert [key.help for key in denied if key.help in help_text] == []
    assert set(told) == ({(READ_ONLY,)} if told else set())


def test_every_action_that_changes_something_is_one_that_a_key_has() -> None:
    known = {key.action.partition("(")[0] for keys in KEYS.values() for key in keys}

    assert known >= CHANGES
    assert [key.action for key in BY_NAME if is_change(key.action)] == []


@pytest.mark.parametrize(
    "place",
    ["running run", "failed run", "finished run", "topic", "lesson", "running run in the list"],
)
def test_a_key_that_is_only_told_changes_what_that_of_its_screen_does(place: str) -> None:
    screen = {"topic": "lab", "lesson": "lab", "running run in the list": "history"}.get(
        place, "run"
    )
    found = [key.key for key in KEYS[place] if changes(key, [place, screen])]

    assert found == {
        "running run": ["s"], "failed run": ["E"], "finished run": ["a", "1", "e"],
        "topic": ["enter"], "lesson": ["v"], "running run in the list": ["s"],
    }[place]  # fmt: skip


@pytest.mark.parametrize("page", PAGES)
async def test_the_palette_offers_nothing_that_changes_anything(app: ShownApp, page: str) -> None:
    changing = [
        key.help for keys in KEYS.values() for key in keys if key.action and is_change(key.action)
    ]
    async with opened(app, *PAGES[page]) as pilot:
        offered = await hits(Commands(pilot.app.screen))
        found = await hits(Commands(pilot.app.screen), "run fast")

    assert [one for one in offered if one in changing] == []
    assert [one for one in found if one.startswith("run ")] == []


@pytest.mark.slow
async def test_every_command_of_the_palette_leaves_everything_as_it_is(
    app: ShownApp, tmp_path: Path
) -> None:
    async with opened(app, "h") as pilot:
        before, page = files(tmp_path), pilot.app.screen
        names = [
            key.key for key, _ in (await opened_palette(page)).commands() if key.key not in _LEAVE
        ]
        for name in names:
            palette = await opened_palette(page)  # a palette runs one command
            commands = {key.key: command for key, command in palette.commands()}
            await commands[name]()
            await settle(pilot)
            await back_to(page, pilot)

        assert files(tmp_path) == before
    assert len(names) > 10


async def opened_palette(page: Screen[Any]) -> Commands:
    """Return the commands that a palette has which is opened on a page."""
    commands = Commands(page)
    await commands.startup()
    return commands


async def test_two_clicks_on_a_scenario_do_not_run_it(app: ShownApp) -> None:
    async with opened(app) as pilot:
        catalogue = pilot.app.screen.query_one(Catalogue)
        catalogue.post_message(Catalogue.Chosen(catalogue))
        await settle(pilot)

    assert said(pilot) == [READ_ONLY]


async def test_enter_among_past_runs_opens_one(app: ShownApp) -> None:
    async with opened(app, "r", "enter") as pilot:
        assert isinstance(pilot.app.screen, RunPage)


async def test_the_screen_says_that_it_is_read_only_and_a_click_on_the_footer_is_a_key(
    app: ShownApp,
) -> None:
    async with opened(app, "h", size=(80, 24)) as pilot:
        first, *_, last = text(pilot).splitlines()
        await pilot.click(KeyBar, offset=(last.index("mark"), 0))
        await settle(pilot)
        marked = text(pilot)

    assert first.rstrip().endswith("read-only")
    assert "delete" not in last and "report" not in last
    assert "1 marked" in marked or "*" in marked


async def test_a_run_that_goes_on_is_watched_and_not_stopped(app: ShownApp) -> None:
    async with opened(app) as pilot:
        await open_run(pilot, next(app.desk.root.glob("*-cccccc")))
        await press(pilot, "ctrl+c", "s")

    assert said(pilot) == ["q quits; the run continues", READ_ONLY]


async def test_nothing_is_kept_when_the_screens_are_left(app: ShownApp, tmp_path: Path) -> None:
    before = files(tmp_path)
    async with opened(app, "T", "h", "q"):
        pass

    assert isinstance(app.desk, NotingDesk) and app.desk.prepared == 0
    assert files(tmp_path) == before
    assert not os.path.exists(tmp_path / "state")


def test_settings_of_the_first_versions_stay_where_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUILAB_ROOT", str(tmp_path / "runs"))
    old = tmp_path / "screens.json"
    old.write_text('{"theme": "tuilab-light"}')
    settings.load(move_old=False)

    assert old.exists()


def test_read_only_is_for_screens_alone(tuilab: Callable[..., CompletedProcess[str]]) -> None:
    done = tuilab("--read-only", "list")

    assert done.returncode == 2
    assert "--read-only works only with the screens" in done.stderr


@pytest.mark.parametrize("page", ["run", "history"])
async def test_palette_shows_a_key_only_with_what_it_does_there(app: ShownApp, page: str) -> None:
    async with opened(app, *PAGES[page]) as pilot:
        commands = [key for key, _ in (await opened_palette(pilot.app.screen)).commands()]

    assert [key.action for key in commands if key.key == "b" and key.action == "app.open_box"] == []
    assert [key.key for key in commands if key.action == "app.open_box"] == [""]
