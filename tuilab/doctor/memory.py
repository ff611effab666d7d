"""Checks of memory, of /dev/shm, and of the limits of a process."""

import os
import resource

from tuilab.doctor import FREE_MEMORY, Box, DoctorFinding, failed, passed, unknown, warn
from tuilab.probes.cpu import cpu_facts
from tuilab.text.words import size

_SMALL_BYTES = 2e9
_TOO_SMALL_BYTES = 0.5e9
_SMALL_SHM_BYTES = 1e9
_FILES = 4096
_FEWEST_FILES = 64
_BUSY_PERCENT = 10.0
_ENDLESS = 1 << 62  # a higher limit is none


def available(box: Box) -> DoctorFinding:
    """Check how much memory is free: a process with torch needs 300 MiB."""
    facts = cpu_facts(box.root)
    if "memory_available_bytes" not in facts:
        return unknown(facts["missing"]["memory_available_bytes"])
    free_bytes = facts["memory_available_bytes"]
    total_bytes = facts["memory_total_bytes"]
    message = f"{size(free_bytes)} available of {size(total_bytes)}"
    if free_bytes < _TOO_SMALL_BYTES:
        return failed(f"{message}; a process with torch needs 300 MiB", FREE_MEMORY)
    if free_bytes < _SMALL_BYTES:
        return warn(message, "use small sizes: tuilab run NAME --quick")
    return passed(message)


def limit(box: Box) -> DoctorFinding:
    """Check the memory limit of the cgroup: the kernel kills a run that exceeds it."""
    facts = cpu_facts(box.root)
    limit_bytes = facts.get("memory_limit_bytes")
    if limit_bytes is None:
        reason = facts["missing"]["memory_limit_bytes"]
        if reason == "no limit is set":
            return passed("no cgroup limit")
        return unknown(reason)
    message = f"limited to {size(limit_bytes)}; the kernel kills a run that uses more"
    if limit_bytes < _SMALL_BYTES:
        return warn(
            message, "give this container or job more memory, for example docker run --memory 8g"
        )
    return passed(message)


def pressure(box: Box) -> DoctorFinding:
    """Warn if processes had to wait for memory in more than a tenth of the last 10 s."""
    fields = box.text("proc/pressure/memory").split()
    waited_percent = float(fields[1].removeprefix("avg10="))
    message = f"processes waited for memory in {waited_percent:g} % of the last 10 s"
    if waited_percent > _BUSY_PERCENT:
        return warn(message, FREE_MEMORY)
    return passed(message)


def shared(box: Box) -> DoctorFinding:
    """Check /dev/shm, through which DataLoader workers send their batches."""
    step = "docker run --shm-size 8g, or mount -o remount,size=8G /dev/shm"
    try:
        shm = os.statvfs(box.root / "dev/shm")
    except FileNotFoundError:
        return warn("/dev/shm does not exist: a DataLoader with workers fails", step)
    total_bytes = shm.f_blocks * shm.f_frsize
    free_bytes = shm.f_bavail * shm.f_frsize
    message = f"{size(free_bytes)} free of {size(total_bytes)}"
    if free_bytes < _SMALL_SHM_BYTES / 16:
        return failed(f"{message}: a DataLoader with workers crashes with a bus error", step)
    if free_bytes < _SMALL_SHM_BYTES:
        return warn(f"{message}: large batches from DataLoader workers do not fit", step)
    return passed(message)


def locked(box: Box) -> DoctorFinding:
    """Check how much memory can be locked: InfiniBand needs it, pinned memory of CUDA does not."""
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    message = "unlimited" if _is_endless(soft) else size(soft)
    has_infiniband = any((box.root / "sys/class/infiniband").glob("*"))
    if has_infiniband and not _is_endless(soft):
        return warn(
            f"{message}: NCCL over InfiniBand fails when it registers memory",
            "ulimit -l unlimited, or docker run --ulimit memlock=-1",
        )
    if has_infiniband:
        return passed(message)
    return passed(f"{message}; enough, as there is no InfiniBand")


def files(box: Box) -> DoctorFinding:
    """Check the limit of open files, and how it can be raised if it is low."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if _is_endless(soft):
        return passed("unlimited open files")
    message = f"{soft} open files"
    if soft >= _FILES:
        return passed(message)
    if _is_endless(hard):
        step = "ulimit -n unlimited"
    elif hard >= _FILES:
        step = f"ulimit -n {min(hard, 65536)}"
    else:
        step = (
            "raise the hard limit: docker run --ulimit nofile=65536, LimitNOFILE= in systemd, or"
            " nofile in limits.conf"
        )
    if soft < _FEWEST_FILES:
        return failed(f"{message}: a run fails, or cannot clean up its processes", step)
    return warn(f"{message}: a DataLoader worker needs one for each tensor that it sends", step)


def _is_endless(value: int) -> bool:
    """Return whether a limit of a process is none, or too high to matter."""
    return value == resource.RLIM_INFINITY or value > _ENDLESS


CHECKS = {
    "memory.available": available,
    "memory.limit": limit,
    "memory.pressure": pressure,
    "memory.shm": shared,
    "limits.memlock": locked,
    "limits.nofile": files,
}
