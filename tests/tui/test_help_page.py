"""Help and the command palette: both are made from the one registry of keys."""

import math
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from textual.command import CommandPalette
from textual.widgets import Input

from tests.made_runs import HOSTILE, finished, make_run, started
from tests.slow_cases import slow_cases
from tests.tui.screens import UNSAFE, app_on, eventually, open_run, opened, press, settle, text
from tests.tui.screens import shown as shown_by
from tuilab.catalogue.scenario import Scenario
from tuilab.record.events import Logged, StateChanged
from tuilab.tui.app import TuilabApp
from tuilab.tui.keys import KEYS
from tuilab.tui.palette import Commands
from tuilab.tui.screens.box import BoxPage
from tuilab.tui.screens.compare import ComparePage
from tuilab.tui.screens.help import HelpPage
from tuilab.tui.screens.history import HistoryPage
from tuilab.tui.screens.lab import LabPage
from tuilab.tui.screens.page import Page
from tuilab.tui.screens.run import RunPage
from tuilab.tui.shown_keys import shown
from tuilab.tui.state import subcommand
from tuilab.tui.state.run_source import RunSource
from tuilab.tui.widgets.lab.columns import Columns
from tuilab.tui.widgets.run.view_controller import ViewController

if TYPE_CHECKING:
    from textual.command import Provider
    from textual.pilot import Pilot


async def hits(provider: "Provider", query: str = "") -> list[str]:
    """Return what a provider of the palette offers."""
    await provider.startup()
    found = provider.search(query) if query else provider.discover()
    return [str(hit.text) async for hit in found]


@pytest.mark.parametrize("key", ["question_mark", "escape"])
async def test_help_lists_the_keys_of_where_one_is_and_closes(root: Path, key: str) -> None:
    finished(root, {"a": "SUPPORTED"}, end="aaaaaa")
    async with opened(root, "h", "question_mark", size=(150, 60)) as pilot:
        told = text(pilot)
        await press(pilot, key)
        assert isinstance(pilot.app.screen, HistoryPage)

    for entry in (*KEYS["history"], *KEYS["everywhere"]):
        assert f"{shown(entry)}  {entry.help}"[:40] in told
    assert "tuilab attach aaaaaa" in told
    assert "✗ refuted" in told and "! lost" in told


@pytest.mark.parametrize("size", [(80, 24), *slow_cases((60, 20))])
async def test_help_scrolls_to_its_end_on_a_small_screen(root: Path, size: tuple[int, int]) -> None:
    async with opened(root, "question_mark", size=size) as pilot:
        assert "Here: lab" in text(pilot)
        await press(pilot, "end")
        await pilot.wait_for_animation()

        assert "[low, high]" in text(pilot)


async def test_help_tells_the_keys_of_what_has_the_focus_first(root: Path) -> None:
    async with opened(root, "f", "f1", size=(100, 60)) as pilot:
        told = text(pilot)

    assert told.index("Here: form") < told.index("Lab") < told.index("Everywhere")
    assert "Go to the field above." in told


def test_every_key_of_every_place_is_told_in_words() -> None:
    every = [(place, key) for place, keys in KEYS.items() for key in keys]

    assert [place for place, key in every if not key.help.endswith(".")] == []
    assert [place for place, key in every if key.is_in_footer and not key.word] == []


@pytest.mark.parametrize(
    ("place", "page"),
    [
        ("lab", LabPage),
        ("run", RunPage),
        ("history", HistoryPage),
        ("compare", ComparePage),
        ("box", BoxPage),
    ],
)
def test_every_key_has_something_that_it_does(place: str, page: type[Page]) -> None:
    actions = [key.action.partition("(")[0] for key in KEYS[place]]
    own = {action for action in actions if not action.startswith("app.")}
    of_app = {action.removeprefix("app.") for action in actions if action.startswith("app.")}

    assert [action for action in sorted(own) if not hasattr(page, f"action_{action}")] == []
    assert [action for action in sorted(of_app) if not hasattr(TuilabApp, f"action_{action}")] == []


