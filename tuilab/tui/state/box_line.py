"""Describe this machine in one line, without asking a driver or loading torch."""

import os
from collections import Counter
from pathlib import Path

from tuilab.probes.gpu.is_present import is_driver_of_windows
from tuilab.text.display import plural, show


def box_line(root: Path = Path("/")) -> str:
    """Return host, GPUs, torch and the cores that this process may use; `root` contains /proc."""
    host = show(os.uname().nodename, 40)
    parts = [host, _describe_gpus(root), _describe_torch(), _describe_cores()]
    return " · ".join(part for part in parts if part)


def _describe_gpus(root: Path) -> str:
    """Return `2x H100 80GB` from the files of the driver.

    In WSL, which uses the driver of Windows, these files do not exist.
    """
    driver = root / "proc/driver/nvidia"
    if not driver.is_dir():
        if is_driver_of_windows(root):
            return "NVIDIA driver of Windows (WSL)"
        return "no NVIDIA driver"
    models: Counter[str] = Counter()
    for folder in sorted(driver.glob("gpus/*")):
        models[_read_model(folder / "information")] += 1
    if not models:
        return "NVIDIA driver, no GPU"
    return " + ".join(f"{count}x {model}" for model, count in models.items())


def _read_model(information: Path) -> str:
    """Return the model of a GPU; "GPU" if it cannot be read."""
    try:
        text = information.read_text(errors="replace")[:4096]
    except OSError:
        return "GPU"
    for line in text.splitlines():
        if line.startswith("Model:"):
            model = line.partition(":")[2].strip()
            return show(model.removeprefix("NVIDIA "), 40)
    return "GPU"


def _describe_torch() -> str:
    """Return `torch 2.13.0 cu130`, or that torch is not installed, without importing it."""
    from importlib import metadata

    try:
        version, _, build = metadata.version("torch").partition("+")
    except metadata.PackageNotFoundError:
        return "torch is not installed"
    return show(f"torch {version} {build}".strip(), 40)


def _describe_cores() -> str:
    return plural(len(os.sched_getaffinity(0)), "core")
