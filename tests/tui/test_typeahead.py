"""What is typed faster than a screen can act goes where it was meant for: into the line that a key opens, never past it."""

import asyncio
import math
import threading
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from textual.command import CommandPalette
from textual.events import Event, Key
from textual.pilot import Pilot
from textual.widgets import Input

from tests.made_runs import FAST, finished, make_run, started, write
from tests.tui.screens import NotingApp, app_on, drive, open_run, opened, said, settle
from tests.tui.test_queue_page import enter
from tuilab.record.events import Logged, StateChanged
from tuilab.runs import notes, queue, store
from tuilab.tui.app import TuilabApp
from tuilab.tui.screens.history import HistoryPage
from tuilab.tui.screens.lab import LabPage
from tuilab.tui.screens.run import RunPage
from tuilab.tui.terminal.delayed_call import later
from tuilab.tui.terminal.typeahead import TypeAhead, wait_until_handled
from tuilab.tui.widgets.question import ConfirmDialog
from tuilab.tui.widgets.search import SearchLine


async def type_at_once(pilot: "Pilot[Any]", *keys: str) -> None:
    """Have keys arrive while the screen is busy, all before it looks at the first of them."""
    app, gate = app_of(pilot), asyncio.Event()
    app.screen.call_later(gate.wait)
    arrived = asyncio.Event()
    for key in keys:
        app.post_message(Key(key, key if len(key) == 1 else None))
    app.call_later(arrived.set)
    await arrived.wait()
    gate.set()
    await app.settle()
    await settle(pilot)


def charted(root: Path) -> Path:
    """Make a run that logs two names, one with a NaN."""
    points = [
        Logged(s=step, v={"constant": 1.0, "loss": math.nan if step == 3 else 1.0})
        for step in range(9)
    ]
    return make_run(root, started(), *points, StateChanged(state="succeeded"))


async def test_letters_typed_right_after_the_slash_narrow_the_charts(root: Path) -> None:
    async with opened(app_on(root), size=(100, 30)) as pilot:
        page = await open_run(pilot, charted(root))
        await type_at_once(pilot, "slash", *"constaes", "backspace", "backspace", "backspace")

        assert isinstance(page.focused, Input) and page.focused.value == "const"
        assert pilot.app.screen is page and said(pilot) == []


async def test_letters_typed_before_any_chart_is_known_are_kept_for_the_charts_too(
    root: Path,
) -> None:
    run_dir = charted(root)
    async with opened(app_on(root), size=(100, 30)) as pilot:
        page = RunPage(run_dir)
        page.source.is_frozen = True  # as on a large run: nothing is read yet
        await pilot.app.push_screen(page)
        await type_at_once(pilot, "slash", *"const")

        assert isinstance(page.focused, Input) and page.focused.value == "const"


async def test_letters_typed_right_after_the_slash_are_looked_for_in_what_was_printed(
    root: Path,
) -> None:
    async with opened(app_on(root), size=(100, 30)) as pilot:
        page = await open_run(pilot, finished(root, {}))
        await type_at_once(pilot, "slash", *"aes")

        assert page.query_one(SearchLine).query_one(Input).value == "aes"


@pytest.mark.parametrize(
    ("keys", "words"), [(("slash", *"state"), "state"), (("slash", *"state", "enter", "d"), None)]
)
async def test_letters_narrow_the_history_until_a_key_ends_them(
    root: Path, keys: tuple[str, ...], words: str | None
) -> None:
    finished(root, {}, name="state")
    async with opened(app_on(root), "h") as pilot:
        await type_at_once(pilot, *keys)

        if words:
            assert (
                isinstance(pilot.app.screen, HistoryPage) and pilot.app.screen.filter.value == words
            )
        else:
            assert isinstance(pilot.app.screen, ConfirmDialog)


async def test_a_note_typed_at_once_is_the_note(root: Path) -> None:
    run_dir = finished(root, {})
    async with opened(app_on(root), "h") as pilot:
        await type_at_once(pilot, "n", *"deqs", "enter")

        assert [words for _, words in notes.read(run_dir).texts] == ["deqs"]


async def test_the_answer_may_be_typed_before_the_question_is_asked(root: Path) -> None:
    run_dir = finished(root, {})
    async with opened(app_on(root), "h") as pilot:
        await type_at_once(pilot, "d", "n")

        assert isinstance(pilot.app.screen, HistoryPage) and run_dir.exists()
        await type_at_once(pilot, "d", "y")
        assert not run_dir.exists()


