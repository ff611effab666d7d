"""How many runs the History screen has, told above its list, and why it has none."""

from textual.content import Content

from tuilab.runs.command_line import hint
from tuilab.runs.filters import HINT
from tuilab.text.words import size
from tuilab.tui.state.history_reader import HistoryReader
from tuilab.tui.widgets.history.ordering import ORDERS


def words_of(reader: HistoryReader, matching: int, marked: int, hidden: int, order: str) -> Content:
    """Return how many runs there are, how many of them match the filter or are marked, and what they take on disk."""
    total, unread, sizes = len(reader.entries), len(reader.unread), reader.sizes
    every = f"{total:,} run{'s' * (total != 1)}"
    count = f"{matching:,} of {every}" if matching != total else every
    parts = [count] if reader.is_listed else []
    if unread:
        parts.append(f"{unread:,} not read yet")
    elif sizes:
        parts.append(f"{size(sum(sizes))} on disk")
        if len(sizes) < total:
            parts[-1] += f" (size of {len(sizes):,} known)"
    parts += [order] if order != ORDERS[0] else []
    if marked:
        parts.append(f"{marked} marked" + (f", {hidden} hidden" if hidden else ""))
    return Content.assemble(("tuilab", "bold"), "  history  ", ("  ".join(parts), "dim"))


def why_empty(reader: HistoryReader) -> str:
    """Return why no run is listed."""
    if reader.problem:
        return reader.problem
    if not reader.is_listed:
        return "Reading the folder of runs …"
    if reader.entries:
        return f"No matching runs; esc shows all. Filters: {HINT}"
    command = hint(reader.root, "run", "softmax", "--headless")
    return f"No runs yet. Press esc, choose a scenario and press enter; or: {command}"
