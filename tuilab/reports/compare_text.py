"""Runs side by side as text for a terminal."""

import shutil
from collections.abc import Sequence

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
from tuilab.runs.comparing.comparison import Comparison, claim_groups, no_claims, verdict_words
from tuilab.runs.comparing.differences import box_of
from tuilab.runs.run_name import RunName
from tuilab.text.display import brief, plural, shorten, show
from tuilab.text.wrapping import cell_width, wrap

_CURVES = 4
_LINES = 6  # of one chart
_ROWS = 60  # of differences
_NAME, _MEASURED = 30, 20  # characters, in the table of claims by machine
_CHANGED = {"+": 32, "-": 31}


def render(
    subjects: Sequence[ReportedRun], found: Comparison, style: Style, width: int, *, has_chart: bool
) -> str:
    """Return a comparison as text for people."""
    parts = [
        _runs(subjects, found, style),
        _differences(found, source_changes(subjects), style, width),
        claims_on_boxes(found, style, width),
        _claims(found, style, width),
        *(
            _table(table, style, width)
            for table in [*number_tables(found), *command_tables(subjects, found)]
        ),
    ]
    if has_chart:
        parts += _curves(subjects, found, style, min(width, 100))
    return "\n\n".join(filter(None, parts))


def render_boxes(found: Comparison, style: Style, width: int) -> str:
    """Return which claims hold on which machine, and in what the machines differ."""
    table = claims_on_boxes(found, style, width) or style.dim(no_claims(found))
    return "\n".join(
        [style.bold(show(found.names[0])), table, _differences(found, [], style, width)]
    )


def width_here() -> int:
    return shutil.get_terminal_size((100, 24)).columns


def _runs(subjects: Sequence[ReportedRun], found: Comparison, style: Style) -> str:
    lines = [style.bold("compare ") + " and ".join(map(show, dict.fromkeys(found.names)))]
    for number, subject in enumerate(subjects, 1):
        name = RunName(subject.run_dir.name)
        where = f" on {show(box_of(subject.summary), 40)}" if subject.summary.run else ""
        when = show(name.text, 40) if name.started_s is None else name.started
        end = f"{subject.state} {for_how_long(f'{subject.summary.elapsed_s:.1f} s', subject.state)}"
        lines.append(f"  {number}  {show(name.id, 20)}  {when}{where}  {end}".rstrip())
    if len(set(found.names)) > 1:
        lines.append(
            style.paint(
                "  These are different scenarios, so most claims, times and curves cannot be compared.",
                33,
            )
        )
    return "\n".join(lines)


def _differences(found: Comparison, changes: Sequence[str], style: Style, width: int) -> str:
    rows = order_differences(found.differences)
    pad = min(max((len(f"{row.part} {row.name}") for row in rows), default=0), 40)
    lines = [style.bold("What differs")]
    for row in rows[:_ROWS]:
        lines += _row(
            show(f"{row.part} {row.name}", 60).ljust(pad),
            [show(value, 120) for value in row.values],
            width,
        )
        if row.part == "source":
            lines += [
                style.paint(f"      {show(line, 160)}", _CHANGED.get(line[:1], 2))
                for line in changes
            ]
    if len(rows) > _ROWS:
        lines.append(f"  … and {len(rows) - _ROWS} more")
    lines.append(
        style.dim(f"  {plural(found.same, 'fact')} (parameters, source, environment) are the same")
    )
    return "\n".join(lines)


def _row(name: str, values: Sequence[str], width: int) -> list[str]:
    """Return values side by side if there is room, else one below the other."""
    line = f"  {name}  {'  |  '.join(values)}"
    if len(line) <= width:
        return [line.rstrip()]
    lines = [f"  {name}".rstrip()]
    for number, value in enumerate(values, 1):
        lines += [
            f"      {part}" for part in wrap(f"{number}  {value}", max(width - 6, 30), hang="   ")
        ]
    return lines


