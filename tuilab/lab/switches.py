"""torch's switches that hold for a whole process: what one arm of a race leaves, the others run with."""

from collections.abc import Callable
from typing import Any

import torch

from tuilab.lab.device import in_use

_cuda: Any = torch.backends.cuda  # torch does not tell the types of its switches
_cudnn: Any = torch.backends.cudnn

_SWITCHES: dict[str, Callable[[], object]] = {
    "the current GPU": lambda: "none" if (index := in_use().index) is None else index,
    "the default dtype": torch.get_default_dtype,
    "the default device": torch.get_default_device,
    "torch.set_grad_enabled": torch.is_grad_enabled,
    "inference mode": torch.is_inference_mode_enabled,
    "autocast on the CPU": lambda: torch.is_autocast_enabled("cpu"),
    "autocast on CUDA": lambda: torch.is_autocast_enabled("cuda"),
    "anomaly detection": torch.is_anomaly_enabled,
    "torch.use_deterministic_algorithms": torch.are_deterministic_algorithms_enabled,
    "the precision of float32 products": lambda: _cuda.matmul.fp32_precision,
    "the precision of float32 convolutions": lambda: _cudnn.conv.fp32_precision,
    "cudnn.benchmark": lambda: _cudnn.benchmark,
    "cudnn.deterministic": lambda: _cudnn.deterministic,
    "cudnn.enabled": lambda: _cudnn.enabled,
    "torch.set_num_threads": torch.get_num_threads,
}


def read() -> dict[str, str]:
    """Return how the switches stand; a GPU that nobody uses is not touched."""
    return {name: str(ask()) for name, ask in _SWITCHES.items()}


def refuse_left(arm: str, before: dict[str, str]) -> None:
    """Raise ValueError where an arm has left a switch as it was not before."""
    for name, value in read().items():
        if value != before[name]:
            raise ValueError(
                f"the arm {arm} left {name} on {value}, where it was on {before[name]}: the other arms would run with that; "
                "set it before the race, for all of them, or back again at the end of the arm"
            )
