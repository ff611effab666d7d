"""Read facts by which a machine is recognized, and compare them with earlier ones."""

import glob
import importlib.util
import os
import re

# Of /proc/cpuinfo; the first one that is in the file counts.
_PROCESSOR_KEYS = ("model name", "Model", "Hardware", "cpu")
_LIMIT = 1_000_000  # characters of a file


def box_facts() -> dict[str, str]:
    """Return the facts of this machine, without loading torch or asking a driver.

    A fact that is not known is empty.
    """
    spec = importlib.util.find_spec("torch")
    version = ""
    if spec and spec.origin:
        version = _read(os.path.join(os.path.dirname(spec.origin), "version.py"))
    driver = _read("/proc/driver/nvidia/version")
    gpus = []
    for path in sorted(glob.glob("/proc/driver/nvidia/gpus/*/information")):
        gpus.append(_find(r"^Model:(.*)", _read(path)))
    return {
        "host": os.uname().nodename,
        "cores": str(len(os.sched_getaffinity(0))),
        "CPU": _name_processor(_read("/proc/cpuinfo")),
        "torch": _find(r"^__version__\s*=\s*.([^\"\']+)", version),
        "driver": _find(r"Module.*?\s([0-9]+[.][0-9.]+)", driver),
        "GPU": ", ".join(dict.fromkeys(gpus)),
    }


def _name_processor(cpuinfo: str) -> str:
    for key in _PROCESSOR_KEYS:
        name = _find(rf"^{key}\s*:(.*)", cpuinfo)
        if name:
            return name
    return ""


def describe_changes(then: dict[str, str], now: dict[str, str]) -> list[str]:
    """Return how the facts of a machine have changed, a few words for each fact.

    Facts that `now` does not have are not compared.
    """
    changed = []
    for name, before in then.items():
        if not before or name not in now or now[name] == before:
            continue
        if name == "GPU" and before in now[name].split(", "):
            continue
        changed.append(f"{name} was {before}, is {now[name] or 'not found'}")
    return changed


def _read(path: str) -> str:
    """Return the content of a file, or an empty string if it cannot be read."""
    try:
        with open(path, errors="replace") as file:
            return file.read(_LIMIT)
    except OSError:
        return ""


def _find(pattern: str, text: str) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    return match[1].strip() if match else ""
