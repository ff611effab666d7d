"""What NVML says of one GPU: how it is plugged in and set, what it reached while it worked, who else is there.

python -P -m tuilab.doctor.gpu_state UUID [ROOT]    looks until its stdin is closed, then one line of JSON for each question

`UUID` is torch's. A link and clocks sleep while nobody works, so that they are read while another process does.
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
_DEAR_S = 0.01  # of a question: four are asked every half second
_USUAL = {
    "idle",
    "clocks set by the user",
    "power cap",
}  # under load: a GPU at work is held by its power limit


@dataclass
class GpuObservation:
    """A GPU, and the most of everything that it reached while it was looked at."""

    gpus: Gpus
    gpu: Gpu
    most: dict[str, float] = field(default_factory=dict)
    mask: int = 0
    missing: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)

    def look(self) -> None:
        """Read once what changes with the load."""
        reading = self.gpus.read(self.gpu, _REACHED)
        link = self.gpus.settings(self.gpu, LINK)
        self.missing |= {**reading.missing, **link.pop("missing", {})}
        self.mask |= int(reading.values.get("throttle_mask", 0))
        for name, value in {**reading.values, **link}.items():
            self.most[name] = max(self.most.get(name, 0), value)

    def reached(self, name: str) -> float:
        """Return the most that something reached; NotKnown with the reason."""
        if name not in self.most:
            raise NotKnown(
                self.missing.get(name, "the driver does not report it for a slice (MIG)")
            )
        return self.most[name]

    def setting(self, name: str) -> Any:
        if name not in self.settings:
            raise NotKnown(self.settings.get("missing", {}).get(name, "not asked"))
        return self.settings[name]


def link(seen: GpuObservation, box: Box) -> DoctorFinding:
    """Generation and width while it copied; fewer lanes than it has are the most frequent fault of all."""
    generation, width = seen.reached("generation"), seen.reached("width")
    best, lanes = seen.setting("most_generation"), seen.setting("most_width")
    lanes = max(lanes, width_of_card(seen.settings.get("bus", ""), box.root) or 0)
    found = f"PCIe {generation:.0f} x{width:.0f} under load, of at most {best} x{lanes}"
    if width < lanes:
        step = "reseat the card; check the slot, the riser and the board firmware: sudo lspci -vv (compare LnkCap and LnkSta)"
        return warn(f"{found}: copies to and from the host are slow", step)
    if generation < best:
        return warn(
            found,
            "check the riser and the board firmware: sudo lspci -vv (compare LnkCap and LnkSta)",
        )
    return passed(found)


def clocks(seen: GpuObservation, box: Box) -> DoctorFinding:
    """What the clocks reached, of what they can."""
    found = [
        _clock(seen, name, words) for name, words in (("sm_mhz", "SM"), ("memory_mhz", "memory"))
    ]
    return passed(f"{', '.join(found)}, under load")


def _clock(seen: GpuObservation, name: str, words: str) -> str:
    try:
        return f"{words} {seen.reached(name):.0f} MHz of {seen.setting(f'most_{name}')}"
    except NotKnown as problem:
        return f"{words} n/a ({problem})"


def throttling(seen: GpuObservation, box: Box) -> DoctorFinding:
    """Report what lowered the clocks under load."""
    seen.reached("throttle_mask")
    names = sorted(set(throttle_names(seen.mask)) - {"idle"})
    found = ", ".join(names) or "the clocks were not throttled"
    if set(names) - _USUAL:
        return warn(
            found, f"times on this GPU are longer than necessary; see the cause with {WHY_SLOW}"
        )
    return passed(found)


def power(seen: GpuObservation, box: Box) -> DoctorFinding:
    limit, usual = seen.setting("power_limit_w"), seen.setting("usual_power_limit_w")
    drawn = f"{seen.most['power_w']:.0f} W" if "power_w" in seen.most else "n/a"
    found = f"limit {limit:.0f} W, at most {drawn} under load"
    if limit < usual:
        return warn(
            f"{found}; the default limit is {usual:.0f} W",
            f"unless this is intended, restore it: sudo nvidia-smi -i {seen.gpu.index} -pl {usual:.0f}",
        )
    return passed(found)


def persistence(seen: GpuObservation, box: Box) -> DoctorFinding:
    if seen.setting("is_persistent"):
        return passed("persistence mode is on: the driver stays loaded between runs")
    step = "turn on persistence mode: sudo nvidia-smi -pm 1"
    return warn(
        "persistence mode is off: the first CUDA call of a process waits until the driver is loaded",
        step,
    )


def memory(seen: GpuObservation, box: Box) -> DoctorFinding:
    """Whether its memory corrects itself, and rows of it were replaced."""
    ecc = "ECC is on" if seen.setting("has_ecc") else "ECC is off"
    if "rows" not in seen.settings:
        return passed(
            f"{ecc}; remapped rows n/a: {seen.settings.get('missing', {}).get('rows', 'not asked')}"
        )
    rows = seen.setting("rows")
    found = f"{ecc}; {plural(rows.corrected + rows.uncorrected, 'remapped row')}"
    if rows.has_failed:
        return failed(f"{found}, and remapping a row failed", DO_NOT_TRAIN)
    if rows.is_pending:
        return failed(
            f"{found}; a remapping waits for a reset",
            "reset the GPU (sudo nvidia-smi --gpu-reset) or reboot; ask the administrator of this machine",
        )
    return passed(found)


def links(seen: GpuObservation, box: Box) -> DoctorFinding:
    """Which NVLinks are up, and whether it reaches the memory of the other GPUs without the host."""
    others = len(seen.gpus.whole) - 1
    if seen.gpu.slice:
        return unknown("a slice of a GPU (MIG) has no links to other GPUs")
    if not others:
        return unknown("this machine has no other GPU")
    nvlinks: Links = seen.setting("links")
    found = (
        f"{nvlinks.up} of {plural(nvlinks.there, 'NVLink')} up" if nvlinks.there else "no NVLink"
    )
    found = f"{found}; {_peers(seen, others)}"
    if 0 < nvlinks.up < nvlinks.there:
        return warn(
            found,
            "find the link that is down: nvidia-smi nvlink --status; ask the administrator of this machine",
        )
    return passed(found)


def _peers(seen: GpuObservation, others: int) -> str:
    """Return of how many others it reads the memory directly, and why not of the rest."""
    try:
        refused = [why for why in seen.gpus.peers(seen.gpu) if why]
    except NotKnown as problem:
        return f"direct access to other GPUs: n/a ({problem})"
    of_all = "the other GPU" if others == 1 else f"{others} other GPUs"
    if not refused:
        return f"direct access to {of_all}"
    reachable = others - len(refused)
    why = ", ".join(dict.fromkeys(refused))
    return f"direct access to {reachable} of {plural(others, 'other GPU')} ({why}); other copies go through the host"


def neighbours(seen: GpuObservation, box: Box) -> DoctorFinding:
    """Who else computes there, once those who measured have ended."""
    found = seen.gpus.tenants(seen.gpu)
    if not found:
        return passed("no other process uses this GPU")
    if why := seen.gpus.no_pids:
        return warn(f"{gpus.in_words(found)}; users n/a: {why}", OTHER_GPU)
    each = [
        f"{one.user or f'user n/a ({one.why})'}, pid {one.pid}, {gpus.memory_of([one])}"
        for one in found
    ]
    return warn("; ".join(each), OTHER_GPU)


def cost(seen: GpuObservation, box: Box) -> DoctorFinding:
    """How long NVML takes for an answer, which is time of the sampler."""
    took = {name: median(_seconds(seen, name) for _ in range(3)) for name in _QUESTIONS}
    usual, slowest = median(took.values()), max(took, key=lambda name: took[name])
    found = f"{1e6 * usual:.0f} us for a reading; slowest: {slowest}, {1e6 * took[slowest]:.0f} us"
    if usual > _DEAR_S:
        return warn(
            found,
            "tuilab reads the GPU less often, so some blocks may count as not watched; update the driver if you can",
        )
    return passed(found)


def _seconds(seen: GpuObservation, name: str) -> float:
    began = time.perf_counter()
    seen.gpus.read(seen.gpu, [name])
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
    """Look at a GPU until nobody listens for it, then answer."""
    box = Box(Path(root))
    try:
        seen = _open(uuid, box.root)
        os.write(1, b"\n")
        _watch(seen)
        seen.settings = seen.gpus.settings(seen.gpu)
    except Exception as problem:  # whatever a strange driver does costs the answers about the GPU
        checks: Group = dict.fromkeys(ABOUT_GPU, partial(_say_why, str(problem)))
    else:
        checks = {name: partial(check, seen) for name, check in ABOUT_GPU.items()}
    for name, check in {**ABOUT_DRIVER, **checks}.items():
        tell(name, answer(check, box))


def _say_why(why: str, box: Box) -> DoctorFinding:
    return unknown(why)


def _open(uuid: str, root: Path) -> GpuObservation:
    found = open_gpus(root)
    if isinstance(found, str):
        raise NotKnown(found)
    by_uuid = {gpu.uuid: gpu for gpu in found.available}
    if name := nvml_uuid(uuid, by_uuid):
        return GpuObservation(found, by_uuid[name])
    raise NotKnown("NVML does not know the GPU that torch uses")


def _watch(seen: GpuObservation) -> None:
    seen.look()
    while not select.select([0], [], [], _PERIOD_S)[0]:
        seen.look()


if __name__ == "__main__":
    main(*sys.argv[1:3])
