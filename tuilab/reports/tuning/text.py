"""The result of a tuning as text: the table of treatments, then what else a reader needs to know.

A treatment is a change to a training, such as two DataLoader workers.
"""

from collections.abc import Iterator, Mapping, Sequence

from tuilab.drawings.glyphs import Style
from tuilab.judging.judgement import Judgement
from tuilab.record.tuning.outcomes import Outcome
from tuilab.record.verdicts import Verdict
from tuilab.reports.tuning.document import ResultTuning
from tuilab.reports.tuning.rows import (
    MACHINE_NOTE,
    NOT_APPLICABLE,
    TuningRow,
    TuningSection,
    describe_bounds,
    describe_files,
    describe_watching,
    find_winners,
    sections_of,
)
from tuilab.text.display import join, plural, shorten, show
from tuilab.text.wrapping import cell_width, wrap

_HEAD = ("#", "treatment", "times faster", "learning", "memory")
_MOST_TITLE = 34  # cells of a title
_LEAST_TITLE = 16
_LEAST_CHANGE = 30  # cells of a change on the line of its row; with fewer it is below
_LEAST_TEXT = 30  # cells of a text, however narrow the terminal is
_SAID_BY_HEADING = (Outcome.NOT_COMPARED, Outcome.NOT_APPLICABLE)
_GAP = 2
_MARK = 2  # cells of a mark and the space behind it
_MOST_WRITTEN = 3  # files that are named
_MOST_REASON = 160  # characters; a report has all of a longer reason


def render_tuning(
    tuning: ResultTuning, style: Style, width: int, interim: Mapping[str, Judgement] | None = None
) -> list[str]:
    """Return the table and the notes of a tuning as lines of a width.

    `interim` has, by arm, the judgement that its claim would get if the run ended now.
    """
    lines = []
    for sentence in (describe_watching(tuning), *describe_bounds(tuning)):
        lines += wrap(sentence, max(width, _LEAST_TEXT))
    sections = sections_of(tuning, interim)
    if not sections:
        return lines
    if lines:
        lines.append("")
    lines += _Table(sections, style, width).lines()
    return lines


def note_lines(tuning: ResultTuning, style: Style, width: int) -> list[str]:
    """Return what a reader needs to know besides the table: side effects, and what it is about."""
    sentences = []
    if tuning.disabled:
        sentences.append(f"switched off in all processes: {describe_files(tuning.disabled, 12)}")
    if tuning.written:
        count = plural(len(tuning.written), "file")
        names = describe_files(tuning.written, _MOST_WRITTEN)
        sentences.append(f"the script wrote {count}: {names}")
    if find_winners(tuning):
        sentences.append(MACHINE_NOTE)
    lines = []
    for sentence in sentences:
        lines += [style.dim(line) for line in wrap(sentence, max(width, _LEAST_TEXT))]
    return lines


