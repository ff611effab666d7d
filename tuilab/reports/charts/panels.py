"""Choose the charts of a report: one for each metric, losses first, then what the machine did.

A panel is the content of one chart. Curves of an arm, which is one of the compared variants, share
a style.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median, quantiles
from typing import NamedTuple

from tuilab.drawings.lines import Line, lines_of
from tuilab.drawings.spreads import MeasuredSpread
from tuilab.probes.gpu.nvml import throttle_names
from tuilab.record.blocks import measure_of
from tuilab.record.events import AxesNamed
from tuilab.record.gpus.own_gpus import (
    Throttling,
    label_of,
    memory_lines,
    memory_title,
    of_gpus,
    own_gpus,
)
from tuilab.record.series import Series, is_log_x, is_log_y, siblings
from tuilab.record.summary import RunSummary
from tuilab.record.timing.clock_words import chart_rows, clock_title
from tuilab.record.timing.clocks import arm_times
from tuilab.record.usage import IDLE, UNCOUNTED
from tuilab.text.display import NAME_LIMIT, show
from tuilab.text.words import unit_of

MOST_PANELS, MOST_LINES = 24, 40
_OWNER_LENGTH = 40  # characters
_X_NAME_LENGTH = 60
_NO_MEMORY = f"n/a where {IDLE}"
_NO_SHARE = f"{_NO_MEMORY}, or {UNCOUNTED}"


class ThrottledStretch(NamedTuple):
    """Seconds of a run in which the clocks of a GPU were throttled."""

    begin_s: float
    end_s: float
    words: str
    is_grave: bool


@dataclass(frozen=True, eq=False)
class Panel:
    """Lines that share a chart."""

    title: str
    lines: tuple[Line, ...]
    name: str = ""  # of the metric
    unit: str = ""
    is_log: bool = False
    is_log_x: bool = False  # the places of the lines are powers of ten
    x_name: str = ""
    is_timed: bool = False
    left_out: int = 0  # lines that are not drawn
    # By label: owner and last value of each line, also of the lines that are not drawn.
    ends: Mapping[str, Sequence[tuple[str, float]]] = field(default_factory=dict)
    reason: str = ""  # why there is nothing to draw
    gaps: str = ""  # why lines are broken
    throttled: tuple[ThrottledStretch, ...] = ()


# ---- metrics


def series_panels(
    summary: RunSummary, most: int = MOST_PANELS, most_lines: int = MOST_LINES
) -> list[Panel]:
    """Return a panel for each metric, losses first."""
    names = metric_names(summary)
    return [_metric_panel(summary, name, most_lines) for name in names[:most]]


def metric_names(summary: RunSummary) -> list[str]:
    """Return the names of the metrics, losses first."""
    names: dict[str, None] = {}
    for name, _, _ in summary.series:
        names[name] = None
    return sorted(names, key=lambda name: "loss" not in name.lower())


def _metric_panel(summary: RunSummary, name: str, max_lines: int) -> Panel:
    """Return the panel of a metric, with the last values of all its lines, even if not drawn."""
    series = [curve for curve in summary.series.values() if curve.name == name]
    arms: Sequence[str] = ()
    if any(curve.arm for curve in series):
        arms = summary.arms_in_order()
    labels = [curve.arm for curve in series[:max_lines]]
    shown_beside = siblings(summary.series, name)
    panel = panel_of(summary.axes_of(name), series, labels, arms, shown_beside)
    owners = summary.owners_of([curve.writer for curve in series])
    ends: dict[str, list[tuple[str, float]]] = {}
    for curve, owner in zip(series, owners, strict=True):
        label = show(curve.arm, NAME_LIMIT)
        ends.setdefault(label, []).append((show(owner, _OWNER_LENGTH), curve.last))
    return replace(panel, ends=ends)


def panel_of(
    axes: AxesNamed,
    series: Sequence[Series],
    labels: Sequence[str],
    order: Sequence[str] = (),
    kin: Sequence[Series] = (),
) -> Panel:
    """Return the panel of a metric. As many of its series are drawn as there are labels.

    `kin` are all series whose charts are shown beside each other: they decide together whether the
    values are on a logarithmic axis.
    """
    has_log_x = is_log_x(axes, series)
    lines = lines_of(series[: len(labels)], labels, order=order, is_log_x=has_log_x)
    return Panel(
        title=show(axes.y or axes.metric, NAME_LIMIT),
        lines=lines,
        name=axes.metric,
        unit=unit_of(axes.metric),
        is_log=is_log_y(axes, kin or series),
        is_log_x=has_log_x,
        x_name=show(axes.x, _X_NAME_LENGTH),
        left_out=len(series) - len(lines),
    )


# ---- the machine


def machine_panels(summary: RunSummary) -> list[Panel]:
    """Return the charts of memory, CPU and GPU. Several busy cores are more than 100 %."""
    why = summary.unavailable.get("sampler", "the run ended before the first sample")
    return [_memory_panel(summary, why), _cpu_panel(summary, why), *_gpu_panels(summary, why)]


def _memory_panel(summary: RunSummary, why: str) -> Panel:
    lines = memory_lines(summary)
    panel = _timed_panel(summary, memory_title(summary), "bytes", lines, why)
    if any(series.gaps for _, series in lines):
        panel = replace(panel, gaps=_NO_MEMORY)
    return panel


def _cpu_panel(summary: RunSummary, why: str) -> Panel:
    """Return the panel of the CPU time of the processes, or of the reason why there is none."""
    processes = summary.resources.get("cpu_percent")
    if processes is None:
        if "processes" in summary.resources:
            why = _NO_SHARE
        return _timed_panel(summary, "busy", "%", [], why)
    lines = [("processes (100 % is a core)", processes)]
    panel = _timed_panel(summary, "busy", "%", lines, why)
    if processes.gaps:
        panel = replace(panel, gaps=_NO_SHARE)
    return panel


def _gpu_panels(summary: RunSummary, why: str) -> list[Panel]:
    """Return the panels of use, power and clock of the run's GPUs, each only if it was sampled.

    Power and clock show when the GPUs were throttled.
    """
    throttled = tuple(_throttled_stretches(summary))
    panels = []
    if busy := of_gpus(summary, "busy_percent", ""):
        panels.append(_timed_panel(summary, "busy of the GPU", "%", busy, why))
    if power := of_gpus(summary, "power_w", ""):
        panel = _timed_panel(summary, "power of the GPU", "W", power, why)
        panels.append(replace(panel, throttled=throttled))
    if clock := of_gpus(summary, "sm_mhz", ""):
        panel = _timed_panel(summary, "clock of the GPU", "MHz", clock, why)
        panels.append(replace(panel, throttled=throttled))
    return panels


def _throttled_stretches(summary: RunSummary) -> Iterator[ThrottledStretch]:
    """Yield when the clocks of the run's GPUs were throttled, and for which reasons."""
    throttling = Throttling()
    for gpu in own_gpus(summary):
        label = label_of(gpu, summary)
        for stretch in throttling.of(summary, gpu.nvml_uuid):
            reasons = ", ".join(throttle_names(stretch.mask))
            yield ThrottledStretch(
                begin_s=(stretch.begin_t - summary.first_t) / 1e9,
                end_s=(stretch.end_t - summary.first_t) / 1e9,
                words=f"{label}: {reasons}",
                is_grave=stretch.is_held_back,
            )


