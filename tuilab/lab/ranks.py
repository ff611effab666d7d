"""An arm under torchrun: every rank is a worker with its own stream, and rank 0 returns the value.

    worker of the call -> supervisor -> this launcher -> torchrun -> one process for each rank

torchrun gives its ranks no open files but the standard ones, so their stdin is a socket of the
launcher. It holds one order, which each rank reads with MSG_PEEK. Ranks send their results there;
for a rank that a signal ended, torchrun sends it. A failed rank ends torchrun, and so the arm. If
the ranks are on several nodes, each node has a launcher. The first one orders the others through
another socket, and gets their results there; when it closes that socket, they are ended.
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

_RANK = "rank"  # the argument of a rank; the launcher has others
_PATIENCE_S = 10.0  # for results of other nodes, because an earlier failure may arrive later


def main() -> None:
    """Be the launcher (`OPTIONS OF TORCHRUN... -- COMMAND LINE OF A WORKER`) or a rank (`rank`)."""
    if sys.argv[1:] == [_RANK]:
        _run_rank()
    else:
        options = sys.argv[1 : sys.argv.index("--")]
        line = socket.socket(fileno=int(sys.argv[-1]))
        _launch(options, line)


def _launch(options: Sequence[str], line: socket.socket) -> None:
    """Run torchrun with the order on the socket, send the result, and exit with its code."""
    order = messages.receive(line)
    if not isinstance(order, WorkerOrder):
        return  # the supervisor died
    reason = _why_no_loopback()
    if reason:
        error = f"the ranks cannot reach each other: {reason}; "
        error += "bring the loopback up: ip link set lo up"
        messages.send(line, WorkerResult(error=error))
        raise SystemExit(1)
    with scratch(Path(gettempdir())) as logs:  # torchrun would create one and leave it
        result, code = _run(order, ["--log-dir", str(logs), *options])
    if code and not (result and result.error):
        result = _failure_of(code)
    if result:
        messages.send(line, result)
    raise SystemExit(code)


def _run(order: WorkerOrder, options: Sequence[str]) -> tuple[WorkerResult | None, int]:
    """Run torchrun to its end; return the result of its ranks and its exit code.

    The result is None if no rank sent one.
    """
    command = [sys.executable, "-P", "-m", "tuilab.lab.torchrun", *options, "--no-python"]
    ours, theirs = socket_pair()
    with ours, theirs:
        messages.send(ours, order)
        rank = [sys.executable, "-P", "-m", "tuilab.lab.ranks", _RANK]
        follow = partial(processes.die_with_parent, os.getpid())
        torchrun = subprocess.Popen([*command, *rank], stdin=theirs.fileno(), preexec_fn=follow)
        theirs.close()
        if order.arm and order.arm.elsewhere:
            result = _await_all_nodes(order, ours, torchrun)
        else:
            result = _await_result(ours)
    return result, torchrun.wait()


def _failure_of(code: int) -> WorkerResult:
    return WorkerResult(
        error=f"torchrun ended with exit code {code}: a rank failed, or it could not start them"
    )


def _why_no_loopback() -> str:
    """Return why ranks cannot connect, as in a new network namespace; empty if they can."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe_socket:
            probe_socket.connect(("127.0.0.1", 9))  # no packet is sent
    except OSError as problem:
        return problem.strerror or str(problem)
    return ""


def _await_result(line: socket.socket) -> WorkerResult | None:
    """Return the result of torchrun, else the first error, else the result of the lowest rank.

    None if there was no result when the socket was closed.
    """
    result: WorkerResult | None = None
    while True:
        message = _next(line)
        if message is None:
            return result
        if message.rank == TORCHRUN:
            return message
        if result is None or _takes_precedence(message, result):
            result = message


def _takes_precedence(message: WorkerResult, result: WorkerResult) -> bool:
    if result.error:
        return False
    return bool(message.error) or message.rank < result.rank


def _next(line: socket.socket) -> WorkerResult | None:
    """Return the next result, or None at the end of the socket."""
    try:
        message = messages.receive(line)
    except ConnectionResetError:  # the last rank has gone, and the order is still in the socket
        return None
    return message if isinstance(message, WorkerResult) else None


def _await_all_nodes(
    order: WorkerOrder, own_line: socket.socket, torchrun: "subprocess.Popen[bytes]"
) -> WorkerResult | None:
    """Start the ranks on the other nodes; return the first error of any rank, else rank 0's result.

    An error on one node ends the ranks on all nodes, because they would wait for each other.
    """
    results: list[WorkerResult] = []
    with _call(order) as remote_line:
        open_lines = [own_line, remote_line]
        while open_lines:
            has_failed_here = _first_error(results) is not None and own_line not in open_lines
            patience_s = _PATIENCE_S if has_failed_here else None
            ready = select.select(open_lines, [], [], patience_s)[0]
            if not ready:
                break
            for line in ready:
                message = _next(line)
                if message:
                    results.append(message)
                    if line is remote_line and message.error:
                        torchrun.terminate()
                    continue
                open_lines.remove(line)
                if line is own_line and not _first_error(results):
                    code = torchrun.wait()
                    if code:
                        results.append(_failure_of(code))
    error = _first_error(results)
    if error:
        return error
    for result in results:
        if result.rank == 0:
            return result
    return None


def _first_error(results: Sequence[WorkerResult]) -> WorkerResult | None:
    """Return the earliest error; one without a time (a lost rank, a failed start) comes first."""
    errors = [result for result in results if result.error]
    return min(errors, key=lambda result: result.failed_ns, default=None)


def _call(order: WorkerOrder) -> socket.socket:
    """Order the ranks on other nodes, and return the socket on which their results will come.

    Our stdout and stderr are sent along, for the output of these ranks.
    """
    assert order.spread
    line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    line.connect(order.spread.line)
    socket.send_fds(line, [messages.pack_message(order)], [1, 2])
    return line


def _run_rank() -> None:
    """Be the worker of a rank: read the order without removing it from the socket, and serve it."""
    from tuilab.lab.worker import serve

    line = socket.socket(fileno=move_to_high_fd(os.dup(0)))
    with open(os.devnull) as null:
        os.dup2(null.fileno(), 0)
    order = messages.receive(line, socket.MSG_PEEK)
    if not isinstance(order, WorkerOrder):
        return  # the launcher died
    if order.spread and not order.place:
        order.place = Place(order.spread.nodes[0].name)
    rank = int(os.environ["RANK"])
    if rank > 0:
        order.writer = f"{order.writer}-rank-{rank}"
        order.rank = rank
    serve(order, WorkerLine(line))


if __name__ == "__main__":
    main()
