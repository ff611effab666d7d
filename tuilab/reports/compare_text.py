"""Runs side by side as text for a terminal."""

import shutil
from collections.abc import Sequence
from typing import NamedTuple

from tuilab.drawings.glyphs import Style
from tuilab.drawings.text_chart import line_chart
from tuilab.record.finding_words import for_how_long
from tuilab.reports.comparison_words import (
    NumberTable,
    axes_of,
    command_tables,
    number_tables,
    order_differences,
    overlay_curves,
    pair_words,
    shared_names,
    side_words,
    source_changes,
)
from tuilab.reports.reported_run import ReportedRun
from tuilab.reports.result import with_key
from tuilab.runs.comparing.claim_pairs import ClaimPair, Side
from tuilab.runs.comparing.comparison import Comparison, claim_groups, difference_words, no_claims
from tuilab.runs.comparing.differences import box_of
from tuilab.runs.run_name import RunName
from tuilab.text.display import brief, plural, shorten, show
from tuilab.text.wrapping import cell_width, wrap

_MOST_CURVES = 4
_MOST_LINES = 6  # of one chart
_MOST_ROWS = 60  # of differences
_MIN_WIDTH = 30  # of a column of text, however narrow the terminal is
_CHART_WIDTH = 100
_CHART_HEIGHT = 14
_NAME_WIDTH, _MEASURED_WIDTH = 30, 20  # in the table of claims by machine
_YELLOW = 33
_DIFF_COLOURS = {"+": 32, "-": 31}  # of a line of the source, by its first character
_DIM = 2


def render(
    subjects: Sequence[ReportedRun],
    compared: Comparison,
    style: Style,
    width: int,
    *,
    has_chart: bool,
) -> str:
    """Return a comparison as text for people.

    It has the runs, what differs, the claims, the numbers, and charts only if `has_chart`.
    """
    parts = [
        _runs(subjects, compared, style),
        _differences(compared, source_changes(subjects), style, width),
        claims_on_boxes(compared, style, width),
        _claims(compared, style, width),
    ]
    for table in [*number_tables(compared), *command_tables(subjects, compared)]:
        parts.append(_table(table, style, width))
    if has_chart:
        parts += _curves(subjects, compared, style, min(width, _CHART_WIDTH))
    return "\n\n".join(filter(None, parts))


def render_boxes(compared: Comparison, style: Style, width: int) -> str:
    """Return which claims hold on which machine, and in what the machines differ."""
    title = style.bold(show(compared.names[0]))
    table = claims_on_boxes(compared, style, width) or style.dim(no_claims(compared))
    return "\n".join([title, table, _differences(compared, [], style, width)])


def width_here() -> int:
    return shutil.get_terminal_size((100, 24)).columns


# ---- the runs, and what differs


def _runs(subjects: Sequence[ReportedRun], compared: Comparison, style: Style) -> str:
    """Return a numbered line for each run, and a warning if they are of different scenarios."""
    names = list(dict.fromkeys(compared.names))
    lines = [style.bold("compare ") + " and ".join(map(show, names))]
    for number, subject in enumerate(subjects, 1):
        lines.append(f"  {number}  {_describe_run(subject)}".rstrip())
    if len(names) > 1:
        warning = (
            "  These are different scenarios, so most claims, times and curves cannot be compared."
        )
        lines.append(style.paint(warning, _YELLOW))
    return "\n".join(lines)


def _describe_run(subject: ReportedRun) -> str:
    """Return the id of a run, when and where it started, and how long it took."""
    name = RunName(subject.run_dir.name)
    words = show(name.id, 20)
    if name.started_s is None:
        words += f"  {show(name.text, 40)}"
    else:
        words += f"  {name.started}"
    if subject.summary.run:
        words += f" on {show(box_of(subject.summary), 40)}"
    duration = for_how_long(f"{subject.summary.elapsed_s:.1f} s", subject.state)
    return f"{words}  {subject.state} {duration}"


def _differences(compared: Comparison, changes: Sequence[str], style: Style, width: int) -> str:
    """Return the facts that differ, and the lines of the source below the fact that it differs."""
    differences = order_differences(compared.differences)
    names = [f"{difference.part} {difference.name}" for difference in differences]
    name_width = min(max(map(len, names), default=0), 40)
    lines = [style.bold("What differs")]
    for difference in differences[:_MOST_ROWS]:
        name = show(f"{difference.part} {difference.name}", 60)
        values = [show(value, 120) for value in difference.values]
        lines += _row(name.ljust(name_width), values, width)
        if difference.part == "source":
            for line in changes:
                colour = _DIFF_COLOURS.get(line[:1], _DIM)
                lines.append(style.paint(f"      {show(line, 160)}", colour))
    if len(differences) > _MOST_ROWS:
        lines.append(f"  … and {len(differences) - _MOST_ROWS} more")
    facts = plural(compared.same, "fact")
    lines.append(style.dim(f"  {facts} (parameters, source, environment) are the same"))
    return "\n".join(lines)


def _row(name: str, values: Sequence[str], width: int) -> list[str]:
    """Return values side by side if there is room, else one below the other."""
    line = f"  {name}  {'  |  '.join(values)}"
    if len(line) <= width:
        return [line.rstrip()]
    lines = [f"  {name}".rstrip()]
    for number, value in enumerate(values, 1):
        for part in wrap(f"{number}  {value}", max(width - 6, _MIN_WIDTH), hang="   "):
            lines.append(f"      {part}")
    return lines


