"""Choose the device of a scenario: the requested one, or the GPU with the most free memory.

A first kernel must run on a GPU. If a machine has a GPU but the CPU is used, the run says so first.
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

ANY = ("auto", "cuda")  # values of --device that name no certain GPU


class ChosenDevice(NamedTuple):
    """A device, why it was chosen, and what the user must know about its measurements."""

    device: torch.device
    why: str
    notice: str = ""


def choose(
    wanted: str, used_uuid: str = "", root: Path = Path("/"), rank: int | None = None
) -> ChosenDevice:
    """Return the device for `auto`, `cpu`, `cuda` or `cuda:3`; a GPU becomes the current one.

    Raises BoxLacks if there is no such GPU, or if it does not work. `used_uuid` is the UUID of the
    GPU that the run has used: everything that it compares must run on one GPU. A rank gets the GPU
    with its local number `rank`.
    """
    if wanted == "cpu":
        return ChosenDevice(torch.device("cpu"), "asked for")
    reason = torch_gpus.why_no_cuda()
    if reason:
        return _without_gpu(wanted, reason, is_there=is_gpu_there(root))
    if rank is not None and wanted in ANY:
        return _for_rank(rank)
    refused: dict[str, str] = {}
    candidates = in_order(used_uuid) if wanted in ANY else asked_for(wanted)
    for gpu, why in candidates:
        reason = gpu.why_not()
        if not reason:
            gpu.make_current()
            return ChosenDevice(torch.device("cuda", gpu.index), why, _notice(refused))
        refused[f"cuda:{gpu.index}"] = reason
    if wanted not in ANY:
        raise BoxLacks(
            f"{wanted}, which cannot be used ({mended(refused[wanted])}); {_another(wanted)}"
        )
    return _without_gpu(wanted, _listed(refused), is_there=True)


def _for_rank(rank: int) -> ChosenDevice:
    """Return the GPU of a rank; raise BoxLacks if there is none, or if it does not work.

    The rank gets no other GPU, because each rank needs its own.
    """
    gpu = of_rank(rank)
    reason = gpu.why_not()
    if reason:
        raise BoxLacks(
            f"cuda:{gpu.index}, the GPU of local rank {rank}, which cannot be used"
            f" ({mended(reason)})"
        )
    gpu.make_current()
    return ChosenDevice(torch.device("cuda", gpu.index), f"that of local rank {rank}", _notice({}))


def _without_gpu(wanted: str, reason: str, *, is_there: bool) -> ChosenDevice:
    """Return the CPU if the user does not insist on a GPU; raise BoxLacks otherwise."""
    if wanted != "auto":
        explanation = mended(reason) if is_there else reason
        raise BoxLacks(
            f"a CUDA GPU is needed, but {explanation}; use --device cpu to run without one"
        )
    if not is_there:
        return ChosenDevice(torch.device("cpu"), "this machine has no GPU")
    notice = f"this ran on the CPU, although the machine has a GPU: {mended(reason)}"
    return ChosenDevice(torch.device("cpu"), "torch cannot use the GPU", notice)


def _another(wanted: str) -> str:
    """Return the end of the sentence: which GPU can be used instead."""
    for gpu, _ in in_order(""):
        name = f"cuda:{gpu.index}"
        if name != wanted and not gpu.why_not():
            return f"--device {name} can be"
    return "no other GPU can be; --device cpu runs without one"


def _notice(refused: dict[str, str]) -> str:
    """Return what the user must know: which GPUs were refused, and if kernels are waited for."""
    notices = []
    if refused:
        notices.append(f"not used: {_listed(refused)}")
    if os.environ.get("CUDA_LAUNCH_BLOCKING", "0") not in ("", "0"):
        notices.append(
            "CUDA_LAUNCH_BLOCKING is set: torch waits for each kernel, and all times are longer"
            " than without it"
        )
    return "; ".join(notices)


def _listed(refused: dict[str, str]) -> str:
    return "; ".join(f"{name}: {reason}" for name, reason in refused.items())


def mended(reason: str) -> str:
    """Return a reason together with the next step."""
    return f"{reason}: {describe_fix(reason, torch.version.cuda or '')}"


def asked_for(wanted: str) -> Iterator[tuple[Cuda, str]]:
    """Yield the GPU with the name `wanted`, such as `cuda:3`; raise BoxLacks if there is none."""
    number = int(wanted.removeprefix("cuda:"))
    count = torch_gpus.count()
    if number >= count:
        last = f", cuda:0 to cuda:{count - 1}" if count > 1 else ", cuda:0"
        raise BoxLacks(f"{wanted}: torch sees {plural(count, 'GPU')}{last}")
    yield devices.gpu(number), "asked for"


def of_rank(rank: int) -> Cuda:
    """Return the GPU with the number of a rank; raise BoxLacks if there are too few GPUs."""
    count = torch_gpus.count()
    if rank >= count:
        visible = plural(count, "GPU")
        raise BoxLacks(
            f"a GPU for local rank {rank}: torch sees {visible}; start one rank per GPU"
            f" (--nproc-per-node {count})"
        )
    return devices.gpu(rank)


def in_order(used_uuid: str) -> Iterator[tuple[Cuda, str]]:
    """Yield each GPU with the reason for its place: the one used before, then by free memory."""
    gpus = [devices.gpu(number) for number in range(torch_gpus.count())]
    if len(gpus) == 1:
        yield gpus[0], "the only GPU that torch sees"
        return
    unused = []
    for gpu in gpus:
        if used_uuid and gpu.uuid == used_uuid:
            yield gpu, "the GPU that this run used before"
        else:
            unused.append(gpu)
    try:
        free = free_bytes()
    except NotKnown as problem:
        for gpu in unused:
            yield gpu, f"the first of {len(gpus)} GPUs; free memory unknown: {problem}"
        return
    free_of = {gpu: free.get(nvml_uuid(gpu.uuid, free), -1) for gpu in unused}  # -1: unknown
    for gpu in sorted(unused, key=lambda gpu: (-free_of[gpu], gpu.index)):
        amount = "free memory unknown"
        if free_of[gpu] >= 0:
            amount = f"{size(free_of[gpu])} free"
        yield gpu, f"the GPU with the most free memory of {len(gpus)}: {amount}"


def usable(wanted: str, root: Path = Path("/")) -> tuple[Cuda, str]:
    """Return a working GPU, `cuda:1` or for `cuda` that with the most free memory, and why.

    It becomes the current GPU. Raises BoxLacks if there is none.
    """
    reason = torch_gpus.why_no_cuda()
    if reason:
        if is_gpu_there(root):
            raise BoxLacks(mended(reason))
        raise BoxLacks(f"{reason}, and /dev has no GPU")
    refused = []
    candidates = asked_for(wanted) if is_gpu(wanted) else in_order("")
    for gpu, why in candidates:
        reason = gpu.why_not()
        if not reason:
            gpu.make_current()
            return gpu, why
        refused.append(f"cuda:{gpu.index} cannot be used ({mended(reason)})")
    raise BoxLacks("; ".join(refused))


def hand_out(wanted: str, run_dir: Path, journal: Writer, *, is_rank: bool) -> torch.device:
    """Choose the device that a scenario asks for, record which one and why, and return it.

    A GPU becomes the current one. Raises BoxLacks if there is none, ValueError for another
    `wanted`.
    """
    if words("wanted", wanted) not in ("cpu", *ANY) and not is_gpu(wanted):
        raise ValueError(f"wanted takes auto, cpu, cuda or cuda:N, not {describe_value(wanted)}")
    rank = int(os.environ["LOCAL_RANK"]) if is_rank else None
    used_uuid = ""
    if wanted in ANY and rank is None:
        used_uuid = gpu_of_run(run_dir)
    chosen = choose(wanted, used_uuid, rank=rank)
    journal.append(EnvironmentRecorded(part="device", facts=_facts(wanted, chosen, rank)))
    if chosen.device.type == "cuda":
        facts = {**torch_gpus.facts(), "chosen": devices.door(chosen.device).uuid}
        journal.append(EnvironmentRecorded(part="cuda", facts=facts))
    return chosen.device


def _facts(wanted: str, chosen: ChosenDevice, rank: int | None) -> dict[str, str]:
    """Return what is recorded about the choice of a device."""
    facts = {
        "wanted": wanted,
        "chosen": str(chosen.device),
        "why": chosen.why,
        "notice": chosen.notice,
    }
    if rank is not None:
        facts["rank"] = str(rank)
    return facts
