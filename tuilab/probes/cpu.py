"""The processor and the memory of this box, and how much of them this process may use."""

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
    """Return what is known of processor and memory at this moment; `root` is where /proc and /sys are looked for."""
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
    """Return the share of the cgroup's periods in which its quota was used up; None where that is not counted."""
    for folder in _cgroups(root, "cpu"):
        if (folder / "cpu.stat").exists():
            words = (folder / "cpu.stat").read_text().split()
            counts = dict(zip(words[::2], words[1::2], strict=False))
            if int(counts.get("nr_periods", 0)):
                return int(counts.get("nr_throttled", 0)) / int(counts["nr_periods"])
    return None


def parse_cpu_list(text: str) -> list[int]:
    """Return the numbers in a kernel's list such as `0-3,8`."""
    ranges = [part.partition("-") for part in text.strip().split(",") if part]
    return [number for low, _, high in ranges for number in range(int(low), int(high or low) + 1)]


def _model(root: Path) -> str:
    lines = (root / "proc/cpuinfo").read_text(errors="replace").splitlines()
    fields = {
        key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)
    }
    for key in ("model name", "Model", "Hardware", "cpu"):  # x86, Raspberry Pi, older ARM, POWER
        if fields.get(key):
            return show(fields[key], 200)
    raise NotKnown("/proc/cpuinfo names no model")


def _online(root: Path) -> list[int]:
    return parse_cpu_list((root / "sys/devices/system/cpu/online").read_text())


def _physical_cores() -> int:
    cores = psutil.cpu_count(logical=False)
    if cores is None:
        raise NotKnown("the kernel does not report which hardware threads share a core")
    return int(cores)


def _governor(root: Path) -> str:
    paths = (root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor")
    names = sorted({path.read_text().strip() for path in paths})
    if not names:
        raise NotKnown("no frequency control is visible (usual in virtual machines)")
    return show(", ".join(names), 100)


def _pressure(root: Path) -> float:
    """Return the share of the last 10 s, in percent, in which some process waited for a core."""
    some = (root / "proc/pressure/cpu").read_text().split()
    return float(some[1].removeprefix("avg10="))


def _tightest(root: Path, controller: str, read: Callable[[Path], float | None]) -> float:
    """Return the smallest limit on the way from our cgroup up to the root: each of them binds."""
    limits = [limit for folder in _cgroups(root, controller) if (limit := read(folder)) is not None]
    if not limits:
        raise NotKnown("no limit is set")
    return min(limits)


def _quota_cores(cgroup: Path) -> float | None:
    if (cgroup / "cpu.max").exists():  # v2
        quota, period = (cgroup / "cpu.max").read_text().split()
    elif (cgroup / "cpu.cfs_quota_us").exists():  # v1
        quota, period = (
            (cgroup / f"cpu.cfs_{word}_us").read_text().strip() for word in ("quota", "period")
        )
    else:
        return None
    return None if quota in ("max", "-1") else int(quota) / int(period)


def _limit_bytes(cgroup: Path) -> int | None:
    for name in ("memory.max", "memory.limit_in_bytes"):  # v2, v1
        if (cgroup / name).exists():
            limit = (cgroup / name).read_text().strip()
            return None if limit == "max" or int(limit) >= _NO_LIMIT_BYTES else int(limit)
    return None


def _available_bytes(root: Path) -> int:
    """Return what this process may still have: of the box, and of each cgroup that it is in."""
    free = int(psutil.virtual_memory().available)
    with suppress(OSError, ValueError):
        for folder in _cgroups(root, "memory"):
            if (limit := _limit_bytes(folder)) is not None and (
                used := _used_bytes(folder)
            ) is not None:
                free = min(free, max(limit - used, 0))
    return free


def _used_bytes(cgroup: Path) -> int | None:
    """Return what a cgroup uses, without the pages of files that the kernel would give back."""
    for name, cached in (
        ("memory.current", "inactive_file"),
        ("memory.usage_in_bytes", "total_inactive_file"),
    ):  # v2, v1
        if (cgroup / name).exists():
            words = (cgroup / "memory.stat").read_text().split()
            counts = dict(zip(words[::2], words[1::2], strict=False))
            return int((cgroup / name).read_text()) - int(counts.get(cached, 0))
    return None


def _cgroups(root: Path, controller: str) -> Iterator[Path]:
    """Yield the folder of our cgroup and those above it, in the v1 hierarchy of `controller` and in the v2 one."""
    for line in (root / "proc/self/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        if names and controller not in names.split(","):
            continue
        for mounted, point in _mounts(root, controller if names else ""):
            is_inside = (
                path.startswith(mounted) and ".." not in path
            )  # not so where a container hides what is above
            folder = point / path[len(mounted) :].lstrip("/") if is_inside else point
            yield folder
            yield from (above for above in folder.parents if above.is_relative_to(point))


def _mounts(root: Path, controller: str) -> Iterator[tuple[str, Path]]:
    """Yield where a hierarchy is mounted, as (the cgroup that is its top there, its folder); no controller means v2."""
    for line in (root / "proc/self/mountinfo").read_text().splitlines():
        mount, _, kind = line.partition(" - ")
        system, _, options = kind.split(" ", 2)
        if (
            (system == "cgroup2")
            if not controller
            else (system == "cgroup" and controller in options.split(","))
        ):
            fields = mount.split()
            yield fields[3], root / fields[4].lstrip("/")
