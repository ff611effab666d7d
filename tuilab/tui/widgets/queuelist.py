"""The list of the Queue screen: the run that is being timed, the queued runs, and lost ones."""

import time
from collections.abc import Sequence

from textual.content import Content

from tuilab.runs import queue, store
from tuilab.runs.entry import RunEntry
from tuilab.text.words import clock
from tuilab.tui.looks.lesson_layout import wrap_lines
from tuilab.tui.looks.marks import state_words, to_content
from tuilab.tui.widgets.lines import PickList

_NAME_WIDTH = 34
_STATE_WIDTH = 11


class QueueList(PickList):
    """One line for each run. The cursor stays with its run when the order changes."""

    DEFAULT_CSS = "QueueList { padding: 0 1; }"

    def __init__(self) -> None:
        super().__init__()
        self.standing = queue.QueueState()
        self._unqueued: Sequence[RunEntry] = ()

    @property
    def count(self) -> int:
        return len(self.standing.rows)

    @property
    def chosen(self) -> tuple[str, queue.Ticket] | None:
        """The state and the ticket of the run at the cursor; None in an empty list."""
        rows = self.standing.rows
        if not rows:
            return None
        state, _, ticket = rows[min(self.cursor, len(rows) - 1)]
        return state, ticket

    def show(self, standing: queue.QueueState, unqueued: Sequence[RunEntry] = ()) -> None:
        """Show the queue, and below it the running runs that time nothing."""
        old_run: str | None = None
        if self.chosen:
            _, old_ticket = self.chosen
            old_run = old_ticket.run
        self.standing = standing
        self._unqueued = unqueued
        self.renew()
        runs = [ticket.run for _, _, ticket in standing.rows]
        if old_run in runs:
            self.move_to(runs.index(old_run))
        else:
            self.move_to(self.cursor)

    def lay_out(self, width: int) -> Sequence[Content]:
        """Return a line for each run in the queue, then the running runs outside it.

        If the queue is empty, a sentence says how to queue runs.
        """
        lines = []
        for state, place, ticket in self.standing.rows:
            shown_place = f"{place}." if place else ""
            lines.append(_line(state, ticket, shown_place))
        if not lines:
            running = "No run is being timed" if self._unqueued else "No run is running"
            hint = "To queue several, press enter on a topic in the Lab."
            lines = wrap_lines(Content(f"{running}, and no run is queued. {hint}"), width)
        if self._unqueued:
            names = [f"{entry.name} {store.short_id(entry.run)}" for entry in self._unqueued]
            runs = ", ".join(names)
            sentence = f"Running outside the queue, because they time nothing: {runs}"
            lines += wrap_lines(to_content(sentence, 600, "$text-muted"), width)
        return lines


def _line(state: str, ticket: queue.Ticket, place: str) -> Content:
    """Return the line of a run: place, state, name, id, time since it was queued, devices."""
    age = "n/a"
    if ticket.since_ns:
        age_ns = max(time.time_ns() - ticket.since_ns, 0)
        age = clock(age_ns // 1e9)
    return Content.assemble(
        f"{place:>4} ",
        _pad(state_words(state), _STATE_WIDTH),
        _pad(to_content(ticket.name, _NAME_WIDTH), _NAME_WIDTH),
        (f" {store.short_id(ticket.run)} ", "$text-muted"),
        f"{age:>9}  ",
        to_content(", ".join(ticket.devices), 20, "$text-muted"),
    )


def _pad(text: Content, width: int) -> Content:
    return text.pad_right(width - text.cell_length)
