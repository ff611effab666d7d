"""Details of the run at the cursor, below the table of runs."""

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
from tuilab.tui.widgets.history.runline import tags_and_note

_SHOWN_NOTES = 3
_LOST = "lost: its supervisor is gone; nothing is known after its last record"


def details(entry: RunEntry, notes: Notes, width: int, *, is_long: bool) -> list[Content]:
    """Return the title of a run, its facts, how it ended, and its newest notes.

    With `is_long`, each claim follows. Without, the verdicts are counted, unless the line says
    why the run ended.
    """
    title = to_content(entry.title or entry.scenario, 200, "bold")
    lines = [title, _facts(entry, notes)]
    if entry.state == RunState.LOST:
        lines.append(to_content(_LOST, None, "$text-error"))
    elif entry.reason:
        lines.append(to_content(f"{entry.state}: {entry.reason}", 400, "$text-warning"))
    elif not is_long:
        lines.append(_verdict_counts(entry))
    for written_at, text in reversed(notes.texts[-_SHOWN_NOTES:]):
        time = f"{format_time(written_at)}  "
        quote = to_content(f"“{text}”", None, "italic")
        note = Content.assemble((time, "dim"), quote)
        lines += wrap_lines(note, max(width, 8))
    if is_long:
        for text, verdict in entry.claims:
            sign = mark(verdict or "pending")
            lines.append(Content.assemble(sign, " ", to_content(text, 300)))
    return lines


def _facts(entry: RunEntry, notes: Notes) -> Content:
    """Return when and where the run ran, its size, its parameters and its tags, in one line."""
    facts = [format_time(entry.started_s), short_id(entry.run)]
    if entry.bytes_total is not None:
        facts.append(size(entry.bytes_total))
    facts += [f"on {show(gpu, 120)}" for gpu in entry.gpus]
    parts = [
        Content.styled("  ".join(facts), "dim"),
        to_content(changed_words(entry), 600, "$text-secondary"),
        tags_and_note(Notes(tags=notes.tags)),
    ]
    return Content("  ").join([part for part in parts if part])


def _verdict_counts(entry: RunEntry) -> Content:
    """Return how often each verdict occurs."""
    counts = Counter(verdict for _, verdict in entry.claims if verdict)
    parts = []
    for verdict, count in counts.items():
        parts.append(Content.assemble(verdict_words(verdict), f" {count}"))
    return Content("   ").join(parts)
