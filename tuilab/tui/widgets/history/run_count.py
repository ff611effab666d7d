"""The heading of the History screen, and the text in the place of an empty list."""

from textual.content import Content

from tuilab.runs.command_line import hint
from tuilab.runs.filters import HINT
from tuilab.text.words import size
from tuilab.tui.state.history_reader import HistoryReader
from tuilab.tui.widgets.history.ordering import ORDERS


def heading_of(
    reader: HistoryReader, matching: int, marked: int, hidden: int, order: str
) -> Content:
    """Return the heading: how many runs exist, match the filter and are marked, and their size.

    `hidden` counts the marked runs that the filter hides.
    """
    total = len(reader.entries)
    parts = []
    if reader.is_listed:
        runs = f"{total:,} run" if total == 1 else f"{total:,} runs"
        if matching != total:
            runs = f"{matching:,} of {runs}"
        parts.append(runs)
    parts += _describe_sizes(reader)
    if order != ORDERS[0]:
        parts.append(order)
    if marked:
        marks = f"{marked} marked"
        if hidden:
            marks += f", {hidden} hidden"
        parts.append(marks)
    return Content.assemble(("tuilab", "bold"), "  history  ", ("  ".join(parts), "dim"))


def _describe_sizes(reader: HistoryReader) -> list[str]:
    """Return how many runs are not read yet. If all are read, return their size on disk."""
    unread_count = len(reader.unread)
    if unread_count:
        return [f"{unread_count:,} not read yet"]
    sizes = reader.sizes
    if not sizes:
        return []
    total_size = f"{size(sum(sizes))} on disk"
    if len(sizes) < len(reader.entries):
        total_size += f" (size of {len(sizes):,} known)"
    return [total_size]


def why_empty(reader: HistoryReader) -> str:
    """Return why the list has no run."""
    if reader.problem:
        return reader.problem
    if not reader.is_listed:
        return "Reading the folder of runs …"
    if reader.entries:
        return f"No matching runs; esc shows all. Filters: {HINT}"
    command = hint(reader.root, "run", "softmax", "--headless")
    return f"No runs yet. Press esc, choose a scenario and press enter; or: {command}"
