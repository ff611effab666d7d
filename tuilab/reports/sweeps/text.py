"""Render a sweep as plain text: each claim with a line for each point, and where it holds."""

from collections.abc import Sequence

from tuilab.drawings.glyphs import Style
from tuilab.reports.sweeps.panels import draw_text_chart
from tuilab.reports.sweeps.sweep_summary import ClaimAlongSweep, SweepSummary
from tuilab.text.display import show
from tuilab.text.wrapping import cell_width, wrap, wrap_indented

_MIN_ROOM = 24  # cells for what was measured, beside a verdict
_MEASURED_LENGTH = 200  # characters


def render(sweep: SweepSummary, style: Style, width: int, *, has_chart: bool) -> str:
    """Return the text that a terminal shows: claims, charts, numbers and missing points.

    There are charts only if `has_chart`.
    """
    parts = [_render_heading(sweep, style, width)]
    if sweep.doubts:
        lines = []
        for doubt in sweep.doubts:
            lines += wrap(doubt, width)
        parts.append("\n".join(lines))
    for claim in sweep.claims:
        parts.append("\n".join(_render_claim(claim, style, width)))
    if has_chart:
        parts += _draw_charts(sweep, style, width)
    if sweep.numbers:
        parts.append("\n".join(fit_table(sweep.numbers, width)))
    if sweep.missing:
        lines = ["without a result:"]
        for point in sweep.missing:
            lines += wrap_indented(f"  {point}", width)
        parts.append("\n".join(lines))
    if sweep.note:
        lines = [style.dim(line) for line in wrap(sweep.note, width)]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _render_heading(sweep: SweepSummary, style: Style, width: int) -> str:
    """Return the id, name and settings of a sweep, and on the same line its counts if they fit."""
    settings = "; ".join(sweep.settings)
    lines = wrap(f"{sweep.id}  {show(sweep.name)}: {settings}", width, hang="  ")
    heading = style.bold(sweep.id) + "\n".join(lines).removeprefix(sweep.id)
    between = "\n  "
    if len(lines) == 1 and cell_width(lines[0]) + 2 + cell_width(sweep.counts) <= width:
        between = "  "
    return heading + between + style.dim(sweep.counts)


def _draw_charts(sweep: SweepSummary, style: Style, width: int) -> list[str]:
    """Return the charts of the claims, then of the curves, as far as they can be drawn."""
    panels = [claim.panel for claim in sweep.claims if claim.panel]
    charts = []
    for panel in [*panels, *sweep.curves]:
        chart = draw_text_chart(panel, width, is_utf8=style.is_utf8)
        if chart:
            charts.append(chart)
    return charts


# ---- claims


def _render_claim(claim: ClaimAlongSweep, style: Style, width: int) -> list[str]:
    """Return a claim with a line for each point; without them if it held alike at all points."""
    heading = wrap(show(claim.text), width - 2) or [""]
    about = []
    if claim.about:
        about = [style.dim(line) for line in wrap_indented(f"  {claim.about}", width)]
    holds = []
    for sentence in claim.holds:
        holds += [style.bold(line) for line in wrap_indented(f"  {sentence}", width)]
    if _holds_alike_everywhere(claim):
        mark = style.mark(claim.points[0].claim.outcome)
        lines = [f"{mark} {heading[0]}"]
        for line in heading[1:]:
            lines.append(f"  {line}")
        return lines + about + holds
    return [*heading, *about, *_render_points(claim, style, width), *holds]


def _holds_alike_everywhere(claim: ClaimAlongSweep) -> bool:
    """Return whether a claim about a count has the same result at several points, and holds."""
    if len(claim.points) < 2:
        return False
    for point in claim.points:
        if not point.holds or point.row.interval:
            return False
        if point.measured != claim.points[0].measured:
            return False
    return True


def _render_points(claim: ClaimAlongSweep, style: Style, width: int) -> list[str]:
    """Return the lines of a claim at each point, with the verdicts in a column."""
    heads = align_columns([(point.words, point.claim.outcome) for point in claim.points])
    head_width = max(map(cell_width, heads))
    lines = []
    for point, head in zip(claim.points, heads, strict=True):
        measured = show(point.measured, _MEASURED_LENGTH)
        first, *rest = _render_point(head.ljust(head_width), measured, width - 4)
        lines.append(f"  {style.mark(point.claim.outcome)} {first}")
        for line in rest:
            lines.append(f"    {line}")
    return lines


def _render_point(head: str, measured: str, width: int) -> list[str]:
    """Return what was measured beside the verdict, or below it if there is too little room."""
    room = width - cell_width(head) - 2
    if room < min(_MIN_ROOM, cell_width(measured)):
        lines = wrap(head.rstrip(), width)
        for line in wrap(measured, max(width - 2, _MIN_ROOM)):
            lines.append(f"  {line}")
        return lines
    first, *rest = wrap(measured, max(room, 1)) or [""]
    indent = " " * (cell_width(head) + 2)
    lines = [f"{head}  {first}".rstrip()]
    for line in rest:
        lines.append(indent + line)
    return lines


# ---- tables


def align_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines with aligned columns."""
    widths = _column_widths(rows)
    lines = []
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        lines.append("  ".join(cells).rstrip())
    return lines


def fit_table(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Return a table that fits, without the widest columns between the first and the last one.

    The text behind a semicolon is dropped before any column is. If not even three columns fit
    beside each other, the cells of a row are printed below each other.
    """
    if _is_too_wide(rows, width):
        rows = [_drop_details(row) for row in rows]
    left_out = []
    while _is_too_wide(rows, width):
        widths = _column_widths(rows)
        widest = max(range(1, len(widths) - 1), key=lambda column: widths[column])
        left_out.append(rows[0][widest].strip())
        narrower_rows = []
        for row in rows:
            narrower_rows.append([*row[:widest], *row[widest + 1 :]])
        rows = narrower_rows
    lines = align_columns(rows)
    if max(map(cell_width, lines)) > width:
        lines = _stack_cells(rows, width)
    if left_out:
        pronoun = "them"
        if len(left_out) == 1:
            pronoun = "it"
        names = ", ".join(left_out)
        lines += wrap(f"left out for the width: {names}; a report has {pronoun}", width)
    return lines


def _drop_details(row: Sequence[str]) -> list[str]:
    """Return a row without what is behind a semicolon in its cells, of which the first stays."""
    cells = [row[0]]
    for cell in row[1:]:
        result, _, _ = cell.partition("; ")
        cells.append(result)
    return cells


def _is_too_wide(rows: Sequence[Sequence[str]], width: int) -> bool:
    """Return whether a table is too wide and has columns that can be left out."""
    columns = len(rows[0])
    return columns > 3 and sum(_column_widths(rows)) + 2 * columns - 2 > width


def _column_widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def _stack_cells(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Return a table without columns: below the first cell of a row, a line for each other cell."""
    names, *body = rows
    lines = []
    for row in body:
        lines += wrap_indented(row[0], width)
        for name, cell in zip(names[1:], row[1:], strict=True):
            lines += wrap_indented(f"  {name}  {cell}", width)
    return lines
