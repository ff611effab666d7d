"""Checks of memory, of what workers of a DataLoader share, and of the limits of a process."""

import os
import resource

from tuilab.doctor import Box, Finding, failed, passed, unknown, warn
from tuilab.probes.cpu import cpu_facts
from tuilab.words import size

_SMALL_BYTES = 2e9
_TOO_SMALL_BYTES = 0.5e9
_SMALL_SHM_BYTES = 1e9
_FILES = 4096
_FEWEST_FILES = 64
_BUSY_PERCENT = 10.0
_GROWN = 1 << 62  # a limit above it is none


def available(box: Box) -> Finding:
    facts = cpu_facts(box.root)
    if "memory_available_bytes" not in facts:
        return unknown(facts["missing"]["memory_available_bytes"])
    free, total = facts["memory_available_bytes"], facts["memory_total_bytes"]
    found = f"{size(free)} available of {size(total)}"
    if free < _TOO_SMALL_BYTES:
        return failed(f"{found}: a process with torch takes 300 MiB", "end what is not needed, or use another box")
    return warn(found, "small runs only: --quick") if free < _SMALL_BYTES else passed(found)


def limit(box: Box) -> Finding:
    facts = cpu_facts(box.root)
    found = facts.get("memory_limit_bytes")
    if found is None:
        why = facts["missing"]["memory_limit_bytes"]
        return passed("no cgroup limits it") if why == "no limit is set" else unknown(why)
    if found < _SMALL_BYTES:
        return warn(f"{size(found)}: beyond it the kernel kills the run", "ask for more memory for this container or job")
    return passed(f"{size(found)}; beyond it the kernel kills the run")


def pressure(box: Box) -> Finding:
    waited = float(box.text("proc/pressure/memory").split()[1].removeprefix("avg10="))
    found = f"some process waited for memory {waited:g} % of the last 10 s"
    return warn(found, "the box swaps: end what is not needed") if waited > _BUSY_PERCENT else passed(found)


def shared(box: Box) -> Finding:
    """/dev/shm, through which workers of a DataLoader hand over their batches."""
    step = "docker run --shm-size 8g, or mount -o remount,size=8G /dev/shm"
    try:
        shm = os.statvfs(box.root / "dev/shm")
    except FileNotFoundError:
        return warn("there is none: a DataLoader with workers fails", step)
    total, free = shm.f_blocks * shm.f_frsize, shm.f_bavail * shm.f_frsize
    found = f"{size(free)} free of {size(total)}"
    if free < _SMALL_SHM_BYTES / 16:
        return failed(f"{found}: a DataLoader with workers dies with a bus error", step)
    return warn(f"{found}: large batches of DataLoader workers do not fit", step) if free < _SMALL_SHM_BYTES else passed(found)


def locked(box: Box) -> Finding:
    """How much memory may be locked; it binds InfiniBand, and not what CUDA pins."""
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    found = "unlimited" if _is_endless(soft) else size(soft)
    has_infiniband = any((box.root / "sys/class/infiniband").glob("*"))
    if has_infiniband and not _is_endless(soft):
        return warn(
            f"{found}: NCCL over InfiniBand registers memory and fails",
            "ulimit -l unlimited, or docker run --ulimit memlock=-1",
        )
    return passed(f"{found}{'' if has_infiniband else '; no InfiniBand needs more'}")


def files(box: Box) -> Finding:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    found = f"{'unlimited' if _is_endless(soft) else soft} open files"
    if _is_endless(soft) or soft >= _FILES:
        return passed(found)
    step = f"ulimit -n {'unlimited' if _is_endless(hard) else min(hard, 65536)}"
    if not _is_endless(hard) and hard < _FILES:
        step = "docker run --ulimit nofile=65536, LimitNOFILE= of systemd, or nofile in limits.conf"
    if soft < _FEWEST_FILES:
        return failed(f"{found}: a run fails, or cannot look at what it leaves behind", step)
    return warn(f"{found}: every tensor that a DataLoader worker hands over takes one", step)


def _is_endless(value: int) -> bool:
    return value == resource.RLIM_INFINITY or value > _GROWN


CHECKS = {
    "memory.available": available,
    "memory.limit": limit,
    "memory.pressure": pressure,
    "memory.shm": shared,
    "limits.memlock": locked,
    "limits.nofile": files,
}