@pytest.mark.parametrize(
    ("place", "action", "part"),
    [("lab", "go", Columns), ("run", "look", ViewController), ("run", "play", RunSource)],
)
def test_a_key_that_asks_a_part_of_the_screen_asks_for_what_that_can_do(
    place: str, action: str, part: type
) -> None:
    ways = [
        key.action.partition("'")[2].partition("'")[0]
        for key in KEYS[place]
        if key.action.startswith(f"{action}(")
    ]

    assert len(ways) > 4
    assert [way for way in ways if not callable(getattr(part, way, None))] == []


async def test_asking_for_help_in_help_opens_it_once(root: Path) -> None:
    async with opened(root, "question_mark") as pilot:
        pilot.app.action_open_help()  # type: ignore[attr-defined]
        await settle(pilot)

        assert (
            len([screen for screen in pilot.app.screen_stack if isinstance(screen, HelpPage)]) == 1
        )


async def test_the_palette_offers_every_command_once(root: Path) -> None:
    async with opened(root, "h") as pilot:
        offered = await hits(Commands(pilot.app.screen))

    assert "Compare marked runs, or this run with its baseline or an earlier run." in offered
    assert "Quit; running runs continue." in offered
    assert len(offered) == len(set(offered))


async def test_the_palette_finds_commands_by_what_they_do(root: Path) -> None:
    async with opened(root, "h") as pilot:
        offered = await hits(Commands(pilot.app.screen), "delete")

    assert "delete: Delete the marked runs, or this one (asks first)." in offered[:2]


@pytest.mark.parametrize("query", ["elete", "xyzzy", "run xyzzy"])
async def test_letters_within_words_are_not_what_was_meant_and_nothing_found_is_said(
    root: Path, query: str
) -> None:
    async with opened(root, "h") as pilot:
        offered = await hits(Commands(pilot.app.screen), query)

    assert offered == ["no command matches"]


async def test_the_palette_finds_a_lesson_by_its_topic_and_its_title_behind_those_of_that_name(
    root: Path,
) -> None:
    async with opened(root) as pilot:
        offered = await hits(Commands(pilot.app.screen), "amp")

    assert offered[:2] == ["open linear-amp", "run linear-amp"] and "open gradscaler" in offered
    assert "run gradscaler" not in offered  # by a word of its text it is found, and not meant


