"""More about one run than its line in a list has room for."""

from collections import Counter

from textual.content import Content

from tuilab.record.states import RunState
from tuilab.runs.entry import RunEntry, changed_words
from tuilab.runs.notes import Notes
from tuilab.runs.store import short_id
from tuilab.text.display import show
from tuilab.text.words import format_time, size
from tuilab.tui.looks.lesson_layout import wrap_lines
from tuilab.tui.looks.marks import mark, to_content, verdict_words
from tuilab.tui.widgets.history.runline import noted


def details(entry: RunEntry, notes: Notes, width: int, *, is_long: bool) -> list[Content]:
    """Return more about the run that the cursor is on: its title, its facts, how it ended, and what was noted, whole."""
    facts = [format_time(entry.started_s), short_id(entry.run)]
    facts += [size(entry.bytes_total)] if entry.bytes_total is not None else []
    facts += [f"on {show(gpu, 120)}" for gpu in entry.gpus]
    params, written = (
        to_content(changed_words(entry), 600, "$text-secondary"),
        noted(Notes(tags=notes.tags)),
    )
    about = Content("  ").join(
        [part for part in (Content.styled("  ".join(facts), "dim"), params, written) if part]
    )
    lines = [to_content(entry.title or entry.scenario, 200, "bold"), about]
    if entry.state == RunState.LOST:
        lines.append(
            to_content(
                "lost: its supervisor is gone; nothing is known after its last record",
                None,
                "$text-error",
            )
        )
    elif entry.reason:
        lines.append(to_content(f"{entry.state}: {entry.reason}", 400, "$text-warning"))
    elif not is_long:
        counts = Counter(verdict for _, verdict in entry.claims if verdict)
        lines.append(
            Content("   ").join(
                [Content.assemble(verdict_words(v), f" {count}") for v, count in counts.items()]
            )
        )
    claims = [
        Content.assemble(mark(verdict or "pending"), " ", to_content(text, 300))
        for text, verdict in entry.claims
    ]
    told = [row for note in _written(notes) for row in wrap_lines(note, max(width, 8))]
    return [*lines, *told, *claims] if is_long else [*lines, *told]


def _written(notes: Notes) -> list[Content]:
    """Return the newest notes, each with the time when it was written."""
    return [
        Content.assemble((f"{format_time(when)}  ", "dim"), to_content(f"“{text}”", None, "italic"))
        for when, text in notes.texts[:-4:-1]
    ]
