"""Ask NVML about one GPU: its link and settings, its values under load, and who uses it.

python -P -m tuilab.doctor.gpu_state UUID [ROOT]

reads the GPU until stdin is closed, then prints a line of JSON for each check. `UUID` is that of
torch. An idle GPU lowers its link and clocks, so they are read while another process uses it.
"""

import os
import select
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from tuilab.doctor import (
    DO_NOT_TRAIN,
    OTHER_GPU,
    WHY_SLOW,
    Box,
    DoctorFinding,
    Group,
    answer,
    failed,
    gpus,
    passed,
    unknown,
    warn,
)
from tuilab.doctor.ask_all import tell
from tuilab.probes import NotKnown
from tuilab.probes.gpu.board import LINK, Links, width_of_card
from tuilab.probes.gpu.meters import METERS
from tuilab.probes.gpu.nvml import PROCESSES, SHARE, Gpu, Gpus, open_gpus, throttle_names
from tuilab.record.gpus.raced_gpu import nvml_uuid
from tuilab.text.display import plural

_REACHED = ("sm_mhz", "memory_mhz", "power_w", "throttle_mask")
_PERIOD_S = 0.2
_QUESTIONS = (*METERS, PROCESSES, SHARE)
_SLOW_ANSWER_S = 0.01  # of one question: the sampler asks four every half second
# Reasons for low clocks that are usual under load: a busy GPU reaches its power limit.
_USUAL = {"idle", "clocks set by the user", "power cap"}


@dataclass
class GpuObservation:
    """A GPU with the highest values that were read, and its settings."""

    gpus: Gpus
    gpu: Gpu
    most: dict[str, float] = field(default_factory=dict)
    mask: int = 0
    missing: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)

    def read_load(self) -> None:
        """Read the values that change with the load."""
        reading = self.gpus.read(self.gpu, _REACHED)
        link = self.gpus.settings(self.gpu, LINK)
        self.missing |= {**reading.missing, **link.pop("missing", {})}
        self.mask |= int(reading.values.get("throttle_mask", 0))
        for name, value in (reading.values | link).items():
            self.most[name] = max(self.most.get(name, 0), value)

    def reached(self, name: str) -> float:
        """Return the highest value that was read; raise NotKnown if there is none."""
        if name not in self.most:
            raise NotKnown(
                self.missing.get(name, "the driver does not report it for a slice (MIG)")
            )
        return self.most[name]

    def setting(self, name: str) -> Any:
        """Return a setting of the GPU, read after the load; raise NotKnown if there is none."""
        if name not in self.settings:
            raise NotKnown(self.settings.get("missing", {}).get(name, "not asked"))
        return self.settings[name]


def link(gpu_seen: GpuObservation, box: Box) -> DoctorFinding:
    """Check generation and width of the link under load; missing lanes are a frequent fault."""
    generation = gpu_seen.reached("generation")
    width = gpu_seen.reached("width")
    most_generation = gpu_seen.setting("most_generation")
    most_width = gpu_seen.setting("most_width")
    card_width = width_of_card(gpu_seen.settings.get("bus", ""), box.root) or 0
    most_width = max(most_width, card_width)
    reached = f"PCIe {generation:.0f} x{width:.0f} under load"
    message = f"{reached}, of at most {most_generation} x{most_width}"
    if width < most_width:
        step = (
            "reseat the card; check the slot, the riser and the board firmware: sudo lspci -vv"
            " (compare LnkCap and LnkSta)"
        )
        return warn(f"{message}: copies to and from the host are slow", step)
    if generation < most_generation:
        return warn(
            message,
            "check the riser and the board firmware: sudo lspci -vv (compare LnkCap and LnkSta)",
        )
    return passed(message)


def clocks(gpu_seen: GpuObservation, box: Box) -> DoctorFinding:
    """Report the highest clocks that were read, and their limits."""
    sm_clock = _describe_clock(gpu_seen, "sm_mhz", "SM")
    memory_clock = _describe_clock(gpu_seen, "memory_mhz", "memory")
    return passed(f"{sm_clock}, {memory_clock}, under load")


def _describe_clock(gpu_seen: GpuObservation, name: str, label: str) -> str:
    """Return the highest clock that was read and its limit, or why one of them is unknown."""
    try:
        reached_mhz = gpu_seen.reached(name)
        most_mhz = gpu_seen.setting(f"most_{name}")
    except NotKnown as problem:
        return f"{label} n/a ({problem})"
    return f"{label} {reached_mhz:.0f} MHz of {most_mhz}"


