"""What the screens print when they close, and the exit code that they end with."""

from pathlib import Path

from tests.made_runs import finished, make_run, started
from tuilab.record.events import StateChanged
from tuilab.tui.goodbye import code_of_first, farewell
from tuilab.tui.state.session import Session
from tuilab.tui.state.settings import Settings


def test_the_farewell_counts_runs_that_are_running_or_queued(root: Path) -> None:
    desk = Session(root, [], Settings())
    desk.started = [finished(root, {}).name]
    texts = [farewell(desk)]
    for state in ("running", "queued"):
        desk.started.append(
            make_run(root, started(is_alive=True), StateChanged(state=state), end=state[:6]).name
        )
        texts.append(farewell(desk))

    assert texts == [
        "",
        f"1 run continues: tuilab attach runnin --root {root}",
        f"2 runs continue: tuilab runs --root {root}",
    ]


def test_a_watched_run_is_counted_only_while_it_is_running(root: Path) -> None:
    desk = Session(root, [], Settings())
    running = make_run(root, started(is_alive=True), StateChanged(state="running"), end="aaaaaa")
    desk.watched = dict.fromkeys([running.name, finished(root, {}, end="bbbbbb").name])

    assert farewell(desk) == f"1 run continues: tuilab attach aaaaaa --root {root}"


def test_the_exit_code_is_that_of_the_run_that_the_screens_were_opened_for_if_it_is_over(
    root: Path,
) -> None:
    desk = Session(root, [], Settings())
    codes = {"succeeded": 0, "failed": 2}

    found = [code_of_first(desk, lambda _, state: codes[state])]
    for number, state in enumerate(("succeeded", "failed", "running")):
        run = make_run(
            root,
            started(is_alive=state == "running"),
            StateChanged(state=state),
            end=f"{number:06}",
        )
        desk.started = [run.name, *desk.started]  # as after `a`, which starts it again
        found.append(code_of_first(desk, lambda _, state: codes[state]))
    assert found == [0, 0, 2, 0]
