"""Render every number of runs as one tidy table: results first, then each measurement.

In the columns, an arm is one of the compared variants, and a writer is the process that measured.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence

from tuilab.catalogue.params import spell
from tuilab.record.encoding import spell_out
from tuilab.record.events import Scalar
from tuilab.reports.formats.numbers import ReportedNumber, reported_numbers
from tuilab.reports.formats.safe_names import safe_name
from tuilab.reports.missing_data import damage
from tuilab.reports.reported_run import ReportedRun
from tuilab.reports.samples import SamplePiece, read_samples
from tuilab.reports.sweeps.points import number_of
from tuilab.text.display import show

COLUMNS = ("run", "scenario", "kind", "name", "arm", "writer", "place", "time_s", "value", "note",
           "low", "high", "unit", "verdict", "record")  # fmt: skip
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
_TEXT_LENGTH = 5000  # characters


def render(subjects: Sequence[ReportedRun]) -> Iterator[str]:
    """Yield the table in pieces. `place` is a step, the round of a block or a sample number.

    Every row says in `record` whether the record of its run is complete, so that readers can
    filter by it. Columns with the settings of sweeps follow.
    """
    settings: dict[str, None] = {}
    for subject in subjects:
        settings |= dict.fromkeys(subject.point)
    heads = list(COLUMNS)
    for name in settings:
        heads.append(_format_name(f"point.{name}"))
    yield _format_row(heads)
    for subject in subjects:
        run = [_format_name(subject.run_dir.name), _format_name(subject.name)]
        last_cells = [_format_text(" ".join(damage(subject)) or "whole")]
        for name in settings:
            last_cells.append(_format_setting(subject.point.get(name)))
        for number in reported_numbers(subject):
            yield _make_number_row(run, number, last_cells)
        for piece in read_samples(subject.run_dir, subject.word):
            yield "".join(_make_sample_rows(run, piece, subject.summary.first_t, last_cells))


def _make_number_row(run: Sequence[str], number: ReportedNumber, last_cells: Sequence[str]) -> str:
    """Return the row of a number that is not a sample, with its cells in the order of `COLUMNS`."""
    cells = [
        *run,
        number.kind,
        _format_name(number.name),
        _format_name(number.arm),
        _format_name(number.writer),
        spell_out(number.place),
        spell_out(number.time_s),
        spell_out(number.value),
        _format_text(number.note),
        spell_out(number.low),
        spell_out(number.high),
        _format_name(number.unit),
        _format_name(number.verdict),
        *last_cells,
    ]
    return _format_row(cells)


def _make_sample_rows(
    run: Sequence[str], piece: SamplePiece, first_t: int, last_cells: Sequence[str]
) -> list[str]:
    """Return the rows of a piece of samples. The cells that all rows share are formatted once.

    Without notes, no value can be missing, so the rows are written faster without the csv module.
    """
    names = [_format_name(piece.name), _format_name(piece.arm), _format_name(piece.writer)]
    head = _format_cells([*run, piece.kind, *names])
    tail = _format_row(["", "", "", "", *last_cells])
    if not any(piece.notes):
        return [
            f"{head},{place},{(t - first_t) / 1e9:.6f},{value},,{tail}"
            for place, t, value in zip(piece.places, piece.times, piece.values, strict=True)
        ]
    note_cells = {"": ""}
    rows = []
    columns = zip(piece.places, piece.times, piece.values, piece.notes, strict=True)
    for place, t, value, note in columns:
        if note not in note_cells:
            note_cells[note] = _format_cells([_format_text(note)])
        number = "" if value is None else value
        time_s = (t - first_t) / 1e9
        rows.append(f"{head},{place},{time_s:.6f},{number},{note_cells[note]},{tail}")
    return rows


# ---- cells


def _format_name(name: str) -> str:
    return _escape_formula(safe_name(name))


def _format_text(text: str) -> str:
    return _escape_formula(show(text, _TEXT_LENGTH))


def _escape_formula(shown: str) -> str:
    """Return text that no spreadsheet computes: a quote goes before a formula.

    A quote goes before another quote as well, so that no two texts become one.
    """
    if shown.lstrip().startswith((*_FORMULA_STARTS, "'")):
        return f"'{shown}"
    return shown


def _format_setting(value: Scalar | None) -> str:
    """Return the value of a setting. A number with a sign is not a formula."""
    if value is None or number_of(value) is not None:
        return spell(value)
    return _format_name(spell(value))


def _format_cells(cells: Iterable[object]) -> str:
    return _format_row(cells).removesuffix("\n")


def _format_row(cells: Iterable[object]) -> str:
    """Return a row; None is an empty cell."""
    row = io.StringIO()
    csv.writer(row, lineterminator="\n").writerow(list(cells))
    return row.getvalue()
