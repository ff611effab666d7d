"""The Lab screen: what the catalogue says, what the keys do, and that nothing on it can steer the terminal."""

import re
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from textual.content import Content
from textual.pilot import Pilot
from textual.screen import Screen

from tests.made_runs import FAST, KEYS, PLAIN, finished, make_run, note_done, started, write
from tests.slow_cases import slow_cases
from tests.tui.screens import (
    NotingApp,
    NotingDesk,
    ShownApp,
    drive,
    eventually,
    opened,
    press,
    settle,
    shown,
    text,
)
from tuilab.catalogue.source import read as read_scenario
from tuilab.catalogue.stated_claims import fits
from tuilab.record import events
from tuilab.record.journal.writer import Writer
from tuilab.runs import queue
from tuilab.runs.past_runs import read_past_run
from tuilab.tui.looks.highlight import highlight
from tuilab.tui.looks.lesson_layout import inline, lay_out, wrap_lines
from tuilab.tui.looks.themes import NAMES
from tuilab.tui.screens.lab import LabPage
from tuilab.tui.state.background_reader import BackgroundReader
from tuilab.tui.state.box_line import box_line
from tuilab.tui.state.session import Session
from tuilab.tui.state.settings import Settings
from tuilab.tui.terminal.textual_parts import rendered
from tuilab.tui.widgets.lab.catalogue import Catalogue
from tuilab.tui.widgets.lab.source import Source

HOSTILE = "\x1b[2J\x1b]0;pwned\x07\x9b31m[/foo][bold]\u202egnirts\u2028\ud800".encode(
    "utf-8", "replace"
).decode()
DANGEROUS = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff]"
)

