"""What `tuilab doctor` looks at, one file a group: a question has an id that stays, and its answer says what to do next.

Imports the shared modules and the packages before it, but neither `lab` nor `reports`.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tuilab.probes import reason_of
from tuilab.text.display import show

Status = Literal["pass", "warn", "fail", "n/a"]

# Fixes that several checks name.
DO_NOT_TRAIN = "do not train on this GPU; ask the administrator of this machine"
FREE_MEMORY = "stop programs that you do not need (`ps aux --sort=-rss | head` lists the largest), or use another machine"
NVIDIA_SMI = "look for the error with `nvidia-smi -q`; ask the administrator of this machine"
OTHER_GPU = "measure when the other processes have finished, or on another GPU: --device cuda:N"
WHY_SLOW = "`nvidia-smi -q -d PERFORMANCE,POWER,TEMPERATURE`"


@dataclass(frozen=True)
class DoctorFinding:
    """The answer to one question: what was found (or why it is not known), and the next step where there is one."""

    status: Status
    found: str
    next_step: str = ""


@dataclass(frozen=True)
class Box:
    """The box that is looked at: `root` is where /proc and /sys are, so that a test can make another one."""

    root: Path = Path("/")
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def text(self, path: str) -> str:
        """Return a small file of the kernel's or the system's."""
        with open(self.root / path, errors="replace") as file:
            return file.read(1024 * 1024).strip()


Check = Callable[[Box], DoctorFinding]
Group = Mapping[str, Check]  # by id


def passed(found: str) -> DoctorFinding:
    return DoctorFinding("pass", found)


def warn(found: str, next_step: str) -> DoctorFinding:
    return DoctorFinding("warn", found, next_step)


def failed(found: str, next_step: str) -> DoctorFinding:
    return DoctorFinding("fail", found, next_step)


def unknown(reason: str, next_step: str = "") -> DoctorFinding:
    """Return that a question does not apply here, or has no answer, and why."""
    return DoctorFinding("n/a", reason, next_step)


def answer(check: Check, box: Box) -> DoctorFinding:
    """Return what a check finds; one that breaks costs its one answer."""
    try:
        finding = check(box)
    except Exception as problem:  # whatever a strange box does to a check
        return unknown(reason_of(problem, 300))
    return DoctorFinding(finding.status, show(finding.found, 400), show(finding.next_step, 400))
