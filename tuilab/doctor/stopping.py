"""Checks of system features that make stopping a run reliable."""

import os
import signal

from tuilab.doctor import Box, DoctorFinding, failed, passed, warn
from tuilab.record import presence


def proc(box: Box) -> DoctorFinding:
    """Check whether /proc shows the processes of a run: they could not be stopped without it."""
    reason = presence.why_not_shown(box.root)
    if reason:
        return failed(f"{reason}: runs cannot start here", presence.MOUNT)
    if not (box.root / "proc/sys").is_dir():
        return warn(
            "/proc shows only processes: processor model, memory, load and pressure are unknown",
            f"mount it without subset=pid: {presence.MOUNT}",
        )
    return passed("/proc shows the processes of a run")


def pidfd(box: Box) -> DoctorFinding:
    """Check for pidfd, which makes a signal reach the right process even if its pid is reused."""
    try:
        handle = os.pidfd_open(os.getpid())
        try:
            signal.pidfd_send_signal(handle, 0)  # 0 sends nothing: it only checks that it could
        finally:
            os.close(handle)
    except OSError as problem:
        return warn(
            f"no pidfd ({problem.strerror}): tuilab signals processes by pid, after comparing their"
            " start times",
            "use Linux 5.3 or newer, or a seccomp profile that allows pidfd_open and"
            " pidfd_send_signal",
        )
    return passed("pidfd available: a signal always reaches the right process")


def children(box: Box) -> DoctorFinding:
    """Check whether the kernel lists children; otherwise all processes must be searched."""
    (box.root / "proc/thread-self").stat()  # raises if /proc cannot be read
    try:
        box.text("proc/thread-self/children")
    except OSError as problem:
        return warn(
            f"/proc lists no children ({problem.strerror}): tuilab reads all processes twice a"
            " second, which disturbs runs",
            "use a kernel with CONFIG_PROC_CHILDREN, or a sandbox that shows"
            " /proc/PID/task/TID/children",
        )
    return passed("/proc lists the children of a process")


CHECKS = {"stopping.proc": proc, "stopping.pidfd": pidfd, "stopping.children": children}
