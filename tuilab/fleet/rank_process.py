"""The process on a node that starts ranks for a run on another node.

    python -m tuilab.fleet.rank_process FOLDER

Its stdin has the order of the ranks, then perhaps a request to end them. When stdin closes, the
ranks are ended and their folder is removed. The last line of its stdout is their result.
"""

import os
import select
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path

from tuilab.engine import messages, processes
from tuilab.engine.children import Children
from tuilab.engine.messages import Receipt, WorkerOrder, WorkerResult
from tuilab.engine.spawn import spawn_worker
from tuilab.record.states import RunState

_POLL_S = 0.3
_GRACE_S = 3.0
_MOST = 16 << 20  # bytes of their stdout, and of their stderr, that are kept


class RankOutput:
    """A file with the output of ranks, up to more than a run keeps."""

    def __init__(self, path: Path) -> None:
        self._file = open(path, "xb", buffering=0)  # noqa: SIM115 (until the process ends)
        self._room = _MOST

    def take(self, data: bytes) -> None:
        """Write data to the file, up to the limit; the rest is dropped."""
        self._file.write(data[: self._room])
        self._room -= min(len(data), self._room)

    def flush(self) -> None:
        """Do nothing: every write goes to the file at once."""


def main() -> int:
    """Start the ranks, print a receipt and then their result, and wait until stdin closes.

    Runs in an orphan, because Ray kills the children of its actor. Removes the folder at the end.
    """
    folder = Path(sys.argv[1])
    if os.fork():  # Ray kills the children of its actor, but not an orphan
        os._exit(0)
    os.setsid()
    processes.become_subreaper()
    try:
        order: WorkerOrder = messages.unpack(sys.stdin.buffer.readline(), WorkerOrder)
        _say(Receipt(run_dir=order.run_dir))
        _say(_run(order))
        while os.read(0, 4096):  # until all output has been fetched
            pass
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def _run(order: WorkerOrder) -> WorkerResult:
    """Start the ranks, end them on request, and return their result.

    A request is anything on stdin, its end included, or SIGTERM. At the end, every process of the
    ranks is ended.
    """
    run_dir = Path(order.run_dir)
    outputs = {1: RankOutput(run_dir / "stdout.log"), 2: RankOutput(run_dir / "stderr.log")}
    signals: list[int] = []
    # Ranks start no arms of their own, and nothing has to be done when one of them ends.
    children = Children(outputs, signals.append, lambda arm, asker: None, lambda child: None)
    try:
        launcher = spawn_worker(order.writer, run_dir.name, order.arm)
    except OSError as problem:
        # Rank 1 stands for all ranks of this node: the result of rank 0 would be that of the call.
        return WorkerResult(error=f"cannot start the ranks: {problem.strerror}", rank=1)
    children.add(launcher)
    assert launcher.line
    with suppress(OSError):  # it may have died already: its exit code will say so
        messages.send(launcher.line, order)
    while (
        not launcher.is_over
        and signal.SIGTERM not in signals
        and not select.select([0], [], [], 0)[0]
    ):
        children.turn(_POLL_S)

    def tend() -> bool:
        children.turn(0)
        return False

    processes.end_descendants(_GRACE_S, tend=tend)
    state, reason = launcher.outcome()
    failed_ns = launcher.result.failed_ns if launcher.result else 0
    return WorkerResult(
        error="" if state == RunState.SUCCEEDED else reason, rank=1, failed_ns=failed_ns
    )


def _say(word: Receipt | WorkerResult) -> None:
    """Print a message as a line of JSON, unbuffered."""
    os.write(1, messages.pack(word) + b"\n")


if __name__ == "__main__":
    sys.exit(main())
