"""Which GPUs are those of a run, and what is known of them along time: every view shows these, and others only when asked to.

A run has a GPU if it was given it, raced on it, or was seen there: by torch in one of its workers, or by the driver.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tuilab.record.events import GpuFound
from tuilab.record.raced_gpu import nvml_uuid, torch_uuid
from tuilab.record.series import Series
from tuilab.record.summary import RunSummary
from tuilab.text import show

Lines = list[tuple[str, Series]]  # each by what it is of; lines of one name belong together


class OwnGpu(NamedTuple):
    """A GPU of a run, by the names that torch and NVML have for it."""

    torchs: str  # empty: torch has not told
    found: GpuFound | None  # None: NVML has not

    @property
    def nvmls(self) -> str:
        return self.found.uuid if self.found else ""


def own_gpus(summary: RunSummary) -> list[OwnGpu]:
    """Return the GPUs of a run, in the order in which they came to be."""
    told = [torch_uuid("", facts) for facts in summary.cuda.values()]
    told += [race.uuid for _, race in summary.races] + [*summary.gpus_held]
    torchs = {uuid: nvml_uuid(uuid, summary.gpus) for uuid in dict.fromkeys(told) if uuid}
    seen = [uuid for uuid in summary.gpus if f"{uuid} memory_tree_bytes" in summary.resources]
    found = [OwnGpu(uuid, summary.gpus.get(nvmls)) for uuid, nvmls in torchs.items()]
    return found + [OwnGpu("", summary.gpus[uuid]) for uuid in seen if uuid not in torchs.values()]


def other_gpus(summary: RunSummary) -> list[GpuFound]:
    """Return the GPUs of the box that are not the run's."""
    own = {gpu.nvmls for gpu in own_gpus(summary)}
    return [gpu for uuid, gpu in summary.gpus.items() if uuid not in own]


def label_of(gpu: OwnGpu, summary: RunSummary) -> str:
    """Return what a GPU is called: as NVML counts, else as torch does."""
    if gpu.found:
        return show(gpu.found.label)
    names = (name for facts in summary.cuda.values() for name, uuid in _counted(facts) if uuid == gpu.torchs)
    return next(names, "GPU")


def memory_lines(summary: RunSummary, *, has_others: bool = False) -> Lines:
    """Return the memory of the run's processes and of its GPUs, on request also of the others.

    Of a GPU that is what the driver says is used there, by all and by this run, and what torch has reserved and given out.
    """
    found = [("processes", series) for name, series in summary.resources.items() if name == "rss_bytes"]
    own, others = own_gpus(summary), other_gpus(summary) if has_others else []
    for gpu in own:
        name = f"{label_of(gpu, summary)} " if len(own) + len(others) > 1 else ""
        found += _of(summary, gpu.nvmls, {"memory_used_bytes": f"{name}device", "memory_tree_bytes": f"{name}this run"})
        found += [(f"{name}{word}", one) for metric, word in _OF_TORCH for one in held_lines(summary, gpu.torchs, metric)]
    for other in others:
        found += _of(summary, other.uuid, {"memory_used_bytes": f"{show(other.label)} device"})
    return found


_OF_TORCH = (("reserved_bytes", "reserved"), ("allocated_bytes", "allocated"))


def held_lines(summary: RunSummary, torchs: str, metric: str) -> list[Series]:
    """Return what torch holds on a GPU, a line for each process of the run that has told."""
    writers = summary.gpus_held.get(torchs, ())
    known = (summary.resources.get(f"{torchs} {metric} {writer}") for writer in writers)
    return [series for series in known if series]


def of_gpus(summary: RunSummary, metric: str, word: str, *, has_others: bool = False) -> Lines:
    """Return something that NVML tells, as `power_w`, of each GPU of the run."""
    found = [gpu.found for gpu in own_gpus(summary) if gpu.found] + (other_gpus(summary) if has_others else [])
    return [line for gpu in found for line in _of(summary, gpu.uuid, {metric: f"{show(gpu.label)} {word}".strip()})]


def _of(summary: RunSummary, uuid: str, metrics: dict[str, str]) -> Lines:
    known = ((name, summary.resources.get(f"{uuid} {metric}")) for metric, name in metrics.items())
    return [(name, series) for name, series in known if uuid and series]


def _counted(facts: dict[str, object]) -> Iterator[tuple[str, str]]:
    """Yield each GPU that torch sees, as it is called there, and its UUID."""
    devices = facts.get("devices")
    for index, device in enumerate(devices if isinstance(devices, Sequence) else ()):
        if isinstance(device, dict):
            yield f"cuda:{index}", str(device.get("uuid", ""))