def claims_on_boxes(found: Comparison, style: Style, width: int) -> str:
    """Return a table of claims by machine; nothing if all runs are from one machine. Machines that do not fit come below."""
    if not found.boxes or not found.claims:
        return ""
    names = [shorten(pair.key or pair.text, _NAME) for pair in found.claims]
    columns = []
    for number, box in enumerate(found.boxes):
        sides = [pair.sides[number] for pair in found.claims]
        marks = [_mark(side, style) for side in sides]
        columns.append((show(box, _NAME), marks, [_brief_side(side) for side in sides]))
    label = max(map(cell_width, names)) + 2
    column_width = (
        max(cell_width(words) for box, _, measured in columns for words in (box, *measured)) + 2
    )
    count = max((width - 2 - label) // (column_width + 2), 1)
    lines = [
        style.bold(
            f"{plural(len(names), 'claim')} in {len(columns)} runs on {len(set(found.boxes))} machines"
        )
    ]
    for begin in range(0, len(columns), count):
        some = columns[begin : begin + count]
        lines.append(
            f"  {'':{label}}{''.join(style.bold(_padded(box, column_width + 2)) for box, _, _ in some)}".rstrip()
        )
        for at, name in enumerate(names):
            row = "".join(
                f"{marks[at]} {_padded(measured[at], column_width)}" for _, marks, measured in some
            )
            lines.append(f"  {_padded(name, label)}{row}".rstrip())
    return "\n".join(lines)


def _brief_side(side: Side | None) -> str:
    """Return what a run measured for a claim, in a few characters."""
    if side is None:
        return "not claimed"
    if side.low is not None and side.ratio_words:
        return side.ratio_words
    if side.estimate is not None and not side.measured:
        return brief(side.estimate)
    return shorten(side.measured or side.why or "not decided", _MEASURED)


def _mark(side: Side | None, style: Style) -> str:
    return style.mark(side.verdict) if side else style.dim("–" if style.is_utf8 else "-")


def _padded(words: str, width: int) -> str:
    return words + " " * (width - cell_width(words))


def _claims(found: Comparison, style: Style, width: int) -> str:
    if not found.claims:
        return style.dim(no_claims(found))
    blocks = []
    for title, pairs in claim_groups(found).items():
        lines = [line for pair in pairs for line in _claim(pair, style, width)]
        blocks.append("\n".join([style.bold(f"{title}: {plural(len(pairs), 'claim')}"), *lines]))
    return "\n\n".join(blocks)


def _claim(pair: ClaimPair, style: Style, width: int) -> list[str]:
    indent = " " * (len(pair.sides) + 4)
    room = max(width - len(indent), 30)
    key = pair.key if verdict_words(pair) else ""
    first, *rest = wrap(with_key(key, pair.text), room) or [""]
    sides = [side_words(side) for side in pair.sides]
    rows = [f"{number}  {words}" for number, words in enumerate(sides, 1)]
    if len(set(sides)) == 1:
        rows = [f"all  {sides[0]}"]
    for row in rows:
        rest += wrap(row, room)
    differences = pair_words(pair)
    if differences:
        rest.append(style.paint("; ".join(differences), 33))
    marks = "".join(_mark(side, style) for side in pair.sides)
    return [f"  {marks}  {style.dim_key(key, first)}", *(indent + line for line in rest)]


def _table(table: NumberTable, style: Style, width: int) -> str:
    lines = [style.bold(table.title)]
    widths = [max(map(len, column)) for column in zip(*table.rows, strict=True)]
    for row in table.rows:
        line = "  ".join(cell.ljust(room) for cell, room in zip(row, widths, strict=True))
        lines.append(f"  {line}".rstrip())
    lines += [style.dim(f"  {line}") for line in wrap(table.note, max(width - 2, 30))]
    return "\n".join(lines)


def _curves(
    subjects: Sequence[ReportedRun], found: Comparison, style: Style, width: int
) -> list[str]:
    """Return a chart of each of the first curves that more than one run has."""
    summaries = [subject.summary for subject in subjects]
    names = shared_names(subjects, found)
    charts = []
    for name in names[:_CURVES]:
        lines = overlay_curves(summaries, name)
        axes = axes_of(summaries, name)
        charts.append(
            line_chart(lines[:_LINES], width, 14, whole=lines, axes=axes, is_utf8=style.is_utf8)
        )
        if len(lines) > _LINES:
            charts[-1] += style.dim(f"\n{_LINES} of {len(lines)} lines")
    if len(names) > _CURVES:
        charts.append(style.dim(f"… and {plural(len(names) - _CURVES, 'curve')} more"))
    return charts
