"""The charts of a sweep: estimates with their intervals along a setting, and where the curves of a command ended."""

import math
from collections.abc import Collection, Sequence
from typing import Literal

from tuilab.arrays import np
from tuilab.drawings.lines import Line, steps_of
from tuilab.drawings.text_chart import line_chart
from tuilab.record.events import AxesNamed
from tuilab.record.series import Series
from tuilab.reports.charts.panels import Panel
from tuilab.reports.reported_run import ReportedRun
from tuilab.reports.result import ResultClaim
from tuilab.reports.sweeps.points import Point, curve_ends, groups_of, x_of
from tuilab.text.display import show
from tuilab.text.words import unit_of

_LOG_FROM = 20.0  # times the least value: then a linear axis has all but the last in one corner
_MOST_CURVES = 6
_WIDTH, _HEIGHT, _MOST = 78, 12, 120
_LOGS: dict[str, Literal["", "x", "y", "xy"]] = {"": "", "x": "x", "y": "y", "xy": "xy"}


def panel_of(
    judged: Sequence[tuple[Point, ResultClaim]], axis: str, varied: Collection[str]
) -> Panel | None:
    """Return the chart of a claim about a ratio: estimates with their intervals, and what is claimed."""
    declared = judged[0][1].claimed
    measured = [(point, found) for point, claim in judged if (found := _interval(claim))]
    if not axis or declared is None or len(measured) < 2:
        return None
    xs = [x_of(point, axis) for point, _ in measured]
    groups = groups_of([point for point, _ in measured], axis, varied)
    is_log = _is_log(xs)
    lines = [
        _line(
            words or "measured", sorted((xs[i], *measured[i][1]) for i in at), look, is_log=is_log
        )
        for look, (words, at) in enumerate(groups.items())
    ]
    bound = (declared.bound,) * 3
    lines.append(
        _line(
            f"claimed {declared.words}",
            [(min(xs), *bound), (max(xs), *bound)],
            len(groups),
            is_log=is_log,
        )
    )
    title = f"{show(declared.over, 40)} / {show(declared.under, 40)}"
    return Panel(title, tuple(lines), is_log=True, is_log_x=is_log, x_name=show(axis, 40))


def curves_of(
    ended: Sequence[tuple[Point, ReportedRun]], axis: str, varied: Collection[str]
) -> list[Panel]:
    """Return where the curves of a command ended, along the setting."""
    if not axis or not any(one.summary.run and one.summary.run.command for _, one in ended):
        return []
    logged = [series.name for _, one in ended for series in one.summary.series.values()]
    names = dict.fromkeys(
        name for name in logged if unit_of(name) != "ms"
    )  # the times of its steps are told as a whole
    panels = [_curve_ends(name, ended, axis, varied) for name in list(names)[:_MOST_CURVES]]
    return [panel for panel in panels if panel]


def _curve_ends(
    name: str, ended: Sequence[tuple[Point, ReportedRun]], axis: str, varied: Collection[str]
) -> Panel | None:
    """Return the chart of where a curve ended; where it ended in no number, there is a mark."""
    known = [
        (point, last)
        for point, one in ended
        if (last := curve_ends(one.summary).get(name)) is not None
    ]
    if sum(math.isfinite(last) for _, last in known) < 2:
        return None
    xs = [x_of(point, axis) for point, _ in known]
    is_log = _is_log(xs)
    lines = []
    for look, (words, at) in enumerate(
        groups_of([point for point, _ in known], axis, varied).items()
    ):
        rows = sorted((xs[i], *(known[i][1],) * 3) for i in at if math.isfinite(known[i][1]))
        bad = sorted((xs[i], known[i][1]) for i in at if not math.isfinite(known[i][1]))
        lines += [_line(words, rows, look, is_log=is_log, bad=bad)] if rows else []
    return Panel(f"last {show(name, 60)}", tuple(lines), is_log_x=is_log, x_name=show(axis, 40))


def _interval(claim: ResultClaim) -> tuple[float, float, float] | None:
    """Return the ends of an interval and the estimate in it; None if there is none that can be drawn."""
    if claim.estimate and claim.low and claim.high:
        return claim.low, claim.estimate, claim.high
    return None


def _is_log(xs: Sequence[float]) -> bool:
    return min(xs) > 0 and max(xs) / min(xs) >= _LOG_FROM


def _line(
    label: str,
    rows: Sequence[tuple[float, float, float, float]],
    look: int,
    *,
    is_log: bool,
    bad: Sequence[tuple[float, float]] = (),
) -> Line:
    """Return a line through rows of (x, low, mid, high), with marks at (x, value) where there was no number."""
    xs, lows, mids, highs = (np.array(column, np.float64) for column in zip(*rows, strict=True))
    bad_xs, bad_values = (np.array([one[at] for one in bad], np.float64) for at in (0, 1))
    if is_log:
        xs, bad_xs = np.log10(xs), np.log10(bad_xs)
    breaks = np.diff(np.searchsorted(bad_xs, xs)) > 0
    return Line(
        label, xs, lows, highs, bad_xs, bad_values, breaks, look, len(bad), float(mids[-1]), float(xs[-1]), mids=mids
    )  # fmt: skip


def chart(panel: Panel, width: int = _WIDTH, *, is_utf8: bool = True) -> str:
    """Return the chart of a claim, or of where curves ended; nothing where it cannot be drawn."""
    lines = [_series(panel, line) for line in panel.lines]
    log = f"{'x' if panel.is_log_x else ''}{'y' if panel.is_log else ''}"
    axes = AxesNamed(metric=panel.title, x=panel.x_name, log=_LOGS[log])
    return line_chart(lines, min(width, _MOST), _HEIGHT, axes=axes, is_utf8=is_utf8)


def _series(panel: Panel, line: Line) -> Series:
    steps = steps_of(line.xs, is_log_x=panel.is_log_x).tolist()
    mids = (
        line.mids.tolist() if line.mids is not None else []
    )  # the interval of each stands beside it in words
    return Series(
        panel.title, line.label, steps=steps, times=[0] * len(steps), lows=mids, highs=mids,
        count=len(steps), last=line.last, last_step=steps[-1],
    )  # fmt: skip
