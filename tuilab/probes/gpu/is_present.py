"""Whether this box has a GPU at all, as its files say: nobody is asked, so nothing can hang. And what torch wants of it."""

import os
from collections.abc import Mapping
from pathlib import Path

# The oldest driver for programs that were built with a CUDA of this major version: NVIDIA's "minor version compatibility".
_OLDEST_DRIVER = {11: "450", 12: "525", 13: "580"}
# pip takes the build that is there for the one that is asked for, unless it goes first.
_OTHER_BUILD = (
    "pip uninstall -y torch && pip install torch --index-url https://download.pytorch.org/whl/cu126"
)

_STEPS = {  # by words of the reason, which are torch's or the driver's
    "build without CUDA": "run `pip uninstall torch`, then install a build with CUDA: https://pytorch.org",
    "CUDA_VISIBLE_DEVICES": "unset CUDA_VISIBLE_DEVICES, or name a GPU of this machine in it",
    "busy or unavailable": "another process uses it exclusively: wait, or choose another GPU with --device cuda:N",
    "are busy": "another process uses it exclusively: wait, or choose another GPU with --device cuda:N",
    "out of memory": "its memory is full: see its processes with `nvidia-smi`, or choose another GPU with --device cuda:N",
    "no NVIDIA driver": "install the NVIDIA driver, or ask the administrator of this machine",
}


def is_gpu_there(root: Path = Path("/")) -> bool:
    """Say whether the box has an NVIDIA GPU, be it under WSL."""
    return bool(_nodes(root)) or is_driver_of_windows(root)


def is_driver_of_windows(root: Path = Path("/")) -> bool:
    """Say whether this is WSL with the NVIDIA driver of Windows, which has none of a driver's own files here."""
    return (root / "dev/dxg").exists() and (root / "usr/lib/wsl/lib/libcuda.so.1").exists()


def gpu_names(root: Path = Path("/"), environ: Mapping[str, str] = os.environ) -> list[str]:
    """Return what CUDA calls the GPUs that a process may use: cuda:0, cuda:1; of a list that hides some, as many as it has."""
    visible = environ.get("CUDA_VISIBLE_DEVICES")
    count = len(_nodes(root))
    if count and visible is not None:
        count = len([word for word in visible.split(",") if word.strip() not in ("", "-1")])
    return [f"cuda:{number}" for number in range(count)]


def driver_for(cuda: str) -> str:
    """Return which driver a build for this CUDA wants: `580 or newer`; nothing where that is not known."""
    major = cuda.partition(".")[0]
    oldest = _OLDEST_DRIVER.get(int(major)) if major.isdecimal() else None
    return f"{oldest} or newer" if oldest else ""


def mend_driver(cuda: str) -> str:
    """Return what to do where the driver is too old for a torch that was built for this CUDA."""
    wanted = driver_for(cuda)
    driver = f"update the driver (CUDA {cuda} needs {wanted})," if wanted else "update the driver"
    return f"{driver} or install a build of torch for an older CUDA: {_OTHER_BUILD}"


def what_to_do(reason: str, cuda: str) -> str:
    """Return the next step for a reason why torch, which was built for this CUDA, cannot use a GPU."""
    if "driver" in reason and ("too old" in reason or "insufficient" in reason):
        return mend_driver(cuda)
    if "no kernel image" in reason:
        return f"this build of torch, for CUDA {cuda or 'n/a'}, has no kernels for this GPU: {_build_with_kernels(cuda)}"
    return next(
        (step for words, step in _STEPS.items() if words in reason),
        "find the cause with `tuilab doctor`",
    )


def _build_with_kernels(cuda: str) -> str:
    """Return which build to install instead: CUDA 13 has left out what came before Turing, 12.6 does not know Blackwell."""
    if cuda.startswith("13."):
        return f"if the GPU is older than Turing, run {_OTHER_BUILD}"
    return "install a build for a newer CUDA (or an older torch, if the GPU is very old)"


def _nodes(root: Path) -> list[Path]:
    return list((root / "dev").glob("nvidia[0-9]*"))