# ---- claims by machine


class _BoxColumn(NamedTuple):
    """The claims in the run of one machine."""

    box: str
    marks: list[str]
    measured: list[str]


def claims_on_boxes(compared: Comparison, style: Style, width: int) -> str:
    """Return a table of claims by machine; nothing if all runs are from one machine.

    Machines that do not fit into the width come below the others.
    """
    if not compared.boxes or not compared.claims:
        return ""
    names = [shorten(pair.key or pair.text, _NAME_WIDTH) for pair in compared.claims]
    columns = []
    for position, box in enumerate(compared.boxes):
        sides = [pair.sides[position] for pair in compared.claims]
        marks = [_mark(side, style) for side in sides]
        measured = [_describe_briefly(side) for side in sides]
        columns.append(_BoxColumn(show(box, _NAME_WIDTH), marks, measured))

    name_width = max(map(cell_width, names)) + 2
    cells = []
    for column in columns:
        cells += [column.box, *column.measured]
    column_width = max(map(cell_width, cells)) + 2
    per_line = max((width - 2 - name_width) // (column_width + 2), 1)
    claims = plural(len(names), "claim")
    boxes = len(set(compared.boxes))
    lines = [style.bold(f"{claims} in {len(columns)} runs on {boxes} machines")]
    for begin in range(0, len(columns), per_line):
        visible = columns[begin : begin + per_line]
        line = "  " + " " * name_width
        for column in visible:
            line += style.bold(_pad(column.box, column_width + 2))
        lines.append(line.rstrip())
        for row, name in enumerate(names):
            line = f"  {_pad(name, name_width)}"
            for column in visible:
                line += f"{column.marks[row]} {_pad(column.measured[row], column_width)}"
            lines.append(line.rstrip())
    return "\n".join(lines)


def _describe_briefly(side: Side | None) -> str:
    """Return what a run measured for a claim, in a few characters."""
    if side is None:
        return "not claimed"
    if side.low is not None and side.ratio_words:
        return side.ratio_words
    if side.estimate is not None and not side.measured:
        return brief(side.estimate)
    return shorten(side.measured or side.why or "not decided", _MEASURED_WIDTH)


def _mark(side: Side | None, style: Style) -> str:
    if side is None:
        return style.dim("–" if style.is_utf8 else "-")
    return style.mark(side.verdict)


def _pad(words: str, width: int) -> str:
    return words + " " * (width - cell_width(words))


# ---- claims, numbers and curves


def _claims(compared: Comparison, style: Style, width: int) -> str:
    """Return the claims in groups by how the runs differ on them, or that there are none."""
    if not compared.claims:
        return style.dim(no_claims(compared))
    blocks = []
    for title, pairs in claim_groups(compared).items():
        lines = [style.bold(f"{title}: {plural(len(pairs), 'claim')}")]
        for pair in pairs:
            lines += _claim(pair, style, width)
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def _claim(pair: ClaimPair, style: Style, width: int) -> list[str]:
    """Return the lines of a claim: its text, what each run found, and how the runs differ."""
    marks = "".join(_mark(side, style) for side in pair.sides)
    indent = " " * (len(pair.sides) + 4)
    text_width = max(width - len(indent), _MIN_WIDTH)
    key = ""
    if difference_words(pair):
        key = pair.key
    first, *rest = wrap(with_key(key, pair.text), text_width) or [""]
    sides = [side_words(side) for side in pair.sides]
    if len(set(sides)) == 1:
        rest += wrap(f"all  {sides[0]}", text_width)
    else:
        for number, words in enumerate(sides, 1):
            rest += wrap(f"{number}  {words}", text_width)
    differences = pair_words(pair)
    if differences:
        rest.append(style.paint("; ".join(differences), _YELLOW))
    lines = [f"  {marks}  {style.dim_key(key, first)}"]
    for line in rest:
        lines.append(indent + line)
    return lines


def _table(table: NumberTable, style: Style, width: int) -> str:
    """Return a table with aligned columns below its title, and its note below the rows."""
    widths = [max(map(len, column)) for column in zip(*table.rows, strict=True)]
    lines = [style.bold(table.title)]
    for row in table.rows:
        cells = [cell.ljust(size) for cell, size in zip(row, widths, strict=True)]
        lines.append(f"  {'  '.join(cells)}".rstrip())
    for line in wrap(table.note, max(width - 2, _MIN_WIDTH)):
        lines.append(style.dim(f"  {line}"))
    return "\n".join(lines)


def _curves(
    subjects: Sequence[ReportedRun], compared: Comparison, style: Style, width: int
) -> list[str]:
    """Return a chart of each of the first curves that more than one run has."""
    summaries = [subject.summary for subject in subjects]
    names = shared_names(subjects, compared)
    charts = []
    for name in names[:_MOST_CURVES]:
        lines = overlay_curves(summaries, name)
        chart = line_chart(
            lines[:_MOST_LINES],
            width,
            _CHART_HEIGHT,
            whole=lines,
            axes=axes_of(summaries, name),
            is_utf8=style.is_utf8,
        )
        if len(lines) > _MOST_LINES:
            chart += style.dim(f"\n{_MOST_LINES} of {len(lines)} lines")
        charts.append(chart)
    if len(names) > _MOST_CURVES:
        charts.append(style.dim(f"… and {plural(len(names) - _MOST_CURVES, 'curve')} more"))
    return charts
