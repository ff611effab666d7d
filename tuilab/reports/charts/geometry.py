"""The charts of a report as shapes: where every line, mark and tick is. The template only writes them down as SVG."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tuilab.drawings.axis import Axis, beginning, x_axis, y_axis
from tuilab.drawings.lines import Line, are_whole, lasts, positive, step_at
from tuilab.reports.charts.curves import Curve, Drawn, curve, drawn
from tuilab.reports.charts.frame import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Tick, letter, px, py
from tuilab.reports.charts.letters import End, Letter, letters
from tuilab.reports.charts.panels import Panel
from tuilab.reports.charts.values import Values, summary, values_of
from tuilab.text import plural, told_apart
from tuilab.words import extent, seconds

_ALL_POINTS = 2000  # of one chart, divided among its lines
_NAME_ROW = 14  # pixels for what is along x
_NAME_WIDTH = 48  # characters of a name in the legend, where it is cut for the eye alone
_TOUCH = 3  # pixels between bars, below which they are one
_MOST_BARS, _REASONS = 400, 6


@dataclass(frozen=True)
class Entry:
    """What the legend says of the lines of one look."""

    letter: str
    look: int
    name: str  # all of it
    label: str  # for the eye
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
    name: str  # of what was logged, where that is what it shows
    title: str
    about: str  # what the axes are
    words: str = ""  # how the lines go
    curves: tuple[Curve, ...] = ()
    entries: tuple[Entry, ...] = ()
    values: Values | None = None
    x_ticks: tuple[Tick, ...] = ()
    y_ticks: tuple[Tick, ...] = ()
    notes: tuple[str, ...] = ()
    letters: tuple[Letter, ...] = ()
    unit: str = ""
    x_unit: str = "step"
    x_name: str = ""  # below the axis
    is_log: bool = False
    is_log_x: bool = False  # then low_x and high_x are powers of ten
    low_x: float = 0.0
    high_x: float = 1.0
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = RIGHT
    top: int = TOP
    bottom: int = BOTTOM
    bars: tuple[Bar, ...] = ()

    @property
    def has_bands(self) -> bool:
        return any(one.band for one in self.curves)


def draw(panel: Panel, share: float = 1.0, places: int = 8) -> Chart:
    """Return the shapes of a panel: `share` of the usual number of points where a report has many, `places` in its table."""
    lines = [line for line in panel.lines if not line.is_empty]
    if not lines:
        return Chart(panel.name, panel.title, _about(panel, False), notes=(panel.reason or "no points",))
    most = max(int(share * _ALL_POINTS / len(lines)), 30)
    cut = [positive(line)[0] if panel.is_log else line for line in lines]
    thin = [drawn(line, most, is_log=panel.is_log) for line in cut]
    x, y = _axes(panel, lines, [one.line for one in thin])
    looks = [line.look for line in lines]
    labels = told_apart([line.label for line in lines], _NAME_WIDTH)
    curves = [
        curve(line, labels[line.label], shown, x, y, is_log_x=panel.is_log_x, is_one_of_many=looks.count(line.look) > 1)
        for line, shown in zip(lines, thin, strict=True)
    ]
    entries = _entries(lines, labels, panel)
    along = "seconds" if panel.is_timed else panel.x_name or "step"
    return Chart(
        panel.name,
        panel.title,
        _about(panel, y.is_log),
        summary(lines, labels, panel.unit),
        tuple(curves),
        tuple(entries),
        values_of(lines, along, panel.unit, places, is_log_x=panel.is_log_x) if places else None,
        tuple(Tick(px(at), label) for at, label in x.ticks if -1e-9 <= at <= 1 + 1e-9),
        tuple(Tick(py(at), label) for at, label in y.ticks if -1e-9 <= at <= 1 + 1e-9),
        tuple(_notes(panel, lines)),
        tuple(letters(_ends(thin, x, y), TOP, BOTTOM)) if len(entries) > 1 else (),
        panel.unit,
        along,
        panel.x_name,
        y.is_log,
        panel.is_log_x,
        x.low,
        x.high,
        height=HEIGHT + (_NAME_ROW if panel.x_name else 0),
        bars=tuple(_bars(panel, x)[:_MOST_BARS]),
    )


def _notes(panel: Panel, lines: Sequence[Line]) -> list[str]:
    hidden = sum(positive(line)[1] for line in lines) if panel.is_log else 0
    notes = [f"{plural(panel.left_out, 'line')} more {'are' if panel.left_out > 1 else 'is'} not drawn"] * bool(panel.left_out)
    notes += [f"The bars above tell when clocks were held down: {lasting}."] if (lasting := _lasting(panel)) else []
    notes += _off_axis(lines) + [panel.gaps] * bool(panel.gaps)
    return notes + [f"{plural(hidden, 'value')} at or below zero {'have' if hidden > 1 else 'has'} no logarithm"] * bool(hidden)


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
        left, right = (px(min(max(x.share(end), 0.0), 1.0)) for end in (one.begin, one.end))
        before = found[-1] if found else None
        if before and before.words == one.words and left - before.x - before.width <= _TOUCH:
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
    least = min(0.0, *values) if panel.is_timed else min(values)  # of a machine what is nothing is at the bottom
    return along, y_axis(least, max(values), panel.unit, 5, is_log=is_log)


def _ends(thin: Sequence[Drawn], x: Axis, y: Axis) -> list[End]:
    """Return where the first line of each look ends: there stands its letter."""
    firsts = {one.line.look: one for one in reversed(thin) if len(one.line.xs)}
    return [
        End(look, px(x.share(float(one.line.xs[-1]))), py(y.share(float(one.mids[-1])))) for look, one in sorted(firsts.items())
    ]


def _entries(lines: Sequence[Line], labels: Mapping[str, str], panel: Panel) -> list[Entry]:
    looks: dict[int, list[Line]] = {}
    for line in lines:
        looks.setdefault(line.look, []).append(line)
    return [_entry(look, group, labels[group[0].label], panel) for look, group in sorted(looks.items())]


def _entry(look: int, group: Sequence[Line], label: str, panel: Panel) -> Entry:
    bad = sum(line.bad_count for line in group)
    first = min((float(line.bad_xs[0]) for line in group if len(line.bad_xs)), default=0.0)
    words = f"{bad} not finite, the first at {step_at(first, is_log_x=panel.is_log_x):g}" if bad else ""
    owned = panel.ends.get(group[0].label, [])
    ends, owners = [end for _, end in owned] or lasts(group), [owner for owner, _ in owned]
    label = label or ("all" if len(ends) > 1 else "")
    count = f"{len(group)} of {len(ends)}" if len(group) < len(ends) else f"{len(group)}"
    many = f" ({count} lines)" if len(ends) > 1 else ""
    return Entry(letter(look), look, group[0].label, label + many, f"last {extent(ends, panel.unit, owners=owners)}", words)
