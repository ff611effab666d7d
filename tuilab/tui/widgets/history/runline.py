"""One run in one line of so many cells: which columns there is room for, and what stands in them."""

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

_LEAST_PARAMS = 12
_WITH_ALL = 128  # cells of a table that has every column
_WITH_TOPIC = 24  # cells that hold topic/scenario


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
    Column("size", 9, _WITH_ALL, is_right=True),
    Column("id", 6, 112),
)


def columns(width: int, wanted: str = "") -> list[Column]:
    """Return the columns of a table of so many cells, one that is wanted in the place of the other to the right.

    What is left over is shared by name and params.
    """
    chosen = [column for column in _COLUMNS if width >= column.from_width or column.name == wanted]
    if wanted and width < _WITH_ALL:
        chosen = [column for column in chosen if column.name == wanted or not column.is_right]
    spare = width - 2 - sum(column.width + 1 for column in chosen)
    if not any(column.name == "changed" for column in chosen):
        return [
            column._replace(width=max(column.width + spare, 6)) if column.name == "name" else column
            for column in chosen
        ]
    wider = min(max(spare - _LEAST_PARAMS, 0) // 2, 14)
    more = {"name": wider, "changed": max(spare - wider, 1)}
    verdicts = min(max(more["changed"] - 40, 0) // 3, 8)
    more |= {"changed": more["changed"] - verdicts, "verdicts": verdicts}
    return [column._replace(width=column.width + more.get(column.name, 0)) for column in chosen]


def head(width: int, wanted: str = "") -> Content:
    """Return the line above the runs."""
    cells = [
        _fit(Content.styled(column.name, "dim bold"), column) for column in columns(width, wanted)
    ]
    return Content(" ").join([Content(" "), *cells])


def line(
    entry: RunEntry, notes: Notes, width: int, now_s: float, *, is_marked: bool, wanted: str = ""
) -> Content:
    """Return the line of a run."""
    cells = [_fit(_cell(entry, notes, column, now_s), column) for column in columns(width, wanted)]
    mark = (
        "*" if is_marked else "b" if TAG in notes.tags else " "
    )  # of the baseline the key that makes it one
    return Content(" ").join([Content.styled(mark, "$text-accent bold"), *cells])


def named(entries: Sequence[RunEntry]) -> list[str]:
    """Return a line for each run that something is about to be done to."""
    return [f"{short_id(e.run)}  {format_time(e.started_s)}  {e.name}  {e.state}" for e in entries]


def on_gpus(entry: RunEntry) -> Content:
    """Return on which GPUs its claims were measured; nothing where on none."""
    return (
        to_content(f"on {', '.join(entry.gpus)}".replace("on NVIDIA ", "on "), 240, "dim")
        if entry.gpus
        else Content("")
    )


def verdict_marks(entry: RunEntry, width: int) -> Content:
    """Return how many verdicts there are of each mark, and how many claims have none; without spaces where there is no room."""
    counts = [_counts(entry, between) for between in (" ", "")]
    return next((one for one in counts if one.cell_length <= width), counts[-1])


def _counts(entry: RunEntry, between: str) -> Content:
    verdicts = [verdict for _, verdict in entry.claims]
    waiting = verdicts.count("")
    parts = [tally(verdicts, between)] if waiting < len(verdicts) else []
    parts += [Content.assemble(f"{waiting}{between}", mark("pending"))] if waiting else []
    return Content(" ").join(parts)


def noted(notes: Notes) -> Content:
    """Return the tags of a run, and the newest of its notes."""
    tags = [Content.styled(f"#{show(tag, 40)}", "$text-accent") for tag in notes.tags]
    return Content("  ").join(
        [*tags, *(to_content(f"“{text}”", 400, "italic") for _, text in notes.texts[-1:])]
    )


def _cell(entry: RunEntry, notes: Notes, column: Column, now_s: float) -> Content:
    match column.name:
        case "when":
            return Content(ago(entry.started_s, now_s))
        case "exactly":
            return Content.styled(format_time(entry.started_s), "dim")
        case "name":
            has_topic = column.width >= _WITH_TOPIC or own_words(
                entry
            )  # a command is raced, or watched alone
            return to_content(entry.name if has_topic else entry.scenario, 100)
        case "id":
            return to_content(short_id(entry.run), 20, "dim")
    if not entry.is_read:
        return Content.styled("…" if column.name == "state" else "", "dim")
    match column.name:
        case "changed":
            changed = changed_words(entry)
            own = shorten(
                own_words(entry), max(column.width - (len(changed) + 2 if changed else 0), 1)
            )
            words = "  ".join(filter(None, (changed, own)))
            parts = [
                part
                for part in (
                    to_content(words, 400, "$text-secondary"),
                    on_gpus(entry),
                    noted(notes),
                )
                if part
            ]
            return Content("  ").join(parts)
        case "state":
            return state_words(entry.state)
        case "verdicts":
            return verdict_marks(entry, column.width)
        case "took":
            return Content(WAITS if entry.is_waiting else lasting(entry.elapsed_at(now_s)))
    return Content.styled("n/a" if entry.bytes_total is None else size(entry.bytes_total), "dim")


def _fit(cell: Content, column: Column) -> Content:
    cell = cell.truncate(column.width, ellipsis=True)
    room = Content(" " * (column.width - cell.cell_length))
    return Content("").join([room, cell] if column.is_right else [cell, room])
