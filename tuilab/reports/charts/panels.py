"""Which charts a report has: one for each name that was logged, losses first, then what the run used of the machine."""

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
_NO_MEMORY = f"n/a where {IDLE}"
_NO_SHARE = f"{_NO_MEMORY}, or {UNCOUNTED}"


class ThrottledStretch(NamedTuple):
    """Seconds in which something held the clocks of a GPU down."""

    begin: float
    end: float
    words: str
    is_grave: bool


@dataclass(frozen=True, eq=False)
class Panel:
    """Lines that share a chart."""

    title: str
    lines: tuple[Line, ...]
    name: str = ""  # of what was logged
    unit: str = ""
    is_log: bool = False
    is_log_x: bool = False  # the places of the lines are powers of ten
    x_name: str = ""
    is_timed: bool = False
    left_out: int = 0  # lines that are not drawn
    ends: Mapping[str, Sequence[tuple[str, float]]] = field(default_factory=dict)
    """By label whose and what the last values are, also of what is not drawn."""
    reason: str = ""  # why there is nothing to draw
    gaps: str = ""  # why lines are broken
    held: tuple[ThrottledStretch, ...] = ()


def series_panels(
    summary: RunSummary, most: int = MOST_PANELS, most_lines: int = MOST_LINES
) -> list[Panel]:
    """Return a panel for each name that was logged, losses first."""
    return [_logged(summary, name, most_lines) for name in names_of(summary)[:most]]


def machine_panels(summary: RunSummary) -> list[Panel]:
    """Return what the run used: memory, and how busy processors and GPUs were: many cores are more than 100 %."""
    processes = summary.resources.get("cpu_percent")
    busy = [("processes (100 % is a core)", processes)] if processes else []
    why = summary.unavailable.get("sampler", "the run ended before the first sample")
    why_idle = _NO_SHARE if "processes" in summary.resources else why
    memory = memory_lines(summary)
    is_broken = any(series.gaps for _, series in memory)
    panels = [
        replace(
            _timed(summary, memory_title(summary), "bytes", memory, why),
            gaps=_NO_MEMORY if is_broken else "",
        ),
        replace(
            _timed(summary, "busy", "%", busy, why_idle),
            gaps=_NO_SHARE if processes and processes.gaps else "",
        ),
    ]
    held = tuple(_held(summary))
    for metric, title, unit, marks in (
        ("busy_percent", "busy", "%", ()),
        ("power_w", "power", "W", held),
        ("sm_mhz", "clock", "MHz", held),
    ):
        if found := of_gpus(summary, metric, ""):
            panels.append(
                replace(_timed(summary, f"{title} of the GPU", unit, found, why), held=marks)
            )
    return panels


def _held(summary: RunSummary) -> Iterator[ThrottledStretch]:
    throttling = Throttling()
    for gpu in own_gpus(summary):
        for one in throttling.of(summary, gpu.nvml_uuid):
            begin, end = ((t - summary.first_t) / 1e9 for t in (one.begin_t, one.end_t))
            yield ThrottledStretch(
                begin,
                end,
                f"{label_of(gpu, summary)}: {', '.join(throttle_names(one.mask))}",
                one.is_held_back,
            )


def spreads(summary: RunSummary) -> list[MeasuredSpread]:
    """Return, for each arm that raced, the median of its blocks, the middle half, the least and the greatest."""
    looks = summary.arms_in_order()
    found = []
    for row in chart_rows(arm_times(summary)):
        times = row.times
        low, _, high = (
            quantiles(times, n=4, method="inclusive") if len(times) > 1 else (times[0],) * 3
        )
        look = looks.index(row.arm) if row.arm in looks else 0
        label = show(row.arm, NAME_LIMIT)
        if row.clock:
            label += f", {row.clock}"
        found.append(
            MeasuredSpread(label, median(times), low, high, min(times), max(times), look, row.aside)
        )
    return found


def times_title(summary: RunSummary) -> str:
    """Return the title of the chart of what `spreads` returns."""
    return clock_title(arm_times(summary).values(), measure_of(summary))


def names_of(summary: RunSummary) -> list[str]:
    """Return the names that were logged, losses first."""
    return sorted(
        dict.fromkeys(name for name, _, _ in summary.series),
        key=lambda name: "loss" not in name.lower(),
    )


def _logged(summary: RunSummary, name: str, most: int) -> Panel:
    found = [one for one in summary.series.values() if one.name == name]
    arms = summary.arms_in_order() if any(one.arm for one in found) else ()
    panel = panel_of(
        summary.axes_of(name),
        found,
        [one.arm for one in found[:most]],
        arms,
        siblings(summary.series, name),
    )
    ends: dict[str, list[tuple[str, float]]] = {}
    for one, owner in zip(found, summary.owners_of([one.writer for one in found]), strict=True):
        ends.setdefault(show(one.arm, NAME_LIMIT), []).append((show(owner, 40), one.last))
    return replace(panel, ends=ends)


def panel_of(
    axes: AxesNamed,
    found: Sequence[Series],
    names: Sequence[str],
    order: Sequence[str] = (),
    kin: Sequence[Series] = (),
) -> Panel:
    """Return the panel of what was logged under a name, of which as many lines are drawn as have names.

    Whether the values are on a logarithmic axis, `kin` tell together: charts that are looked at beside each other.
    """
    is_along_log = is_log_x(axes, found)
    lines = lines_of(found[: len(names)], names, order=order, is_log_x=is_along_log)
    title, left_out = show(axes.y or axes.metric, NAME_LIMIT), len(found) - len(lines)
    is_log = is_log_y(axes, kin or found)
    return Panel(
        title,
        lines,
        axes.metric,
        unit_of(axes.metric),
        is_log,
        is_along_log,
        show(axes.x, 60),
        left_out=left_out,
    )


def _timed(
    summary: RunSummary, title: str, unit: str, found: list[tuple[str, Series]], why: str
) -> Panel:
    starts = [summary.first_t] * len(found)
    lines = lines_of(
        [one for _, one in found], [name for name, _ in found], is_timed=True, starts=starts
    )
    return Panel(title, lines, unit=unit, is_timed=True, reason="" if found else show(why))