def throttling(gpu_seen: GpuObservation, box: Box) -> DoctorFinding:
    """Report what lowered the clocks under load; warn if it is more than the usual power limit."""
    gpu_seen.reached("throttle_mask")
    names = sorted(set(throttle_names(gpu_seen.mask)) - {"idle"})
    message = ", ".join(names) or "the clocks were not throttled"
    if set(names) - _USUAL:
        return warn(
            message, f"times on this GPU are longer than necessary; see the cause with {WHY_SLOW}"
        )
    return passed(message)


def power(gpu_seen: GpuObservation, box: Box) -> DoctorFinding:
    """Report the power limit and the highest power under load; warn if the limit was lowered."""
    limit_w = gpu_seen.setting("power_limit_w")
    default_limit_w = gpu_seen.setting("usual_power_limit_w")
    drawn = "n/a"
    if "power_w" in gpu_seen.most:
        drawn = f"{gpu_seen.most['power_w']:.0f} W"
    message = f"limit {limit_w:.0f} W, at most {drawn} under load"
    if limit_w < default_limit_w:
        command = f"sudo nvidia-smi -i {gpu_seen.gpu.index} -pl {default_limit_w:.0f}"
        return warn(
            f"{message}; the default limit is {default_limit_w:.0f} W",
            f"unless this is intended, restore it: {command}",
        )
    return passed(message)


def persistence(gpu_seen: GpuObservation, box: Box) -> DoctorFinding:
    """Warn if the driver is unloaded between runs."""
    if gpu_seen.setting("is_persistent"):
        return passed("persistence mode is on: the driver stays loaded between runs")
    step = "turn on persistence mode: sudo nvidia-smi -pm 1"
    return warn(
        "persistence mode is off: the first CUDA call of a process waits until the driver is"
        " loaded",
        step,
    )


def memory(gpu_seen: GpuObservation, box: Box) -> DoctorFinding:
    """Check ECC and the rows of the memory that were replaced."""
    ecc = "ECC is on" if gpu_seen.setting("has_ecc") else "ECC is off"
    if "rows" not in gpu_seen.settings:
        reason = gpu_seen.settings.get("missing", {}).get("rows", "not asked")
        return passed(f"{ecc}; remapped rows n/a: {reason}")
    rows = gpu_seen.setting("rows")
    message = f"{ecc}; {plural(rows.corrected + rows.uncorrected, 'remapped row')}"
    if rows.has_failed:
        return failed(f"{message}, and remapping a row failed", DO_NOT_TRAIN)
    if rows.is_pending:
        return failed(
            f"{message}; a remapping waits for a reset",
            "reset the GPU (sudo nvidia-smi --gpu-reset) or reboot; ask the administrator of this"
            " machine",
        )
    return passed(message)


def links(gpu_seen: GpuObservation, box: Box) -> DoctorFinding:
    """Check the NVLinks, and whether the GPU reaches the memory of the others directly."""
    count = len(gpu_seen.gpus.whole) - 1
    if gpu_seen.gpu.slice:
        return unknown("a slice of a GPU (MIG) has no links to other GPUs")
    if not count:
        return unknown("this machine has no other GPU")
    nvlinks: Links = gpu_seen.setting("links")
    nvlink_count = "no NVLink"
    if nvlinks.there:
        nvlink_count = f"{nvlinks.up} of {plural(nvlinks.there, 'NVLink')} up"
    message = f"{nvlink_count}; {_describe_peers(gpu_seen, count)}"
    if 0 < nvlinks.up < nvlinks.there:
        return warn(
            message,
            "find the link that is down: nvidia-smi nvlink --status; ask the administrator of this"
            " machine",
        )
    return passed(message)


def _describe_peers(gpu_seen: GpuObservation, count: int) -> str:
    """Return how many of `count` other GPUs the GPU reaches directly, and why not the rest."""
    try:
        refused = [why for why in gpu_seen.gpus.peers(gpu_seen.gpu) if why]
    except NotKnown as problem:
        return f"direct access to other GPUs: n/a ({problem})"
    if not refused and count == 1:
        return "direct access to the other GPU"
    if not refused:
        return f"direct access to {count} other GPUs"
    reachable = count - len(refused)
    why = ", ".join(dict.fromkeys(refused))
    return (
        f"direct access to {reachable} of {plural(count, 'other GPU')} ({why}); other copies go"
        " through the host"
    )


