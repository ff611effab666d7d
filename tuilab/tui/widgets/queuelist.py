"""The list of the Queue screen: what times something now, what waits for that, and what was lost while it waited."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from textual.content import Content

from tuilab.record.states import RunState
from tuilab.runs import queue, store
from tuilab.tui.looks.marks import plain, state_words
from tuilab.tui.widgets.lines import PickList
from tuilab.words import clock


class Standing(NamedTuple):
    """The queue as it is at a moment."""

    running: Sequence[queue.Ticket] = ()
    waiting: Sequence[queue.Ticket] = ()
    lost: Sequence[queue.Ticket] = ()
    is_paused: bool = False

    @property
    def rows(self) -> list[tuple[str, queue.Ticket]]:
        """The runs, each with its state."""
        named = ((RunState.RUNNING, self.running), (RunState.QUEUED, self.waiting), (RunState.LOST, self.lost))
        return [(state, one) for state, found in named for one in found]


def look(root: Path) -> Standing:
    """Return the queue as it is now."""
    return Standing(queue.running(root), queue.waiting(root), queue.lost(root), queue.is_paused(root))


class QueueList(PickList):
    """A line a run; the cursor stays with its run when the order changes."""

    def __init__(self) -> None:
        super().__init__()
        self.standing = Standing()

    @property
    def count(self) -> int:
        return len(self.standing.rows)

    @property
    def chosen(self) -> tuple[str, queue.Ticket] | None:
        """The run under the cursor, and its state."""
        rows = self.standing.rows
        return rows[min(self.cursor, len(rows) - 1)] if rows else None

    def show(self, standing: Standing) -> None:
        """Show the queue."""
        before = self.chosen
        self.standing = standing
        self.renew()
        runs = [one.run for _, one in standing.rows]
        self.move_to(runs.index(before[1].run) if before and before[1].run in runs else self.cursor)

    def lay_out(self, width: int) -> Sequence[Content]:
        if not self.count:
            return [Content.styled("Nothing runs and nothing waits. A topic runs in turn: enter on it in the Lab.", "dim")]
        place = {one.run: f"{number}." for number, one in enumerate(self.standing.waiting, 1)}
        return [_line(state, one, place.get(one.run, "")) for state, one in self.standing.rows]


def _line(state: str, one: queue.Ticket, place: str) -> Content:
    since = clock(max(time.time_ns() - one.since_ns, 0) // 1e9)
    name, words = plain(one.name, 34), state_words(state)
    name, words = name.pad_right(34 - name.cell_length), words.pad_right(11 - words.cell_length)
    told = Content.assemble(f"{place:>4} ", words, name)
    devices = plain(", ".join(one.devices), 20, "dim")
    return Content.assemble(told, (f" {store.short_id(one.run)} ", "$text-muted"), f"{since:>9}  ", devices)
