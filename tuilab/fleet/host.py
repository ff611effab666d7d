"""What runs on a node: starts one run at a time there, and hands over what it has written."""

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tuilab.engine import messages
from tuilab.engine.messages import Receipt, RunOrder
from tuilab.errors import ExitCode
from tuilab.files import open_regular
from tuilab.fleet.keeper import OVER
from tuilab.runs.archive import names

_PORTION = 4 << 20  # bytes that are handed over at a time
_PIECE = 1 << 20


class Piece(NamedTuple):
    """A part of a file of the run."""

    name: str
    at: int
    data: bytes


class Reading(NamedTuple):
    """What is new of a run."""

    pieces: list[Piece]
    is_over: bool  # and nothing more will come


class Host:
    """The actor of a node. All that it is given and gives is plain data; while a run goes on it does next to nothing."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._keeper: subprocess.Popen[bytes] | None = None
        self._run_dir = Path()
        self._is_over = False

    def is_there(self) -> bool:
        return True

    def start(self, order: bytes, files: Mapping[str, bytes]) -> Receipt:
        """Start a run, of the files that came along if there are any, and return its folder, or what is wrong."""
        self.end()
        self._folder = Path(tempfile.mkdtemp(prefix="tuilab-carried-"))
        wanted: RunOrder = messages.unpack(order, RunOrder)
        wanted.root = str(self._folder / "runs")
        for name, data in files.items():
            path = self._folder / "source" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            wanted.path = wanted.path if path.name != os.path.basename(wanted.path) else str(path)
        receipt = self._begin(wanted)
        if receipt.error:
            self.end()
        self._run_dir = Path(receipt.run_dir)
        return receipt

    def _begin(self, order: RunOrder) -> Receipt:
        self._is_over = False
        self._keeper = subprocess.Popen(
            [sys.executable, "-P", "-m", "tuilab.fleet.keeper", str(self._folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env=_environment(),
        )
        assert self._keeper.stdout
        self._keeper.wait()  # it goes on in a child of its own
        self._say(messages.pack(order) + b"\n")
        try:
            receipt: Receipt = messages.unpack(self._keeper.stdout.readline(), Receipt)
        except ValueError:
            return Receipt(error="the keeper of the run did not start", exit_code=int(ExitCode.FAILED))
        os.set_blocking(self._keeper.stdout.fileno(), False)
        return receipt

    def read(self, known: Mapping[str, int]) -> Reading:
        """Return what the run wrote beyond the bytes that are known of each file."""
        self._is_over = self._is_over or self._hears_end()
        is_over = self._is_over  # as it was before the files are looked at
        pieces: list[Piece] = []
        room = _PORTION
        for name in names.names(self._run_dir):
            at = known.get(name, 0)
            pieces += [Piece(name, 0, b"")] if name not in known else []  # that there is such a file
            while room > 0 and (data := _beyond(self._run_dir / name, at, min(room, _PIECE))):
                pieces.append(Piece(name, at, data))
                at += len(data)
                room -= len(data)
        return Reading(pieces, is_over and room > 0)

    def digests(self) -> dict[str, str]:
        """Return the digest of each file of the run."""
        return {name: digest(self._run_dir / name) for name in names.names(self._run_dir)}

    def stop(self, *, at_once: bool) -> None:
        self._say(b"kill\n" if at_once else b"stop\n")

    def end(self) -> None:
        """Let go of the run; one that goes on is stopped. Its folder is removed."""
        if self._keeper and self._keeper.stdin and self._keeper.stdout:
            self._keeper.stdin.close()
            os.set_blocking(self._keeper.stdout.fileno(), True)
            while self._keeper.stdout.read(len(OVER)):  # until it has gone
                pass
            self._keeper.stdout.close()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._folder = self._keeper = None

    def _hears_end(self) -> bool:
        """Say whether the keeper has told that the run is over, or is gone itself."""
        assert self._keeper and self._keeper.stdout
        return self._keeper.stdout.read(len(OVER)) is not None

    def _say(self, words: bytes) -> None:
        assert self._keeper and self._keeper.stdin
        with contextlib.suppress(BrokenPipeError):  # what came of it is told by what can be read
            self._keeper.stdin.write(words)


def _environment() -> dict[str, str]:
    """Return the environment that Ray was started in on this node, and which GPUs are ours: Ray itself sets OMP_NUM_THREADS."""
    try:
        pairs = Path(f"/proc/{os.getppid()}/environ").read_bytes().split(b"\0")
        found = {
            os.fsdecode(name): os.fsdecode(value) for name, sign, value in (pair.partition(b"=") for pair in pairs) if sign
        }
    except OSError:
        found = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    return {**found, **{name: os.environ[name] for name in ("CUDA_VISIBLE_DEVICES",) if name in os.environ}}


def digest(path: Path) -> str:
    """Return the digest of a file; nothing where it cannot be read."""
    try:
        with open(open_regular(path), "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def _beyond(path: Path, at: int, most: int) -> bytes:
    """Return what a file has from a place on; nothing where there is no more."""
    try:
        with open(open_regular(path), "rb") as file:
            file.seek(at)
            return file.read(most)
    except OSError:
        return b""
