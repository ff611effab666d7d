"""Draw a sweep: estimates with their intervals along a setting, and last values of curves."""

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
from tuilab.reports.sweeps.points import Point, final_values, group_points, x_of
from tuilab.text.display import show
from tuilab.text.words import unit_of

_MIN_LOG_RATIO = 20.0  # of x: on a linear axis, all but the last point would lie in one corner
_MAX_CURVES = 6
_WIDTH, _HEIGHT, _MAX_WIDTH = 78, 12, 120
_NAME_LENGTH = 40  # characters
_CURVE_NAME_LENGTH = 60

_IntervalRow = tuple[float, float, float, float]  # x, low, mid, high


# ---- panels


def claim_panel(
    judged: Sequence[tuple[Point, ResultClaim]], axis: str, varied: Collection[str]
) -> Panel | None:
    """Return the chart of a claim about a ratio: estimates with intervals, and the claimed bound.

    None without an axis, or with fewer than two intervals.
    """
    points = []
    intervals = []
    for point, claim in judged:
        if claim.estimate and claim.low and claim.high:
            points.append(point)
            intervals.append((claim.low, claim.estimate, claim.high))
    declared = judged[0][1].claimed
    if not axis or declared is None or len(points) < 2:
        return None
    xs = [x_of(point, axis) for point in points]
    is_log_x = _wants_log_x(xs)
    lines: list[Line] = []
    for words, indices in group_points(points, axis, varied).items():
        rows = []
        for index in indices:
            rows.append((xs[index], *intervals[index]))
        rows.sort()
        lines.append(_make_line(words or "measured", rows, len(lines), is_log_x=is_log_x))
    bound = declared.bound
    claimed_rows = [(min(xs), bound, bound, bound), (max(xs), bound, bound, bound)]
    claimed = _make_line(f"claimed {declared.words}", claimed_rows, len(lines), is_log_x=is_log_x)
    return Panel(
        title=f"{show(declared.over, _NAME_LENGTH)} / {show(declared.under, _NAME_LENGTH)}",
        lines=(*lines, claimed),
        is_log=True,
        is_log_x=is_log_x,
        x_name=show(axis, _NAME_LENGTH),
    )


def curve_panels(
    finished: Sequence[tuple[Point, ReportedRun]], axis: str, varied: Collection[str]
) -> list[Panel]:
    """Return charts of the last values of a command's curves along the setting.

    There are none for a scenario, or without a setting that takes several numbers (`axis` is
    empty).
    """
    summaries = [subject.summary for _, subject in finished]
    is_command = any(summary.run and summary.run.command for summary in summaries)
    if not axis or not is_command:
        return []
    names: dict[str, None] = {}
    for summary in summaries:
        for series in summary.series.values():
            if unit_of(series.name) != "ms":  # the sweep shows the times of the steps elsewhere
                names[series.name] = None
    panels = []
    for name in list(names)[:_MAX_CURVES]:
        panel = _last_values_panel(name, finished, axis, varied)
        if panel:
            panels.append(panel)
    return panels


def _last_values_panel(
    name: str, finished: Sequence[tuple[Point, ReportedRun]], axis: str, varied: Collection[str]
) -> Panel | None:
    """Return the chart of the last value of a curve, with marks where it is NaN or Inf.

    None with fewer than two finite values.
    """
    points = []
    values = []
    for point, subject in finished:
        value = final_values(subject.summary).get(name)
        if value is not None:
            points.append(point)
            values.append(value)
    if sum(math.isfinite(value) for value in values) < 2:
        return None
    xs = [x_of(point, axis) for point in points]
    is_log_x = _wants_log_x(xs)
    lines = []
    for style, (words, indices) in enumerate(group_points(points, axis, varied).items()):
        rows = []
        bad = []
        for index in indices:
            x = xs[index]
            value = values[index]
            if math.isfinite(value):
                rows.append((x, value, value, value))
            else:
                bad.append((x, value))
        if rows:
            line = _make_line(words, sorted(rows), style, is_log_x=is_log_x, bad=sorted(bad))
            lines.append(line)
    return Panel(
        title=f"last {show(name, _CURVE_NAME_LENGTH)}",
        lines=tuple(lines),
        is_log_x=is_log_x,
        x_name=show(axis, _NAME_LENGTH),
    )


def _wants_log_x(xs: Sequence[float]) -> bool:
    return min(xs) > 0 and max(xs) / min(xs) >= _MIN_LOG_RATIO


def _make_line(
    label: str,
    rows: Sequence[_IntervalRow],
    style: int,
    *,
    is_log_x: bool,
    bad: Sequence[tuple[float, float]] = (),
) -> Line:
    """Return a line through rows in the order of x, with marks at the (x, value) of `bad`."""
    # Transposed: an array of four columns becomes four arrays.
    xs, lows, mids, highs = np.array(rows, np.float64).T.copy()
    bad_xs, bad_values = np.array(bad, np.float64).reshape(-1, 2).T.copy()
    if is_log_x:
        xs = np.log10(xs)
        bad_xs = np.log10(bad_xs)
    return Line(
        label=label,
        xs=xs,
        lows=lows,
        highs=highs,
        bad_xs=bad_xs,
        bad_values=bad_values,
        breaks=np.diff(np.searchsorted(bad_xs, xs)) > 0,
        style=style,
        bad_count=len(bad),
        last=float(mids[-1]),
        last_x=float(xs[-1]),
        mids=mids,
    )


# ---- text


def draw_text_chart(panel: Panel, width: int = _WIDTH, *, is_utf8: bool = True) -> str:
    """Return a panel as text, or an empty string if it cannot be drawn."""
    log: Literal["", "x", "y", "xy"] = ""
    if panel.is_log_x and panel.is_log:
        log = "xy"
    elif panel.is_log_x:
        log = "x"
    elif panel.is_log:
        log = "y"
    axes = AxesNamed(metric=panel.title, x=panel.x_name, log=log)
    series = [_make_series(panel, line) for line in panel.lines]
    return line_chart(series, min(width, _MAX_WIDTH), _HEIGHT, axes=axes, is_utf8=is_utf8)


def _make_series(panel: Panel, line: Line) -> Series:
    """Return the estimates of a line without their intervals, which the text has beside it."""
    steps = steps_of(line.xs, is_log_x=panel.is_log_x).tolist()
    mids: list[float] = []
    if line.mids is not None:
        mids = line.mids.tolist()
    return Series(
        panel.title,
        line.label,
        steps=steps,
        times=[0] * len(steps),
        lows=mids,
        highs=mids,
        count=len(steps),
        last=line.last,
        last_step=steps[-1],
    )
