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
_END_QUESTIONS: dict[str, str] = {  # how `d` ends a run, by the state of the run
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
        """The queue was read; `standing` is its state."""

        def __init__(self, standing: queue.QueueState, unlisted: Sequence[RunEntry]) -> None:
            super().__init__()
            self.standing = standing
            self.unlisted = unlisted  # running runs that time nothing

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
        """Return the keys that lack a run at the cursor, two queued runs, or lost runs."""
        standing = self.queue.standing
        idle: set[str] = set()
        if not self.queue.chosen:
            idle |= {"enter", "d"}
        if len(standing.waiting) < 2:
            idle |= {"K", "J"}
        if not standing.lost:
            idle.add("A")
        return idle

    def _poll(self) -> None:
        if self.is_current:
            self._look()

    @work(thread=True, exclusive=True, group="look")
    def _look(self) -> None:
        """Read the queue and the running runs outside it, in a thread; then post `Looked`."""
        standing = queue.read_queue(self.desk.root)
        listed = {ticket.run for _, _, ticket in standing.rows}
        unlisted = []
        for entry in self.desk.index.running():
            if entry.run not in listed and entry.state != RunState.QUEUED:
                unlisted.append(entry)
        self.post_message(self.Looked(standing, unlisted))

    def on_queue_page_looked(self, message: Looked) -> None:
        """Show the queue, the counts of its runs in the heading, and whether it is paused."""
        standing = message.standing
        self._has_looked = True
        self.queue.show(standing, message.unlisted)
        counts = [f"{len(standing.running)} being timed", f"{len(standing.waiting)} queued"]
        if standing.lost:
            counts.append(f"{len(standing.lost)} lost")
        heading = Content.assemble(("tuilab", "bold"), "  queue  ", " · ".join(counts))
        if standing.is_paused:
            heading += Content.styled("  paused: no queued run starts", "bold $text-warning")
        self.heading.show(heading)
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
        if self.queue.standing.is_paused:
            self.do(self._resume)
        else:
            self.do(self._pause)

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
        run = f"{store.short_id(ticket.run)}  {ticket.name}"
        question = ConfirmDialog(f"{_END_QUESTIONS[state]}?", [run])
        if await self.app.push_screen_wait(question):
            self.do(partial(self._end, state, ticket.run))

    def _end(self, state: str, run: str) -> str:
        """Stop a run; of a lost one, remove its place in the queue. Return a message about it."""
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

        runs = list(queue_again(self.desk.root))
        return f"{plural(len(runs), 'run')} queued again"

    def say_done(self, message: str, *, is_problem: bool) -> None:
        """Show the outcome of a change, and read the queue again."""
        super().say_done(message, is_problem=is_problem)
        if self.is_attached:
            self._look()
