"""Which device a scenario gets: the one that was asked for, or the emptiest GPU on which a first kernel runs.

Nothing goes to the CPU in silence where the box has a GPU: the run says so before all else.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import torch

from tuilab.catalogue.params import is_gpu
from tuilab.errors import BoxLacks
from tuilab.lab.arguments import describe_value, words
from tuilab.lab.device import devices, torch_gpus
from tuilab.lab.device.cuda import Cuda
from tuilab.probes import NotKnown
from tuilab.probes.gpu.free_memory import free_bytes
from tuilab.probes.gpu.is_present import describe_fix, is_gpu_there
from tuilab.record.events import EnvironmentRecorded
from tuilab.record.gpus.gpu_of_run import gpu_of_run
from tuilab.record.gpus.raced_gpu import nvml_uuid
from tuilab.record.journal.writer import Writer
from tuilab.text.display import plural
from tuilab.text.words import size

ANY = ("auto", "cuda")


class ChosenDevice(NamedTuple):
    """A device, why it is that one, and what the user must know before reading anything that was measured on it."""

    device: torch.device
    why: str
    notice: str = ""


def choose(
    wanted: str, before: str = "", root: Path = Path("/"), rank: int | None = None
) -> ChosenDevice:
    """Return the device for `auto`, `cpu`, `cuda` or `cuda:3`; BoxLacks when there is no such GPU, or it does not work.

    `before` is torch's name of the GPU that the run has used already: all that it compares is to run on one. Of several ranks
    each has a GPU of its own: `rank` is the number on this box.
    """
    if wanted == "cpu":
        return ChosenDevice(torch.device("cpu"), "asked for")
    if reason := torch_gpus.why_no_cuda():
        return _without_gpu(wanted, reason, is_there=is_gpu_there(root))
    if rank is not None and wanted in ANY:
        return _for_rank(rank)
    refused: dict[str, str] = {}
    for gpu, why in in_order(before) if wanted in ANY else asked_for(wanted):
        if reason := gpu.why_not():
            refused[f"cuda:{gpu.index}"] = reason
        else:
            gpu.make_current()
            return ChosenDevice(torch.device("cuda", gpu.index), why, _notice(refused))
    if wanted not in ANY:
        raise BoxLacks(
            f"{wanted}, which cannot be used ({mended(refused[wanted])}); {_another(wanted)}"
        )
    return _without_gpu(wanted, _listed(refused), is_there=True)


def _for_rank(rank: int) -> ChosenDevice:
    """Return the GPU of a rank: no other one, which another rank has, and no CPU, where the others would wait for it."""
    gpu = of_rank(rank)
    if reason := gpu.why_not():
        raise BoxLacks(
            f"cuda:{gpu.index}, the GPU of local rank {rank}, which cannot be used ({mended(reason)})"
        )
    gpu.make_current()
    return ChosenDevice(torch.device("cuda", gpu.index), f"that of local rank {rank}", _notice({}))


def _without_gpu(wanted: str, reason: str, *, is_there: bool) -> ChosenDevice:
    """Return the CPU where nobody insists on a GPU."""
    if wanted != "auto":
        why = mended(reason) if is_there else reason
        raise BoxLacks(f"a CUDA GPU is needed, but {why}; use --device cpu to run without one")
    if not is_there:
        return ChosenDevice(torch.device("cpu"), "this machine has no GPU")
    notice = f"this ran on the CPU, although the machine has a GPU: {mended(reason)}"
    return ChosenDevice(torch.device("cpu"), "torch cannot use the GPU", notice)


def _another(wanted: str) -> str:
    """Return which GPU can be used instead of one that cannot."""
    others = (
        f"cuda:{gpu.index}"
        for gpu, _ in in_order("")
        if f"cuda:{gpu.index}" != wanted and not gpu.why_not()
    )
    other = next(others, "")
    return (
        f"--device {other} can be"
        if other
        else "no other GPU can be; --device cpu runs without one"
    )


def _notice(refused: dict[str, str]) -> str:
    found = [f"not used: {_listed(refused)}"] if refused else []
    if os.environ.get("CUDA_LAUNCH_BLOCKING", "0") not in ("", "0"):
        found.append(
            "CUDA_LAUNCH_BLOCKING is set: torch waits for each kernel, and all times are longer than without it"
        )
    return "; ".join(found)


def _listed(refused: dict[str, str]) -> str:
    return "; ".join(f"{name}: {reason}" for name, reason in refused.items())


def mended(reason: str) -> str:
    """Return a reason with what to do about it."""
    return f"{reason}: {describe_fix(reason, torch.version.cuda or '')}"


def asked_for(wanted: str) -> Iterator[tuple[Cuda, str]]:
    """Yield the GPU that was named, as `cuda:3`; BoxLacks where none has that number."""
    number, count = int(wanted.removeprefix("cuda:")), torch_gpus.count()
    if number >= count:
        last = f", cuda:0 to cuda:{count - 1}" if count > 1 else ", cuda:0"
        raise BoxLacks(f"{wanted}: torch sees {plural(count, 'GPU')}{last}")
    yield devices.gpu(number), "asked for"


def of_rank(rank: int) -> Cuda:
    """Return the GPU of a rank, which has its number; BoxLacks where there are more ranks than GPUs."""
    if rank >= (count := torch_gpus.count()):
        seen = plural(count, "GPU")
        raise BoxLacks(
            f"a GPU for local rank {rank}: torch sees {seen}; start one rank per GPU (--nproc-per-node {count})"
        )
    return devices.gpu(rank)


def in_order(before: str) -> Iterator[tuple[Cuda, str]]:
    """Yield each GPU and why it comes next: the one that the run has used, then that with the most free memory."""
    gpus = [devices.gpu(number) for number in range(torch_gpus.count())]
    if len(gpus) == 1:
        yield gpus[0], "the only GPU that torch sees"
        return
    used = [gpu for gpu in gpus if before and gpu.uuid == before]
    yield from ((gpu, "the GPU that this run used before") for gpu in used)
    rest = [gpu for gpu in gpus if gpu not in used]
    try:
        free = free_bytes()
    except NotKnown as problem:
        yield from (
            (gpu, f"the first of {len(gpus)} GPUs; free memory unknown: {problem}") for gpu in rest
        )
        return
    known = {gpu: free.get(nvml_uuid(gpu.uuid, free), -1) for gpu in rest}
    for gpu in sorted(rest, key=lambda gpu: (-known[gpu], gpu.index)):
        amount = f"{size(known[gpu])} free" if known[gpu] >= 0 else "free memory unknown"
        yield gpu, f"the GPU with the most free memory of {len(gpus)}: {amount}"


def usable(wanted: str, root: Path = Path("/")) -> tuple[Cuda, str]:
    """Return `cuda:1`, or of `cuda` the emptiest GPU, on which a first kernel runs, and why that one; BoxLacks without one."""
    if reason := torch_gpus.why_no_cuda():
        raise BoxLacks(mended(reason) if is_gpu_there(root) else f"{reason}, and /dev has no GPU")
    refused = []
    for gpu, why in asked_for(wanted) if is_gpu(wanted) else in_order(""):
        if not (reason := gpu.why_not()):
            gpu.make_current()
            return gpu, why
        refused.append(f"cuda:{gpu.index} cannot be used ({mended(reason)})")
    raise BoxLacks("; ".join(refused))


def hand_out(wanted: str, run_dir: Path, journal: Writer, *, is_rank: bool) -> torch.device:
    """Return the device for what a scenario wants, after it is recorded which one that is and why; BoxLacks without one."""
    if words("wanted", wanted) not in ("cpu", *ANY) and not is_gpu(wanted):
        raise ValueError(f"wanted takes auto, cpu, cuda or cuda:N, not {describe_value(wanted)}")
    rank = int(os.environ["LOCAL_RANK"]) if is_rank else None
    before = gpu_of_run(run_dir) if wanted in ANY and rank is None else ""
    chosen = choose(wanted, before, rank=rank)
    journal.append(EnvironmentRecorded(part="device", facts=_facts(wanted, chosen, rank)))
    if chosen.device.type == "cuda":
        facts = {**torch_gpus.facts(), "chosen": devices.door(chosen.device).uuid}
        journal.append(EnvironmentRecorded(part="cuda", facts=facts))
    return chosen.device


def _facts(wanted: str, chosen: ChosenDevice, rank: int | None) -> dict[str, str]:
    found = {
        "wanted": wanted,
        "chosen": str(chosen.device),
        "why": chosen.why,
        "notice": chosen.notice,
    }
    return found if rank is None else {**found, "rank": str(rank)}
