"""One line of the table of runs: which columns fit into a width, and their cells."""

from collections.abc import Sequence
from typing import NamedTuple

from textual.content import Content

from tuilab.runs.entry import WAITS, RunEntry, changed_words, own_words
from tuilab.runs.notes import Notes
from tuilab.runs.representative import TAG
from tuilab.runs.store import short_id
from tuilab.text.display import shorten, show
from tuilab.text.words import format_time, size
from tuilab.tui.looks.marks import mark, state_words, tally, to_content
from tuilab.tui.looks.times import ago, lasting

_MIN_PARAMS_WIDTH = 12  # cells of `changed`, before `name` is widened
_MAX_NAME_GAIN = 14  # cells by which `name` is widened
_MIN_NAME_WIDTH = 6
_AMPLE_PARAMS_WIDTH = 40  # cells of `changed`; of more, `verdicts` gets a third
_MAX_VERDICTS_GAIN = 8
_WIDTH_WITH_ALL = 128  # cells of a table that has every column
_WIDTH_WITH_TOPIC = 24  # cells that hold topic/scenario


class Column(NamedTuple):
    """A column of the table of runs."""

    name: str
    width: int
    from_width: int = 0  # the narrowest table that has it
    is_right: bool = False


_COLUMNS = (
    Column("when", 10),
    Column("exactly", 16, 112),
    Column("name", 16),
    Column("changed", 0, 66),
    Column("state", 12),
    Column("verdicts", 9),
    Column("took", 7, 66, is_right=True),
    Column("size", 9, _WIDTH_WITH_ALL, is_right=True),
    Column("id", 6, 112),
)


