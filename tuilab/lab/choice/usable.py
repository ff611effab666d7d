"""Which GPU is looked at when nothing but a GPU will do, and in one sentence why there is none."""

from pathlib import Path

from tuilab.catalogue.params import is_gpu
from tuilab.errors import BoxLacks
from tuilab.lab.choice.chosen import mended
from tuilab.lab.choice.order import asked_for, in_order
from tuilab.lab.device import torch_gpus
from tuilab.lab.device.cuda import Cuda
from tuilab.probes.gpu.there import is_gpu_there


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