def _timed_panel(
    summary: RunSummary, title: str, unit: str, named_series: list[tuple[str, Series]], why: str
) -> Panel:
    """Return a panel of series along the seconds of the run; `why` is shown if there is none."""
    names = [name for name, _ in named_series]
    series = [curve for _, curve in named_series]
    starts = [summary.first_t] * len(series)
    lines = lines_of(series, names, is_timed=True, starts=starts)
    reason = ""
    if not series:
        reason = show(why)
    return Panel(title, lines, unit=unit, is_timed=True, reason=reason)


# ---- times of the arms


def time_spreads(summary: RunSummary) -> list[MeasuredSpread]:
    """Return the spread of the block times of each arm: median, middle half, least and greatest."""
    arms = summary.arms_in_order()
    spreads = []
    for row in chart_rows(arm_times(summary)):
        low, high = _middle_half(row.times)
        label = show(row.arm, NAME_LIMIT)
        if row.clock:
            label += f", {row.clock}"
        style = 0
        if row.arm in arms:
            style = arms.index(row.arm)
        spread = MeasuredSpread(
            label,
            value=median(row.times),
            low=low,
            high=high,
            least=min(row.times),
            greatest=max(row.times),
            style=style,
            aside=row.aside,
        )
        spreads.append(spread)
    return spreads


def _middle_half(times: Sequence[float]) -> tuple[float, float]:
    """Return the first and the third quartile."""
    if len(times) < 2:
        return times[0], times[0]
    first, _, third = quantiles(times, n=4, method="inclusive")
    return first, third


def times_title(summary: RunSummary) -> str:
    """Return the title of the chart of `time_spreads`."""
    return clock_title(arm_times(summary).values(), measure_of(summary))