async def test_the_palette_offers_scenarios_by_name(root: Path) -> None:
    async with opened(root) as pilot:
        offered = await hits(Commands(pilot.app.screen), "softmax")

    assert offered[:2] == ["open softmax", "run softmax"]


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("delete", "delete: in History, h, then d"),
        ("verify", "verify: on the command line: tuilab verify RUN"),
        ("zoom", "zoom: in a run or in Compare, z"),
        ("faster", "faster: in a replay, ]"),
        ("stop", "stop: in a run, in History, in Doctor, in Advise or in Calibrate, s"),
    ],
)
async def test_the_palette_says_where_a_command_is_that_the_screen_has_not(
    root: Path, word: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUILAB_ROOT", str(root))
    async with opened(root) as pilot:
        offered = await hits(Commands(pilot.app.screen), word)

    assert offered[0] == told
    assert not any(one.startswith("run ") for one in offered)


async def test_a_command_that_the_screen_has_is_not_said_to_be_elsewhere(root: Path) -> None:
    async with opened(root, "h") as pilot:
        offered = await hits(Commands(pilot.app.screen), "delete")

    assert offered[0] == "delete: Delete the marked runs, or this one (asks first)."
    assert not any("in History" in one for one in offered)


async def test_a_command_of_the_palette_is_done(root: Path) -> None:
    async with opened(root, "ctrl+p", *"all runs on") as pilot:
        assert isinstance(pilot.app.screen, CommandPalette)
        await chosen(pilot)

        assert isinstance(pilot.app.screen, HistoryPage)


async def chosen(pilot: "Pilot[int]") -> None:
    """Wait until the palette has found something, and take it."""
    from textual.command import CommandList

    await eventually(
        pilot, lambda: bool(pilot.app.screen.query_one(CommandList).option_count), "a command"
    )
    await press(pilot, "enter")


async def test_a_scenario_with_a_hostile_name_and_title_is_only_shown(root: Path) -> None:
    async with opened(root, size=(100, 30)) as pilot:
        pilot.app.desk.scenarios[:] = [Scenario(HOSTILE, HOSTILE, "/nowhere.py", HOSTILE)]  # type: ignore[attr-defined]
        await press(pilot, "ctrl+p")
        discovered = await shown_by(pilot, "open ")
        assert "🔎" not in discovered  # which a console in ASCII has no sign for
        await press(pilot, *"owned")
        found = await shown_by(pilot, "run [")

    assert "open [/b][red]" in discovered
    assert "run [/b][red]" in found
    assert UNSAFE.findall((discovered + found).replace("\n", "")) == []


async def test_help_of_a_run_that_is_over_has_no_stop_and_calls_places_as_they_are_written(
    root: Path,
) -> None:
    bad = Logged(s=1, v={"loss": math.nan})
    run_dir = make_run(
        root, started(), Logged(s=0, v={"loss": 1.0}), bad, StateChanged(state="succeeded")
    )
    async with opened(app_on(root), size=(100, 60)) as pilot:
        await open_run(pilot, run_dir)
        await press(pilot, "question_mark")

        assert "NaN or Inf" in text(pilot) and "Nan or inf" not in text(pilot)
        assert "Stop the run" not in text(pilot)


async def test_an_empty_queue_offers_no_key_that_has_nothing_to_act_on(root: Path) -> None:
    async with opened(app_on(root), "Q", size=(100, 30)) as pilot:
        keys = text(pilot).splitlines()[-1]

    assert "p pause" in keys and "back" in keys
    assert not any(word in keys for word in ("open", "earlier", "later", "remove"))


@pytest.mark.parametrize(
    "way", ["Lab", *slow_cases("h History", "b Box", "Q Queue", "question_mark Help")]
)
async def test_every_page_is_found_by_its_name_from_every_other(
    root: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    *keys, here = way.split()
    monkeypatch.setattr(subcommand, "TUILAB", ("true",))  # for seconds the doctor asks the machine
    async with opened(app_on(root)) as pilot:
        for page in ("History", "Box", "Queue", "Doctor", "Advise", "Calibrate", "Help", "Lab"):
            await press(pilot, *keys)
            assert type(pilot.app.screen).__name__ == f"{here}Page"
            await press(pilot, "ctrl+p")
            pilot.app.screen.query_one(Input).value = page.lower()
            await press(pilot, "enter")

            assert type(pilot.app.screen).__name__ == f"{page}Page"
            pilot.app.action_open_lab()  # type: ignore[attr-defined]
            await settle(pilot)


@pytest.mark.parametrize("keys", [(), ("h",), ("Q",), ("h", "enter")])
async def test_the_word_of_every_key_is_found_wherever_one_is(
    root: Path, keys: tuple[str, ...]
) -> None:
    finished(root, {})
    places = ("lab", "run", "history", "compare", "queue", "box", "doctor", "advise", "calibrate")
    words = {key.word for place in places for key in KEYS[place] if key.word}
    async with opened(app_on(root), *keys) as pilot:
        commands = Commands(pilot.app.screen)
        missing = [
            word
            for word in words
            if not any(one.startswith(f"{word}: ") for one in await hits(commands, word))
        ]

    assert len(words) > 20
    assert missing == []


async def test_a_key_that_is_told_in_a_state_is_found_by_its_word_and_pressed(root: Path) -> None:
    finished(root, {})
    async with opened(app_on(root), "h", "enter", "ctrl+p", *"replay", "enter") as pilot:
        page = pilot.app.screen

        assert isinstance(page, RunPage) and not page.is_live


async def test_where_nothing_may_be_changed_no_key_that_does_is_named(root: Path) -> None:
    async with opened(app_on(root, is_read_only=True)) as pilot:
        offered = await hits(Commands(pilot.app.screen), "delete")

    assert offered == ["no command matches"]
