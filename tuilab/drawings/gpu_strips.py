"""What the GPUs of a run did along time, as strips: busy, power, clock, heat, what held them down, and who else was there."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import chain

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

_LEAST_SECONDS = 2.0  # that the axis of a run that goes on shows
# metric -> what it is called, its unit, the value of a full column (None: what the GPU can), and whether a fall is what matters
_STRIPS = {
    "busy_percent": ("busy", "%", 100.0, False),
    "power_w": ("power", "W", None, False),
    "sm_mhz": ("clock", "MHz", None, True),
    "temperature_c": ("heat", "°C", 100.0, False),
}


def find_throttling(
    summary: RunSummary, gpus: Sequence[GpuFound], throttling: Throttling
) -> ThrottlingByGpu:
    """Return when the clocks of some GPUs were held down."""
    return {gpu.uuid: throttling.of(summary, gpu.uuid) for gpu in gpus}


def version_of(summary: RunSummary, gpus: Sequence[GpuFound]) -> Hashable:
    """Return what changes when the rows about some GPUs do."""
    counts = [
        summary.resources[f"{gpu.uuid} {metric}"].count
        for gpu in gpus
        for metric in recorded_metrics(summary, gpu)
    ]
    words = [tuple(_words(summary, gpu)) for gpu in gpus]
    return tuple(gpu.uuid for gpu in gpus), tuple(counts), len(summary.gpu_states), tuple(words)


def strips_of(summary: RunSummary, gpus: Sequence[GpuFound], held: ThrottlingByGpu) -> list[Row]:
    """Return the rows about some GPUs, each below its name where there are several."""
    return [
        row
        for gpu in gpus
        for row in _rows(summary, gpu, held.get(gpu.uuid, []), has_heading=len(gpus) > 1)
    ]


def has_strips(summary: RunSummary) -> bool:
    """Say whether there is something to show of a GPU of the run."""
    return any(gpu.found and recorded_metrics(summary, gpu.found) for gpu in own_gpus(summary))


def recorded_metrics(summary: RunSummary, gpu: GpuFound) -> list[str]:
    """Return what a GPU has told of that."""
    return [metric for metric in _STRIPS if f"{gpu.uuid} {metric}" in summary.resources]


def describe_throttling(held: ThrottlingByGpu) -> str:
    """Return what held clocks down, each reason with how long it did."""
    by_mask: dict[int, int] = {}
    for one in chain.from_iterable(held.values()):
        by_mask[one.mask] = by_mask.get(one.mask, 0) + one.end_t - one.begin_t
    lasted: dict[str, int] = {}
    for mask, lasted_ns in by_mask.items():
        for name in throttle_names(mask):
            lasted[name] = lasted.get(name, 0) + lasted_ns
    reasons = sorted(lasted, key=lambda name: -lasted[name])
    return (
        f"throttled: {', '.join(f'{name} {seconds(lasted[name] / 1e9)}' for name in reasons)}"
        if reasons
        else ""
    )


def span_of(rows: Sequence[Row], *, is_over: bool) -> tuple[float, float]:
    """Return the seconds that are shown: of a run that goes on more than there are, so that columns stay where they are."""
    lines = [row.line for row in rows if isinstance(row, Strip) and len(row.line.xs)]
    if not lines:
        return 0.0, _LEAST_SECONDS
    first, last = min(float(line.xs[0]) for line in lines), max(line.last_x for line in lines)
    return (
        (axis_start(first, last), last)
        if is_over
        else growing_range(first, last, _LEAST_SECONDS, None)
    )


def _rows(
    summary: RunSummary, gpu: GpuFound, held: Sequence[Throttled], *, has_heading: bool
) -> Iterator[Row]:
    if has_heading:
        yield TextRow("", f"{gpu.label} {gpu.name}")
    lost, others = _words(summary, gpu)
    if lost:  # the last values below are old
        yield TextRow("lost", lost)
    for look, metric in enumerate(_STRIPS):
        if series := summary.resources.get(f"{gpu.uuid} {metric}"):
            label, unit, top, is_least = _STRIPS[metric]
            (line,) = lines_of([series], is_timed=True, starts=[summary.first_t])
            limit = top or {"power_w": gpu.power_limit_w, "sm_mhz": gpu.most_sm_mhz}[metric]
            yield Strip(
                label, line, unit, max(limit, series.high or 0) if limit else None, is_least, look
            )
    start = summary.first_t
    yield StripMarks(
        "held",
        tuple(
            ((one.begin_t - start) / 1e9, (one.end_t - start) / 1e9, one.is_held_back)
            for one in held
        ),
    )
    if others:
        yield TextRow("others", others)


def _words(summary: RunSummary, gpu: GpuFound) -> tuple[str, str]:
    """Return why a GPU does not answer any more, and who else was on one of the run."""
    own = [others_words(summary, one) for one in own_gpus(summary) if one.nvmls == gpu.uuid]
    return show(summary.unavailable.get(gpu.uuid, ""), 200), ", ".join(own)
