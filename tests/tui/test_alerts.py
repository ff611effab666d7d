"""A user who looks elsewhere is called when a run ends or has its first NaN, in the ways that were asked for."""

from pathlib import Path

import pytest

from tests.made_runs import make_run, started
from tests.tui.screens import app_on, eventually, open_run, opened
from tests.tui.terminals import terminal
from tuilab.record.events import Event, Logged, StateChanged
from tuilab.record.journal.writer import Writer
from tuilab.tui.app import TuilabApp
from tuilab.tui.terminal import alerts

TITLE, NOTE, BELL = "\x1b]2;tuilab: x\x07", "\x1b]9;tuilab: x\x07", "\x07"


@pytest.fixture(autouse=True)
def good_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TMUX", raising=False)
    monkeypatch.delenv("TUILAB_ALERTS", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")


@pytest.mark.parametrize(
    ("asked", "sent"),
    [
        ("bell,notification,title", TITLE + NOTE + BELL),
        ("bell", BELL),
        ("title", TITLE),
        ("notification", NOTE),
        ("none", ""),
    ],
)
def test_each_way_can_be_turned_off(monkeypatch: pytest.MonkeyPatch, asked: str, sent: str) -> None:
    monkeypatch.setenv("TUILAB_ALERTS", asked)

    assert alerts.alert("x") == sent


@pytest.mark.parametrize(
    ("told", "sent"), [("on", f"\x1bPtmux;\x1b{NOTE}\x1b\\"), ("off", ""), ("", "")]
)
def test_inside_tmux_a_notification_is_sent_where_tmux_passes_it_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: str, sent: str
) -> None:
    (tmp_path / "tmux").write_text(f"#!/bin/sh\necho {told}\n")
    (tmp_path / "tmux").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("TMUX", "/tmp/tmux")

    assert alerts.alert("x") == TITLE + sent + BELL


def test_a_terminal_that_would_print_the_rest_is_rung_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "vt100")

    assert alerts.alert("x") == BELL


def test_nothing_of_the_text_can_steer_the_terminal() -> None:
    assert alerts.alert("\x1b[2J\x07").count("\x1b") == 2
    assert alerts.alert("\x1b[2J\x07").count("\x07") == 3


def test_an_alert_that_does_not_exist_is_one_sentence(tmp_path: Path) -> None:
    with terminal(tmp_path, env={"TUILAB_ALERTS": "gong"}) as term:
        term.wait_for(
            "tuilab: TUILAB_ALERTS takes bell, notification, title, separated by commas, or none; not gong"
        )

        assert term.wait() == 2


async def test_the_first_nan_and_the_end_of_a_run_call_once(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    monkeypatch.setattr(TuilabApp, "write_to_terminal", lambda self, data: sent.append(data))
    run_dir = make_run(
        root, started(is_alive=True), StateChanged(state="running"), Logged(s=0, v={"loss": 1.0})
    )
    async with opened(app_on(root)) as pilot:
        page = await open_run(pilot, run_dir)
        journal = Writer(run_dir / "journal" / "worker-0.jsonl")

        async def take_in(*records: Event) -> None:
            wanted = page.source.summary.records + len(records)
            for record in records:
                journal.append(record)
            await eventually(pilot, lambda: page.source.summary.records >= wanted, "the records")

        await take_in(Logged(s=1, v={"loss": 2.0}))
        before = "".join(sent)
        await take_in(Logged(s=2, v={"loss": float("nan")}))
        await take_in(Logged(s=3, v={"loss": float("nan")}))
        at_nan = "".join(sent)
        await take_in(StateChanged(state="succeeded"))
        journal.close()

    assert before == ""
    assert at_nan.count("\x07\x07") == 1 and "softmax abcdef has a NaN or Inf" in at_nan
    assert "".join(sent).count("softmax abcdef succeeded") == 2  # the title and the notification
