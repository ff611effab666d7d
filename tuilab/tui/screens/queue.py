"""The Queue screen: it shows running and queued timed runs, and moves, cancels or pauses them."""

import shlex
from collections.abc import Sequence
from functools import partial

from textual import on, work
from textual.app import ComposeResult
from textual.content import Content
from textual.message import Message

from tuilab.record.states import RunState
from tuilab.runs import queue, store
from tuilab.runs.command_line import root_option
from tuilab.runs.entry import RunEntry
from tuilab.text.display import plural
from tuilab.tui.keys import bindings
from tuilab.tui.screens.page import Page
from tuilab.tui.widgets.question import ConfirmDialog
from tuilab.tui.widgets.queuelist import QueueList

_POLL_S = 1.0
_ENDS: dict[str, str] = {
    RunState.RUNNING: "Stop this run",
    RunState.QUEUED: "Remove from the queue",
    RunState.LOST: "Forget this lost run",
}


class QueuePage(Page):
    """The Queue screen, which reads the files of the queue each second while it is on top."""

    PLACE = "queue"
    BINDINGS = bindings("queue")
    _has_looked = False

    class Looked(Message):
        """The queue was read."""

        def __init__(self, standing: queue.QueueState, others: Sequence[RunEntry]) -> None:
            super().__init__()
            self.standing = standing
            self.others = others  # running runs that time nothing

    @property
    def is_listed(self) -> bool:
        return self._has_looked

    def compose_body(self) -> ComposeResult:
        self.queue = QueueList()
        yield self.queue

    def on_mount(self) -> None:
        self.queue.focus()
        self.set_interval(_POLL_S, self._poll)
        self._look()

    def on_screen_resume(self) -> None:
        self._look()

    def command(self) -> str:
        return shlex.join(["tuilab", "queue", *root_option(self.desk.root)])

    def idle_keys(self) -> set[str]:
        of_one = set() if self.queue.chosen else {"enter", "d"}
        of_one |= {"K", "J"} if len(self.queue.standing.waiting) < 2 else set()
        return of_one if self.queue.standing.lost else of_one | {"A"}

    def _poll(self) -> None:
        if self.is_current:
            self._look()

    @work(thread=True, exclusive=True, group="look")
    def _look(self) -> None:
        standing = queue.read_queue(self.desk.root)
        listed = {ticket.run for _, _, ticket in standing.rows}
        unlisted = [
            ticket
            for ticket in self.desk.index.running()
            if ticket.run not in listed and ticket.state != RunState.QUEUED
        ]
        self.post_message(self.Looked(standing, unlisted))

    def on_queue_page_looked(self, message: Looked) -> None:
        standing, self._has_looked = message.standing, True
        self.queue.show(standing, message.others)
        parts = [f"{len(standing.running)} being timed", f"{len(standing.waiting)} queued"]
        parts += [f"{len(standing.lost)} lost"] if standing.lost else []
        paused = (
            ("  paused: no queued run starts", "bold $text-warning") if standing.is_paused else ""
        )
        self.heading.show(
            Content.assemble(("tuilab", "bold"), "  queue  ", " · ".join(parts), paused)
        )
        self.show_keys()

    @on(QueueList.Chosen)
    def action_open(self) -> None:
        if self.queue.chosen:
            self.lab.open_run(self.desk.root / self.queue.chosen[1].run)

    def action_shift(self, places: int) -> None:
        """Move the run at the cursor towards the front or the end of the queue."""
        waiting = [ticket.run for ticket in self.queue.standing.waiting]
        state, ticket = self.queue.chosen or ("", None)
        if ticket is None or state != RunState.QUEUED:
            self.lab.tell("only queued runs can be moved", is_problem=False)
            return
        place = waiting.index(ticket.run) + 1 + places
        if 1 <= place <= len(waiting):
            self.do(partial(self._move, ticket.run, place))

    def _move(self, run: str, place: int) -> str:
        queue.move(self.desk.root, run, place)
        return f"{store.short_id(run)} is now at place {place}"

    def action_pause(self) -> None:
        """Pause the queue, so that no queued run starts, or resume it."""
        self.do(self._resume if self.queue.standing.is_paused else self._pause)

    def _pause(self) -> str:
        queue.pause(self.desk.root)
        return "queue paused: running runs continue, no queued run starts"

    def _resume(self) -> str:
        queue.resume(self.desk.root)
        return "queue resumed"

    @work(group="question")
    async def action_cancel(self) -> None:
        """Ask the user, then stop the run at the cursor or remove it from the queue."""
        state, ticket = self.queue.chosen or ("", None)
        if ticket is None:
            return
        does = _ENDS[state]
        if await self.app.push_screen_wait(
            ConfirmDialog(f"{does}?", [f"{store.short_id(ticket.run)}  {ticket.name}"])
        ):
            self.do(partial(self._end, state, ticket.run))

    def _end(self, state: str, run: str) -> str:
        from tuilab.engine import launch

        if state == RunState.LOST:
            queue.leave(self.desk.root, run)
            return f"{store.short_id(run)} will not be queued again"
        return launch.stop(self.desk.root / run)

    def action_again(self) -> None:
        """Queue the lost runs again."""
        self.do(self._queue_again)

    def _queue_again(self) -> str:
        from tuilab.engine.requeue import queue_again

        return f"{plural(len([*queue_again(self.desk.root)]), 'run')} queued again"

    def say_done(self, said: str, *, is_problem: bool) -> None:
        """Show the outcome of a change, and read the queue again."""
        super().say_done(said, is_problem=is_problem)
        if self.is_attached:
            self._look()
