"""The screens that show what a command prints: the doctor, the settings that follow, and the calibration."""

from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from tests.engine import until
from tests.tui.made_up import HOSTILE, finished
from tests.tui.screens import UNSAFE, NotingApp, NotingDesk, app_on, eventually, opened, press, said, settle, text
from tuilab.catalogue import catalog
from tuilab.cli.front_page import VERBS
from tuilab.doctor import Finding
from tuilab.doctor.answers import counts, render
from tuilab.doctor.asking import GROUPS, Asked
from tuilab.doctor.facts import Fact
from tuilab.drawings.glyphs import Style
from tuilab.judging import calibration, calibration_file
from tuilab.judging.calibration_file import Trials
from tuilab.reports.advice import gather
from tuilab.reports.advice.env_file import env_file
from tuilab.tui import goodbye
from tuilab.tui.screens import calibrate, doctor
from tuilab.tui.screens.page import Page
from tuilab.tui.state.box.calibrating import Calibrating
from tuilab.tui.state.settings import Settings
from tuilab.tui.terminal.textual_parts import TextualPalette
from tuilab.tui.widgets.printout import Printout

FINDINGS = {
    group: {f"{group}.a": Finding("pass", f"all is well with {group}"), f"{group}.b": Finding("n/a", "nobody knows")}
    for group in GROUPS
}
FINDINGS["memory"]["memory.a"] = Finding("warn", "there is little left", "buy some")
FINDINGS["lab"]["lab.a"] = Finding("fail", f"it is broken {HOSTILE}", "mend it")


def done(result: Any) -> "Future[Any]":
    future: Future[Any] = Future()
    future.set_result(result)
    return future


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> dict[str, "Future[Any]"]:
    """Have the doctor answer at once, unless a test takes an answer away."""
    groups = {group: done(found) for group, found in FINDINGS.items()}
    facts = done([Fact("Machine", "host", "made-up")])
    monkeypatch.setattr(doctor, "ask_all", lambda: Asked(facts, groups, []))
    monkeypatch.delenv("TMUX", raising=False)
    return groups


def noting(root: Path) -> NotingApp:
    root.mkdir(exist_ok=True, parents=True)
    return NotingApp(NotingDesk(root, [], Settings(has_seen_hint=True)))


async def test_the_doctor_says_on_the_screen_what_its_command_prints(root: Path, answers: dict[str, Any]) -> None:
    app = noting(root)
    async with opened(app, "b", "d", "c", size=(120, 40)) as pilot:
        first = text(pilot).splitlines()[0]
        width = app.screen.query_one(Printout).scrollable_content_region.width - 1
    pad = max(len(name) for group in FINDINGS.values() for name in group)

    (copied,) = app.copied
    for found in (found for group, found in FINDINGS.items() if group != "lab"):  # which has what only a terminal shows
        assert render(found, Style(), width, pad) in copied
    assert "made-up" in copied
    assert counts({name: one for group in FINDINGS.values() for name, one in group.items()}) in first


async def test_answers_are_shown_as_they_come(root: Path, answers: dict[str, Any]) -> None:
    waits: Future[Any] = Future()
    answers["lab"] = waits
    async with opened(app_on(root)) as pilot:
        pilot.app.action_open_doctor()  # type: ignore[attr-defined]
        await pilot.pause()
        await eventually(
            pilot, lambda: "all is well with stopping" in pilot.app.screen.query_one(Printout).as_text(), "an answer"
        )
        early = text(pilot).splitlines()[0]
        waits.set_result(FINDINGS["lab"])
        await settle(pilot)

        assert "checking: lab, torch worker" in early
        assert "it is broken" in pilot.app.screen.query_one(Printout).as_text()


async def test_the_next_warning_is_a_key_away(root: Path, answers: dict[str, Any]) -> None:
    async with opened(app_on(root), "b", "d", "n", size=(80, 12)) as pilot:
        first = text(pilot).splitlines()[1]
        await press(pilot, "n")
        second = text(pilot)

    assert first.split()[:2] == ["!", "memory.a"]
    assert "✗ lab.a" in second


async def test_words_are_looked_for_in_what_the_doctor_says(root: Path, answers: dict[str, Any]) -> None:
    async with opened(app_on(root), "b", "d", "slash", *"buy", "enter", size=(80, 12)) as pilot:
        assert "→ buy some" in text(pilot)
        assert "match 1 of 1 for buy" in text(pilot) and said(pilot) == []


