"""Start supervisors, also in advance of an order, so that a worker can load torch meanwhile.

This module has no slow imports: a client starts a spare before it loads anything else.
"""

import os
import subprocess
import sys
from collections.abc import Sequence

from tuilab.errors import CannotRecord


class Spare:
    """A supervisor without an order, whose worker loads torch: a run that uses it starts at once.

    It needs 300 MB. It ends when it is dismissed, or when this process ends.
    """

    def __init__(self, *, is_timed: bool = True) -> None:
        self._surroundings = _surroundings()
        flags = [] if is_timed else ["--untimed"]
        self.supervisor = spawn_supervisor("tuilab.engine.early_start", *flags)

    def is_fit(self) -> bool:
        """Say whether it lives, and has the environment and folder of a new supervisor."""
        return self.supervisor.poll() is None and self._surroundings == _surroundings()

    def dismiss(self) -> None:
        """End the supervisor and its worker, and close its pipes; it may have ended already."""
        self.supervisor.kill()  # the kernel then kills its worker
        self.supervisor.wait()
        for pipe in (self.supervisor.stdin, self.supervisor.stdout, self.supervisor.stderr):
            if pipe:
                pipe.close()


def prepare(*, is_timed: bool = True) -> Spare | None:
    """Start a spare for the next run, or return None if that fails.

    Loading torch takes two seconds of a core, so a client never starts one during a measurement.
    """
    try:
        return Spare(is_timed=is_timed)
    except CannotRecord:
        return None


def _surroundings() -> tuple[dict[str, str], str]:
    """Return the environment and folder that a process inherits from this one."""
    try:
        return dict(os.environ), os.getcwd()
    except FileNotFoundError:
        return dict(os.environ), ""


def spawn_supervisor(
    module: str = "tuilab.engine.supervisor", *flags: str, descriptors: Sequence[int] = ()
) -> "subprocess.Popen[bytes]":
    """Start a supervisor in its own session, with pipes; raise CannotRecord if that fails.

    It inherits `descriptors` under the same numbers.
    """
    try:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", module, *flags],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=dict(os.environ),  # not the environment of C, which arrays.py changes
            pass_fds=descriptors,
            start_new_session=True,
        )
    except OSError as problem:
        raise CannotRecord(f"cannot start a supervisor process: {problem.strerror}") from problem
