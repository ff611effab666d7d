"""The GPUs of a run along time, as strips.

They show how busy the GPUs were, their power, clock and temperature, what throttled them, and other
processes.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tuilab.drawings.axis import axis_start, growing_range
from tuilab.drawings.lines import lines_of
from tuilab.drawings.strips import Row, Strip, StripMarks, TextRow
from tuilab.probes.gpu.nvml import throttle_names
from tuilab.record.events import GpuFound
from tuilab.record.finding_words import others_words
from tuilab.record.gpus.own_gpus import Throttled, Throttling, own_gpus
from tuilab.record.summary import RunSummary
from tuilab.text.display import show
from tuilab.text.words import seconds

ThrottlingByGpu = Mapping[str, Sequence[Throttled]]  # by NVML's UUID

_LEAST_SECONDS = 2.0  # along the axis of a running run


class _StripKind(NamedTuple):
    label: str
    unit: str
    top: float | None = None  # the value of a full column; None: the limit of the GPU
    is_least: bool = False  # whether a fall is more important than a rise


_STRIP_KINDS = {  # by metric
    "busy_percent": _StripKind("busy", "%", top=100.0),
    "power_w": _StripKind("power", "W"),
    "sm_mhz": _StripKind("clock", "MHz", is_least=True),
    "temperature_c": _StripKind("heat", "°C", top=100.0),
}


def find_throttling(
    summary: RunSummary, gpus: Sequence[GpuFound], throttling: Throttling
) -> ThrottlingByGpu:
    """Return when the clocks of GPUs were throttled."""
    return {gpu.uuid: throttling.of(summary, gpu.uuid) for gpu in gpus}


def version_of(summary: RunSummary, gpus: Sequence[GpuFound]) -> Hashable:
    """Return a value that changes when the rows of these GPUs do, for a cache of the rows."""
    counts = []
    for gpu in gpus:
        for metric in recorded_metrics(summary, gpu):
            counts.append(summary.resources[f"{gpu.uuid} {metric}"].count)
    texts = []
    for gpu in gpus:
        texts += [gpu.uuid, _loss_reason(summary, gpu), _describe_others(summary, gpu)]
    return tuple(counts), tuple(texts), len(summary.gpu_states)


def strips_of(
    summary: RunSummary, gpus: Sequence[GpuFound], throttling: ThrottlingByGpu
) -> list[Row]:
    """Return the rows of GPUs. If there are several, each has its name above its rows."""
    rows: list[Row] = []
    for gpu in gpus:
        if len(gpus) > 1:
            rows.append(TextRow("", f"{gpu.label} {gpu.name}"))
        rows += _make_rows(summary, gpu, throttling.get(gpu.uuid, []))
    return rows


def has_strips(summary: RunSummary) -> bool:
    """Say whether there is a strip of a GPU of the run."""
    return any(gpu.nvml and recorded_metrics(summary, gpu.nvml) for gpu in own_gpus(summary))


def recorded_metrics(summary: RunSummary, gpu: GpuFound) -> list[str]:
    """Return the metrics of strips that were recorded for a GPU."""
    return [metric for metric in _STRIP_KINDS if f"{gpu.uuid} {metric}" in summary.resources]


def describe_throttling(throttling: ThrottlingByGpu) -> str:
    """Return the reasons of throttling with their durations, the longest first; empty if none.

    The durations of all GPUs are added. If a GPU was throttled for two reasons, both count the
    time.
    """
    ns_by_mask: dict[int, int] = {}
    for stretches in throttling.values():
        for stretch in stretches:
            ns = ns_by_mask.get(stretch.mask, 0)
            ns_by_mask[stretch.mask] = ns + stretch.end_t - stretch.begin_t
    ns_by_name: dict[str, int] = {}
    for mask, ns in ns_by_mask.items():
        for name in throttle_names(mask):
            ns_by_name[name] = ns_by_name.get(name, 0) + ns
    if not ns_by_name:
        return ""
    parts = []
    for name in sorted(ns_by_name, key=lambda name: -ns_by_name[name]):
        parts.append(f"{name} {seconds(ns_by_name[name] / 1e9)}")
    return f"throttled: {', '.join(parts)}"


def span_of(rows: Sequence[Row], *, is_over: bool) -> tuple[float, float]:
    """Return the seconds that are shown.

    A running run shows more than it has, so that columns stay where they are.
    """
    begins = []
    ends = []
    for row in rows:
        if isinstance(row, Strip) and len(row.line.xs):
            begins.append(float(row.line.xs[0]))
            ends.append(row.line.last_x)
    if not begins:
        return 0.0, _LEAST_SECONDS
    first = min(begins)
    last = max(ends)
    if is_over:
        return axis_start(first, last), last
    return growing_range(first, last, _LEAST_SECONDS)


def _make_rows(
    summary: RunSummary, gpu: GpuFound, throttling: Sequence[Throttled]
) -> Iterator[Row]:
    """Yield the rows of a GPU: why it was lost, its strips, when it was throttled, other processes.

    The row `held` has the times of throttled clocks, with those of heat or power limits as grave.
    """
    loss_reason = _loss_reason(summary, gpu)
    if loss_reason:  # first, because the last values of the strips are old
        yield TextRow("lost", loss_reason)
    for style, metric in enumerate(_STRIP_KINDS):
        if f"{gpu.uuid} {metric}" in summary.resources:
            yield _make_strip(summary, gpu, metric, style)
    start_t = summary.first_t
    spans = []
    for stretch in throttling:
        begin_s = (stretch.begin_t - start_t) / 1e9
        end_s = (stretch.end_t - start_t) / 1e9
        spans.append((begin_s, end_s, stretch.is_held_back))
    yield StripMarks("held", tuple(spans))
    other_processes = _describe_others(summary, gpu)
    if other_processes:
        yield TextRow("others", other_processes)


def _make_strip(summary: RunSummary, gpu: GpuFound, metric: str, style: int) -> Strip:
    """Return the strip of a metric. A full column is the limit of the GPU, or the peak above it."""
    series = summary.resources[f"{gpu.uuid} {metric}"]
    kind = _STRIP_KINDS[metric]
    limits = {"power_w": gpu.power_limit_w, "sm_mhz": gpu.most_sm_mhz}
    top = kind.top or limits[metric]
    if top:
        top = max(top, series.high or 0)
    [line] = lines_of([series], is_timed=True, starts=[summary.first_t])
    return Strip(kind.label, line, kind.unit, top or None, kind.is_least, style)


def _loss_reason(summary: RunSummary, gpu: GpuFound) -> str:
    """Return the reason why a GPU does not answer any more; empty if it does."""
    return show(summary.unavailable.get(gpu.uuid, ""), 200)


def _describe_others(summary: RunSummary, gpu: GpuFound) -> str:
    """Return the other processes on a GPU of the run; empty if it is not a GPU of the run."""
    descriptions = []
    for own_gpu in own_gpus(summary):
        if own_gpu.nvml_uuid == gpu.uuid:
            descriptions.append(others_words(summary, own_gpu))
    return ", ".join(descriptions)
