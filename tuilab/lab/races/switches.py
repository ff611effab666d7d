"""torch's switches that hold for a whole process: what one arm of a race leaves, the others run with."""

from collections.abc import Callable
from typing import Any

import torch

from tuilab.lab.device.devices import in_use

_backends: Any = torch.backends  # torch does not tell the types of its switches

_NO_GPU = "none"
_LITTLE = 1e-39  # of float32 a number that is 0 where such small ones are flushed


def _precision(own: str) -> str:
    """Return the precision that holds: what is not set is as all of torch is, and that without a word as it is."""
    everywhere = _backends.fp32_precision
    return own if own != "none" else everywhere if everywhere != "none" else "ieee"


_SWITCHES: dict[str, Callable[[], object]] = {
    "the current GPU": lambda: _NO_GPU if (index := in_use().index) is None else index,
    "the default dtype": torch.get_default_dtype,
    "the default device": torch.get_default_device,
    "torch.set_grad_enabled": torch.is_grad_enabled,
    "inference mode": torch.is_inference_mode_enabled,
    "autocast on the CPU": lambda: torch.is_autocast_enabled("cpu"),
    "autocast on CUDA": lambda: torch.is_autocast_enabled("cuda"),
    "the dtype of autocast on the CPU": lambda: torch.get_autocast_dtype("cpu"),
    "the dtype of autocast on CUDA": lambda: torch.get_autocast_dtype("cuda"),
    "the cache of autocast": torch.is_autocast_cache_enabled,
    "anomaly detection": torch.is_anomaly_enabled,
    "torch.use_deterministic_algorithms": torch.are_deterministic_algorithms_enabled,
    "the precision of float32 products": lambda: _precision(_backends.cuda.matmul.fp32_precision),
    "the precision of float32 convolutions": lambda: _precision(
        _backends.cudnn.conv.fp32_precision
    ),
    "the precision of float32 products on the CPU": lambda: _precision(
        _backends.mkldnn.matmul.fp32_precision
    ),
    "sums of float16 products in float16": lambda: (
        _backends.cuda.matmul.allow_fp16_reduced_precision_reduction
    ),
    "sums of bfloat16 products in bfloat16": lambda: (
        _backends.cuda.matmul.allow_bf16_reduced_precision_reduction
    ),
    "cudnn.benchmark": lambda: _backends.cudnn.benchmark,
    "cudnn.deterministic": lambda: _backends.cudnn.deterministic,
    "cudnn.enabled": lambda: _backends.cudnn.enabled,
    "flash attention": _backends.cuda.flash_sdp_enabled,
    "memory-efficient attention": _backends.cuda.mem_efficient_sdp_enabled,
    "plain attention": _backends.cuda.math_sdp_enabled,
    "torch.set_flush_denormal": lambda: (
        not torch.tensor(_LITTLE, dtype=torch.float32, device="cpu").mul(1).item()
    ),
    "torch.set_num_threads": torch.get_num_threads,
}


def read() -> dict[str, str]:
    """Return how the switches stand; a GPU that nobody uses is not touched."""
    return {name: str(ask()) for name, ask in _SWITCHES.items()}


def watch() -> Callable[[str], None]:
    """Return what raises ValueError where a switch is not as it was when it was made, which the named arm has left so."""
    before = read()

    def refuse(arm: str) -> None:
        who = f"the arm {arm}" if arm else "an arm"
        for name, value in read().items():
            if value != before[name] and before[name] != _NO_GPU:
                raise ValueError(
                    f"{who} changed {name} from {before[name]} to {value}, and the other arms would run with that; "
                    "set it before the race for all arms, or reset it at the end of the arm"
                )

    return refuse
