"""The checks of `tuilab doctor`, one file a group. The ids of checks are stable.

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
FREE_MEMORY = (
    "stop programs that you do not need (`ps aux --sort=-rss | head` lists the largest), or use"
    " another machine"
)
NVIDIA_SMI = "look for the error with `nvidia-smi -q`; ask the administrator of this machine"
OTHER_GPU = "measure when the other processes have finished, or on another GPU: --device cuda:N"
WHY_SLOW = "`nvidia-smi -q -d PERFORMANCE,POWER,TEMPERATURE`"


@dataclass(frozen=True)
class DoctorFinding:
    """The answer of one check: its result, or why there is none, and the next step if any."""

    status: Status
    found: str
    next_step: str = ""


@dataclass(frozen=True)
class Box:
    """The machine that is checked; `root` is the folder with /proc and /sys."""

    root: Path = Path("/")
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def text(self, path: str) -> str:
        """Return the content of a small file of the system."""
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
    """Return the finding of a check that does not apply here, or has no answer, with the reason."""
    return DoctorFinding("n/a", reason, next_step)


def answer(check: Check, box: Box) -> DoctorFinding:
    """Run a check and return its finding; an error becomes the reason of an unknown one."""
    try:
        finding = check(box)
    except Exception as problem:  # a strange machine must not cost the other answers
        return unknown(reason_of(problem, 300))
    return DoctorFinding(finding.status, show(finding.found, 400), show(finding.next_step, 400))
