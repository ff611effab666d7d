"""The device a scenario runs on: the only file that asks torch.cuda anything but time and memory."""

import torch

from tuilab.errors import BoxLacks

NAMES = ("auto", "cpu", "cuda")


def choose(wanted: str) -> torch.device:
    """Return the device for `auto`, `cpu` or `cuda`; BoxLacks when it is not there."""
    if wanted == "cpu" or (wanted == "auto" and not torch.cuda.is_available()):
        return torch.device("cpu")
    if reason := why_no_cuda():
        raise BoxLacks(f"a CUDA device is needed and {reason}; --device cpu runs without one")
    return torch.device("cuda")


def why_no_cuda() -> str:
    """Return why CUDA cannot be used here, or nothing when it can."""
    if torch.cuda.is_available():
        return ""
    if torch.version.cuda is None:
        return f"torch {torch.__version__} is a build without CUDA"
    return "torch sees no CUDA device (driver missing, too old, or CUDA_VISIBLE_DEVICES hides it)"


def synchronize(device: torch.device) -> None:
    """Wait until the device has done what it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def memory_summary() -> str:
    """Return torch's account of the memory of the GPUs that this process uses; nothing where that cannot be had."""
    try:
        used = [index for index in range(torch.cuda.device_count()) if torch.cuda.memory_reserved(index)]
        return "\n".join(torch.cuda.memory_summary(index) + "\n" for index in used)
    except RuntimeError:
        return ""
