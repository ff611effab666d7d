"""Read the facts about processor and memory, and how much of them this process may use."""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from tuilab.probes import NotKnown, gather
from tuilab.text.display import show

_NO_LIMIT_BYTES = 1 << 60  # cgroup v1 spells "no limit" as a number close to 2**63


def cpu_facts(root: Path = Path("/")) -> dict[str, Any]:
    """Return the facts about processor and memory now; `root` is the folder with /proc and /sys."""
    return gather(
        {
            "model": lambda: _model(root),
            "logical_cores": lambda: len(_online(root)),
            "physical_cores": _physical_cores,
            "usable_cores": lambda: len(os.sched_getaffinity(0)),
            "quota_cores": lambda: _tightest(root, "cpu", _quota_cores),
            "memory_total_bytes": lambda: psutil.virtual_memory().total,
            "memory_available_bytes": lambda: _available_bytes(root),
            "memory_limit_bytes": lambda: _tightest(root, "memory", _limit_bytes),
            "governor": lambda: _governor(root),
            "load_average": lambda: list(os.getloadavg()),
            "pressure_avg10": lambda: _pressure(root),
        }
    )


def cpu_throttled_share(root: Path = Path("/")) -> float | None:
    """Return the share of the cgroup's periods in which its quota was used up.

    None if the kernel does not count them.
    """
    for folder in _cgroups(root, "cpu"):
        if not (folder / "cpu.stat").exists():
            continue
        counts = _read_counts(folder / "cpu.stat")
        periods = int(counts.get("nr_periods", 0))
        if periods:
            return int(counts.get("nr_throttled", 0)) / periods
    return None


def _read_counts(path: Path) -> dict[str, str]:
    """Return the numbers in a file with a name and a number in each line."""
    words = path.read_text().split()
    return dict(zip(words[::2], words[1::2], strict=False))


def parse_cpu_list(text: str) -> list[int]:
    """Return the numbers in a kernel's list such as `0-3,8`."""
    numbers: list[int] = []
    for part in text.strip().split(","):
        if part:
            low, _, high = part.partition("-")
            numbers += range(int(low), int(high or low) + 1)
    return numbers


def _model(root: Path) -> str:
    """Return the model of the processor; raise NotKnown if the kernel names none."""
    fields = {}
    for line in (root / "proc/cpuinfo").read_text(errors="replace").splitlines():
        key, _, value = line.partition(":")
        fields[key.strip()] = value.strip()
    for key in ("model name", "Model", "Hardware", "cpu"):  # x86, Raspberry Pi, older ARM, POWER
        if fields.get(key):
            return show(fields[key], 200)
    raise NotKnown("/proc/cpuinfo names no model")


def _online(root: Path) -> list[int]:
    return parse_cpu_list((root / "sys/devices/system/cpu/online").read_text())


def _physical_cores() -> int:
    """Return the number of physical cores; raise NotKnown if the kernel does not report it."""
    cores = psutil.cpu_count(logical=False)
    if cores is None:
        raise NotKnown("the kernel does not report which hardware threads share a core")
    return int(cores)


def _governor(root: Path) -> str:
    """Return the frequency governors of all cores, as a list without repetitions.

    Raises NotKnown if the kernel shows none.
    """
    paths = (root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor")
    names = sorted({path.read_text().strip() for path in paths})
    if not names:
        raise NotKnown("no frequency control is visible (usual in virtual machines)")
    return show(", ".join(names), 100)


def _pressure(root: Path) -> float:
    """Return the share of the last 10 s, in percent, in which some process waited for a core."""
    # some avg10=1.53 avg60=...
    words = (root / "proc/pressure/cpu").read_text().split()
    return float(words[1].removeprefix("avg10="))


def _tightest(root: Path, controller: str, read: Callable[[Path], float | None]) -> float:
    """Return the smallest limit of our cgroup and those above it, all of which apply.

    Raises NotKnown with "no limit is set", which callers compare, if there is none.
    """
    limits = []
    for folder in _cgroups(root, controller):
        limit = read(folder)
        if limit is not None:
            limits.append(limit)
    if not limits:
        raise NotKnown("no limit is set")
    return min(limits)


def _quota_cores(cgroup: Path) -> float | None:
    """Return how many cores a cgroup may use on average; None if it has no limit."""
    if (cgroup / "cpu.max").exists():  # v2
        quota, period = (cgroup / "cpu.max").read_text().split()
    elif (cgroup / "cpu.cfs_quota_us").exists():  # v1
        quota = (cgroup / "cpu.cfs_quota_us").read_text().strip()
        period = (cgroup / "cpu.cfs_period_us").read_text().strip()
    else:
        return None
    if quota in ("max", "-1"):
        return None
    return int(quota) / int(period)


def _limit_bytes(cgroup: Path) -> int | None:
    """Return how many bytes of memory a cgroup may use; None if it has no limit."""
    for name in ("memory.max", "memory.limit_in_bytes"):  # v2, v1
        if (cgroup / name).exists():
            limit = (cgroup / name).read_text().strip()
            if limit == "max" or int(limit) >= _NO_LIMIT_BYTES:
                return None
            return int(limit)
    return None


def _available_bytes(root: Path) -> int:
    """Return the memory that is available to this process: on the machine, and in its cgroups."""
    available = int(psutil.virtual_memory().available)
    with suppress(OSError, ValueError):
        for folder in _cgroups(root, "memory"):
            limit = _limit_bytes(folder)
            if limit is None:
                continue
            used = _used_bytes(folder)
            if used is not None:
                available = min(available, max(limit - used, 0))
    return available


def _used_bytes(cgroup: Path) -> int | None:
    """Return the memory of a cgroup, without the file pages that the kernel would give back.

    None if the cgroup does not count memory.
    """
    if (cgroup / "memory.current").exists():  # v2
        usage, cached = "memory.current", "inactive_file"
    elif (cgroup / "memory.usage_in_bytes").exists():  # v1
        usage, cached = "memory.usage_in_bytes", "total_inactive_file"
    else:
        return None
    counts = _read_counts(cgroup / "memory.stat")
    return int((cgroup / usage).read_text()) - int(counts.get(cached, 0))


def _cgroups(root: Path, controller: str) -> Iterator[Path]:
    """Yield the folder of our cgroup and those above it.

    They are those of the v1 hierarchy of the controller, and of the v2 hierarchy.
    """
    for line in (root / "proc/self/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        if names and controller not in names.split(","):
            continue
        for mounted, point in _mounts(root, controller if names else ""):
            folder = point
            # A container may hide the cgroups above the mounted one. The path is then not below it.
            is_below = f"{path}/".startswith(f"{mounted.rstrip('/')}/")
            if is_below and ".." not in path:
                folder = point / path[len(mounted) :].lstrip("/")
            yield folder
            for parent in folder.parents:
                if parent.is_relative_to(point):
                    yield parent


def _mounts(root: Path, controller: str) -> Iterator[tuple[str, Path]]:
    """Yield the mounts of a hierarchy: the cgroup that is mounted, and the folder.

    It is the v2 hierarchy if there is no controller.
    """
    for line in (root / "proc/self/mountinfo").read_text().splitlines():
        mount, _, kind = line.partition(" - ")
        system, _, options = kind.split(" ", 2)
        if controller:
            is_hierarchy = system == "cgroup" and controller in options.split(",")
        else:
            is_hierarchy = system == "cgroup2"
        if is_hierarchy:
            fields = mount.split()
            yield fields[3], root / fields[4].lstrip("/")
