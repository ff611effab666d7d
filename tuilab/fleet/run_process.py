"""The process on a node that starts a run.

    python -m tuilab.fleet.run_process FOLDER

Its stdin has the order of the run, then perhaps `stop` or `kill`. When stdin closes, the actor, the
node or the client is gone: the run is stopped, and its folder is removed.
"""

import os
import select
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from tuilab.engine import launch, messages
from tuilab.engine.messages import Receipt, RunOrder
from tuilab.errors import TuilabError

OVER = b"over\n"  # printed when the supervisor has ended, so that nothing more will be written
_POLL_MS = 300
_PATIENCE_S = 60.0  # for a supervisor that was told to end at once


def main() -> int:
    """Start the run, print a receipt, and obey requests until stdin closes.

    Runs in an orphan, because Ray kills the children of its actor. Removes the folder at the end,
    once the supervisor has ended or a minute has passed.
    """
    folder = Path(sys.argv[1])
    if os.fork():  # Ray kills the children of its actor, but not an orphan
        os._exit(0)
    os.setsid()
    try:
        order: RunOrder = messages.unpack(sys.stdin.buffer.readline(), RunOrder)
        run_dir, supervisor = launch.start(order)
    except (TuilabError, ValueError) as problem:
        with suppress(BrokenPipeError):
            # 4: the run failed. A ValueError, from an invalid order, has no exit code of its own.
            _answer(Receipt(error=str(problem), exit_code=int(getattr(problem, "exit_code", 4))))
        shutil.rmtree(folder, ignore_errors=True)
        return 0
    try:
        with suppress(BrokenPipeError):  # the actor is gone: then stdin is closed, too
            _answer(Receipt(run_dir=str(run_dir)))
        _obey(run_dir, supervisor)
    finally:
        with suppress(subprocess.TimeoutExpired):
            supervisor.wait(_PATIENCE_S)
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def _answer(receipt: Receipt) -> None:
    sys.stdout.buffer.write(messages.pack(receipt) + b"\n")
    sys.stdout.flush()


def _obey(run_dir: Path, supervisor: "subprocess.Popen[bytes]") -> None:
    """Handle requests until stdin closes; a run that is still running then is stopped at once.

    Prints OVER once the supervisor has ended.
    """
    stdin = select.poll()
    stdin.register(0, select.POLLIN)
    is_over = False
    while True:
        if not is_over and supervisor.poll() is not None:
            is_over = True
            os.write(1, OVER)
        if not stdin.poll(_POLL_MS):
            continue
        words = os.read(0, 4096)
        if not words or b"kill" in words or b"stop" in words:
            _stop(run_dir, at_once=b"kill" in words or not words)
        if not words:
            return


def _stop(run_dir: Path, *, at_once: bool) -> None:
    """Ask the supervisor of a run to stop, unless the run has already ended."""
    with suppress(TuilabError, OSError):  # it has ended by itself
        launch.stop(run_dir, at_once=at_once)


if __name__ == "__main__":
    sys.exit(main())
