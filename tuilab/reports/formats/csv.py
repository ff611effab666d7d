"""Every number of runs as one tidy table: a row for each measurement."""

import csv
import io
from collections.abc import Iterator, Sequence

from tuilab.record.encoding import spell_out
from tuilab.reports.samples import samples
from tuilab.reports.subject import Subject
from tuilab.text import show

COLUMNS = ("run", "scenario", "kind", "name", "arm", "writer", "place", "time_s", "value", "note")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def render(subjects: Sequence[Subject]) -> Iterator[str]:
    """Yield the table line by line; `place` is a step, the round of a block or the number of a sample."""
    yield _line(COLUMNS)
    for subject in subjects:
        names = tuple(map(word, (subject.run_dir.name, subject.name)))
        first_t = subject.summary.first_t
        for one in samples(subject.run_dir):
            words = map(word, (one.kind, one.name, one.arm, one.writer))
            yield _line((*names, *words, one.place, f"{(one.t - first_t) / 1e9:.6f}", spell_out(one.value), one.note))


def word(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula."""
    shown = show(text, 300)
    return f"'{shown}" if shown.lstrip().startswith(_FORMULA) else shown


def _line(cells: Sequence[object]) -> str:
    row = io.StringIO()
    csv.writer(row, lineterminator="\n").writerow(cells)
    return row.getvalue()
