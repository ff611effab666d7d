"""An arm under torchrun: every rank is a worker with a stream of its own, and rank 0 answers for all of them.

    worker that asked -> supervisor -> this launcher -> torchrun -> one process a rank

torchrun hands its ranks no open file but the standard ones, so the launcher lays a line of its own on their stdin. Its one
order is only peeked at, so that each rank finds it; how they ended they say there. A rank that fails ends torchrun, and so
the arm.
"""

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from tuilab.engine import messages, processes
from tuilab.engine.messages import Farewell, WorkerLine, WorkerOrder
from tuilab.files import set_apart

_RANK = "rank"  # the word that tells a rank from the launcher


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
            line, Farewell(error=f"the ranks cannot reach each other: {why}; bring the loopback up: ip link set lo up")
        )
        raise SystemExit(1)
    command = [sys.executable, "-P", "-m", "torch.distributed.run", *options, "--no-python"]
    ours, theirs = messages.pair()
    with ours, theirs:
        messages.send(ours, order)
        rank = [sys.executable, "-P", "-m", "tuilab.lab.ranks", _RANK]
        follow = partial(processes.die_with_parent, os.getpid())
        torchrun = subprocess.Popen([*command, *rank], stdin=theirs.fileno(), preexec_fn=follow)
        theirs.close()
        farewell = _hear(ours)
    code = torchrun.wait()
    for log in Path(order.run_dir).glob(f"fault-{order.writer}-rank-*.log"):
        if not log.stat().st_size:  # the supervisor looks after that of rank 0
            log.unlink()
    if code and not (farewell and farewell.error):
        farewell = Farewell(error=f"torchrun ended with exit code {code}: a rank failed, or it could not start them")
    if farewell:
        messages.send(line, farewell)
    raise SystemExit(code)


def _why_apart() -> str:
    """Return why ranks on this box cannot talk, as in a network namespace that was just made: torch would wait in vain."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
            asked.connect(("127.0.0.1", 9))  # no packet is sent
    except OSError as problem:
        return problem.strerror or str(problem)
    return ""


def _hear(line: socket.socket) -> Farewell | None:
    """Return the first farewell that tells of a failure, else that of rank 0, once every rank and torchrun itself are gone."""
    farewell = None
    try:
        while message := messages.receive(line):
            if isinstance(message, Farewell) and not (farewell and farewell.error) and (message.error or not message.rank):
                farewell = message
    except ConnectionResetError:  # the order, which nobody took, is lost with the last rank: that is the end of the line
        pass
    return farewell


def _run_rank() -> None:
    """Do the work of a worker."""
    from tuilab.lab.worker import serve

    line = socket.socket(fileno=set_apart(os.dup(0)))
    with open(os.devnull) as null:
        os.dup2(null.fileno(), 0)
    order = messages.receive(line, socket.MSG_PEEK)
    if not isinstance(order, WorkerOrder):
        return  # the launcher died
    if (rank := int(os.environ["RANK"])) > 0:
        order.writer, order.rank = f"{order.writer}-rank-{rank}", rank
    serve(order, WorkerLine(line))


if __name__ == "__main__":
    main()
