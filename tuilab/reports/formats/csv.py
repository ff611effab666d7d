"""Every number of runs as one tidy table: a row for each that was found, verdicts first, then for each that was measured."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence

from tuilab.catalogue.params import spell
from tuilab.record.encoding import spell_out
from tuilab.record.events import Scalar
from tuilab.reports.formats.numbers import ReportedNumber, findings
from tuilab.reports.formats.safe_names import whole
from tuilab.reports.missing_data import damage
from tuilab.reports.reported_run import ReportedRun
from tuilab.reports.samples import SamplePiece, read_samples
from tuilab.reports.sweeps.points import number_of
from tuilab.text.display import show

COLUMNS = ("run", "scenario", "kind", "name", "arm", "writer", "place", "time_s", "value", "note",
           "low", "high", "unit", "verdict", "record")  # fmt: skip
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def render(subjects: Sequence[ReportedRun]) -> Iterator[str]:
    """Yield the table in pieces; `place` is a step, the round of a block or the number of a sample.

    `record` says of every row whether the record that it is of is whole: a filter on it is all that a reader needs. Behind it
    stand the values of points of sweeps, a column a setting.
    """
    settings = dict.fromkeys(name for subject in subjects for name in subject.point)
    yield _line((*COLUMNS, *(word(f"point.{name}") for name in settings)))
    for subject in subjects:
        run = word(subject.run_dir.name), word(subject.name)
        record = _told(" ".join(damage(subject)) or "whole")
        last = record, *(_value(subject.point.get(name)) for name in settings)
        for finding in findings(subject):
            yield _found(run, finding, last)
        for piece in read_samples(subject.run_dir, subject.word):
            yield "".join(_measured(run, piece, subject.summary.first_t, last))


def word(name: str) -> str:
    """Return a name that no spreadsheet takes for a formula."""
    return _defused(whole(name))


def _told(text: str) -> str:
    """Return words that are no name: of very many the first."""
    return _defused(show(text, 5000))


def _defused(shown: str) -> str:
    """Put a quote before what a spreadsheet would compute, and before a quote, so that no two texts become one."""
    return f"'{shown}" if shown.lstrip().startswith((*_FORMULA, "'")) else shown


def _value(value: Scalar | None) -> str:
    """Return a value of a point; one that is a number is none of the formulas that begin with a sign."""
    return spell(value) if value is None or number_of(value) is not None else word(spell(value))


def _measured(
    run: tuple[str, str], piece: SamplePiece, first_t: int, last: Sequence[str]
) -> Iterable[str]:
    """Return the rows of a piece: what is the same in all of them is written once."""
    head = _line(
        (*run, piece.kind, *map(word, (piece.name, piece.arm, piece.writer)))
    ).removesuffix("\n")
    tail = _line(("", "", "", "", *last))
    if not any(piece.notes):
        return [
            f"{head},{place},{(t - first_t) / 1e9:.6f},{value},,{tail}"
            for place, t, value in zip(piece.places, piece.times, piece.values, strict=True)
        ]
    notes = {
        note: _line((_told(note),)).removesuffix("\n") if note else ""
        for note in dict.fromkeys(piece.notes)
    }
    return [
        f"{head},{place},{(t - first_t) / 1e9:.6f},{_number(value)},{notes[note]},{tail}"
        for place, t, value, note in zip(
            piece.places, piece.times, piece.values, piece.notes, strict=True
        )
    ]


def _number(value: float | None) -> str:
    return "" if value is None else str(value)


def _found(run: tuple[str, str], one: ReportedNumber, last: Sequence[str]) -> str:
    names = map(word, (one.name, one.arm, one.writer))
    numbers = map(spell_out, (one.place, one.time_s, one.value))
    ends = map(spell_out, (one.low, one.high))
    return _line(
        (
            *run,
            one.kind,
            *names,
            *numbers,
            _told(one.note),
            *ends,
            *map(word, (one.unit, one.verdict)),
            *last,
        )
    )


def _line(cells: Iterable[object]) -> str:
    """Return a row; None is an empty cell."""
    row = io.StringIO()
    csv.writer(row, lineterminator="\n").writerow(list(cells))
    return row.getvalue()
