"""The calls of a run that need ranks on other nodes, and the results of those ranks.

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
        """Return the number of the open call, or 0."""
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
        """Write the output of ranks on another node, and send their result, if it is wanted."""
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
        with self._lock:
            self._end()
            self._listener.close()

    def _take(self, line: socket.socket) -> None:
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
        if piece.name in _PRINTED:
            _print(self._outputs[_PRINTED[piece.name]], piece.data)
        elif piece.data and piece.name != "scenario.py":
            write(run_dir, piece)

    def _end(self) -> None:
        if self._line:
            self._line.close()
        for output in self._outputs:
            os.close(output)
        self._line = None
        self._outputs = []


def _has_hung_up(line: socket.socket) -> bool:
    try:
        return not line.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:  # it died with unread data
        return True


def _print(output: int, data: bytes) -> None:
    while data:
        data = data[os.write(output, data) :]