def columns(width: int, sort_column: str = "") -> list[Column]:
    """Return the columns of a table of so many cells.

    The column by which the table is sorted is always there. In a narrow table it replaces the
    other right-aligned column. The cells that are left go to `name`, `changed` and `verdicts`.
    """
    chosen = _choose_columns(width, sort_column)
    spare = width - 2 - sum(column.width + 1 for column in chosen)
    if all(column.name != "changed" for column in chosen):
        return [_widen_name_only(column, spare) for column in chosen]
    name_gain = min(max(spare - _MIN_PARAMS_WIDTH, 0) // 2, _MAX_NAME_GAIN)
    changed_gain = max(spare - name_gain, 1)
    verdicts_gain = min(max(changed_gain - _AMPLE_PARAMS_WIDTH, 0) // 3, _MAX_VERDICTS_GAIN)
    gains = {
        "name": name_gain,
        "changed": changed_gain - verdicts_gain,
        "verdicts": verdicts_gain,
    }
    widened = []
    for column in chosen:
        gain = gains.get(column.name, 0)
        widened.append(column._replace(width=column.width + gain))
    return widened


def _choose_columns(width: int, sort_column: str) -> list[Column]:
    """Return the columns that fit, and the one by which the table is sorted.

    In a table without room for all, that one replaces the other right-aligned columns.
    """
    is_room_short = bool(sort_column) and width < _WIDTH_WITH_ALL
    chosen = []
    for column in _COLUMNS:
        is_replaced = is_room_short and column.is_right
        fits = width >= column.from_width and not is_replaced
        if fits or column.name == sort_column:
            chosen.append(column)
    return chosen


def _widen_name_only(column: Column, spare: int) -> Column:
    """Return a column; if it is `name`, with all spare cells, or fewer if `spare` is negative."""
    if column.name != "name":
        return column
    return column._replace(width=max(column.width + spare, _MIN_NAME_WIDTH))


def head(width: int, sort_column: str = "") -> Content:
    """Return the line above the runs."""
    cells = [Content(" ")]
    for column in columns(width, sort_column):
        cells.append(_fit(Content.styled(column.name, "dim bold"), column))
    return Content(" ").join(cells)


def line(
    entry: RunEntry,
    notes: Notes,
    width: int,
    now_s: float,
    *,
    is_marked: bool,
    sort_column: str = "",
) -> Content:
    """Return the line of a run. It begins with `*` if the run is marked, `b` for a baseline."""
    if is_marked:
        sign = "*"
    elif TAG in notes.tags:
        sign = "b"  # the key that makes a run the baseline
    else:
        sign = " "
    cells = [Content.styled(sign, "$text-accent bold")]
    for column in columns(width, sort_column):
        cells.append(_fit(_cell(entry, notes, column, now_s), column))
    return Content(" ").join(cells)


def describe_runs(entries: Sequence[RunEntry]) -> list[str]:
    """Return a line for each run, to be shown in a question about them."""
    lines = []
    for entry in entries:
        started = format_time(entry.started_s)
        lines.append(f"{short_id(entry.run)}  {started}  {entry.name}  {entry.state}")
    return lines


def verdict_marks(entry: RunEntry, width: int) -> Content:
    """Return how often a run has each verdict mark, and how many claims have no verdict.

    The spaces between count and mark are left out if the width is too small for them.
    """
    counts = _count_marks(entry, " ")
    if counts.cell_length > width:
        counts = _count_marks(entry, "")
    return counts


def _count_marks(entry: RunEntry, separator: str) -> Content:
    """Return each verdict mark behind its count and the separator; pending claims come last."""
    verdicts = [verdict for _, verdict in entry.claims]
    pending = verdicts.count("")
    parts = []
    if pending < len(verdicts):
        parts.append(tally(verdicts, separator))
    if pending:
        parts.append(Content.assemble(f"{pending}{separator}", mark("pending")))
    return Content(" ").join(parts)


def tags_and_note(notes: Notes) -> Content:
    """Return the tags of a run and its newest note."""
    parts = [Content.styled(f"#{show(tag, 40)}", "$text-accent") for tag in notes.tags]
    if notes.texts:
        _, newest_text = notes.texts[-1]
        parts.append(to_content(f"“{newest_text}”", 400, "italic"))
    return Content("  ").join(parts)


def _cell(entry: RunEntry, notes: Notes, column: Column, now_s: float) -> Content:
    """Return a cell of a run. Until the run is read, its folder's name is all that is known."""
    match column.name:
        case "when":
            return Content(ago(entry.started_s, now_s))
        case "exactly":
            return Content.styled(format_time(entry.started_s), "dim")
        case "name":
            # The topic of a user's command says whether it was compared or watched alone.
            has_topic = column.width >= _WIDTH_WITH_TOPIC or own_words(entry)
            name = entry.name if has_topic else entry.scenario
            return to_content(name, 100)
        case "id":
            return to_content(short_id(entry.run), 20, "dim")
    if not entry.is_read:
        sign = "…" if column.name == "state" else ""
        return Content.styled(sign, "dim")
    match column.name:
        case "changed":
            return _changed_cell(entry, notes, column.width)
        case "state":
            return state_words(entry.state)
        case "verdicts":
            return verdict_marks(entry, column.width)
        case "took":
            if entry.is_waiting:
                return Content(WAITS)
            return Content(lasting(entry.elapsed_at(now_s)))
    # Only the column `size` is left.
    if entry.bytes_total is None:
        return Content.styled("n/a", "dim")
    return Content.styled(size(entry.bytes_total), "dim")


def _changed_cell(entry: RunEntry, notes: Notes, width: int) -> Content:
    """Return the changed parameters or the user's command, then the GPUs, the tags and a note."""
    changed = changed_words(entry)
    room = width
    if changed:
        room -= len(changed) + 2
    command = shorten(own_words(entry), max(room, 1))
    texts = [text for text in (changed, command) if text]
    values = to_content("  ".join(texts), 400, "$text-secondary")
    parts = [values, _gpus(entry), tags_and_note(notes)]
    return Content("  ").join([part for part in parts if part])


def _gpus(entry: RunEntry) -> Content:
    """Return the GPUs on which the claims were measured; nothing without a GPU."""
    if not entry.gpus:
        return Content("")
    words = f"on {', '.join(entry.gpus)}"
    return to_content(words.replace("on NVIDIA ", "on "), 240, "dim")


def _fit(cell: Content, column: Column) -> Content:
    """Return a cell in exactly the width of its column."""
    cell = cell.truncate(column.width, ellipsis=True)
    padding = Content(" " * (column.width - cell.cell_length))
    parts = [padding, cell] if column.is_right else [cell, padding]
    return Content("").join(parts)