def neighbours(gpu_seen: GpuObservation, box: Box) -> DoctorFinding:
    """Check who uses the GPU after our own measurements have ended."""
    tenants = gpu_seen.gpus.tenants(gpu_seen.gpu)
    if not tenants:
        return passed("no other process uses this GPU")
    reason = gpu_seen.gpus.no_pids
    if reason:
        return warn(f"{gpus.in_words(tenants)}; users n/a: {reason}", OTHER_GPU)
    descriptions = []
    for process in tenants:
        user = process.user or f"user n/a ({process.why})"
        descriptions.append(f"{user}, pid {process.pid}, {gpus.memory_of([process])}")
    return warn("; ".join(descriptions), OTHER_GPU)


def cost(gpu_seen: GpuObservation, box: Box) -> DoctorFinding:
    """Check how long NVML takes for an answer: the sampler of a run spends that time."""
    seconds_of = {}
    for name in _QUESTIONS:
        seconds_of[name] = median(_time_question(gpu_seen, name) for _ in range(3))
    usual_s = median(seconds_of.values())
    slowest = max(seconds_of, key=lambda name: seconds_of[name])
    slowest_us = 1e6 * seconds_of[slowest]
    message = f"{1e6 * usual_s:.0f} us for a reading; slowest: {slowest}, {slowest_us:.0f} us"
    if usual_s > _SLOW_ANSWER_S:
        return warn(
            message,
            "tuilab reads the GPU less often, so some blocks may count as not watched; update the"
            " driver if you can",
        )
    return passed(message)


def _time_question(gpu_seen: GpuObservation, name: str) -> float:
    """Return how many seconds NVML takes to answer one question."""
    began = time.perf_counter()
    gpu_seen.gpus.read(gpu_seen.gpu, [name])
    return time.perf_counter() - began


ABOUT_GPU: dict[str, Callable[[GpuObservation, Box], DoctorFinding]] = {
    "gpu.pcie": link,
    "gpu.clocks_reached": clocks,
    "gpu.throttling": throttling,
    "gpu.power": power,
    "gpu.persistence": persistence,
    "gpu.memory": memory,
    "gpu.links": links,
    "gpu.neighbours": neighbours,
    "gpu.nvml_cost": cost,
}
ABOUT_DRIVER = {"gpu.driver": gpus.driver, "gpu.cuda": gpus.cuda}
IDS = [*ABOUT_DRIVER, *ABOUT_GPU]


def main(uuid: str, root: str = "/") -> None:
    """Read a GPU until stdin is closed, then print the findings."""
    box = Box(Path(root))
    try:
        gpu_seen = _open(uuid, box.root)
        os.write(1, b"\n")
        _watch(gpu_seen)
        gpu_seen.settings = gpu_seen.gpus.settings(gpu_seen.gpu)
    except Exception as problem:  # a strange driver costs only the answers about the GPU
        checks: Group = dict.fromkeys(ABOUT_GPU, partial(_say_why, str(problem)))
    else:
        checks = {name: partial(check, gpu_seen) for name, check in ABOUT_GPU.items()}
    for name, check in {**ABOUT_DRIVER, **checks}.items():
        tell(name, answer(check, box))


def _say_why(why: str, box: Box) -> DoctorFinding:
    return unknown(why)


def _open(uuid: str, root: Path) -> GpuObservation:
    """Return the GPU with this UUID of torch; raise NotKnown if NVML does not know it."""
    gpus_of_machine = open_gpus(root)
    if isinstance(gpus_of_machine, str):
        raise NotKnown(gpus_of_machine)
    by_uuid = {gpu.uuid: gpu for gpu in gpus_of_machine.available}
    name = nvml_uuid(uuid, by_uuid)
    if not name:
        raise NotKnown("NVML does not know the GPU that torch uses")
    return GpuObservation(gpus_of_machine, by_uuid[name])


def _watch(gpu_seen: GpuObservation) -> None:
    """Read the GPU until stdin is closed."""
    gpu_seen.read_load()
    while not select.select([0], [], [], _PERIOD_S)[0]:
        gpu_seen.read_load()


if __name__ == "__main__":
    main(*sys.argv[1:3])
