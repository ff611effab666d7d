"""Checks torch's process-wide switches: an arm that changes one changes it for all arms.

An arm is one of the functions that a race times against each other.
"""

from collections.abc import Callable
from typing import Any

import torch

from tuilab.lab.device.devices import in_use

_backends: Any = torch.backends  # torch declares no types for its switches

_NO_GPU = "none"
_DENORMAL = 1e-39  # of float32; it is 0 if denormals are flushed


def _current_gpu() -> object:
    index = in_use().index
    return _NO_GPU if index is None else index


def _precision(own: str) -> str:
    """Return the precision that applies: "none" means that of all torch, and there ieee."""
    if own != "none":
        return own
    of_torch: str = _backends.fp32_precision
    return "ieee" if of_torch == "none" else of_torch


def _precision_of_products() -> str:
    return _precision(_backends.cuda.matmul.fp32_precision)


def _precision_of_convolutions() -> str:
    return _precision(_backends.cudnn.conv.fp32_precision)


def _precision_of_cpu_products() -> str:
    return _precision(_backends.mkldnn.matmul.fp32_precision)


def _sums_float16_in_float16() -> object:
    return _backends.cuda.matmul.allow_fp16_reduced_precision_reduction


def _sums_bfloat16_in_bfloat16() -> object:
    return _backends.cuda.matmul.allow_bf16_reduced_precision_reduction


def _flushes_denormals() -> bool:
    denormal = torch.tensor(_DENORMAL, dtype=torch.float32, device="cpu")
    return not denormal.mul(1).item()


_SWITCHES: dict[str, Callable[[], object]] = {
    "the current GPU": _current_gpu,
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
    "the precision of float32 products": _precision_of_products,
    "the precision of float32 convolutions": _precision_of_convolutions,
    "the precision of float32 products on the CPU": _precision_of_cpu_products,
    "sums of float16 products in float16": _sums_float16_in_float16,
    "sums of bfloat16 products in bfloat16": _sums_bfloat16_in_bfloat16,
    "cudnn.benchmark": lambda: _backends.cudnn.benchmark,
    "cudnn.deterministic": lambda: _backends.cudnn.deterministic,
    "cudnn.enabled": lambda: _backends.cudnn.enabled,
    "flash attention": _backends.cuda.flash_sdp_enabled,
    "memory-efficient attention": _backends.cuda.mem_efficient_sdp_enabled,
    "plain attention": _backends.cuda.math_sdp_enabled,
    "torch.set_flush_denormal": _flushes_denormals,
    "torch.set_num_threads": torch.get_num_threads,
}


def read() -> dict[str, str]:
    """Return the values of the switches; a GPU that is not in use is not touched."""
    return {name: str(ask()) for name, ask in _SWITCHES.items()}


def watch() -> Callable[[str], None]:
    """Return a function that raises ValueError if a switch has changed since now.

    Its argument is the arm that has run, or empty if it may have been any arm.
    """
    before = read()

    def check_switches(arm: str) -> None:
        """Raise ValueError if a switch has changed, with its values before and now."""
        subject = f"the arm {arm}" if arm else "an arm"
        for name, value in read().items():
            if value != before[name] and before[name] != _NO_GPU:
                raise ValueError(
                    f"{subject} changed {name} from {before[name]} to {value}, "
                    "and the other arms would run with that; "
                    "set it before the race for all arms, or reset it at the end of the arm"
                )

    return check_switches
