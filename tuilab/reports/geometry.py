"""The charts of a report as shapes: where every line, mark and tick is. The template only writes them down as SVG."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tuilab.drawings.axis import Axis, beginning, x_axis, y_axis
from tuilab.drawings.legend import letter
from tuilab.drawings.lines import Floats, Line, are_whole, bad_points, positive, step_at, steps_of, thinned
from tuilab.reports.panels import Panel
from tuilab.text import plural
from tuilab.words import number, seconds

WIDTH, HEIGHT = 640, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 626, 22, 208
_ALL_POINTS = 2000  # of one chart, divided among its lines
_MARK_EVERY = 3  # pixels; nearer ones would be drawn on each other
_NAME_ROW = 14  # pixels for what is along x
_MOST_BARS, _REASONS = 400, 6
LOOKS = 6


@dataclass(frozen=True)
class Tick:
    at: float
    label: str


@dataclass(frozen=True)
class Mark:
    """A place where there was no number: `nan`, `inf` (both at the top edge) or `-inf` (at the bottom)."""

    x: float
    y: float
    kind: str
    words: str


@dataclass(frozen=True)
class Curve:
    """One line: its path, and its points as words, for whoever reads them back from the page."""

    label: str
    letter: str
    look: int
    path: str
    dots: tuple[tuple[float, float], ...]  # points without neighbours
    marks: tuple[Mark, ...]
    xs: str
    lows: str
    highs: str  # empty where they are the lows
    bads: str
    is_one_of_many: bool


@dataclass(frozen=True)
class Entry:
    """What the legend says of the lines of one look."""

    letter: str
    look: int
    label: str
    value: str
    bad: str = ""


@dataclass(frozen=True)
class Bar:
    """A stretch of the upper edge, in which something held."""

    x: float
    width: float
    words: str
    is_grave: bool


@dataclass(frozen=True)
class Chart:
    title: str
    about: str  # what the axes are
    curves: tuple[Curve, ...] = ()
    entries: tuple[Entry, ...] = ()
    x_ticks: tuple[Tick, ...] = ()
    y_ticks: tuple[Tick, ...] = ()
    notes: tuple[str, ...] = ()
    letters: tuple[tuple[float, float, Entry], ...] = field(default=())
    x_unit: str = "step"
    x_name: str = ""  # below the axis
    is_log_x: bool = False  # then low_x and high_x are powers of ten
    low_x: float = 0.0
    high_x: float = 1.0
    width: int = WIDTH
    height: int = HEIGHT
    left: int = _LEFT
    right: int = _RIGHT
    top: int = _TOP
    bottom: int = _BOTTOM
    bars: tuple[Bar, ...] = ()


def draw(panel: Panel, share: float = 1.0) -> Chart:
    """Return the shapes of a panel; `share` of the usual number of points, where a report has many charts."""
    lines = [line for line in panel.lines if not line.is_empty]
    if not lines:
        return Chart(panel.title, _about(panel, False), notes=(panel.reason or "no points",))
    most = max(int(share * _ALL_POINTS / len(lines)), 30)
    cut = [positive(line)[0] if panel.is_log else line for line in lines]
    hidden = sum(positive(line)[1] for line in lines) if panel.is_log else 0
    thin = [thinned(line, most) for line in cut]
    x, y = _axes(panel, lines, thin)
    curves = [_curve(line, shown, x, y, lines, is_log_x=panel.is_log_x) for line, shown in zip(lines, thin, strict=True)]
    entries = _entries(lines, panel)
    notes = [f"{plural(panel.left_out, 'line')} more {'are' if panel.left_out > 1 else 'is'} not drawn"] * bool(panel.left_out)
    notes += [f"The bars above tell when clocks were held down: {lasting}."] if (lasting := _lasting(panel)) else []
    notes += _off_axis(lines)
    notes += [f"{plural(hidden, 'value')} at or below zero {'have' if hidden > 1 else 'has'} no logarithm"] * bool(hidden)
    x_ticks = [Tick(_px(share), label) for share, label in x.ticks if -1e-9 <= share <= 1 + 1e-9]
    y_ticks = [Tick(_py(share), label) for share, label in y.ticks if -1e-9 <= share <= 1 + 1e-9]
    return Chart(
        panel.title, _about(panel, y.is_log), tuple(curves), tuple(entries), tuple(x_ticks), tuple(y_ticks), tuple(notes),
        tuple(_letters(thin, x, y, entries)), "seconds" if panel.is_timed else panel.x_name or "step", panel.x_name,
        panel.is_log_x, x.low, x.high, height=HEIGHT + (_NAME_ROW if panel.x_name else 0),
        bars=tuple(_bars(panel, x)[:_MOST_BARS]),
    )  # fmt: skip


def _lasting(panel: Panel) -> str:
    """Return each reason why clocks were held down, with how long it was."""
    lasted: dict[str, float] = {}
    for one in panel.held:
        lasted[one.words] = lasted.get(one.words, 0.0) + one.end - one.begin
    return "; ".join(
        f"{words} {seconds(lasted[words])}" for words in sorted(lasted, key=lambda words: -lasted[words])[:_REASONS]
    )


def _bars(panel: Panel, x: Axis) -> list[Bar]:
    """Return what held as bars; those of one reason that would touch are one."""
    found: list[Bar] = []
    for one in panel.held:
        left, right = (_px(min(max(x.share(end), 0.0), 1.0)) for end in (one.begin, one.end))
        before = found[-1] if found else None
        if before and before.words == one.words and left - before.x - before.width <= _MARK_EVERY:
            found[-1] = replace(before, width=round(right - before.x, 1))
        else:
            found.append(Bar(left, round(max(right - left, 1.0), 1), one.words, one.is_grave))
    return found


def _about(panel: Panel, is_log: bool) -> str:
    along = "seconds" if panel.is_timed else panel.x_name or "steps"
    values, places = (", logarithmic" if is_so else "" for is_so in (is_log, panel.is_log_x))
    return f"{panel.unit or 'value'}{values}{',' if values and places else ''} over {along}{places}"


def _off_axis(lines: Sequence[Line]) -> list[str]:
    """Return how many points a logarithmic x axis has no place for."""
    count = sum(line.off_axis for line in lines)
    return [f"{plural(count, 'point')} at or below zero along x {'have' if count > 1 else 'has'} no logarithm"] * bool(count)


def _axes(panel: Panel, lines: Sequence[Line], thin: Sequence[Line]) -> tuple[Axis, Axis]:
    places = [float(end) for line in lines for part in (line.xs, line.bad_xs) if len(part) for end in (part[0], part[-1])]
    values = [float(v) for line in thin if len(line.xs) for v in (line.lows.min(), line.highs.max())] or [0.0, 1.0]
    low, high = min(places), max([*places, *(line.last_x for line in lines if math.isfinite(line.last_x))])
    is_log = panel.is_log and min(values) > 0
    low = low if panel.is_log_x else beginning(low, high)
    along = x_axis(low, high, "time" if panel.is_timed else "", 6, is_log=panel.is_log_x, is_whole=are_whole(lines))
    return along, y_axis(min(values), max(values), panel.unit, 5, is_log=is_log)


def _px(share: float) -> float:
    return round(_LEFT + min(max(share, -0.5), 1.5) * (_RIGHT - _LEFT), 1)


def _py(share: float) -> float:
    return round(_BOTTOM - min(max(share, -0.5), 1.5) * (_BOTTOM - _TOP), 1)


def _curve(line: Line, shown: Line, x: Axis, y: Axis, lines: Sequence[Line], *, is_log_x: bool) -> Curve:
    path, dots = _path(shown, x, y)
    bad_xs, bad_values = steps_of(line.bad_xs, is_log_x=is_log_x), line.bad_values
    same = sum(other.look == line.look for other in lines)
    return Curve(
        line.label, letter(line.look), line.look % LOOKS, path, dots, tuple(_marks(line, x, is_log_x)),
        _words(steps_of(shown.xs, is_log_x=is_log_x)), _words(shown.lows),
        "" if np.array_equal(shown.lows, shown.highs) else _words(shown.highs),
        " ".join(f"{_word(at)}:{_word(value)}" for at, value in zip(bad_xs.tolist(), bad_values.tolist(), strict=True)),
        same > 1,
    )  # fmt: skip


def _path(line: Line, x: Axis, y: Axis) -> tuple[str, tuple[tuple[float, float], ...]]:
    """Return the line as an SVG path: through the least and the greatest of each place; and the points that stand alone."""
    across = [_px(share) for share in x.shares(line.xs).tolist()]
    lows, highs = ([_py(share) for share in y.shares(values).tolist()] for values in (line.lows, line.highs))
    is_broken = [True, *line.breaks.tolist(), True]
    parts, dots = [], []
    before = 0.0
    for at, (px, low, high) in enumerate(zip(across, lows, highs, strict=True)):
        if is_broken[at] and is_broken[at + 1] and low == high:
            dots.append((px, low))
        first, second = (high, low) if abs(before - high) < abs(before - low) else (low, high)
        parts.append(f"{'M' if is_broken[at] else 'L'}{px:g} {first:g}" + (f"V{second:g}" if second != first else ""))
        before = second
    return "".join(parts), tuple(dots)


def _marks(line: Line, x: Axis, is_log_x: bool) -> list[Mark]:
    found: dict[tuple[int, str], Mark] = {}
    xs, values = bad_points(line)
    steps = steps_of(xs, is_log_x=is_log_x).tolist()
    for step, share, value in zip(steps, x.shares(xs).tolist(), values.tolist(), strict=True):
        kind = "nan" if value != value else "inf" if value > 0 else "-inf"
        px = _px(share)
        words = f"{number(value)} at {step:g}{', ' + line.label if line.label else ''}"
        found.setdefault((int(px / _MARK_EVERY), kind), Mark(px, _BOTTOM - 5 if kind == "-inf" else _TOP - 8, kind, words))
    return list(found.values())


def _entries(lines: Sequence[Line], panel: Panel) -> list[Entry]:
    looks: dict[int, list[Line]] = {}
    for line in lines:
        looks.setdefault(line.look, []).append(line)
    return [_entry(look, group, panel) for look, group in sorted(looks.items())]


def _entry(look: int, group: Sequence[Line], panel: Panel) -> Entry:
    last = [number(line.last, panel.unit) for line in group[-1:]]
    bad = sum(line.bad_count for line in group)
    first = min((float(line.bad_xs[0]) for line in group if len(line.bad_xs)), default=0.0)
    words = f"{bad} not finite, the first at {step_at(first, is_log_x=panel.is_log_x):g}" if bad else ""
    label = group[0].label or ("all" if len(group) > 1 else "")
    many = f" ({len(group)} lines)" if len(group) > 1 else ""
    return Entry(letter(look), look % LOOKS, label + many, f"last {last[0]}", words)


def _letters(lines: Sequence[Line], x: Axis, y: Axis, entries: Sequence[Entry]) -> list[tuple[float, float, Entry]]:
    """Return a letter at the end of each look's line, so that colour is not needed to tell them apart."""
    if len(entries) < 2:
        return []
    found, taken = [], list[float]()
    known = {entry.letter: entry for entry in entries}
    for line in lines:
        entry = known.pop(letter(line.look), None)
        if entry is None or not len(line.xs):
            continue
        px, py = _px(x.share(float(line.xs[-1]))), _py(y.share(float(line.highs[-1])))
        while any(abs(py - other) < 11 for other in taken):
            py += 11
        taken.append(py)
        found.append((min(px + 4, _RIGHT + 3), min(py + 4, _BOTTOM + 4), entry))
    return found


def _words(values: Floats) -> str:
    return " ".join(map(_word, values.tolist()))


def _word(value: float) -> str:
    """Return a number in the fewest characters that six digits take; a step exactly."""
    if value != value or math.isinf(value):
        return "nan" if value != value else "inf" if value > 0 else "-inf"
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else f"{value:.6g}"
