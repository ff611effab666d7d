"""The user's editor from the screens: which file at which line, and what becomes of what was changed there."""

import shutil
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.made_runs import FAST, PLAIN, make_run, started, write
from tests.tui.screens import (
    NotingApp,
    NotingDesk,
    app_on,
    drive,
    open_run,
    opened,
    press,
    said,
    settle,
    text,
)
from tests.tui.terminals import terminal
from tuilab.errors import UsageError
from tuilab.record import events
from tuilab.record.origin.imported import mark_imported
from tuilab.runs import store
from tuilab.tui.state.settings import Settings
from tuilab.tui.terminal import editor

TRACEBACK = """\
Traceback (most recent call last):
  File "scenario.py", line 17, in run
    y = helper(x)
  File "{folder}/helping.py", line 3, in helper
    return net(x)
           ^^^^^^
  File "/v/lib/python3.11/site-packages/torch/nn/modules/linear.py", line 134, in forward
    return F.linear(input, self.weight, self.bias)
RuntimeError: mat1 and mat2 shapes cannot be multiplied
"""


def failed(
    root: Path, folder: Path, message: str = "mat1 and mat2 shapes cannot be multiplied"
) -> Path:
    failure = events.ScenarioFailed(
        type="RuntimeError",
        message=message,
        traceback=TRACEBACK.format(folder=folder),
        source_dir=str(folder),
    )
    return make_run(
        root,
        started(scenario="mine"),
        failure,
        events.StateChanged(state="failed", reason="RuntimeError"),
    )


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"VISUAL": "vim -n", "EDITOR": "nano"}, ["vim", "-n", "+7", "/a b.py"]),
        ({"VISUAL": " ", "EDITOR": "nano"}, ["nano", "+7", "/a b.py"]),
        ({"EDITOR": "/opt/bin/code --wait"}, ["/opt/bin/code", "--wait", "--goto", "/a b.py:7"]),
        ({"EDITOR": "ed-of-mine"}, ["ed-of-mine", "/a b.py"]),
        ({}, ["vi", "+7", "/a b.py"]),
    ],
)
def test_an_editor_is_told_the_line_where_it_is_known_how(
    monkeypatch: pytest.MonkeyPatch, said: dict[str, str], words: list[str]
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: name)
    for name in ("VISUAL", "EDITOR"):
        monkeypatch.setenv(name, said.get(name, ""))

    assert editor.command("/a b.py", 7) == words


@pytest.mark.parametrize("wanted", ["no-such-editor-here", "vim 'unfinished"])
def test_an_editor_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, wanted: str) -> None:
    monkeypatch.setenv("VISUAL", wanted)

    with pytest.raises(UsageError, match=f"editor {wanted} not found; set EDITOR"):
        editor.command("/a.py", 1)


async def test_a_failed_run_tells_the_authors_own_line_first_and_whole(tmp_path: Path) -> None:
    async with opened(
        app_on(tmp_path / "runs", Settings(pane="claims", is_zoomed=True)), size=(80, 24)
    ) as pilot:
        page = await open_run(pilot, failed(tmp_path / "runs", tmp_path))
        lines = [line.strip("│▁▂▃▄▅▆▇█ ") for line in text(pilot).splitlines()]

        assert lines[1].startswith("╭─ What failed") and page.maximized is None
        assert lines[2:7] == [
            "helping.py:3 in helper",
            "return net(x)",
            "^^^^^^",
            "RuntimeError: mat1 and mat2 shapes cannot be multiplied",
            "",
        ]
        assert "E edit" in lines[-1]
        await press(pilot, "z")
        assert "mine.py:17 in run" in text(
            pilot
        ) and "torch/nn/modules/linear.py:134 in forward" in text(pilot)
        assert page.desk.settings.pane == "claims"


async def test_e_opens_the_file_that_failed_at_its_line_and_says_where_there_is_none(
    tmp_path: Path,
) -> None:
    (tmp_path / "helping.py").write_text("x\n")
    here, away = failed(tmp_path / "runs", tmp_path), failed(tmp_path / "runs" / "more", tmp_path)
    mark_imported(away)
    app = NotingApp(NotingDesk(tmp_path / "runs", [], Settings(has_seen_hint=True)))
    async with opened(app) as pilot:
        for run_dir in (here, away):
            await open_run(pilot, run_dir)
            await press(pilot, "E")

    assert app.edited == [(str(tmp_path / "helping.py"), 3)]
    assert said(pilot)[-1].startswith("the file is no longer on this machine; a copy of it: ")


def test_the_lab_opens_a_file_where_it_is_broken_and_reads_it_again_when_it_changed(
    tmp_path: Path,
) -> None:
    folder = write(tmp_path / "scenarios", fast=FAST, plain=PLAIN, broken='"""A."""\n\ndef run(:\n')

    async def body(app: NotingApp, pilot: "Pilot[int]") -> None:
        await press(pilot, "slash", *"broken", "enter")
        assert "not usable" in text(pilot)
        write(folder, broken=PLAIN.replace("A plain one", "It is mended"))
        await press(pilot, "E")
        assert app.edited == [(str(folder / "mine" / "broken.py"), 3)]
        assert "not usable" not in text(pilot) and "It is mended" in text(pilot)

    drive(body, folder, tmp_path / "runs", size=(120, 130))


def test_what_was_typed_into_a_form_stays_when_its_file_is_read_again_and_a_new_file_is_listed(
    tmp_path: Path,
) -> None:
    folder = write(tmp_path / "scenarios", fast=FAST)

    async def body(app: NotingApp, pilot: "Pilot[int]") -> None:
        app.page.fill("fast", {"rows": 7})
        write(folder, fast=FAST.replace("A fast sum", "A faster sum"), other=PLAIN)
        app.page.look_at_files()
        await settle(pilot)
        assert app.page.draft is not None and app.page.draft.text("rows") == "7"
        assert "A faster sum" in text(pilot) and "other" in text(pilot)

    drive(body, folder, tmp_path / "runs", size=(120, 130))


def test_the_screens_come_back_whole_from_the_editor_and_what_it_wrote_is_there(
    tmp_path: Path,
) -> None:
    folder = write(tmp_path / "scenarios", zz_broken="def run(:\n")
    (tmp_path / "mended.py").write_text(PLAIN)
    script = tmp_path / "an-editor"
    script.write_text(f'#!/bin/sh\necho "what now?"\nread answer\ncp {tmp_path}/mended.py "$1"\n')
    script.chmod(0o755)
    env = {"VISUAL": str(script), "XDG_STATE_HOME": str(tmp_path / "state")}
    with terminal(tmp_path, "--scenarios", str(folder), env=env) as term:
        term.wait_for("tensor-basics", "quit", " cores")
        term.type("/zz_broken\r")
        term.wait_for(
            "This file cannot be used", "/ filter"
        )  # the keys are those of the list again
        term.type("E")
        term.wait_for("what now?")
        term.type("mend it\r")
        term.wait_for("A plain one", "quit", "Scenarios 1 of")
        term.type("q")

        assert term.wait() == 0
        assert term.is_restored()
    assert store.list_runs(tmp_path / "runs") == []
