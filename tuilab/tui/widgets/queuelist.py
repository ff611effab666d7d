"""The list of the Queue screen: what times something now, what waits for that, and what was lost while it waited."""

import time
from collections.abc import Sequence

from textual.content import Content

from tuilab.runs import queue, store
from tuilab.tui.looks.marks import plain, state_words
from tuilab.tui.widgets.lines import PickList
from tuilab.words import clock


class QueueList(PickList):
    """A line a run; the cursor stays with its run when the order changes."""

    def __init__(self) -> None:
        super().__init__()
        self.standing = queue.Standing()

    @property
    def count(self) -> int:
        return len(self.standing.rows)

    @property
    def chosen(self) -> tuple[str, queue.Ticket] | None:
        """The run under the cursor, and its state."""
        rows = self.standing.rows
        if not rows:
            return None
        state, _, one = rows[min(self.cursor, len(rows) - 1)]
        return state, one

    def show(self, standing: queue.Standing) -> None:
        """Show the queue."""
        before = self.chosen
        self.standing = standing
        self.renew()
        runs = [one.run for _, _, one in standing.rows]
        self.move_to(runs.index(before[1].run) if before and before[1].run in runs else self.cursor)

    def lay_out(self, width: int) -> Sequence[Content]:
        if not self.count:
            return [Content.styled("Nothing runs and nothing waits. A topic runs in turn: enter on it in the Lab.", "dim")]
        return [_line(state, one, f"{place}." if place else "") for state, place, one in self.standing.rows]


def _line(state: str, one: queue.Ticket, place: str) -> Content:
    since = clock(max(time.time_ns() - one.since_ns, 0) // 1e9)
    name, words = plain(one.name, 34), state_words(state)
    name, words = name.pad_right(34 - name.cell_length), words.pad_right(11 - words.cell_length)
    told = Content.assemble(f"{place:>4} ", words, name)
    devices = plain(", ".join(one.devices), 20, "dim")
    return Content.assemble(told, (f" {store.short_id(one.run)} ", "$text-muted"), f"{since:>9}  ", devices)
