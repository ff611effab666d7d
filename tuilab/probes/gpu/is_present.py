"""Find out from files whether this machine has a GPU, and describe how to fix one for torch.

The driver is not asked, so that nothing can hang.
"""

import os
from collections.abc import Mapping
from pathlib import Path

# The oldest driver for programs that were built with a CUDA of this major version: NVIDIA's "minor
# version compatibility".
_OLDEST_DRIVER = {11: "450", 12: "525", 13: "580"}
# pip does not replace an installed build by another one of the same version, so it goes first.
_OTHER_BUILD = (
    "pip uninstall -y torch && pip install torch --index-url https://download.pytorch.org/whl/cu126"
)

_WAIT = "another process uses it exclusively: wait, or choose another GPU with --device cuda:N"
_STEPS = {  # by words of the reason, which comes from torch or the driver
    "build without CUDA": (
        "run `pip uninstall torch`, then install a build with CUDA: https://pytorch.org"
    ),
    "CUDA_VISIBLE_DEVICES": "unset CUDA_VISIBLE_DEVICES, or name a GPU of this machine in it",
    "busy or unavailable": _WAIT,
    "are busy": _WAIT,
    "out of memory": (
        "its memory is full: see its processes with `nvidia-smi`, "
        "or choose another GPU with --device cuda:N"
    ),
    "no NVIDIA driver": "install the NVIDIA driver, or ask the administrator of this machine",
}


def is_gpu_there(root: Path = Path("/")) -> bool:
    """Return whether the machine has an NVIDIA GPU, also under WSL."""
    return bool(_nodes(root)) or is_driver_of_windows(root)


def is_driver_of_windows(root: Path = Path("/")) -> bool:
    """Return whether this is WSL with the NVIDIA driver of Windows, which has other files."""
    return (root / "dev/dxg").exists() and (root / "usr/lib/wsl/lib/libcuda.so.1").exists()


def gpu_names(root: Path = Path("/"), environ: Mapping[str, str] = os.environ) -> list[str]:
    """Return CUDA's names of the GPUs that a process may use: cuda:0, cuda:1.

    If CUDA_VISIBLE_DEVICES is set, there are as many as it names.
    """
    visible = environ.get("CUDA_VISIBLE_DEVICES")
    count = len(_nodes(root))
    if count and visible is not None:
        words = [word.strip() for word in visible.split(",")]
        count = len(words) - words.count("") - words.count("-1")
    return [f"cuda:{number}" for number in range(count)]


def driver_for(cuda: str) -> str:
    """Return the driver that a build for this CUDA needs: `580 or newer`; empty if not known."""
    major = cuda.partition(".")[0]
    if not major.isdecimal() or int(major) not in _OLDEST_DRIVER:
        return ""
    return f"{_OLDEST_DRIVER[int(major)]} or newer"


def describe_driver_fix(cuda: str) -> str:
    """Return the next step if the driver is too old for a torch that was built for this CUDA."""
    step = "update the driver"
    needed = driver_for(cuda)
    if needed:
        step = f"update the driver (CUDA {cuda} needs {needed}),"
    return f"{step} or install a build of torch for an older CUDA: {_OTHER_BUILD}"


def describe_fix(reason: str, cuda: str) -> str:
    """Return the next step for a reason why torch, built for this CUDA, cannot use a GPU."""
    if "driver" in reason and ("too old" in reason or "insufficient" in reason):
        return describe_driver_fix(cuda)
    if "no kernel image" in reason:
        return (
            f"this build of torch, for CUDA {cuda or 'n/a'}, has no kernels for this GPU: "
            f"{_build_with_kernels(cuda)}"
        )
    for words, step in _STEPS.items():
        if words in reason:
            return step
    return "find the cause with `tuilab doctor`"


def _build_with_kernels(cuda: str) -> str:
    """Return the build to install: CUDA 13 dropped GPUs older than Turing, 12.6 lacks Blackwell."""
    if cuda.startswith("13."):
        return f"if the GPU is older than Turing, run {_OTHER_BUILD}"
    return "install a build for a newer CUDA (or an older torch, if the GPU is very old)"


def _nodes(root: Path) -> list[Path]:
    return list((root / "dev").glob("nvidia[0-9]*"))
