"""A sweep as plain text: each claim with a line a point, and from where on it holds."""

from collections.abc import Sequence
from typing import Literal

from tuilab.drawings.glyphs import Style
from tuilab.drawings.lines import Line, steps_of
from tuilab.drawings.text_chart import line_chart
from tuilab.record.events import AxesNamed
from tuilab.record.series import Series
from tuilab.reports.charts.panels import Panel
from tuilab.reports.sweeps.swept import Along, Swept
from tuilab.text import shorten, show

_WIDTH, _HEIGHT, _MOST = 78, 12, 120
_LOGS: dict[str, Literal["", "x", "y", "xy"]] = {"": "", "x": "x", "y": "y", "xy": "xy"}


def render(found: Swept, style: Style, width: int, *, has_chart: bool) -> str:
    """Return what a terminal shows of it."""
    parts = [f"{style.bold(found.id)}  {show(found.name)}: {'; '.join(found.settings)}  {style.dim(found.counts)}"]
    parts += ["\n".join(found.doubts)] if found.doubts else []
    parts += ["\n".join(_claim(claim, style, width)) for claim in found.claims]
    panels = [claim.panel for claim in found.claims if claim.panel] + [*found.curves]
    parts += [drawn for panel in panels if has_chart and (drawn := chart(panel, width, is_utf8=style.is_utf8))]
    if found.numbers:
        parts.append("\n".join(table(found.numbers, width)))
    if found.missing:
        parts.append("\n".join(["without a result:", *(f"  {words}" for words in found.missing)]))
    return "\n\n".join([*parts, *([style.dim(found.note)] if found.note else [])])


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines whose cells stand beneath each other."""
    widths = _widths(rows)
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def table(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Return a table that fits, without the columns that matter least: what is told at most length, but for its edges."""
    left_out = []
    while len(rows[0]) > 3 and sum(_widths(rows)) + 2 * len(rows[0]) - 2 > width:
        widths = _widths(rows)
        widest = max(range(1, len(widths) - 1), key=lambda at: widths[at])
        left_out.append(rows[0][widest])
        rows = [[*row[:widest], *row[widest + 1 :]] for row in rows]
    note = [f"left out for the width: {', '.join(left_out)}; a report has them"] if left_out else []
    return [*(shorten(line, width) for line in columns(rows)), *note]


def chart(panel: Panel, width: int = _WIDTH, *, is_utf8: bool = True) -> str:
    """Return the chart of a claim, or of where curves ended; nothing where it cannot be drawn."""
    lines = [_series(panel, line) for line in panel.lines]
    log = f"{'x' if panel.is_log_x else ''}{'y' if panel.is_log else ''}"
    axes = AxesNamed(metric=panel.title, x=panel.x_name, log=_LOGS[log])
    return line_chart(lines, min(width, _MOST), _HEIGHT, axes=axes, is_utf8=is_utf8)


def _series(panel: Panel, line: Line) -> Series:
    steps = steps_of(line.xs, is_log_x=panel.is_log_x).tolist()
    mids = line.mids.tolist() if line.mids is not None else []  # the interval of each stands beside it in words
    return Series(
        panel.title, line.label, steps=steps, times=[0] * len(steps), lows=mids, highs=mids,
        count=len(steps), last=line.last, last_step=steps[-1],
    )  # fmt: skip


def _claim(claim: Along, style: Style, width: int) -> list[str]:
    """Return a claim with a line a point; one that holds throughout, as counted, in short."""
    if len(claim.told) > 1 and all(one.holds and not one.interval for one in claim.told):
        return [f"{style.mark(claim.told[0].verdict)} {show(claim.text)}", *(f"  {words}" for words in claim.holds)]
    rows = columns([(one.words, one.verdict, show(one.found, 200)) for one in claim.told])
    marked = [f"  {style.mark(one.verdict)} {shorten(row, width - 4)}" for one, row in zip(claim.told, rows, strict=True)]
    return [show(claim.text), *marked, *(f"  {style.bold(words)}" for words in claim.holds)]
