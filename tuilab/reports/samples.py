"""Every raw measurement of a run, one after another as the journal has it: nothing merged, nothing thinned."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tuilab.probes.gpu.nvml import throttle_names
from tuilab.record import events
from tuilab.record.gpus.own_gpus import MASKS
from tuilab.record.journal.lines import Item
from tuilab.record.live_run import Watch


class Sample(NamedTuple):
    """One number: what it is of, where it stands, and when it was taken."""

    kind: str  # logged, sampled, timed
    name: str
    arm: str
    writer: str
    place: float  # the step of a logged value or where else it stands, the round of a timed block, the number of a sample
    t: int
    value: float
    note: str = ""  # of a timed block: warm-up, disturbed, rerun, and which control; of a throttle mask what it means
    number: int | None = None  # of a value that stands at no whole number: how many of those came before it


def samples(run_dir: Path) -> Iterator[Sample]:
    """Yield every number that a run logged, sampled or timed, stream by stream."""
    watch = Watch(run_dir)
    count: Counter[str] = Counter()
    while portion := watch.refresh():
        for stream, items in portion.streams:
            for item in items:
                if isinstance(item, events.Sampled):
                    yield from _sampled(stream, item, count["sampler"])
                    count["sampler"] += 1
                elif isinstance(item, events.GpuHeld):
                    yield from _held(stream, item, count[stream])
                    count[stream] += 1
                else:
                    yield from _of_item(stream, item)
    watch.close()


def _of_item(stream: str, item: Item) -> Iterator[Sample]:
    if isinstance(item, events.Logged):
        for name, value in item.v.items():
            number = None if item.x is None else item.s
            yield Sample("logged", name, item.a, stream, item.place, item.logged_at, value, number=number)
    elif isinstance(item, events.BlockTimed):
        marks = ("warm-up", item.is_warmup), ("disturbed", item.is_disturbed), ("rerun", item.is_rerun)
        notes = [*(word for word, holds in marks if holds), *([f"control {item.control}"] if item.control else [])]
        seconds = (item.device_ns or item.wall_ns) / item.loops / 1e9
        yield Sample("timed", "step_s", item.arm, stream, item.round, item.t, seconds, " ".join(notes))


def _held(stream: str, item: events.GpuHeld, count: int) -> Iterator[Sample]:
    for name in ("allocated_bytes", "reserved_bytes"):
        yield Sample("sampled", name, item.uuid, stream, count, item.t, float(getattr(item, name)))


def _sampled(stream: str, item: events.Sampled, count: int) -> Iterator[Sample]:
    for name in ("processes", "threads", "cpu_percent", "rss_bytes", "uss_bytes"):
        value = getattr(item, name)
        if value is not None:
            yield Sample("sampled", name, "", stream, count, item.t, float(value))
    for uuid, metrics in item.gpus.items():
        for name, value in metrics.items():
            why = ", ".join(throttle_names(int(value))) if name == "throttle_mask" and 0 <= value < MASKS else ""
            yield Sample("sampled", name, uuid, stream, count, item.gpus_asked.get(uuid, item.t), value, why)