async def test_a_command_typed_at_once_is_looked_for_in_the_palette(root: Path) -> None:
    async with opened(app_on(root), "h") as pilot:
        await type_at_once(pilot, "ctrl+p", *"deq")

        assert isinstance(pilot.app.screen, CommandPalette)
        assert pilot.app.screen.query_one(Input).value == "deq"


async def test_keys_act_in_their_order_where_one_stands_for_another(root: Path) -> None:
    for number in range(3):
        finished(root, {}, at_s=1.8e9 + number, end=f"aaaaa{number}")
    async with opened(app_on(root), "h") as pilot:
        await type_at_once(pilot, "j", "j", "k", "enter")
        page = pilot.app.screen

        assert isinstance(page, RunPage) and page.run_dir.name.endswith("aaaaa1")


@pytest.mark.parametrize(
    ("reads", "keys", "page"),
    [
        ((store, "list_runs"), ("h", "enter"), RunPage),
        ((queue, "read_queue"), ("Q", "d"), ConfirmDialog),
    ],
)
async def test_a_key_waits_for_the_list_it_acts_on(
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    reads: tuple[ModuleType, str],
    keys: tuple[str, str],
    page: type,
) -> None:
    finished(root, {})
    enter(root, "waiting")
    async with opened(app_on(root)) as pilot:
        asked, may_answer = slow(monkeypatch, *reads)
        pilot.app.post_message(Key(keys[0], None))
        await asyncio.to_thread(asked.wait, 60)
        pilot.app.post_message(Key(keys[1], None))
        while not pilot.app.screen.is_mounted:
            await wait_until_handled(pilot.app)
        await pilot.pause()
        may_answer.set()
        await app_of(pilot).settle()

        assert isinstance(pilot.app.screen, page)


async def test_a_key_that_leaves_waits_for_no_list(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(app_on(root)) as pilot:
        _, may_answer = slow(monkeypatch, store, "list_runs")
        pilot.app.post_message(Key("h", None))
        pilot.app.post_message(Key("escape", None))
        await app_of(pilot).settle()

        assert isinstance(pilot.app.screen, LabPage)
        may_answer.set()


def slow(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str
) -> tuple[threading.Event, threading.Event]:
    """Have a function of a module wait; return what says that it was called, and what lets it go on."""
    function, asked, may_answer = getattr(module, name), threading.Event(), threading.Event()

    def called(*args: object) -> object:
        asked.set()
        assert may_answer.wait(60)
        return function(*args)

    monkeypatch.setattr(module, name, called)
    return asked, may_answer


def app_of(pilot: "Pilot[Any]") -> TuilabApp:
    assert isinstance(pilot.app, TuilabApp)
    return pilot.app


def test_letters_typed_right_after_the_slash_narrow_the_catalogue(tmp_path: Path) -> None:
    async def body(app: NotingApp, pilot: "Pilot[int]") -> None:
        await type_at_once(pilot, "slash", *"hqb")
        assert isinstance(app.focused, Input) and app.focused.value == "hqb"

    drive(body, write(tmp_path / "scenarios", fast=FAST), tmp_path / "runs")


async def test_what_is_to_happen_soon_happens_however_late_the_loop_is(root: Path) -> None:
    came = asyncio.Event()
    async with opened(app_on(root)) as pilot:
        later(pilot.app, 0.0001, came.set)
        time.sleep(0.01)  # the loop is busy for longer than that

        await came.wait()


async def test_a_key_that_raises_does_not_hold_back_those_behind_it() -> None:
    acted: list[str] = []
    done = asyncio.Event()

    async def heed(event: Event) -> None:
        assert isinstance(event, Key)
        acted.append(event.key)
        if event.key == "a":
            raise ValueError("a mistake")
        done.set()

    async def settle_at_once() -> None:
        return

    typed = TypeAhead(heed, settle_at_once, lambda go_on: asyncio.ensure_future(go_on()))
    with pytest.raises(ValueError, match="a mistake"):
        await typed.take(Key("a", "a"))
    await typed.take(Key("b", "b"))
    await asyncio.wait_for(done.wait(), 10)

    assert acted == ["a", "b"]
