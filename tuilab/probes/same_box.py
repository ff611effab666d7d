"""What tells that a box is the one that something was measured on; asked by tuilab, and by what it writes for a shell.

The functions here are written into that file as they stand: they import what they need, for any Python that has a torch.
"""


def box_facts() -> dict[str, str]:
    """Return what this box is, without loading torch or asking a driver; what is not known is empty."""
    import glob
    import importlib.util
    import os
    import re

    def read(path: str) -> str:
        try:
            with open(path, errors="replace") as file:
                return file.read(1000000)
        except OSError:
            return ""

    def find(pattern: str, text: str) -> str:
        found = re.search(pattern, text, re.MULTILINE)
        return found[1].strip() if found else ""

    spec = importlib.util.find_spec("torch")
    version = read(os.path.join(os.path.dirname(spec.origin), "version.py")) if spec and spec.origin else ""
    processor = read("/proc/cpuinfo")
    kinds = [find(rf"^{key}\s*:(.*)", processor) for key in ("model name", "Model", "Hardware", "cpu")]
    gpus = [find(r"^Model:(.*)", read(path)) for path in sorted(glob.glob("/proc/driver/nvidia/gpus/*/information"))]
    return {
        "host": os.uname().nodename,
        "cores": str(len(os.sched_getaffinity(0))),
        "CPU": next(filter(None, kinds), ""),
        "torch": find(r"^__version__\s*=\s*.([^\x22\x27]+)", version),
        "driver": find(r"Module.*?\s([0-9]+[.][0-9.]+)", read("/proc/driver/nvidia/version")),
        "GPU": ", ".join(dict.fromkeys(gpus)),
    }


def what_changed(then: dict[str, str], now: dict[str, str]) -> list[str]:
    """Return in what a box is another one than it was, a few words each; what was not asked cannot differ."""

    def is_as_before(name: str) -> bool:
        return then[name] == now[name] or (name == "GPU" and then[name] in now[name].split(", "))

    changed = [name for name in then if then[name] and name in now and not is_as_before(name)]
    missing = "not found"
    return [f"{name} was {then[name]}, is {now[name] or missing}" for name in changed]
