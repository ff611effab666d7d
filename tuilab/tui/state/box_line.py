"""What this box is, in one line, from what can be told without asking a driver or loading torch."""

import os
from pathlib import Path

from tuilab.probes.gpu.is_present import is_driver_of_windows
from tuilab.text.display import plural, show


def box_line(root: Path = Path("/")) -> str:
    """Return host, GPUs, torch and the cores that this process may use; `root` is where /proc is looked for."""
    parts = [show(os.uname().nodename, 40), _gpus(root), _torch(), _cores()]
    return " · ".join(part for part in parts if part)


def _gpus(root: Path) -> str:
    """Return `2x NVIDIA H100 80GB`, as the driver's own files say it; Windows, whose driver WSL borrows, has no such files."""
    driver = root / "proc/driver/nvidia"
    if not driver.is_dir():
        return (
            "NVIDIA driver of Windows (WSL)" if is_driver_of_windows(root) else "no NVIDIA driver"
        )
    models = [_model(folder / "information") for folder in sorted(driver.glob("gpus/*"))]
    names = dict.fromkeys(models)
    return " + ".join(f"{models.count(name)}x {name}" for name in names) or "NVIDIA driver, no GPU"


def _model(information: Path) -> str:
    try:
        lines = information.read_text(errors="replace")[:4096].splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("Model:")]
    return show(models[0].removeprefix("NVIDIA "), 40) if models else "GPU"


def _torch() -> str:
    from importlib import metadata

    try:
        version, _, build = metadata.version("torch").partition("+")
    except metadata.PackageNotFoundError:
        return "torch is not installed"
    return show(f"torch {version} {build}".strip(), 40)


def _cores() -> str:
    return plural(len(os.sched_getaffinity(0)), "core")
