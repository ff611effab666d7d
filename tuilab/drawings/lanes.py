"""Who did what when: a lane for each worker, with its spans by kind."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tuilab.drawings.axis import x_axis
from tuilab.drawings.bars import put_names
from tuilab.drawings.picture import ARMS, Canvas, Picture, fit
from tuilab.drawings.symbols import BRAILLE, Symbols, plain
from tuilab.text import show

_FILLS, _PLAIN_FILLS = "█▒▓░▚▤", "#=%-+:"
_LONGEST_S = 1e15  # no time is longer


@dataclass(frozen=True)
class Span:
    """From `start` to `end`, in seconds, the lane was at `kind`."""

    start: float
    end: float
    kind: str


@dataclass(frozen=True)
class Lane:
    name: str
    spans: tuple[Span, ...]


def draw_lanes(lanes: Sequence[Lane], width: int, height: int, symbols: Symbols = BRAILLE) -> Picture:
    """Draw lanes over a time axis; each kind has a fill and a colour, a cell has the kind that took most of it."""
    canvas = Canvas(width, height)
    spans = [span for lane in lanes for span in lane.spans if _is_drawable(span)]
    if not spans:
        canvas.put(0, 0, plain("nothing happened yet", symbols), "muted")
        return canvas.picture()
    kinds = {kind: look for look, kind in enumerate(dict.fromkeys(span.kind for span in spans))}
    low, high = min(span.start for span in spans), max(span.end for span in spans)
    rows = min(len(lanes), max(height - 2, 1))
    left = put_names(canvas, [(lane.name, 0) for lane in lanes[:rows]], symbols)
    room = width - left
    if room > 0:
        for y, lane in enumerate(lanes[:rows]):
            _put_lane(canvas, lane, kinds, (low, high), left, y, symbols)
        _put_axis(canvas, low, high, left, rows, symbols)
    _put_kinds(canvas, kinds, len(lanes) - rows, rows + 1, symbols)
    return canvas.picture()


def _put_lane(
    canvas: Canvas, lane: Lane, kinds: dict[str, int], ends: tuple[float, float], left: int, y: int, symbols: Symbols
) -> None:
    room = canvas.width - left
    low, length = ends[0], max(ends[1] - ends[0], 1e-300)
    taken: list[tuple[float, str] | None] = [None] * room
    for span in lane.spans:
        if not _is_drawable(span):
            continue
        start, end = (min(max((at - low) / length, 0.0), 1.0) * room for at in (span.start, span.end))
        for column in range(int(start), min(math.ceil(end), room) if end > start else min(int(start) + 1, room)):
            share = min(end, column + 1) - max(start, column)
            held = taken[column]
            if held is None or share > held[0]:
                taken[column] = share, span.kind
    for column, held in enumerate(taken):
        if held is not None:
            look = kinds[held[1]]
            canvas.put(left + column, y, _fill(look, symbols), ARMS[look % len(ARMS)])


def _is_drawable(span: Span) -> bool:
    return abs(span.start) < _LONGEST_S and abs(span.end) < _LONGEST_S


def _put_axis(canvas: Canvas, low: float, high: float, left: int, y: int, symbols: Symbols) -> None:
    room, free = canvas.width - left, 0
    axis = x_axis(0.0, high - low, "s" if high - low < 60 else "time", max(room // 14, 2))
    for share, label in axis.ticks:
        label = plain(label, symbols)
        start = min(max(left + round(share * (room - 1)) - len(label) // 2, left), canvas.width - len(label))
        if start >= free:
            free = canvas.put(start, y, label, "label") + 2


def _put_kinds(canvas: Canvas, kinds: dict[str, int], hidden: int, y: int, symbols: Symbols) -> None:
    x = 0
    for kind, look in kinds.items():
        text = plain(f"{_fill(look, symbols)} {fit(show(kind, 60), 24)}", symbols)
        x = canvas.put(x, y, text, ARMS[look % len(ARMS)]) + 2
    if hidden > 0:
        canvas.put(x, y, f"+{hidden} more", "muted")


def _fill(look: int, symbols: Symbols) -> str:
    fills = _FILLS if symbols.is_utf8 else _PLAIN_FILLS
    return fills[look % len(fills)]
