"""Starts supervisors: for an order that is there, or ahead of one, while its worker loads torch.

Kept free of slow imports, so that whoever starts one need not load what makes an order.
"""

import os
import subprocess
import sys
from collections.abc import Sequence

from tuilab.errors import CannotRecord


class Spare:
    """A supervisor without an order, whose worker has loaded torch meanwhile: a run that gets it starts at once.

    It costs 300 MB and no time. It ends when it is dismissed, and with this process, however that ends.
    """

    def __init__(self, *, is_timed: bool = True) -> None:
        self._surroundings = _surroundings()
        self.supervisor = spawn_supervisor(
            "tuilab.engine.early_start", *([] if is_timed else ["--untimed"])
        )

    def is_fit(self) -> bool:
        """Say whether a run would find here what it would find in a supervisor that is started now."""
        return self.supervisor.poll() is None and self._surroundings == _surroundings()

    def dismiss(self) -> None:
        """End it; once is enough, and it may be over already."""
        self.supervisor.kill()  # the kernel ends its worker with it
        self.supervisor.wait()
        for pipe in (self.supervisor.stdin, self.supervisor.stdout, self.supervisor.stderr):
            if pipe:
                pipe.close()


def prepare(*, is_timed: bool = True) -> Spare | None:
    """Start a spare for the next run, which may time something; None where that cannot be done now.

    Loading torch takes two seconds of a core: a front keeps one at most, and starts none while anything is being measured.
    """
    try:
        return Spare(is_timed=is_timed)
    except CannotRecord:
        return None


def _surroundings() -> tuple[dict[str, str], str]:
    """Return what a process inherits from this one."""
    try:
        return dict(os.environ), os.getcwd()
    except FileNotFoundError:
        return dict(os.environ), ""


def spawn_supervisor(
    module: str = "tuilab.engine.supervisor", *flags: str, descriptors: Sequence[int] = ()
) -> "subprocess.Popen[bytes]":
    try:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", module, *flags],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=dict(os.environ),  # and not what C has meanwhile: see arrays.py
            pass_fds=descriptors,
            start_new_session=True,
        )
    except OSError as problem:
        raise CannotRecord(f"cannot start a supervisor process: {problem.strerror}") from problem
