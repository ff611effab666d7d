"""The calls of a run that need ranks on other nodes, and the results of those ranks.

A scenario makes such a call with `lab.ranks`, and waits for the result. The socket of the call is
its line.

The output of ranks is written into the folder of the run before their result is sent, so that the
record is complete by then. What they print goes to the output of the run. There is one call at a
time, because a scenario waits for its ranks.
"""

import contextlib
import os
import socket
import threading
import time
from collections.abc import Iterable
from pathlib import Path

from tuilab.engine import messages
from tuilab.engine.messages import WorkerOrder, WorkerResult
from tuilab.fleet.file_pieces import FilePiece, write

_PRINTED = {"stdout.log": 0, "stderr.log": 1}


class Calls:
    """The open call, if there is one: its number, which grows, and its order. It is thread-safe."""

    def __init__(self, path: str) -> None:
        """Listen on a new socket at `path`, through which the scenario sends its calls."""
        self._lock = threading.RLock()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(path)
        self._listener.listen()
        self._listener.setblocking(False)
        self._line: socket.socket | None = None
        self._outputs: list[int] = []
        self._nodes_left = 0  # nodes whose ranks are running
        self.number = 0
        self.order = b""

    def heed(self) -> int:
        """Return the number of the open call, or 0.

        Ends a call whose caller has hung up, and takes the next caller if one waits.
        """
        with self._lock:
            if self._line and _has_hung_up(self._line):
                self._end()
            if not self._line:
                with contextlib.suppress(BlockingIOError):
                    self._take(self._listener.accept()[0])
            return self.number if self._line else 0

    def pass_on(
        self, number: int, run_dir: Path, pieces: Iterable[FilePiece], end: WorkerResult | None
    ) -> None:
        """Write the output of ranks on another node, and send their result if it is not None.

        Does nothing if call `number` is not open any more. The result of the last node ends the
        call.
        """
        with self._lock:
            if self.heed() != number or self._line is None:
                return
            with contextlib.suppress(
                OSError
            ):  # the run is ending or the disk is full: it records that
                for piece in pieces:
                    self._put(run_dir, piece)
            if end:
                with contextlib.suppress(OSError):
                    messages.send(self._line, end)
                self._nodes_left -= 1
                if not self._nodes_left:
                    self._end()

    def close(self) -> None:
        """End the open call, and accept no further one."""
        with self._lock:
            self._end()
            self._listener.close()

    def _take(self, line: socket.socket) -> None:
        """Open the call of a new caller: read its order, stdout and stderr from its socket.

        The number of the call is the time, so that it is higher than that of every earlier call.
        """
        data, self._outputs, *_ = socket.recv_fds(line, messages.LIMIT + 1, len(_PRINTED))
        if not data:  # it died before it sent its order
            line.close()
            return
        order: WorkerOrder = messages.unpack(data, WorkerOrder)
        self._line = line
        self.order = data
        self.number = time.monotonic_ns()
        self._nodes_left = len(order.arm.elsewhere) if order.arm else 0

    def _put(self, run_dir: Path, piece: FilePiece) -> None:
        """Print a piece of stdout or stderr to the caller, or write another file into the run."""
        if piece.name in _PRINTED:
            _print(self._outputs[_PRINTED[piece.name]], piece.data)
        elif piece.data and piece.name != "scenario.py":
            write(run_dir, piece)

    def _end(self) -> None:
        """Close the open call, if there is one, with the files that came with it."""
        if self._line:
            self._line.close()
        for output in self._outputs:
            os.close(output)
        self._line = None
        self._outputs = []


def _has_hung_up(line: socket.socket) -> bool:
    """Return whether the other end of a socket is closed, without reading from it."""
    try:
        return not line.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:  # it died with unread data
        return True


def _print(output: int, data: bytes) -> None:
    """Write all bytes to an output of the run; raise OSError if it is closed."""
    while data:  # one write may take only a part
        data = data[os.write(output, data) :]
