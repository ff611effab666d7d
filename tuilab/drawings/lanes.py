"""Who did what from when to when: a lane for each, its spans filled by what went on, over an axis with ticks and a unit."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tuilab.drawings.axis import Axis, x_axis
from tuilab.drawings.picture import ARMS, Canvas, Picture, cell_codes, fit
from tuilab.drawings.symbols import BRAILLE, Symbols, to_ascii
from tuilab.record.events import SpanShown
from tuilab.record.summary import RunSummary
from tuilab.text.display import plural, show

_FILLS, _PLAIN_FILLS = "█▒░▓▚▞", "#=+~%o"  # colour is not the only carrier
_LANE_SHARE = 0.3  # of the width that their names take at most
_MOST_LANES = 64


@dataclass(frozen=True)
class Lanes:
    """The spans of one picture; seconds begin with the first of them."""

    title: str
    unit: str
    spans: tuple[SpanShown, ...]

    @property
    def lanes(self) -> list[str]:
        return self._every_lane[:_MOST_LANES]

    @property
    def hidden(self) -> int:
        """How many lanes more there are than are shown."""
        return max(len(self._every_lane) - _MOST_LANES, 0)

    @property
    def _every_lane(self) -> list[str]:
        return list(dict.fromkeys(span.lane for span in self.spans))

    @property
    def names(self) -> list[str]:
        """What went on, in the order in which it first did."""
        return list(dict.fromkeys(span.name for span in self.spans))

    @property
    def start(self) -> float:
        return min(span.began for span in self.spans) if self.unit == "s" else 0.0

    def axis(self, count: int) -> Axis:
        """Return the axis from the first span to the last, with about `count` ticks."""
        start = self.start
        low, high = (
            end(edges) for end, edges in ((min, self._edges("began")), (max, self._edges("ended")))
        )
        is_whole = all(
            edge == math.floor(edge) for edge in (*self._edges("began"), *self._edges("ended"))
        )
        return x_axis(
            low - start, high - start, "s" if self.unit == "s" else "", count, is_whole=is_whole
        )

    @property
    def x_name(self) -> str:
        """What is along the axis; seconds are told with each tick."""
        return "" if self.unit == "s" else show(self.unit, 20)

    def _edges(self, name: str) -> list[float]:
        return [getattr(span, name) for span in self.spans]


def lanes_of(summary: RunSummary) -> list[Lanes]:
    """Return a picture for each arm: what all processes of the first repeat that has spans of it showed."""
    writers: dict[str, list[str]] = {}
    for arm, writer in summary.spans:
        writers.setdefault(arm, []).append(writer)
    return [_picture(summary, arm, of_arm) for arm, of_arm in writers.items()]


def _picture(summary: RunSummary, arm: str, writers: Sequence[str]) -> Lanes:
    def repeat(writer: str) -> int:
        return summary.workers[writer].repeat if writer in summary.workers else 0

    first = min(map(repeat, writers))
    spans = [
        span for writer in writers if repeat(writer) == first for span in summary.spans[arm, writer]
    ]
    shown = [
        span
        for span in spans
        if -1e300 < span.began <= span.ended < 1e300 and span.unit == spans[0].unit
    ]
    return Lanes(arm, spans[0].unit, tuple(shown))


def draw_lanes(lanes: Lanes, width: int, symbols: Symbols = BRAILLE) -> Picture:
    """Draw what the marks mean, a row for each lane, and the axis."""
    legend = _legend(lanes, width, symbols)
    canvas = Canvas(width, len(legend) + len(lanes.lanes) + 2)
    for y, row in enumerate(legend):
        x = 0
        for text, role in row:
            x = canvas.put(x, y, text, role)
    if not lanes.spans:
        canvas.put(0, len(legend), to_ascii("no span that can be drawn", symbols), "muted")
        return canvas.picture()
    most = max(int(_LANE_SHARE * width), 1)
    labels = [to_ascii(fit(show(lane, 100), most), symbols) for lane in lanes.lanes]
    left = max(len(cell_codes(label)) for label in labels) + 1
    room = max(width - left - 1, 1)
    axis = lanes.axis(max(2, room // 9))
    for y, (lane, label) in enumerate(zip(lanes.lanes, labels, strict=True), len(legend)):
        canvas.put(left - 1 - len(cell_codes(label)), y, label, "label")
        canvas.put(left, y, symbols.vertical, "axis")
        _put_spans(canvas, lanes, lane, axis, left + 1, room, y, symbols)
    _put_axis(canvas, lanes, axis, left, room, len(legend) + len(labels), symbols)
    return canvas.picture()


def _legend(lanes: Lanes, width: int, symbols: Symbols) -> list[list[tuple[str, str]]]:
    """Return the title and what the marks mean, as rows."""
    more = f" +{plural(lanes.hidden, 'lane')} not drawn" if lanes.hidden else ""
    title = to_ascii(fit((show(lanes.title, 100) or "lanes") + more, width), symbols)
    rows, used = [[(title, "title")]], len(cell_codes(title))
    for look, name in enumerate(lanes.names):
        if not name:
            continue
        entry = to_ascii(
            fit(f"{_fill(look, symbols)} {show(name, 100)}", max(width - 2, 1)), symbols
        )
        if used + 2 + len(cell_codes(entry)) > width:
            rows.append([])
            used = -2
        rows[-1] += [("  ", "")] * (used >= 0) + [
            (entry[:1], ARMS[look % len(ARMS)]),
            (entry[1:], "label"),
        ]
        used += 2 + len(cell_codes(entry))
    return rows


def _fill(look: int, symbols: Symbols) -> str:
    fills = _FILLS if symbols.is_utf8 else _PLAIN_FILLS
    return fills[look % len(fills)]


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
    """Fill the columns of each span; one that begins where another of its name ends has an edge."""
    names, start = lanes.names, lanes.start
    taken = dict.fromkeys(range(len(names)), -1)  # the last column that each look fills
    for span in sorted(
        (span for span in lanes.spans if span.lane == lane), key=lambda span: span.began
    ):
        first, after = (round(axis.share(end - start) * room) for end in (span.began, span.ended))
        first = min(first, room - 1)
        last = max(after - 1, first)
        look = names.index(span.name)
        canvas.put(
            left + first, y, _fill(look, symbols) * (last - first + 1), ARMS[look % len(ARMS)]
        )
        if taken[look] >= 0 and first <= taken[look] + 1 and last > first:
            canvas.put(left + first, y, "▐" if symbols.is_utf8 else "|", ARMS[look % len(ARMS)])
        taken[look] = last


def _put_axis(
    canvas: Canvas, lanes: Lanes, axis: Axis, left: int, room: int, y: int, symbols: Symbols
) -> None:
    canvas.put(left, y, symbols.corner + symbols.horizontal * room, "axis")
    name = to_ascii(lanes.x_name, symbols)
    free, end = 0, canvas.width - (len(cell_codes(name)) + 2 if name else 0)
    for share, label in axis.ticks:
        label = to_ascii(label, symbols)
        column = left + 1 + min(round(share * room), room - 1)
        begin = min(max(column - len(label) // 2, 0), canvas.width - len(label))
        if -1e-9 <= share <= 1 + 1e-9 and begin >= free and begin + len(label) <= end:
            canvas.put(column, y, symbols.tick_x, "axis")
            free = canvas.put(begin, y + 1, label, "label") + 2
    canvas.put(canvas.width - len(cell_codes(name)), y + 1, name, "title")
