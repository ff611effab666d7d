"""Spans in lanes: when each process, stream or the like did what, over an axis of time or steps.

A lane is one row, and its spans are the stretches in which something ran. A writer is the process
that recorded spans, and an arm is the variant of the scenario that they are from.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tuilab.drawings.axis import Axis, x_axis
from tuilab.drawings.picture import Canvas, Picture, Run, arm_role, centre, count_cells, fit
from tuilab.drawings.symbols import BRAILLE, Symbols, to_ascii
from tuilab.record.events import SpanShown
from tuilab.record.summary import RunSummary
from tuilab.text.display import plural, show

_FILLS, _ASCII_FILLS = "█▒░▓▚▞", "#=+~%o"  # they distinguish names where there is no colour
_LANE_SHARE = 0.3  # of the width that the names of lanes take at most
_MOST_LANES = 64
_LEGEND_GAP = 2  # columns between entries of the legend
_GREATEST = 1e300  # beyond it, an axis cannot be divided


@dataclass(frozen=True)
class Lanes:
    """The spans of one picture. Seconds count from the beginning of the first span."""

    title: str
    unit: str
    spans: tuple[SpanShown, ...]

    @property
    def lanes(self) -> list[str]:
        return self._all_lanes[:_MOST_LANES]

    @property
    def hidden_count(self) -> int:
        """The number of lanes that are not shown."""
        return max(len(self._all_lanes) - _MOST_LANES, 0)

    @property
    def _all_lanes(self) -> list[str]:
        lanes = [span.lane for span in self.spans]
        return list(dict.fromkeys(lanes))

    @property
    def names(self) -> list[str]:
        """The names of spans, in the order in which they first appear. Their places are styles."""
        names = [span.name for span in self.spans]
        return list(dict.fromkeys(names))

    @property
    def start(self) -> float:
        if self.unit != "s":
            return 0.0
        return min(span.began for span in self.spans)

    def axis(self, count: int) -> Axis:
        """Return the axis from the first span to the last, with about `count` ticks."""
        begins = [span.began for span in self.spans]
        ends = [span.ended for span in self.spans]
        low = min(begins) - self.start
        high = max(ends) - self.start
        unit = "s" if self.unit == "s" else ""
        is_whole = all(edge == math.floor(edge) for edge in begins + ends)
        return x_axis(low, high, unit, count, is_whole=is_whole)

    @property
    def x_name(self) -> str:
        """The unit of the axis; empty for seconds, because each tick has their unit."""
        if self.unit == "s":
            return ""
        return show(self.unit, 20)


def lanes_of(summary: RunSummary) -> list[Lanes]:
    """Return a picture for each arm: the spans of all processes of its first repeat with spans.

    A repeat is a fresh run of all its processes, so later ones would show the same.
    """
    writers_by_arm: dict[str, list[str]] = {}
    for arm, writer in summary.spans:
        writers_by_arm.setdefault(arm, []).append(writer)
    pictures = []
    for arm, writers in writers_by_arm.items():
        pictures.append(_make_lanes(summary, arm, writers))
    return pictures


def _make_lanes(summary: RunSummary, arm: str, writers: Sequence[str]) -> Lanes:
    """Return the picture of an arm. Spans in another unit than its first span are left out."""
    first_repeat = min(_repeat_of(writer, summary) for writer in writers)
    spans = []
    for writer in writers:
        if _repeat_of(writer, summary) == first_repeat:
            spans += summary.spans[arm, writer]
    unit = spans[0].unit
    shown = [span for span in spans if _is_drawable(span) and span.unit == unit]
    return Lanes(arm, unit, tuple(shown))


def _repeat_of(writer: str, summary: RunSummary) -> int:
    if writer not in summary.workers:
        return 0
    return summary.workers[writer].repeat


def _is_drawable(span: SpanShown) -> bool:
    return -_GREATEST < span.began <= span.ended < _GREATEST


# ---- the drawing


def draw_lanes(lanes: Lanes, width: int, symbols: Symbols = BRAILLE) -> Picture:
    """Draw the legend, a row for each lane, and the axis, or a note if no span can be drawn."""
    legend = _make_legend(lanes, width, symbols)
    top = len(legend)
    names = lanes.lanes
    canvas = Canvas(width, top + len(names) + 2)
    for y, row in enumerate(legend):
        x = 0
        for text, role in row:
            x = canvas.put(x, y, text, role)
    if not lanes.spans:
        canvas.put(0, top, to_ascii("no span that can be drawn", symbols), "muted")
        return canvas.picture()
    limit = max(int(_LANE_SHARE * width), 1)
    labels = []
    for name in names:
        label = fit(show(name, 100), limit)
        labels.append(to_ascii(label, symbols))
    left = max(map(count_cells, labels)) + 1
    room = max(width - left - 1, 1)
    axis = lanes.axis(max(2, room // 9))
    for y, (name, label) in enumerate(zip(names, labels, strict=True), top):
        canvas.put(left - 1 - count_cells(label), y, label, "label")
        canvas.put(left, y, symbols.vertical, "axis")
        _put_spans(canvas, lanes, name, axis, left + 1, room, y, symbols)
    _put_axis(canvas, lanes, axis, left, room, top + len(labels), symbols)
    return canvas.picture()


def _make_legend(lanes: Lanes, width: int, symbols: Symbols) -> list[list[Run]]:
    """Return rows with the title, and with the fill and the name of each kind of span."""
    title = show(lanes.title, 100) or "lanes"
    if lanes.hidden_count:
        title += f" +{plural(lanes.hidden_count, 'lane')} not drawn"
    title = to_ascii(fit(title, width), symbols)
    rows: list[list[Run]] = [[(title, "title")]]
    used = count_cells(title)  # columns of the last row
    for style, name in enumerate(lanes.names):
        if not name:
            continue
        entry = f"{_fill(style, symbols)} {show(name, 100)}"
        entry = to_ascii(fit(entry, max(width - 2, 1)), symbols)
        columns = count_cells(entry)
        if used + _LEGEND_GAP + columns > width:
            rows.append([])
            used = 0
        else:
            rows[-1].append((" " * _LEGEND_GAP, ""))
            used += _LEGEND_GAP
        rows[-1].append((entry[:1], arm_role(style)))
        rows[-1].append((entry[1:], "label"))
        used += columns
    return rows


def _fill(style: int, symbols: Symbols) -> str:
    fills = _FILLS if symbols.is_utf8 else _ASCII_FILLS
    return fills[style % len(fills)]


def _put_spans(
    canvas: Canvas,
    lanes: Lanes,
    lane: str,
    axis: Axis,
    left: int,
    room: int,
    y: int,
    symbols: Symbols,
) -> None:
    """Fill the columns of each span. A span that follows another of its name has an edge."""
    names = lanes.names
    start = lanes.start
    edge = "▐" if symbols.is_utf8 else "|"
    last_columns: dict[int, int] = {}  # by style: the last filled column
    spans = [span for span in lanes.spans if span.lane == lane]
    for span in sorted(spans, key=lambda span: span.began):
        first = min(round(axis.share(span.began - start) * room), room - 1)
        last = max(round(axis.share(span.ended - start) * room) - 1, first)
        style = names.index(span.name)
        role = arm_role(style)
        canvas.put(left + first, y, _fill(style, symbols) * (last - first + 1), role)
        previous = last_columns.get(style, -1)
        if previous >= 0 and first <= previous + 1 and last > first:
            canvas.put(left + first, y, edge, role)
        last_columns[style] = last


def _put_axis(
    canvas: Canvas, lanes: Lanes, axis: Axis, left: int, room: int, y: int, symbols: Symbols
) -> None:
    """Put the axis at the row `y`, and its labels below, as far as its name leaves them room."""
    canvas.put(left, y, symbols.corner + symbols.horizontal * room, "axis")
    name = to_ascii(lanes.x_name, symbols)
    free = 0
    end = canvas.width
    if name:
        end -= count_cells(name) + 2
    for share, label in axis.visible_ticks:
        label = to_ascii(label, symbols)
        column = left + 1 + min(round(share * room), room - 1)
        start = centre(column, len(label), canvas.width)
        if start >= free and start + len(label) <= end:
            canvas.put(column, y, symbols.tick_x, "axis")
            free = canvas.put(start, y + 1, label, "label") + 2
    canvas.put(canvas.width - count_cells(name), y + 1, name, "title")
