"""Which device a scenario gets: the one that was asked for, or the emptiest GPU on which a first kernel runs.

Nothing goes to the CPU in silence where the box has a GPU: the run says so before all else.
"""

import os
from pathlib import Path
from typing import NamedTuple

import torch

from tuilab.errors import BoxLacks
from tuilab.lab.choice.order import asked_for, in_order, of_rank
from tuilab.lab.device import torch_gpus
from tuilab.probes.gpu.there import is_gpu_there, what_to_do

ANY = ("auto", "cuda")


class Chosen(NamedTuple):
    """A device, why it is that one, and what the user must know before reading anything that was measured on it."""

    device: torch.device
    why: str
    notice: str = ""


def choose(wanted: str, before: str = "", root: Path = Path("/"), rank: int | None = None) -> Chosen:
    """Return the device for `auto`, `cpu`, `cuda` or `cuda:3`; BoxLacks when there is no such GPU, or it does not work.

    `before` is torch's name of the GPU that the run has used already: all that it compares is to run on one. Of several ranks
    each has a GPU of its own: `rank` is the number on this box.
    """
    if wanted == "cpu":
        return Chosen(torch.device("cpu"), "asked for")
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
            return Chosen(torch.device("cuda", gpu.index), why, _notice(refused))
    if wanted not in ANY:
        raise BoxLacks(f"{wanted}, which cannot be used ({mended(refused[wanted])}); {_another(wanted)}")
    return _without_gpu(wanted, _listed(refused), is_there=True)


def _for_rank(rank: int) -> Chosen:
    """Return the GPU of a rank: no other one, which another rank has, and no CPU, where the others would wait for it."""
    gpu = of_rank(rank)
    if reason := gpu.why_not():
        raise BoxLacks(f"cuda:{gpu.index}, the GPU of local rank {rank}, which cannot be used ({mended(reason)})")
    gpu.make_current()
    return Chosen(torch.device("cuda", gpu.index), f"that of local rank {rank}", _notice({}))


def _without_gpu(wanted: str, reason: str, *, is_there: bool) -> Chosen:
    """Return the CPU where nobody insists on a GPU."""
    if wanted != "auto":
        why = mended(reason) if is_there else reason
        raise BoxLacks(f"a CUDA GPU is needed, but {why}; use --device cpu to run without one")
    if not is_there:
        return Chosen(torch.device("cpu"), "this machine has no GPU")
    notice = f"this ran on the CPU, although the machine has a GPU: {mended(reason)}"
    return Chosen(torch.device("cpu"), "torch cannot use the GPU", notice)


def _another(wanted: str) -> str:
    """Return which GPU can be used instead of one that cannot."""
    others = (f"cuda:{gpu.index}" for gpu, _ in in_order("") if f"cuda:{gpu.index}" != wanted and not gpu.why_not())
    other = next(others, "")
    return f"--device {other} can be" if other else "no other GPU can be; --device cpu runs without one"


def _notice(refused: dict[str, str]) -> str:
    found = [f"not used: {_listed(refused)}"] if refused else []
    if os.environ.get("CUDA_LAUNCH_BLOCKING", "0") not in ("", "0"):
        found.append("CUDA_LAUNCH_BLOCKING is set: torch waits for each kernel, and all times are longer than without it")
    return "; ".join(found)


def _listed(refused: dict[str, str]) -> str:
    return "; ".join(f"{name}: {reason}" for name, reason in refused.items())


def mended(reason: str) -> str:
    """Return a reason with what to do about it."""
    return f"{reason}: {what_to_do(reason, torch.version.cuda or '')}"
