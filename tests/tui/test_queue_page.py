"""The Queue screen: what runs, what waits and what was lost, and the keys that change it."""

import asyncio
import os
import time
from pathlib import Path

import msgspec

from tests.made_runs import make_run, started
from tests.tui.screens import app_on, eventually, open_run, opened, press, settle, shown, text
from tuilab.engine.messages import RunOrder
from tuilab.record import presence
from tuilab.record.events import StateChanged
from tuilab.runs import queue, store
from tuilab.runs.queue import Ticket
from tuilab.tui.terminal.textual_parts import rendered


def enter(root: Path, name: str, *, begun: bool = False, dead: bool = False) -> str:
    """Put a run into the queue whose supervisor is the process of the test, or none any more."""
    run, me = f"20270115T080000000Z-{name}-{len(name):06x}", presence.identify(os.getpid())
    assert me is not None
    if dead:
        me = msgspec.structs.replace(me, start=1)
    ticket = Ticket(
        run=run,
        name=f"mine/{name}",
        devices=["cores"],
        supervisor=me,
        place=0.0,
        since_ns=0,
        has_begun=begun,
    )
    queue.enter(root, ticket)
    return run


def test_the_queue_is_shown_moved_and_paused(root: Path) -> None:
    app = app_on(root)
    enter(root, "running", begun=True)
    for name in ("one", "three"):
        enter(root, name)
    enter(root, "gone", dead=True)

    async def main() -> None:
        async with opened(app, "Q") as pilot:
            lines = text(pilot).split("\n")
            assert "queue  1 being timed · 2 queued · 1 lost" in lines[0]
            assert [line.split()[:3] for line in lines[1:5]] == [
                ["●", "running", "mine/running"],
                ["1.", "○", "queued"],
                ["2.", "○", "queued"],
                ["!", "lost", "mine/gone"],
            ]
            await press(pilot, "down", "down", "K", "p")
            assert [one.name for one in queue.waiting(root)] == ["mine/three", "mine/one"]
            assert "paused: no queued run starts" in text(pilot)
            await press(pilot, "p", "up", "up", "J")
            assert not queue.is_paused(root)
            assert app.said[-1] == "only queued runs can be moved"

    asyncio.run(main())


def test_runs_that_time_nothing_are_told_below_the_queue(root: Path) -> None:
    app = app_on(root)
    make_run(root, started(is_alive=True), StateChanged(state="running"), at_s=time.time())

    async def main() -> None:
        async with opened(app, "Q") as pilot:
            assert "queue  0 being timed · 0 queued" in text(pilot)
            assert "No run is being timed, and no run is queued." in text(pilot)
            assert "because they time nothing: stability/softmax abcdef" in text(pilot)

    asyncio.run(main())


def test_the_sentence_about_an_empty_queue_is_whole_on_a_small_screen(root: Path) -> None:
    app = app_on(root)

    async def main() -> None:
        async with opened(app, "Q", size=(60, 20)) as pilot:
            words = " ".join(text(pilot).split())

        assert "no run is queued. To queue several, press enter on a topic in the Lab." in words

    asyncio.run(main())


def test_what_was_lost_is_forgotten_after_a_question(root: Path) -> None:
    app = app_on(root)
    enter(root, "gone", dead=True)

    async def main() -> None:
        async with opened(app, "Q", "d", "n", "d", "y") as pilot:
            assert "No run is running, and no run is queued." in text(pilot)
            told = rendered(pilot.app.screen)[1]
            assert not any(
                segment.style and segment.style.bold for segment in told
            )  # none is chosen

    asyncio.run(main())
    assert queue.tickets(root) == []


def test_a_hostile_name_cannot_steer_the_screen(root: Path) -> None:
    app = app_on(root)
    run = enter(root, "one")
    (ticket,) = queue.waiting(root)
    ticket.name = "[red]\x1b[2Jx[/]"
    (root / queue.FOLDER / f"{run}.json").write_bytes(msgspec.json.encode(ticket))

    async def main() -> None:
        async with opened(app, "Q") as pilot:
            assert "[red]�[2Jx[/]" in text(pilot)

    asyncio.run(main())


def test_a_run_that_cannot_be_started_is_told(root: Path) -> None:
    app = app_on(root)
    order = RunOrder(
        root=str(root), scenario="gone", topic="mine", title="", path="/nowhere/gone.py", params={}
    )

    async def main() -> None:
        async with opened(app):
            app.run_orders([order])

    asyncio.run(main())
    assert app.said == ["cannot read /nowhere/gone.py: No such file or directory"]


async def test_a_run_that_is_queued_says_behind_whom_it_waits_as_the_queue_is_now(
    root: Path,
) -> None:
    app = app_on(root)
    first = enter(root, "first", begun=True)
    second = enter(root, "second")
    run_dir = make_run(
        root,
        started(is_alive=True, scenario="third"),
        StateChanged(state="queued"),
        name="third",
        end="cccccc",
    )
    me = presence.identify(os.getpid())
    assert me is not None
    queue.enter(
        root,
        Ticket(
            run=run_dir.name,
            name="mine/third",
            devices=["cores"],
            supervisor=me,
            place=0.0,
            since_ns=0,
            has_begun=False,
        ),
    )
    async with opened(app) as pilot:
        await open_run(pilot, run_dir)
        await settle(pilot)
        behind = f"mine/first {store.short_id(first)}, mine/second {store.short_id(second)}"
        assert f" place 2 of 2, behind {behind}  Q queue" in text(pilot).splitlines()[1]
        queue.move(root, run_dir.name, 1)
        queue.pause(root)
        told = await shown(pilot, "the queue is paused")
        assert f"place 1 of 2, behind mine/first {store.short_id(first)};" in told
        queue.leave(root, run_dir.name)
        await eventually(pilot, lambda: "place 1" not in text(pilot), "the end of the place")
