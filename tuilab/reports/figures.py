"""Bars, tables and lanes of a report as shapes and words: the template only writes them down."""

from collections.abc import Sequence
from dataclasses import dataclass

from tuilab.drawings.bars import DIGITS, find_axis_ends, share_of, unit_of_bars
from tuilab.drawings.figures import Figure
from tuilab.drawings.lanes import Lanes
from tuilab.drawings.table import format_cell, is_number_column
from tuilab.record.events import BarsShown, TableShown
from tuilab.reports.charts.frame import WIDTH, Tick, letter
from tuilab.text.display import show, told_apart
from tuilab.text.words import format_number

_LEFT, _RIGHT = 150, 540  # of bars; names are before them, values behind
_LANES_LEFT, _LANES_RIGHT = 90, 626
_ROW, _TOP, _FOOT = 24, 6, 34
_NAME_WIDTH, _LANE_WIDTH = 22, 14  # characters of names
_LETTER_PX = 7  # wide, with some air


@dataclass(frozen=True)
class Bar:
    """A value with its name; a bar that cannot be drawn has no width and a value in words."""

    name: str
    label: str  # for the eye
    words: str
    x: float
    width: float
    y: float
    is_below: bool  # 0


@dataclass(frozen=True)
class Bars:
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
    kind: str
    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    are_numbers: tuple[bool, ...]  # of the columns


@dataclass(frozen=True)
class LaneSpan:
    """A stretch of a lane; its name stands in it where there is room."""

    x: float
    y: float
    width: float
    look: int
    letter: str
    lane: str
    words: str


@dataclass(frozen=True)
class LanesPicture:
    kind: str
    title: str
    about: str
    names: tuple[tuple[int, str, str], ...]  # look, letter and name of what went on
    lanes: tuple[tuple[float, str, str], ...]  # y, name, and name for the eye
    spans: tuple[LaneSpan, ...]
    ticks: tuple[Tick, ...]
    height: int
    bottom: int
    width: int = WIDTH
    left: int = _LANES_LEFT
    right: int = _LANES_RIGHT


Shapes = Bars | Table | LanesPicture


def that_fit(figures: Sequence[Figure], most: int, spans: int) -> list[Figure]:
    """Return the figures that a page has room for: so many, and lanes while they have no more spans than that together."""
    kept = []
    for figure in figures[:most]:
        spans -= len(figure.spans) if isinstance(figure, Lanes) else 0
        if spans >= 0 or not isinstance(figure, Lanes):
            kept.append(figure)
    return kept


def shapes_of(figure: Figure) -> Shapes:
    """Return a figure as the page has it."""
    if isinstance(figure, BarsShown):
        return _bars(figure)
    return _table(figure) if isinstance(figure, TableShown) else _lanes(figure)


def _bars(bars: BarsShown) -> Bars:
    unit, reach = unit_of_bars(bars), find_axis_ends(bars.values)

    def place(value: float) -> float:
        return round(_LEFT + share_of(value, reach) * (_RIGHT - _LEFT), 1)

    zero, found = place(0.0), []
    labels = told_apart(bars.names, _NAME_WIDTH)
    for at, (name, value) in enumerate(zip(bars.names, bars.values, strict=True)):
        end = place(value) if abs(value) < float("inf") else zero
        y = float(_TOP + _ROW * at)
        words, left, wide = (
            format_number(value, unit, DIGITS),
            min(zero, end),
            round(abs(end - zero), 1),
        )
        found.append(Bar(show(name), labels[name], words, left, wide, y, is_below=value < 0))
    return Bars("bars", show(bars.title), tuple(found), zero, _TOP + _ROW * len(found))


def _table(table: TableShown) -> Table:
    rows = tuple(tuple(map(format_cell, row)) for row in table.rows)
    columns = max(map(len, [*rows, table.head]), default=0)
    are_numbers = tuple(is_number_column(table, at) for at in range(columns))
    return Table(
        "table", show(table.title), tuple(show(name) for name in table.head), rows, are_numbers
    )


def _lanes(lanes: Lanes) -> LanesPicture:
    names = [show(name) for name in lanes.names]
    title, about = (
        show(lanes.title) or "lanes",
        "time since the first span began" if lanes.unit == "s" else lanes.x_name,
    )
    legend = tuple((look, letter(look), name) for look, name in enumerate(names) if name)
    bottom = _TOP + _ROW * len(lanes.lanes)
    labels = told_apart(lanes.lanes, _LANE_WIDTH)
    rows = tuple(
        (_TOP + _ROW * (at + 0.5), show(lane), labels[lane]) for at, lane in enumerate(lanes.lanes)
    )
    if not lanes.spans:
        return LanesPicture("lanes", title, about, legend, rows, (), (), bottom + _FOOT, bottom)
    axis, start = lanes.axis(8), lanes.start

    def place(share: float) -> float:
        return round(_LANES_LEFT + share * (_LANES_RIGHT - _LANES_LEFT), 1)

    spans, levels = [], {lane: at for at, lane in enumerate(lanes.lanes)}
    for span in lanes.spans:
        if span.lane in levels:
            left, right = (place(axis.share(end - start)) for end in (span.began, span.ended))
            words = f"{show(span.name)} {_told(span.began - start, lanes)} to {_told(span.ended - start, lanes)}"
            look = lanes.names.index(span.name)
            wide = round(max(right - left, 1.0), 1)
            fits = bool(span.name) and len(legend) > 1 and wide >= 2 * _LETTER_PX
            y = float(_TOP + _ROW * levels[span.lane])
            spans.append(
                LaneSpan(
                    left,
                    y,
                    wide,
                    look,
                    letter(look) if fits else "",
                    show(span.lane),
                    words.strip(),
                )
            )
    ticks = tuple(
        Tick(place(share), label) for share, label in axis.ticks if -1e-9 <= share <= 1 + 1e-9
    )
    return LanesPicture(
        "lanes", title, about, legend, rows, tuple(spans), ticks, bottom + _FOOT, bottom
    )


def _told(at: float, lanes: Lanes) -> str:
    return format_number(at, "s" if lanes.unit == "s" else show(lanes.unit, 20))