TALL = (120, 130)  # all scenarios stand in the list at once


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUILAB_ROOT", str(tmp_path / "runs"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "scenarios", fast=FAST, plain=PLAIN, broken="def run(:\n")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "runs"


def record_run(
    root: Path, *verdicts: events.VerdictReached, name: str = "20260102T030405000Z-fast-abc123"
) -> Path:
    """Write the record of a finished run."""
    run_dir = root / name
    (run_dir / "journal").mkdir(parents=True)
    journal = Writer(run_dir / "journal" / "supervisor.jsonl")
    journal.append(
        events.RunStarted(
            format=events.FORMAT,
            run=run_dir.name,
            scenario="fast",
            topic="mine",
            title="A fast sum",
            source_sha256="",
            params={"rows": 5, "tidy": True},
            supervisor=events.Identity(host="h", boot="b", pid=1, start=1),
            tuilab="0",
            wall_ns=0,
            changed=["rows"],
            repeats=6,
        )
    )
    for verdict in verdicts:
        journal.append(verdict)
    journal.append(events.StateChanged(state="succeeded"))
    journal.sync()
    return run_dir


def verdict(text: str, word: str, why: str = "") -> events.VerdictReached:
    return events.VerdictReached(text=text, key=KEYS.get(text, ""), verdict=word, rule="1", why=why)


# ---- the catalogue


def test_the_catalogue_has_the_last_verdict_of_each_scenario_in_words(
    folder: Path, root: Path
) -> None:
    record_run(
        root, verdict("the sum is right", "SUPPORTED"), name="20260101T000000000Z-fast-aaaaaa"
    )
    record_run(
        root,
        verdict("the sum is right", "WEAKER THAN CLAIMED"),
        name="20260102T000000000Z-fast-bbbbbb",
    )
    record_run(
        root, verdict("the sum is right", "SUPPORTED"), name="20260101T000000000Z-plain-cccccc"
    )

    async def body(app: NotingApp, pilot: "Pilot[int]") -> None:
        lines = [" ".join(line.split()) for line in text(pilot).split("\n")]
        assert any("▾ mine 1 ✓ 1 ≈ of 3" in line for line in lines)
        assert any("≈ fast weaker" in line for line in lines)
        assert any("✓ plain" in line for line in lines)
        assert any("! broken not usable" in line for line in lines)

    drive(body, folder, root, size=TALL)


def test_a_verdict_that_is_not_of_the_defaults_says_so(folder: Path, root: Path) -> None:
    finished(root, {"the sum is right": "SUPPORTED"}, name="fast", end="aaaaaa", quick=True)
    finished(root, {"it holds": "REFUTED"}, name="plain", end="bbbbbb", at_s=1.6e9)
    finished(root, {}, name="plain", end="cccccc", state="stopped")

    async def body(app: NotingApp, pilot: "Pilot[int]") -> None:
        lines = [" ".join(line.split()) for line in text(pilot).split("\n")]
        assert any("✓ fast quick" in line for line in lines)
        assert any("✗ plain refuted │" in line for line in lines)
        assert "with quick." in text(pilot)
        await press(pilot, "down")
        assert "with the defaults." in text(pilot)

    drive(body, folder, root, size=TALL)


def test_the_filter_narrows_as_it_is_typed_and_its_letters_are_no_keys(
    folder: Path, root: Path
) -> None:
    async def body(app: NotingApp, pilot: "Pilot[int]") -> None:
        theme = app.theme
        await pilot.press("slash", *"operator quick")
        await settle(pilot)
        assert app.page.scenario is not None and app.page.scenario.id == "fast"
        assert "plain" not in text(pilot) and "Scenarios 1 of" in text(pilot)
        await pilot.press(*("q", "s", "0", "question_mark", "slash", "T", "f"))
        await settle(pilot)
        assert "no scenario has all these words" in text(pilot)
        assert (app.theme, app.is_running) == (theme, True)
        await pilot.press("escape")
        await settle(pilot)
        assert "plain" in text(pilot) and "Scenarios 1 of" not in text(pilot)

    drive(body, folder, root, size=TALL)


def test_what_the_filter_leaves_is_shown_beside_it(folder: Path, root: Path) -> None:
    async def body(app: NotingApp, pilot: "Pilot[int]") -> None:
        before = text(pilot)
        await pilot.press("slash", *"mine plain")
        await settle(pilot)

        assert "─ mine/fast ─" in before
        assert "─ mine/plain ─" in text(pilot)

    drive(body, folder, root)


def test_where_the_filter_leaves_nothing_it_says_what_can_be_typed_and_enter_runs_nothing(
    folder: Path, root: Path
) -> None:
    async def body(app: NotingApp, pilot: "Pilot[int]") -> None:
        await pilot.press("slash", *"fast zzz")
        await settle(pilot)

        told = text(pilot)
        assert "─ no match ─" in told and "No scenario has all these words: fast zzz" in told
        assert "A fast sum" not in told and "Topics" in told and "mine" in told
        await pilot.press("enter", "enter", "f", "p")
        await settle(pilot)
        assert app.ordered == [] and "─ no match ─" in text(pilot)
        await pilot.press("escape")
        await settle(pilot)
        assert "no match" not in text(pilot) and app.page.scenario is not None

    drive(body, folder, root)


def test_topics_close_and_open_and_left_and_right_lead_through_them(
    folder: Path, root: Path
) -> None:
    async def body(app: NotingApp, pilot: "Pilot[int]") -> None:
        await pilot.press("left")
        assert app.page.scenario is None
        await pilot.press("left")
        await settle(pilot)
        assert (
            "▸ mine" in text(pilot)
            and "plain" not in text(pilot).split("│╭")[0].split("▸ mine")[1][:200]
        )
        await pilot.press("right", "down", "down")
        assert app.page.scenario is not None and app.page.scenario.id == "fast"
        await pilot.press("right")
        await settle(pilot)
        assert app.focused is not None and app.focused.id == "lesson"
        await pilot.press("left")
        assert app.focused is not None and app.focused.id == "catalogue"

    drive(body, folder, root)


def test_a_file_that_cannot_be_used_says_why_and_how_to_check_it(folder: Path, root: Path) -> None:
    async def body(app: NotingApp, pilot: "Pilot[int]") -> None:
        await pilot.press("up")
        await settle(pilot)
        assert "This file cannot be used" in text(pilot)
        assert "line 1: invalid syntax" in text(pilot)
        assert app.page.command() == f"tuilab check {folder}/mine/broken.py"
        await pilot.press("enter", "f", "c", "r", "p")
        await settle(pilot)
        assert app.ordered == []
        assert "broken cannot be run: line 1: invalid syntax" in app.said[0]
        for part in "cfr":
            await press(pilot, part)
            assert "! line 1: invalid syntax" in text(pilot)

    drive(body, folder, root)


# ---- running


def test_enter_runs_the_scenario_with_its_defaults(folder: Path, root: Path) -> None:
    note_done("fast")

    async def body(app: NotingApp, pilot: "Pilot[int]") -> None:
        await pilot.press("enter")
        await settle(pilot)

        assert [(order.scenario, order.repeats, order.changed) for order in app.ordered] == [
            ("fast", 6, [])
        ]
        assert app.ordered[0].argv == ["run", "fast", "--scenarios", str(folder)]

    drive(body, folder, root)


def test_before_its_first_run_a_scenario_asks_what_is_expected(folder: Path, root: Path) -> None:
    async def body(app: NotingApp, pilot: "Pilot[int]") -> None:
        await pilot.press("enter")
        await settle(pilot)
        assert "How many times faster is it?" in text(pilot)
        await pilot.press("x", "enter")
        await settle(pilot)
        assert '"x" is not a number' in text(pilot)
        await pilot.press("escape")
        await settle(pilot)
        assert app.ordered == [] and isinstance(app.focused, Catalogue)
        await pilot.press("enter", "4", "enter")  # nothing is left of what was given up
        await settle(pilot)
        assert [(order.scenario, order.prediction) for order in app.ordered] == [("fast", 4.0)]

    drive(body, folder, root)


def test_whoever_expects_nothing_is_asked_once(folder: Path, root: Path) -> None:
    async def body(app: NotingApp, pilot: "Pilot[int]") -> None:
        await pilot.press("enter", "escape")
        await settle(pilot)
        assert app.ordered == []
        await pilot.press("enter", "enter", "enter")
        await settle(pilot)
        assert [(order.scenario, order.prediction) for order in app.ordered] == [
            ("fast", None),
            ("fast", None),
        ]

    drive(body, folder, root)


def test_a_run_that_somebody_else_started_is_told_and_a_key_goes_there(
    folder: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Path] = []
    monkeypatch.setattr(NotingApp, "open_run", lambda app, run: opened.append(run))
    root.mkdir()

    async def body(app: NotingApp, pilot: "Pilot[int]") -> None:
        await pilot.press("a")
        assert app.said == ["no run is running or queued"]
        for end in ("aaaaaa", "bbbbbb"):
            make_run(
                root,
                started(is_alive=True),
                events.StateChanged(state="running"),
                at_s=time.time(),
                end=end,
            )
        await shown(
            pilot,
            "● 2 runs  stability/softmax bbbbbb, stability/softmax aaaaaa  a opens each in turn",
        )
        assert "a attach" in text(pilot)
        await pilot.press("a", "a", "a")

    drive(body, folder, root)
    assert [run.name[-6:] for run in opened] == ["bbbbbb", "aaaaaa", "bbbbbb"]


def test_enter_on_a_topic_runs_only_what_the_filter_leaves(folder: Path, root: Path) -> None:
    write(folder, third=PLAIN)

    async def body(app: NotingApp, pilot: "Pilot[int]") -> None:
        await press(pilot, "slash", *"mine", "enter", "left")
        assert "enter runs all 3 with their defaults" in text(pilot)
        assert app.page.command() == f"tuilab run mine --scenarios {folder}"
        await press(pilot, "slash", *" plain", "enter", "left")
        assert "enter runs all 2 that the filter shows with their defaults" in text(pilot)
        assert app.page.command() == f"tuilab run plain third --scenarios {folder}"
        await press(pilot, "enter")
        assert [order.scenario for order in app.ordered] == ["plain", "third"]

    drive(body, folder, root)


def test_a_run_that_waits_is_queued_and_not_running(folder: Path, root: Path) -> None:
    finished(root, {"it holds": "REFUTED"}, name="plain", end="cccccc", at_s=1.6e9)
    for name, state in (("fast", "running"), ("fast", "queued"), ("plain", "queued")):
        make_run(
            root,
            started(is_alive=True, scenario=name),
            events.StateChanged(state=state),
            name=name,
            end=f"{state[:3]}abc",
        )
    queue.pause(root)

    async def body(app: NotingApp, pilot: "Pilot[int]") -> None:
        lines = [" ".join(line.split()) for line in text(pilot).split("\n")]
        assert any("● fast running" in line for line in lines)
        assert any("○ plain queued" in line for line in lines)
        assert "● 1 run, ○ 2 queued, paused (press Q)  stability/" in text(pilot)

    drive(body, folder, root, size=TALL)


def test_lab_reads_runs_again_only_when_some_came_or_went(root: Path) -> None:
    record_run(root, verdict("the sum is right", "SUPPORTED"))
    screen = SimpleNamespace(run_worker=lambda work, **_: work(), post_message=lambda _: None)
    reader = BackgroundReader(cast(Screen[None], screen), Session(root, [], Settings()))
    reader.look_around(None)
    reader.look_around(None)  # the first one saved the index in the folder

    assert not reader.has_news()
    record_run(root, name="20260103T030405000Z-fast-def456")
    assert reader.has_news()


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ([], "enter run  / filter  f form  h history  b box"),
        (["left"], "enter run all  space open/close  / filter"),
        (["r"], "enter open  m compare  / filter"),
        (["f"], "enter run  ^p commands  esc list  f1 help"),
        (["slash"], "enter apply  ^p commands  esc show all  f1 help"),
        (["c"], "enter run  n next claim  / search"),
    ],
)
@pytest.mark.first(3)
def test_the_last_line_tells_what_the_keys_do_to_what_has_the_focus(
    folder: Path, root: Path, keys: list[str], told: str
) -> None:
    async def body(app: NotingApp, pilot: "Pilot[int]") -> None:
        await pilot.press(*keys)
        await settle(pilot)
        assert text(pilot).splitlines()[-1].strip().startswith(told)

    drive(body, folder, root)


