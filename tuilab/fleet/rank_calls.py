"""On the node of a run: hears which ranks it wants on other nodes, and hands it what comes of them.

What others wrote is carried into the run's own folder before it is said that they are over, so that the record is whole there;
what they printed goes where the run's own ranks print. Calls come one after another: a scenario waits for its ranks.
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
    """The call that is open, if one is: its number, which grows, and what is wanted; two threads may ask at a time."""

    def __init__(self, path: str) -> None:
        self._lock = threading.RLock()
        self._ear = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._ear.bind(path)
        self._ear.listen()
        self._ear.setblocking(False)
        self._line: socket.socket | None = None
        self._outputs: list[int] = []
        self._left = 0  # nodes whose ranks are not over
        self.number = 0
        self.order = b""

    def heed(self) -> int:
        """Return the number of the call that is open; 0 where none is."""
        with self._lock:
            if self._line and _has_hung_up(self._line):
                self._end()
            if not self._line:
                with contextlib.suppress(BlockingIOError):
                    self._take(self._ear.accept()[0])
            return self.number if self._line else 0

    def pass_on(
        self, number: int, run_dir: Path, pieces: Iterable[FilePiece], end: WorkerResult | None
    ) -> None:
        """Hand over what ranks of another node wrote, and at last how they ended, unless nobody waits for it any more."""
        with self._lock:
            if self.heed() != number or self._line is None:
                return
            with contextlib.suppress(
                OSError
            ):  # the run is ending, or there is no room: its own records say so
                for piece in pieces:
                    self._put(run_dir, piece)
            if end:
                with contextlib.suppress(OSError):
                    messages.send(self._line, end)
                self._left -= 1
                if not self._left:
                    self._end()

    def close(self) -> None:
        with self._lock:
            self._end()
            self._ear.close()

    def _take(self, line: socket.socket) -> None:
        data, self._outputs, *_ = socket.recv_fds(line, messages.LIMIT + 1, len(_PRINTED))
        if not data:  # it died before it had said what it wants
            line.close()
            return
        order: WorkerOrder = messages.unpack(data, WorkerOrder)
        self._line, self.order, self.number = line, data, time.monotonic_ns()
        self._left = len(order.arm.elsewhere) if order.arm else 0

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
        self._line, self._outputs = None, []


def _has_hung_up(line: socket.socket) -> bool:
    try:
        return not line.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:  # it died with something unread
        return True


def _print(output: int, data: bytes) -> None:
    while data:
        data = data[os.write(output, data) :]
