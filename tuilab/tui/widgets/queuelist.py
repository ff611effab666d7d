"""The list of the Queue screen: what times something now, what waits for that, and what was lost while it waited."""

import time
from collections.abc import Sequence

from textual.content import Content

from tuilab.runs import queue, store
from tuilab.runs.entry import RunEntry
from tuilab.text.words import clock
from tuilab.tui.looks.lesson_layout import wrap_lines
from tuilab.tui.looks.marks import state_words, to_content
from tuilab.tui.widgets.lines import PickList


class QueueList(PickList):
    """A line a run; the cursor stays with its run when the order changes."""

    DEFAULT_CSS = "QueueList { padding: 0 1; }"

    def __init__(self) -> None:
        super().__init__()
        self.standing = queue.QueueState()
        self._others: Sequence[RunEntry] = ()

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

    def show(self, standing: queue.QueueState, others: Sequence[RunEntry] = ()) -> None:
        """Show the queue, and below it the other runs that go on."""
        before = self.chosen
        self.standing, self._others = standing, others
        self.renew()
        runs = [one.run for _, _, one in standing.rows]
        self.move_to(runs.index(before[1].run) if before and before[1].run in runs else self.cursor)

    def lay_out(self, width: int) -> Sequence[Content]:
        lines = [
            _line(state, one, f"{place}." if place else "")
            for state, place, one in self.standing.rows
        ]
        if not self.count:
            nothing = "No run is being timed" if self._others else "No run is running"
            several = "To queue several, press enter on a topic in the Lab."
            lines = wrap_lines(Content(f"{nothing}, and no run is queued. {several}"), width)
        if self._others:
            names = ", ".join(f"{one.name} {store.short_id(one.run)}" for one in self._others)
            lines += wrap_lines(
                to_content(
                    f"Running outside the queue, because they time nothing: {names}",
                    600,
                    "$text-muted",
                ),
                width,
            )
        return lines


def _line(state: str, one: queue.Ticket, place: str) -> Content:
    since = clock(max(time.time_ns() - one.since_ns, 0) // 1e9) if one.since_ns else "n/a"
    name, words = to_content(one.name, 34), state_words(state)
    name, words = name.pad_right(34 - name.cell_length), words.pad_right(11 - words.cell_length)
    told = Content.assemble(f"{place:>4} ", words, name)
    devices = to_content(", ".join(one.devices), 20, "$text-muted")
    return Content.assemble(
        told, (f" {store.short_id(one.run)} ", "$text-muted"), f"{since:>9}  ", devices
    )
