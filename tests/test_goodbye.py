"""What stays in the scrollback when the screens close."""

import os
from pathlib import Path

from tests.tui.made_up import finished, make_run, started
from tuilab.record import presence
from tuilab.record.events import StateChanged
from tuilab.runs import queue
from tuilab.runs.queue import Ticket
from tuilab.tui.goodbye import code_of_first, fitted, lines_of
from tuilab.tui.state.session import Desk
from tuilab.tui.state.settings import Settings

LINE = "data/loader-workers b1fd5e is running.  Come back: tuilab attach b1fd5e   stop it: tuilab stop b1fd5e"


def test_no_command_is_cut_where_the_line_is_too_long() -> None:
    assert fitted(LINE, 120) == LINE
    assert fitted(LINE, 80).splitlines() == [
        "data/loader-workers b1fd5e is running.",
        "  Come back: tuilab attach b1fd5e",
        "  stop it: tuilab stop b1fd5e",
    ]


def test_what_waits_or_goes_on_is_told_last_and_the_lines_are_few(root: Path) -> None:
    desk = Desk(root, [], Settings())
    runs = [make_run(root, started(is_alive=True), StateChanged(state=state), end=state[:6]) for state in ("running", "queued")]
    runs += [finished(root, {}, end=f"{number:06}") for number in range(20)]
    desk.started = [run.name for run in runs]
    queue.pause(root)

    lines = lines_of(desk)

    assert len(lines) == 10
    assert lines[0] == f"14 more runs.  Show all: tuilab runs --root {root}"
    assert [line.split()[1:4] for line in lines[7:]] == [
        ["queued", "is", "queued."],
        ["runnin", "is", "running."],
        ["queue", "is", "paused:"],
    ]


def test_the_exit_code_is_that_of_the_run_that_the_screens_were_opened_for_if_it_is_over(root: Path) -> None:
    desk = Desk(root, [], Settings())
    codes = {"succeeded": 0, "failed": 2}

    found = [code_of_first(desk, lambda _, state: codes[state])]
    for number, state in enumerate(("succeeded", "failed", "running")):
        run = make_run(root, started(is_alive=state == "running"), StateChanged(state=state), end=f"{number:06}")
        desk.started = [run.name, *desk.started]  # as after `a`, which starts it again
        found.append(code_of_first(desk, lambda _, state: codes[state]))
    assert found == [0, 0, 2, 0]


def test_a_paused_queue_is_told_whoever_filled_it(root: Path) -> None:
    me = presence.identify(os.getpid())
    assert me is not None
    queue.enter(
        root, Ticket(run="other", name="other", devices=["cores"], supervisor=me, place=1.0, since_ns=0, has_begun=False)
    )
    before = lines_of(Desk(root, [], Settings()))
    queue.pause(root)

    (told,) = lines_of(Desk(root, [], Settings()))
    assert before == [] and told.startswith("The queue is paused: 1 run in it cannot start.")


def test_a_run_that_was_looked_at_is_told_only_while_it_goes_on(root: Path) -> None:
    desk = Desk(root, [], Settings())
    going = make_run(root, started(is_alive=True), StateChanged(state="running"), end="aaaaaa")
    desk.watched = dict.fromkeys([going.name, finished(root, {}, end="bbbbbb").name])

    (told,) = lines_of(desk)
    assert " aaaaaa is running.  Come back: tuilab attach aaaaaa" in told