class _Table:
    """The table as lines: as wide as its words need, and no wider than the terminal."""

    def __init__(self, sections: Sequence[TuningSection], style: Style, width: int) -> None:
        self._sections = sections
        self._style = style
        self._width = width
        rows = [row for section in sections for row in section.rows]
        self._columns = [0] * len(_HEAD)
        for cells in (_HEAD, *(_cells(row) for row in rows if _is_whole(row))):
            for column, cell in enumerate(cells):
                self._columns[column] = max(self._columns[column], cell_width(cell))
        for row in rows:
            self._columns[1] = max(self._columns[1], cell_width(show(row.title)))
        self._columns[1] = max(min(self._columns[1], self._room_of_title()), _LEAST_TITLE)

    def _room_of_title(self) -> int:
        """Return the cells that the other columns leave for the title."""
        others = sum(self._columns) - self._columns[1] + _GAP * (len(_HEAD) - 1) + _MARK
        return min(self._width - others, _MOST_TITLE)

    @property
    def _indent(self) -> int:
        """The cells before the title."""
        return _MARK + self._columns[0] + _GAP

    def lines(self) -> Iterator[str]:
        """Yield the lines of the table."""
        has_head = any(_is_whole(row) for section in self._sections for row in section.rows)
        if has_head:
            yield self._style.dim(" " * _MARK + self._join(_HEAD)).rstrip()
        for number, section in enumerate(self._sections):
            if section.heading == NOT_APPLICABLE:
                yield from self._name_only(section)
                continue
            if number or not has_head:
                yield self._style.bold(f"{section.heading}:")
            for row in section.rows:
                yield from self._row(row)

    def _name_only(self, section: TuningSection) -> Iterator[str]:
        """Yield the names of treatments that do nothing here; a report has the reasons."""
        names = join(dict.fromkeys(show(row.name, 40) for row in section.rows))
        yield self._style.bold(f"{section.heading} (a report has the reasons):")
        for line in wrap(names, max(self._width - _MARK, _LEAST_TEXT)):
            yield " " * _MARK + self._style.dim(line)

    def _row(self, row: TuningRow) -> Iterator[str]:
        """Yield a row; its change is on the same line if there is room."""
        if _is_whole(row):
            yield from self._whole_row(row)
            return
        mark = self._style.mark(row.mark)
        room = max(self._width - self._indent, _LEAST_TEXT)
        title = shorten(row.title, self._columns[1])
        start = title + " " * (self._columns[1] - cell_width(title))
        reason = show("; ".join(_sentences(row)), _MOST_REASON)
        reason_lines = wrap(reason, max(room - self._columns[1] - _GAP, _LEAST_TEXT)) or [""]
        before = " " * (self._columns[0] + _GAP)
        yield f"{mark} {before}{start}{' ' * _GAP}{self._style.dim(reason_lines[0])}".rstrip()
        for line in reason_lines[1:]:
            yield " " * (self._indent + self._columns[1] + _GAP) + self._style.dim(line)

    def _whole_row(self, row: TuningRow) -> Iterator[str]:
        """Yield a row with numbers, then its details."""
        cells = list(_cells(row))
        cells[1] = shorten(row.title, self._columns[1])
        line = f"{self._style.mark(row.mark)} {self._join(cells)}"
        used = _MARK + sum(self._columns) + _GAP * len(self._columns)
        room = self._width - used
        below = _sentences(row)
        if row.change:
            change = show(row.change, _MOST_REASON)
            if room >= _LEAST_CHANGE and cell_width(change) <= room:
                line += " " * _GAP + change
            else:
                below.insert(0, row.change)
        yield line.rstrip()
        for sentence in below:
            text = show(sentence, _MOST_REASON)
            for part in wrap(text, max(self._width - self._indent, _LEAST_TEXT), hang="  "):
                yield " " * self._indent + self._style.dim(part)

    def _join(self, cells: Sequence[str]) -> str:
        """Return the cells of a row, padded to their columns."""
        padded = []
        for cell, column in zip(cells, self._columns, strict=True):
            padded.append(cell + " " * (column - cell_width(cell)))
        return (" " * _GAP).join(padded)


def _is_whole(row: TuningRow) -> bool:
    """Say whether a row has numbers; a row without them has a reason behind its title."""
    return bool(row.faster)


def _sentences(row: TuningRow) -> list[str]:
    """Return the outcome with its reason, then the details of a row.

    The outcome is left out if it is clear from the numbers, or from the heading of the section.
    """
    words = row.outcome
    is_clear = row.arm.outcome in (None, Verdict.SUPPORTED)
    if is_clear or (row.reason and row.arm.outcome in _SAID_BY_HEADING):
        words = ""
    sentence = ": ".join(filter(None, (words, row.reason)))
    return [part for part in (sentence, *row.details) if part]


def _cells(row: TuningRow) -> tuple[str, str, str, str, str]:
    """Return the cells of a row with numbers."""
    return row.rank, show(row.title), row.faster, row.learning, row.memory