def test_the_keys_of_a_topic_are_told_only_while_one_is_in_the_list(
    folder: Path, root: Path
) -> None:
    async def body(app: NotingApp, pilot: "Pilot[int]") -> None:
        await press(pilot, "left")
        in_list = text(pilot).splitlines()[-1]
        await press(pilot, "p")
        in_lesson = text(pilot).splitlines()[-1]

        assert "run all" in in_list and "open/close" in in_list
        assert "run all" not in in_lesson and "open/close" not in in_lesson

    drive(body, folder, root)


def test_newest_or_chosen_run_is_compared_with_its_reference(
    folder: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[list[str]] = []
    monkeypatch.setattr(
        NotingApp,
        "open_compare",
        lambda app, runs: compared.append([run.name[-6:] for run in runs]),
    )
    for day, end in ((2, "aaaaaa"), (3, "bbbbbb"), (4, "cccccc")):
        record_run(
            root,
            verdict("the sum is right", "SUPPORTED"),
            name=f"2026010{day}T030405000Z-fast-{end}",
        )

    async def body(app: NotingApp, pilot: "Pilot[int]") -> None:
        await pilot.press("m", "r", "down", "m", "down", "m")
        await settle(pilot)
        assert app.said == ["no run to compare with: no baseline and no earlier successful run"]

    drive(body, folder, root)
    assert compared == [["bbbbbb", "cccccc"], ["aaaaaa", "bbbbbb"]]


def test_enter_on_a_topic_runs_all_of_it_that_can_be_used(folder: Path, root: Path) -> None:
    async def body(app: NotingApp, pilot: "Pilot[int]") -> None:
        await pilot.press("left")
        await settle(pilot)
        assert "runs all 2 with their defaults" in text(pilot)
        await pilot.press("enter")
        assert [order.scenario for order in app.ordered] == ["fast", "plain"]
        assert app.page.command() == f"tuilab run mine --scenarios {folder}"

    drive(body, folder, root)


# ---- the parts


def test_each_part_has_a_key_and_the_open_one_is_remembered(folder: Path, root: Path) -> None:
    record_run(root, verdict("the sum is right", "SUPPORTED"))

    async def body(app: NotingApp, pilot: "Pilot[int]") -> None:
        for key, part, words in (
            ("f", "form", "operator does it"),
            ("c", "code", "lab.claim("),
            ("r", "runs", "rows=5"),
            ("p", "lesson", "Adding up is quick"),
        ):
            await pilot.press(key, "escape")
            await settle(pilot)
            assert app.desk.settings.part == part
            if part == "form":
                assert words not in text(pilot)
            else:
                await shown(pilot, words)
        await pilot.press("f")

    app = drive(body, folder, root)
    assert app.desk.settings.part == "form"


def test_a_part_that_was_hidden_shows_the_scenario_that_was_chosen_since(
    folder: Path, root: Path
) -> None:
    async def body(app: NotingApp, pilot: "Pilot[int]") -> None:
        await press(pilot, "p", "down", "down", "f", "escape", "down", "p")

        assert "mine/plain" in text(pilot) and "Adding up is quick" not in text(pilot)

        await press(pilot, "escape", "f", "escape", "left")
        assert "enter runs all 2" in text(pilot)

    drive(body, folder, root)


def test_a_part_can_be_picked_with_the_mouse(folder: Path, root: Path) -> None:
    async def body(app: NotingApp, pilot: "Pilot[int]") -> None:
        await pilot.click("Parts", offset=(23, 0))
        await settle(pilot)
        assert app.desk.settings.part == "code"

    drive(body, folder, root)


def test_the_lesson_shows_what_the_newest_run_found(folder: Path, root: Path) -> None:
    record_run(
        root,
        verdict("the sum is right", "SUPPORTED"),
        verdict("sum is fast", "WEAKER THAN CLAIMED", "loop/sum 1.2 [1.1, 1.3]"),
    )

    async def body(app: NotingApp, pilot: "Pilot[int]") -> None:
        assert "✓ [right] the sum is right" in text(pilot)
        assert "≈ [fast] sum is fast" in text(pilot)
        assert "weaker than claimed: loop/sum 1.2 [1.1, 1.3]" in text(pilot)
        assert "with rows=5." in text(pilot)

    drive(body, folder, root)


def test_the_lesson_says_on_which_gpu_its_marks_were_measured(folder: Path, root: Path) -> None:
    reached = verdict("the sum is right", "SUPPORTED")
    reached.gpu, reached.gpu_name = "1a2b3c4d-0000", "NVIDIA H100"
    record_run(root, reached)

    async def body(app: NotingApp, pilot: "Pilot[int]") -> None:
        lesson = " ".join(line.partition("││")[2].strip("│ ") for line in text(pilot).splitlines())
        assert "with rows=5 on NVIDIA H100 (1a2b3c4d); results may differ on another GPU." in lesson

    drive(body, folder, root)


def test_the_lesson_says_what_this_box_lacks(folder: Path, root: Path) -> None:
    run_dir = record_run(root)
    journal = Writer(run_dir / "journal" / "worker-0.jsonl")
    journal.append(events.BoxLacked(needs="two NUMA nodes"))
    journal.sync()

    async def body(app: NotingApp, pilot: "Pilot[int]") -> None:
        assert "– not testable here: two NUMA nodes" in text(pilot)

    drive(body, folder, root)


def test_the_code_marks_the_lines_of_claims_with_their_verdicts(folder: Path, root: Path) -> None:
    record_run(root, verdict("the sum is right", "REFUTED"))

    async def body(app: NotingApp, pilot: "Pilot[int]") -> None:
        await pilot.press("c")
        await settle(pilot)
        lines = [line for line in text(pilot).split("\n") if "lab." in line]
        assert (
            "✗     lab.claim(" in lines[0]
            and "●     lab.claim_ratio(" in lines[1]
            and "○     lab.race(" in lines[2]
        )
        await pilot.press("n", "right", "left", "end")
        assert isinstance(app.focused, Source)

    drive(body, folder, root)


def test_enter_among_past_runs_opens_one(
    folder: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_dir = record_run(root, verdict("the sum is right", "SUPPORTED"))
    opened: list[Path] = []
    monkeypatch.setattr(NotingApp, "open_run", lambda app, run: opened.append(run))

    async def body(app: NotingApp, pilot: "Pilot[int]") -> None:
        await pilot.press("r", "enter")
        await settle(pilot)

    app = drive(body, folder, root)
    assert opened == [run_dir]
    assert app.ordered == []


# ---- the size and the looks


@pytest.mark.parametrize("size", [(20, 4), (80, 24), *slow_cases((60, 20), (40, 8), (200, 50))])
def test_every_size_shows_the_list_and_reaches_every_part(
    folder: Path, root: Path, size: tuple[int, int]
) -> None:
    async def body(app: NotingApp, pilot: "Pilot[int]") -> None:
        assert "fast" in text(pilot)
        for key in ("f", "c", "r", "p", "slash"):
            await pilot.press(key)
            await settle(pilot)
            assert text(pilot)
        await pilot.press("escape", "escape")
        await settle(pilot)
        assert app.focused is not None and app.focused.id == "catalogue"
        assert "fast" in text(pilot)

    drive(body, folder, root, size=size)


def test_a_narrow_screen_shows_the_list_or_what_was_opened(folder: Path, root: Path) -> None:
    async def body(app: NotingApp, pilot: "Pilot[int]") -> None:
        assert "Scenarios" in text(pilot) and "Adding up" not in text(pilot)
        await pilot.press("p")
        await settle(pilot)
        assert "Scenarios" not in text(pilot) and "Adding up" in text(pilot)
        await pilot.press("escape")
        await settle(pilot)
        assert "Scenarios" in text(pilot)

    drive(body, folder, root, size=(60, 20))


def test_the_first_start_says_what_to_do_first_and_only_once(folder: Path, root: Path) -> None:
    settings = Settings(scenario="fast")

    async def first(app: NotingApp, pilot: "Pilot[int]") -> None:
        assert "First time here?" in text(pilot)

    async def second(app: NotingApp, pilot: "Pilot[int]") -> None:
        assert "First time here?" not in text(pilot)

    drive(first, folder, root, settings=settings)
    drive(second, folder, root, settings=settings)


@pytest.mark.parametrize("theme", NAMES)
def test_every_theme_shows_where_the_cursor_is(folder: Path, root: Path, theme: str) -> None:
    async def body(app: NotingApp, pilot: "Pilot[int]") -> None:
        shown = zip(text(pilot).split("\n"), rendered(app.screen), strict=True)
        lines = {" ".join(words[:20].split()): segments for words, segments in shown}
        styles = [
            next(one.style for one in lines[name] if one.text.strip(" │"))
            for name in ("│ fast", "│ plain")
        ]
        assert styles[0] != styles[1]

    drive(
        body,
        folder,
        root,
        size=TALL,
        settings=Settings(scenario="fast", has_seen_hint=True, theme=theme),
    )


# ---- what nobody may trust


@pytest.mark.slow
def test_hostile_scenarios_are_shown_and_steer_nothing(tmp_path: Path, root: Path) -> None:
    spelt = HOSTILE.encode("unicode_escape").decode().replace('"', "")
    evil = (
        f'"""{"T" * 10_000} {spelt}.\n\n{spelt * 30}\n\n## Predict\n{spelt}?\n'
        f"## Look for\n- [evil] {spelt}\n- [long] {'a' * 5000}\n"
        f'## {spelt}\n[/foo] [bold]x\n## Try next\n`--n {spelt}`\n"""\nfrom typing import Literal\n'
        f'def run(lab, n: int = 3, text: str = "{spelt}", pick: Literal["[/x]", "{spelt}"] = "[/x]",  # {spelt}\n'
        f') -> None:\n    lab.claim("{{a}}" * 3 + "[/foo]", n)\n    lab.claim("evil", n)\n'
    )
    wide = f'"""{"中文宽字符" * 200}.\n\n{"中文👩‍👩‍👧" * 2000}\n"""\ndef run(lab, {"n" * 200}: int = 1) -> None: pass  # 中文\n'
    folder = write(tmp_path / "scenarios", fast=FAST, evil=evil, wide=wide, empty="")
    (folder / "mine" / "[q] \x1b[2J\u202e.py").write_text("'''t'''")
    (folder / "[b]\x1b[1m").mkdir()
    (folder / "[b]\x1b[1m" / "deep.py").write_text(FAST)
    record_run(root, verdict(HOSTILE, "REFUTED", HOSTILE), name="20260102T030405000Z-evil-abc123")
    assert not read_scenario(folder / "mine" / "evil.py").error

    async def body(app: NotingApp, pilot: "Pilot[int]") -> None:
        seen = set()
        await pilot.press("up")
        for _ in range(9):
            for key in ("p", "f", "c", "r", "escape", "y"):
                await pilot.press(key)
                assert not DANGEROUS.search(text(pilot))
            await settle(pilot)
            seen.add(app.page.scenario.id if app.page.scenario else "a topic")
            await pilot.press("down")
        assert seen >= {"[q] \x1b[2J\u202e", "empty", "evil", "wide", "a topic", "deep"}

    drive(
        body, folder, root, size=(100, 30), settings=Settings(scenario="deep", has_seen_hint=True)
    )


def test_a_claim_with_many_gaps_is_compared_quickly() -> None:
    gaps = "{x}" * 200 + "end"

    assert not fits("a" * 5000, gaps)


# ---- the pieces


def test_a_lesson_is_laid_out_in_lines_of_its_width() -> None:
    text = "A `code` word and a *stressed* one,\ngoing on.\n\n- first bullet that is long\n  and goes on\n- second\n\n"
    text += "    x = [/b]\n"

    assert [line.plain for line in lay_out(text, 20)] == [
        "A code word and a",
        "stressed one, going",
        "on.",
        "",
        "• first bullet that",
        "  is long and goes",
        "  on",
        "• second",
        "",
        "  x = [/b]",
    ]


def test_each_option_to_try_starts_a_line_of_its_own() -> None:
    assert [
        line.plain for line in lay_out("`--rows 5`: few.\n`--cols 9`: wide\nand slow.", 40)
    ] == [
        "▸ --rows 5: few.",
        "▸ --cols 9: wide and slow.",
    ]


def test_what_a_change_refutes_stands_below_it() -> None:
    text = "`--rows 5`: few,\nso slow; refutes: sum,\nspread\n`--cols 9`: wide\nrefutes: sum\nand so on\n\nrefutes: spread"

    assert [line.plain for line in lay_out(text, 40)] == [
        "▸ --rows 5: few, so slow",
        "  refutes: sum, spread",
        "▸ --cols 9: wide",
        "  refutes: sum",
        "",
        "and so on",
        "  refutes: spread",
    ]


@pytest.mark.parametrize(
    "source", ["def f(:\n  '''x", "\tx\n y = 'a\n", "", 'f"{a!r} b"\n', "é = '中文' # 中\n"]
)
def test_any_text_can_be_highlighted(source: str) -> None:
    assert "\n".join(line.plain for line in highlight(source)) == source.expandtabs(4)


def test_keywords_texts_and_comments_are_told_apart() -> None:
    (line,) = highlight("def f(): return 'x'  # why")

    assert [(line.plain[span.start : span.end], span.style) for span in line.spans] == [
        ("def", "$text-primary"),
        ("f", "bold"),
        ("return", "$text-primary"),
        ("'x'", "$text-success"),
        ("# why", "$text-muted italic"),
    ]


def test_a_run_that_cannot_be_read_is_lost(tmp_path: Path) -> None:
    assert read_past_run(tmp_path / "absent").state == "lost"


def test_the_box_is_told_from_the_drivers_own_files(tmp_path: Path) -> None:
    for number in range(2):
        gpu = tmp_path / "proc/driver/nvidia/gpus" / f"0000:0{number}:00.0"
        gpu.mkdir(parents=True)
        (gpu / "information").write_text("Model: \t\t NVIDIA H100 80GB HBM3\x1b[2J\nIRQ: 1\n")

    assert " · 2x H100 80GB HBM3\ufffd[2J · torch " in box_line(tmp_path)
    assert " · no NVIDIA driver · torch " in box_line(tmp_path / "absent")


def test_the_driver_that_wsl_borrows_from_windows_is_one(tmp_path: Path) -> None:
    for name in ("dev/dxg", "usr/lib/wsl/lib/libcuda.so.1"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()

    assert " · NVIDIA driver of Windows (WSL) · torch " in box_line(tmp_path)


def test_while_a_lesson_is_read_a_process_gets_ready_for_its_run(folder: Path, root: Path) -> None:
    async def body(app: NotingApp, pilot: Pilot[int]) -> None:
        assert isinstance(app.desk, NotingDesk)
        desk = app.desk
        await eventually(pilot, lambda: desk.prepared > 0, "a process that gets ready")

    drive(body, folder, root)


async def test_who_only_looks_at_a_run_has_no_process_made_ready_until_the_lab_is_seen(
    root: Path,
) -> None:
    app = ShownApp(
        desk := NotingDesk(root, (), Settings(has_seen_hint=True)), show=finished(root, {})
    )

    async with opened(app) as pilot:
        lab = app.screen_stack[1]
        assert isinstance(lab, LabPage) and app.screen is not lab
        lab.make_ready()
        assert desk.prepared == 0
        await press(pilot, "escape")
        await eventually(pilot, lambda: desk.prepared > 0, "a process that gets ready")


def test_a_paragraph_with_wide_characters_is_broken_as_those_are_read() -> None:
    lines = wrap_lines(inline("先减去*最大*的 logit：再取 `exp`。"), 12)

    assert [line.plain for line in lines] == ["先减去最大的", "logit：再取", "exp。"]
    assert [span.style for line in lines for span in line.spans] == ["italic", "$text-secondary"]


def test_text_that_was_not_joined_before_is_broken_without_a_loss() -> None:
    assert [line.plain for line in wrap_lines(Content("a  数 值"), 80)] == ["a  数 值"]


@pytest.mark.parametrize(("key", "part"), [("f", "form"), ("c", "code"), ("r", "runs")])
def test_a_topic_says_that_it_has_no_part_of_a_scenario_and_the_focus_stays(
    folder: Path, root: Path, key: str, part: str
) -> None:
    async def body(app: NotingApp, pilot: "Pilot[int]") -> None:
        await press(pilot, "left", key)
        assert app.said == [f"a topic has no {part}; choose one of its scenarios"]
        assert app.page.focused is not None and app.page.focused.id == "catalogue"

    drive(body, folder, root)


def test_a_title_is_shown_whole_on_a_small_screen(tmp_path: Path, root: Path) -> None:
    title = "Batching calls halves the time only on a GPU that is busy with something else, and on no other that was ever seen"
    folder = write(tmp_path / "scenarios", fast=FAST.replace("A fast sum", title))

    async def body(app: NotingApp, pilot: "Pilot[int]") -> None:
        lines = [line.partition("││")[2].strip(" │") for line in text(pilot).split("\n")]
        assert title in " ".join(lines)

    drive(body, folder, root, size=(80, 24))


async def test_the_points_of_a_large_sweep_hide_neither_the_marks_of_a_lesson_nor_the_runs_of_a_command(
    folder: Path, root: Path
) -> None:
    words = ["python", "train.py", "--lr", "1"]
    old = started(scenario="train", topic="exec", command=words, title=" ".join(words))
    make_run(
        root,
        old,
        events.StateChanged(state="succeeded"),
        name="train.exec",
        at_s=1.5e9,
        end="aaaaaa",
    )
    finished(
        root,
        {"the sum is right": "SUPPORTED"},
        name="fast",
        at_s=1.5e9,
        end="bbbbbb",
        claims=["the sum is right"],
    )
    for number in range(31):
        sweep = events.Sweep(id="sweep-1", values={"rows": [5, 9]}, point={"rows": 5})
        point: dict[str, Any] = {"sweep": sweep, "params": {"rows": 5}, "changed": ["rows"]}
        finished(
            root,
            {"the sum is right": "REFUTED"},
            name="fast",
            at_s=1.6e9 + number,
            end=f"{number:06}",
            **point,
        )
        other = started(
            scenario="train",
            topic="exec",
            command=[*words[:3], "2"],
            title="python train.py --lr 2",
        )
        make_run(
            root,
            other,
            events.StateChanged(state="failed"),
            name="train.exec",
            at_s=1.6e9 + number,
            end=f"{number:06}",
        )
    app = NotingApp(NotingDesk(root, [str(folder)], Settings(scenario="fast", has_seen_hint=True)))
    async with opened(app, size=(120, 40)) as pilot:
        assert "✓ [right] the sum is right" in text(pilot)
        app.page.columns.catalogue.go_to("python train.py --lr 1")
        await press(pilot, "r")

        assert "14 Jul" in text(pilot) and "succeeded" in text(pilot)
