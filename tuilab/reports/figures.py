"""Bars, tables and lanes of a report as shapes and words: the template only writes them down.

A lane is a row of spans along time, for example all that one process or one stream did.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tuilab.drawings.axis import Axis
from tuilab.drawings.bars import DIGITS, find_axis_ends, share_of, unit_of_bars
from tuilab.drawings.figures import Figure
from tuilab.drawings.lanes import Lanes
from tuilab.drawings.table import format_cell, is_number_column
from tuilab.record.events import BarsShown, SpanShown, TableShown
from tuilab.reports.charts.frame import WIDTH, Tick, letter
from tuilab.text.display import distinct_labels, show
from tuilab.text.words import format_number

_LEFT, _RIGHT = 150, 540  # of bars: names are left of them, values right of them
_LANES_LEFT, _LANES_RIGHT = 90, 626
_ROW, _TOP, _FOOT = 24, 6, 34
_NAME_WIDTH, _LANE_WIDTH = 22, 14  # characters of names
_LETTER_PX = 7  # width of a letter, with some space
_ROUNDING = 1e-9  # a tick at the end of an axis may be off by this share of the axis


@dataclass(frozen=True)
class Bar:
    """A value with its name; a bar that cannot be drawn has no width and a value in words."""

    name: str
    label: str  # `name`, shortened
    words: str
    x: float
    width: float
    y: float
    is_below: bool  # the value is below 0


@dataclass(frozen=True)
class Bars:
    """Bars from a common zero, from the top down; the places are in pixels."""

    kind: str
    title: str
    bars: tuple[Bar, ...]
    zero: float
    height: int
    width: int = WIDTH
    left: int = _LEFT
    right: int = _RIGHT


@dataclass(frozen=True)
class Table:
    """A table in words."""

    kind: str
    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    are_numbers: tuple[bool, ...]  # for each column


@dataclass(frozen=True)
class LaneSpan:
    """A stretch of a lane; the letter of its name is drawn in it where there is room."""

    x: float
    y: float
    width: float
    look: int
    letter: str
    lane: str
    words: str


@dataclass(frozen=True)
class LanesPicture:
    """Spans in lanes over an axis; the places are in pixels."""

    kind: str
    title: str
    about: str
    names: tuple[tuple[int, str, str], ...]  # look, letter and name of the spans of one name
    lanes: tuple[tuple[float, str, str], ...]  # y, name, and shortened name
    spans: tuple[LaneSpan, ...]
    ticks: tuple[Tick, ...]
    height: int
    bottom: int
    width: int = WIDTH
    left: int = _LANES_LEFT
    right: int = _LANES_RIGHT


Shapes = Bars | Table | LanesPicture


def select_figures(figures: Sequence[Figure], max_figures: int, max_spans: int) -> list[Figure]:
    """Return the first figures, without the lanes that would exceed the number of spans."""
    selected = []
    spans_left = max_spans
    for figure in figures[:max_figures]:
        if isinstance(figure, Lanes):
            spans_left -= len(figure.spans)
            if spans_left < 0:
                continue
        selected.append(figure)
    return selected


def shapes_of(figure: Figure) -> Shapes:
    """Return a figure as the page has it."""
    if isinstance(figure, BarsShown):
        return _draw_bars(figure)
    if isinstance(figure, TableShown):
        return _lay_out_table(figure)
    return _draw_lanes(figure)


def _draw_bars(bars: BarsShown) -> Bars:
    """Return the bars from the top down. A value that is not finite has a bar without width."""
    unit = unit_of_bars(bars)
    reach = find_axis_ends(bars.values)

    def place(value: float) -> float:
        return round(_LEFT + share_of(value, reach) * (_RIGHT - _LEFT), 1)

    zero = place(0.0)
    labels = distinct_labels(bars.names, _NAME_WIDTH)
    shapes = []
    for row, (name, value) in enumerate(zip(bars.names, bars.values, strict=True)):
        end = zero
        if math.isfinite(value):
            end = place(value)
        bar = Bar(
            name=show(name),
            label=labels[name],
            words=format_number(value, unit, DIGITS),
            x=min(zero, end),
            width=round(abs(end - zero), 1),
            y=float(_TOP + _ROW * row),
            is_below=value < 0,
        )
        shapes.append(bar)
    return Bars("bars", show(bars.title), tuple(shapes), zero, _TOP + _ROW * len(shapes))


def _lay_out_table(table: TableShown) -> Table:
    """Return a table in words, and for each column whether it is aligned as numbers."""
    head = tuple(map(show, table.head))
    rows = []
    for row in table.rows:
        rows.append(tuple(map(format_cell, row)))
    column_count = max(map(len, [*rows, head]), default=0)
    are_numbers = [is_number_column(table, column) for column in range(column_count)]
    return Table("table", show(table.title), head, tuple(rows), tuple(are_numbers))


def _draw_lanes(lanes: Lanes) -> LanesPicture:
    """Return spans in lanes along time, or along another unit; without spans there are no ticks.

    Letters for the names of spans are drawn only if there are several names.
    """
    about = lanes.x_name
    if lanes.unit == "s":
        about = "time since the first span began"
    legend = []
    for look, name in enumerate(lanes.names):
        if show(name):
            legend.append((look, letter(look), show(name)))
    labels = distinct_labels(lanes.lanes, _LANE_WIDTH)
    rows = []
    for row, lane in enumerate(lanes.lanes):
        rows.append((_TOP + _ROW * (row + 0.5), show(lane), labels[lane]))

    spans: list[LaneSpan] = []
    ticks: list[Tick] = []
    if lanes.spans:
        axis = lanes.axis(8)
        spans = _draw_spans(lanes, axis, has_letters=len(legend) > 1)
        for share, label in axis.ticks:
            if -_ROUNDING <= share <= 1 + _ROUNDING:
                ticks.append(Tick(_place_in_lane(share), label))
    bottom = _TOP + _ROW * len(lanes.lanes)
    return LanesPicture(
        kind="lanes",
        title=show(lanes.title) or "lanes",
        about=about,
        names=tuple(legend),
        lanes=tuple(rows),
        spans=tuple(spans),
        ticks=tuple(ticks),
        height=bottom + _FOOT,
        bottom=bottom,
    )


def _draw_spans(lanes: Lanes, axis: Axis, *, has_letters: bool) -> list[LaneSpan]:
    """Return the spans of the lanes that are shown."""
    start = lanes.start
    looks = {name: look for look, name in enumerate(lanes.names)}
    rows = {lane: row for row, lane in enumerate(lanes.lanes)}
    shapes = []
    for span in lanes.spans:
        if span.lane not in rows:
            continue
        left = _place_in_lane(axis.share(span.began - start))
        right = _place_in_lane(axis.share(span.ended - start))
        width = round(max(right - left, 1.0), 1)
        look = looks[span.name]
        span_letter = ""
        if has_letters and span.name and width >= 2 * _LETTER_PX:
            span_letter = letter(look)
        shape = LaneSpan(
            x=left,
            y=float(_TOP + _ROW * rows[span.lane]),
            width=width,
            look=look,
            letter=span_letter,
            lane=show(span.lane),
            words=_describe_span(span, start, lanes.unit),
        )
        shapes.append(shape)
    return shapes


def _place_in_lane(share: float) -> float:
    """Return the x of a share of the axis."""
    return round(_LANES_LEFT + share * (_LANES_RIGHT - _LANES_LEFT), 1)


def _describe_span(span: SpanShown, start: float, lanes_unit: str) -> str:
    """Return the name of a span, and from when to when it lasted, counted from the start."""
    unit = show(lanes_unit, 20)
    began = format_number(span.began - start, unit)
    ended = format_number(span.ended - start, unit)
    return f"{show(span.name)} {began} to {ended}".strip()
