"""What runs on a node: starts one run at a time there, or ranks of one, and hands over what it has written."""

import contextlib
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tuilab.engine import messages
from tuilab.engine.messages import Place, Receipt, RunOrder, WorkerOrder, WorkerResult
from tuilab.errors import ExitCode
from tuilab.fleet import folders
from tuilab.fleet.file_pieces import FilePiece, beyond, digest
from tuilab.fleet.rank_calls import Calls
from tuilab.probes.interfaces import network_of
from tuilab.runs.archive.names import FOLDERS, list_run_files

_LOOK_S = 0.1  # between two looks at the files, while somebody waits for something new


_OF_RAY = "/ray/core/"  # stands in the path of what it loads into every process


class RunNews(NamedTuple):
    """What is new of a run, or of ranks of one."""

    pieces: list[FilePiece]
    is_over: bool  # and nothing more will come
    call: int = 0  # the number of the ranks that it wants on other nodes now; 0: of none
    order: bytes = b""  # for these, when they are told for the first time
    said: bytes = b""  # of ranks that are over: how they ended


class Host:
    """The actor of a node. All that it is given and gives is plain data; while a run goes on it does next to nothing.

    While it waits for something new it can be told to stop: those are two threads.
    """

    def __init__(self) -> None:
        stand_up()
        folders.clear()
        self._folder: Path | None = None
        self._held = -1  # a descriptor that holds it
        self._keeper: subprocess.Popen[bytes] | None = None
        self._run_dir = Path()
        self._last_words = b""  # of the keeper
        self._is_over = False
        self._calls: Calls | None = None
        self._call = 0  # the last one that was told

    def is_there(self) -> str:
        """Return what is odd about what is started here, or nothing."""
        return (
            f"Ray starts its processes with low priority (niceness {os.nice(0)})"
            if os.nice(0) > 0
            else ""
        )

    def now_ns(self) -> int:
        """Return the time of this node."""
        return time.monotonic_ns()

    def start(self, order: bytes, files: Mapping[str, bytes]) -> Receipt:
        """Start a run, of the files that came along if there are any, and return its folder, or what is wrong."""
        folder = self._make_folder(files)
        wanted: RunOrder = messages.unpack(order, RunOrder)
        wanted.root = str(folder / "runs")
        if (name := os.path.basename(wanted.path)) in files:
            wanted.path = str(folder / "source" / name)
        if wanted.spread:
            wanted.spread.line = str(folder / "calls")
            self._calls, self._call = Calls(wanted.spread.line), 0
        return self._begin("run_process", messages.pack(wanted))

    def start_ranks(
        self, order: bytes, files: Mapping[str, bytes], scenario: str, at: int, place: Place
    ) -> Receipt:
        """Start the share of this node, the one at that number, of the ranks of a run that is on another node."""
        folder = self._make_folder(files)
        wanted: WorkerOrder = messages.unpack(order, WorkerOrder)
        assert wanted.arm and wanted.spread
        run_dir = folder / "runs" / os.path.basename(wanted.run_dir)
        for name in ("", *FOLDERS):
            (run_dir / name).mkdir(mode=0o700, parents=True)
        (run_dir / "scenario.py").write_bytes(files[scenario])
        wanted.run_dir, wanted.source_dir, wanted.place = (
            str(run_dir),
            str(folder / "source"),
            place,
        )
        wanted.arm.prefix = [
            sys.executable,
            *wanted.arm.elsewhere[at - 1][1:],
        ]  # which may be elsewhere here
        wanted.arm.elsewhere = []
        wanted.arm.env.pop("GLOO_SOCKET_IFNAME", None)  # of the first node
        wanted.arm.env |= network_of(wanted.spread.nodes[at].address)
        return self._begin("rank_process", messages.pack(wanted))

    def read(self, known: Mapping[str, int], patience_s: float = 0.0) -> RunNews:
        """Return what there is beyond the bytes that are known of each file; where there is nothing, wait a while for it."""
        until = time.monotonic() + patience_s
        while True:
            call = self._calls.heed() if self._calls else 0
            is_over = self._hears_end()  # as it was before the files are looked at
            pieces, is_all = beyond(self._run_dir, known)
            if pieces or is_over or call != self._call or time.monotonic() > until:
                break
            self._listen()
        order = self._calls.order if self._calls and call not in (0, self._call) else b""
        self._call = call
        return RunNews(pieces, is_over and is_all, call, order, self._last_words)

    def pass_on(self, call: int, pieces: Sequence[FilePiece], end: WorkerResult | None) -> None:
        """Take what ranks on another node wrote, and how they ended."""
        if self._calls:
            self._calls.pass_on(call, self._run_dir, pieces, end)

    def digests(self) -> dict[str, str]:
        """Return the digest of each file of the run."""
        return {name: digest(self._run_dir / name) for name in list_run_files(self._run_dir)}

    def stop(self, *, at_once: bool) -> None:
        self._say(b"kill\n" if at_once else b"stop\n")

    def end(self) -> None:
        """Let go of the run; one that goes on is stopped. Its folder is removed."""
        if self._keeper and self._keeper.stdin and self._keeper.stdout:
            self._keeper.stdin.close()
            os.set_blocking(self._keeper.stdout.fileno(), True)
            while self._keeper.stdout.read(1024):  # until it has gone
                pass
            self._keeper.stdout.close()
        if self._calls:
            self._calls.close()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
            os.close(self._held)
        self._folder = self._keeper = self._calls = None

    def _make_folder(self, files: Mapping[str, bytes]) -> Path:
        """Make a folder for what is started, with the files that came along."""
        self.end()
        self._folder, self._held = folders.make()
        (self._folder / "source").mkdir()
        for name, data in files.items():
            path = self._folder / "source" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return self._folder

    def _begin(self, module: str, order: bytes) -> Receipt:
        self._is_over, self._last_words = False, b""
        self._keeper = subprocess.Popen(
            [sys.executable, "-P", "-m", f"tuilab.fleet.{module}", str(self._folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env=environment(),
            pass_fds=[self._held],
        )
        assert self._keeper.stdout
        self._keeper.wait()  # it goes on in a child of its own
        self._say(order + b"\n")
        try:
            receipt: Receipt = messages.unpack(self._keeper.stdout.readline(), Receipt)
        except ValueError:
            receipt = Receipt(
                error="the keeper of the run did not start", exit_code=int(ExitCode.FAILED)
            )
        if receipt.error:
            self.end()
            return receipt
        os.set_blocking(self._keeper.stdout.fileno(), False)
        self._run_dir = Path(receipt.run_dir)
        return receipt

    def _hears_end(self) -> bool:
        """Say whether the keeper has had its last word, or is gone itself."""
        assert self._keeper and self._keeper.stdout
        while not self._is_over and (data := self._keeper.stdout.read(65536)) is not None:
            self._last_words += data
            self._is_over = not data or data.endswith(b"\n")
            if not data:
                folders.end(self._run_dir)
        return self._is_over

    def _listen(self) -> None:
        """Wait until it is time to look again, or the keeper has its last word."""
        assert self._keeper and self._keeper.stdout
        select.select([self._keeper.stdout], [], [], _LOOK_S)

    def _say(self, words: bytes) -> None:
        assert self._keeper and self._keeper.stdin
        with contextlib.suppress(BrokenPipeError):  # what came of it is told by what can be read
            self._keeper.stdin.write(words)


def stand_up() -> None:
    """Take the place that Ray itself has beside all others here.

    It has what it starts give way to everybody, and be ended first when memory is short: times would be of that.
    """
    with contextlib.suppress(OSError):  # not everybody may
        os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, os.getppid()))
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_bytes(
            Path(f"/proc/{os.getppid()}/oom_score_adj").read_bytes()
        )


def environment() -> dict[str, str]:
    """Return the environment that Ray was started in on this node, and which GPUs are ours.

    What Ray sets for its own processes is not in it: OMP_NUM_THREADS, and an allocator that would take the place of malloc.
    """
    try:
        pairs = Path(f"/proc/{os.getppid()}/environ").read_bytes().split(b"\0")
        found = {
            os.fsdecode(name): os.fsdecode(value)
            for name, sign, value in (pair.partition(b"=") for pair in pairs)
            if sign
        }
    except OSError:
        found = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    found = {name: value for name, value in found.items() if not name.startswith("RAY_")}
    if preloaded := [
        path
        for path in found.pop("LD_PRELOAD", "").replace(" ", ":").split(":")
        if path and _OF_RAY not in path
    ]:
        found["LD_PRELOAD"] = ":".join(preloaded)
    return {
        **found,
        **{name: os.environ[name] for name in ("CUDA_VISIBLE_DEVICES",) if name in os.environ},
    }