async def test_a_name_of_the_box_does_not_steer_the_terminal(root: Path, answers: dict[str, Any]) -> None:
    async with opened(app_on(root), "b", "d", size=(80, 60)) as pilot:
        assert UNSAFE.findall(text(pilot).replace("\n", "")) == []


async def test_the_doctor_can_be_left_while_it_asks(root: Path, answers: dict[str, Any]) -> None:
    answers["lab"] = Future()
    async with opened(app_on(root)) as pilot:
        pilot.app.action_open_doctor()  # type: ignore[attr-defined]
        await pilot.pause()
        await pilot.press("escape", "q")

    assert pilot.app.return_code == 0
    answers["lab"].set_result({})


@pytest.mark.parametrize("word", ["doctor", "advise", "calibrate"])
async def test_the_palette_opens_them_wherever_one_is(root: Path, answers: dict[str, Any], word: str) -> None:
    async with opened(app_on(root), "h", "ctrl+p", *word) as pilot:
        await settle(pilot)
        await press(pilot, *(["enter"] if isinstance(pilot.app.screen, TextualPalette) else []))
        await press(pilot, *(["enter"] if isinstance(pilot.app.screen, TextualPalette) else []))

        assert isinstance(pilot.app.screen, Page) and word == pilot.app.screen.PLACE
        assert pilot.app.screen.command().split()[1] in VERBS


async def test_advise_shows_the_file_that_its_command_writes(root: Path) -> None:
    finished(root, {"a": "SUPPORTED"})
    app = noting(root)
    async with opened(app, "b", "a", "c", size=(200, 40)):
        pass
    known = catalog.load()
    found, _ = gather.of_runs(gather.racing(root, known), known)

    assert app.copied == [env_file(found).rstrip("\n")]


async def test_without_runs_advise_says_what_is_not_known(root: Path) -> None:
    async with opened(app_on(root), "b", "a", size=(120, 60)) as pilot:
        shown = text(pilot)

    assert "0 settings" in shown.splitlines()[0]
    assert "Not measured yet" in shown


class Pretended:
    """A calibration that runs until it is stopped."""

    def __init__(self, device: str, root: Path) -> None:
        self.device, self.whole_s, self.elapsed_s, self.is_over, self.why_not = device, 120.0, 30.0, False, ""

    def cancel(self) -> None:
        self.is_over, self.why_not = True, "you stopped it"


async def test_a_calibration_is_asked_about_begun_shown_and_ended(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrate, "Calibrating", Pretended)
    app = app_on(root)
    async with opened(app, "b", "c", "enter") as pilot:
        asked = text(pilot)
        await press(pilot, "n")
        refused = app.desk.calibrating
        await press(pilot, "enter", "y")
        going = text(pilot)
        await press(pilot, "escape", "c", "s", "y")
        pilot.app.screen._look()  # type: ignore[attr-defined]  # noqa: SLF001
        await settle(pilot)
        ended = text(pilot)

    assert "busy for 2 minutes" in asked and "calibration.json" in asked
    assert refused is None
    assert "30 s of about 2:00" in going and "s stop" in going.splitlines()[-1]
    assert "failed: you stopped it" in ended and "enter calibrate" in ended.splitlines()[-1]


async def test_what_is_kept_of_calibrations_is_shown(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUILAB_ROOT", str(root))
    calibration_file.save({"within one process": Trials(trials=10, false=1, delays=10, seen=9)}, 0.01)
    app = noting(root)
    async with opened(app, "b", "c", "c", size=(300, 40)):
        pass

    assert "1 false verdict in 10 trials" in app.copied[0]
    assert [line for line in calibration.describe_saved() if line not in app.copied[0]] == []


def test_a_calibration_that_goes_on_is_told_at_the_end(
    root: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(goodbye, "open_again", lambda fd: fd)
    desk = NotingDesk(root, [], Settings())
    desk.calibrating = Pretended("cpu", root)  # type: ignore[assignment]
    goodbye.say_goodbye(desk)

    assert "the calibration continues." in capfd.readouterr().out


@pytest.mark.slow
def test_a_calibration_that_is_ended_keeps_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUILAB_ROOT", str(root))
    now = Calibrating("cpu", root)
    until(lambda: list(root.glob("*calibration*/journal/supervisor.jsonl")))
    now.cancel()
    until(lambda: now.is_over)

    assert now.why_not == "you stopped it"
    assert not calibration_file.load().trials_of_method
