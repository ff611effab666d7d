"""An arm under torchrun: every rank is a worker with a stream of its own, and rank 0 answers for all of them.

    worker that asked -> supervisor -> this launcher -> torchrun -> one process a rank

torchrun hands its ranks no open file but the standard ones, so the launcher lays a line of its own on their stdin. Its one
order is only peeked at, so that each rank finds it; how they ended they say there, and torchrun of one that a signal ended. A
rank that fails ends torchrun, and so the arm. Where the ranks are on several nodes, each node has a launcher. That of the first
asks for the others on a line of its own, and hears there how they ended; when it hangs up, they are ended.
"""

import os
import select
import socket
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import gettempdir

from tuilab.engine import messages, processes
from tuilab.engine.messages import TORCHRUN, Place, WorkerLine, WorkerOrder, WorkerResult
from tuilab.engine.spawn import socket_pair
from tuilab.storage.files import move_to_high_fd
from tuilab.storage.scratch import scratch

_RANK = "rank"  # the word that tells a rank from the launcher
_PATIENCE_S = (
    10.0  # with ranks of other nodes: who failed first, or that a node is lost, may be heard later
)


def main() -> None:
    """Be the launcher (`OPTIONS OF TORCHRUN... -- COMMAND LINE OF A WORKER`), or one of the ranks."""
    if sys.argv[1:] == [_RANK]:
        _run_rank()
    else:
        _launch(sys.argv[1 : sys.argv.index("--")], socket.socket(fileno=int(sys.argv[-1])))


def _launch(options: Sequence[str], line: socket.socket) -> None:
    """Run torchrun with the order that waits on the line, and end as it does."""
    order = messages.receive(line)
    if not isinstance(order, WorkerOrder):
        return  # the supervisor died: leave without a trace
    if why := _why_apart():
        messages.send(
            line,
            WorkerResult(
                error=f"the ranks cannot reach each other: {why}; bring the loopback up: ip link set lo up"
            ),
        )
        raise SystemExit(1)
    with scratch(Path(gettempdir())) as logs:  # torchrun makes such a folder anyway, and leaves it
        farewell, code = _run(order, ["--log-dir", str(logs), *options])
    if code and not (farewell and farewell.error):
        farewell = _failure_of(code)
    if farewell:
        messages.send(line, farewell)
    raise SystemExit(code)


def _run(order: WorkerOrder, options: Sequence[str]) -> tuple[WorkerResult | None, int]:
    """Run torchrun, and return what its ranks said and how it ended."""
    command = [sys.executable, "-P", "-m", "tuilab.lab.torchrun", *options, "--no-python"]
    ours, theirs = socket_pair()
    with ours, theirs:
        messages.send(ours, order)
        rank = [sys.executable, "-P", "-m", "tuilab.lab.ranks", _RANK]
        follow = partial(processes.die_with_parent, os.getpid())
        torchrun = subprocess.Popen([*command, *rank], stdin=theirs.fileno(), preexec_fn=follow)
        theirs.close()
        farewell = (
            _hear_nodes(order, ours, torchrun) if order.arm and order.arm.elsewhere else _hear(ours)
        )
    return farewell, torchrun.wait()


def _failure_of(code: int) -> WorkerResult:
    return WorkerResult(
        error=f"torchrun ended with exit code {code}: a rank failed, or it could not start them"
    )


def _why_apart() -> str:
    """Return why ranks on this box cannot talk, as in a network namespace that was just made: torch would wait in vain."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
            asked.connect(("127.0.0.1", 9))  # no packet is sent
    except OSError as problem:
        return problem.strerror or str(problem)
    return ""


def _hear(line: socket.socket) -> WorkerResult | None:
    """Return what torchrun says, the last to go, else who tells first of a failure, else that of the first rank here."""
    farewell = None
    while message := _next(line):
        if message.rank == TORCHRUN:
            return message
        if farewell is None or (
            not farewell.error and (message.error or message.rank < farewell.rank)
        ):
            farewell = message
    return farewell


def _next(line: socket.socket) -> WorkerResult | None:
    """Return what is said next; None at the end of the line."""
    try:
        message = messages.receive(line)
    except (
        ConnectionResetError
    ):  # the order, which nobody took, is lost with the last rank: that is the end of the line
        return None
    return message if isinstance(message, WorkerResult) else None


def _hear_nodes(
    order: WorkerOrder, here: socket.socket, torchrun: "subprocess.Popen[bytes]"
) -> WorkerResult | None:
    """Have the other nodes start their ranks; return what failed first anywhere, else the farewell of rank 0.

    What fails on one node ends the ranks of all, which would wait for each other.
    """
    said: list[WorkerResult] = []
    with _call(order) as there:
        left = [here, there]
        while (
            ready := left
            and select.select(
                left, [], [], _PATIENCE_S if _failed(said) and here not in left else None
            )[0]
        ):
            for line in ready:
                if message := _next(line):
                    said.append(message)
                    if line is there and message.error:
                        torchrun.terminate()
                    continue
                left.remove(line)
                if line is here and not _failed(said) and (code := torchrun.wait()):
                    said.append(_failure_of(code))
    return _failed(said) or next((one for one in said if not one.rank), None)


def _failed(said: Sequence[WorkerResult]) -> WorkerResult | None:
    """Return what failed first: before all others ranks that are lost or could not be started, which say no time."""
    return min((one for one in said if one.error), key=lambda one: one.failed_ns, default=None)


def _call(order: WorkerOrder) -> socket.socket:
    """Ask for the ranks of the other nodes, and hand over where to print what they print; return the line."""
    assert order.spread
    line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    line.connect(order.spread.line)
    socket.send_fds(line, [messages.pack_message(order)], [1, 2])
    return line


def _run_rank() -> None:
    """Do the work of a worker."""
    from tuilab.lab.worker import serve

    line = socket.socket(fileno=move_to_high_fd(os.dup(0)))
    with open(os.devnull) as null:
        os.dup2(null.fileno(), 0)
    order = messages.receive(line, socket.MSG_PEEK)
    if not isinstance(order, WorkerOrder):
        return  # the launcher died
    if order.spread and not order.place:
        order.place = Place(order.spread.nodes[0].name)
    if (rank := int(os.environ["RANK"])) > 0:
        order.writer, order.rank = f"{order.writer}-rank-{rank}", rank
    serve(order, WorkerLine(line))


if __name__ == "__main__":
    main()
