"""The actor on a node: it starts a run, or some ranks of one, and returns what they write."""

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

_POLL_S = 0.1  # between two reads of the files
_OF_RAY = "/ray/core/"  # in the path of libraries that Ray preloads


class RunNews(NamedTuple):
    """The news of a run, or of some ranks of one."""

    pieces: list[FilePiece]
    is_over: bool  # nothing more will come
    call: int = 0  # the number of the call that needs ranks on other nodes; 0: none
    order: bytes = b""  # of that call, when it is new
    said: bytes = b""  # the result of ranks that are over


class Host:
    """The actor of a node; arguments and results of its methods are plain data.

    Ray calls it in two threads, so that it can be told to stop while it waits for news.
    """

    def __init__(self) -> None:
        """Raise the priority of this process, and remove what killed runs left on this node."""
        stand_up()
        folders.clear()
        self._folder: Path | None = None
        self._held = -1  # the descriptor with the lock on the folder
        self._keeper: subprocess.Popen[bytes] | None = None
        self._run_dir = Path()
        self._last_words = b""  # of the process that started the run
        self._is_over = False
        self._calls: Calls | None = None
        self._call = 0  # the last call that was returned

    def is_there(self) -> str:
        """Return a warning about the processes on this node, or nothing."""
        if os.nice(0) <= 0:
            return ""
        return f"Ray starts its processes with low priority (niceness {os.nice(0)})"

    def now_ns(self) -> int:
        """Return the time of this node."""
        return time.monotonic_ns()

    def start(self, order: bytes, files: Mapping[str, bytes]) -> Receipt:
        """Start a run with the files that came with it; return its folder, or an error.

        Ends the earlier run of this host first: a host has one run at a time.
        """
        folder = self._make_folder(files)
        run_order: RunOrder = messages.unpack(order, RunOrder)
        run_order.root = str(folder / "runs")
        name = os.path.basename(run_order.path)
        if name in files:
            run_order.path = str(folder / "source" / name)
        if run_order.spread:
            run_order.spread.line = str(folder / "calls")
            self._calls = Calls(run_order.spread.line)
            self._call = 0
        return self._begin("run_process", messages.pack(run_order))

    def start_ranks(
        self, order: bytes, files: Mapping[str, bytes], scenario: str, node_index: int, place: Place
    ) -> Receipt:
        """Start the ranks of this node for a run on another node, and return a receipt.

        `files` has the sources by name, `scenario` is the name of the scenario among them, and
        `node_index` the number of this node. The order is changed so that its paths, Python and
        network are those of this node.
        """
        folder = self._make_folder(files)
        worker_order: WorkerOrder = messages.unpack(order, WorkerOrder)
        assert worker_order.arm and worker_order.spread
        run_dir = folder / "runs" / os.path.basename(worker_order.run_dir)
        for name in ("", *FOLDERS):  # "": the folder of the run itself
            (run_dir / name).mkdir(mode=0o700, parents=True)
        (run_dir / "scenario.py").write_bytes(files[scenario])
        worker_order.run_dir = str(run_dir)
        worker_order.source_dir = str(folder / "source")
        worker_order.place = place
        prefix = worker_order.arm.elsewhere[node_index - 1]
        worker_order.arm.prefix = [sys.executable, *prefix[1:]]  # the Python of this node
        worker_order.arm.elsewhere = []
        worker_order.arm.env.pop("GLOO_SOCKET_IFNAME", None)  # of the first node
        worker_order.arm.env |= network_of(worker_order.spread.nodes[node_index].address)
        return self._begin("rank_process", messages.pack(worker_order))

    def read(self, sizes: Mapping[str, int], patience_s: float = 0.0) -> RunNews:
        """Return the news of the run: new data of its files, an open call, and its end.

        `sizes` has what the caller has of each file. If there is nothing new, wait for it up to
        `patience_s`. The order of a call is included only the first time.
        """
        until = time.monotonic() + patience_s
        while True:
            call = self._calls.heed() if self._calls else 0
            is_over = self._has_ended()  # checked before the files are read
            pieces, is_all = beyond(self._run_dir, sizes)
            if pieces or is_over or call != self._call or time.monotonic() > until:
                break
            self._await_news()
        order = b""
        if self._calls and call not in (0, self._call):
            order = self._calls.order
        self._call = call
        return RunNews(pieces, is_over and is_all, call, order, self._last_words)

    def pass_on(self, call: int, pieces: Sequence[FilePiece], end: WorkerResult | None) -> None:
        """Take the output of ranks on another node, and their result; None if they still run."""
        if self._calls:
            self._calls.pass_on(call, self._run_dir, pieces, end)

    def digests(self) -> dict[str, str]:
        """Return the digest of each file of the run."""
        names = list_run_files(self._run_dir)
        return {name: digest(self._run_dir / name) for name in names}

    def stop(self, *, at_once: bool) -> None:
        """Ask the process that started the run to stop it, cleanly or at once."""
        self._say(b"kill\n" if at_once else b"stop\n")

    def end(self) -> None:
        """Stop the run if it is running, forget it, and remove its folder.

        Waits until the process that started the run has ended. Does nothing without a run.
        """
        if self._keeper and self._keeper.stdin and self._keeper.stdout:
            self._keeper.stdin.close()
            os.set_blocking(self._keeper.stdout.fileno(), True)
            while self._keeper.stdout.read(1024):  # until the process has ended
                pass
            self._keeper.stdout.close()
        if self._calls:
            self._calls.close()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
            os.close(self._held)
        self._folder = None
        self._keeper = None
        self._calls = None

    def _make_folder(self, files: Mapping[str, bytes]) -> Path:
        """End the earlier run, and create a folder with the files that came with an order."""
        self.end()
        self._folder, self._held = folders.make()
        (self._folder / "source").mkdir()
        for name, data in files.items():
            path = self._folder / "source" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return self._folder

    def _begin(self, module: str, order: bytes) -> Receipt:
        """Start the process of a run or of ranks, send it the order, and return its receipt.

        The process runs `tuilab.fleet.<module>` and keeps the lock on the folder. If it cannot
        start, the folder is removed again, and the receipt has the error.
        """
        self._is_over = False
        self._last_words = b""
        self._keeper = subprocess.Popen(
            [sys.executable, "-P", "-m", f"tuilab.fleet.{module}", str(self._folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env=environment(),
            pass_fds=[self._held],
        )
        assert self._keeper.stdout
        self._keeper.wait()  # it continues in a forked child
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

    def _has_ended(self) -> bool:
        """Say whether the process that started the run has reported its end, or is gone.

        Keeps what it printed as the last words. If it is gone without a report, its run is ended.
        """
        assert self._keeper and self._keeper.stdout
        while not self._is_over:
            data = self._keeper.stdout.read(65536)
            if data is None:  # nothing to read yet
                break
            self._last_words += data
            self._is_over = not data or data.endswith(b"\n")
            if not data:
                folders.end(self._run_dir)
        return self._is_over

    def _await_news(self) -> None:
        """Wait a moment, or until the process that started the run reports."""
        assert self._keeper and self._keeper.stdout
        select.select([self._keeper.stdout], [], [], _POLL_S)

    def _say(self, words: bytes) -> None:
        """Send words to the process that started the run, unless that process is gone."""
        assert self._keeper and self._keeper.stdin
        with contextlib.suppress(BrokenPipeError):  # its end is noticed when it is read
            self._keeper.stdin.write(words)


def stand_up() -> None:
    """Take the priority of the parent, which is Ray itself.

    Ray starts its processes with low priority, and lets the kernel kill them first when memory is
    short. Both would change measured times.
    """
    with contextlib.suppress(OSError):  # it may not be permitted
        os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, os.getppid()))
    with contextlib.suppress(OSError):
        of_parent = Path(f"/proc/{os.getppid()}/oom_score_adj").read_bytes()
        Path("/proc/self/oom_score_adj").write_bytes(of_parent)


def environment() -> dict[str, str]:
    """Return the environment in which Ray was started on this node, with the GPUs of this actor.

    Ray adds variables for its own processes, which are left out: OMP_NUM_THREADS, and an allocator
    that would replace malloc.
    """
    try:
        started_with = _read_environment(os.getppid())
    except OSError:
        started_with = dict(os.environ)
        started_with.pop("OMP_NUM_THREADS", None)
    variables = {}
    for name, value in started_with.items():
        if not name.startswith("RAY_"):
            variables[name] = value
    libraries = variables.pop("LD_PRELOAD", "").replace(" ", ":").split(":")
    own_libraries = [path for path in libraries if path and _OF_RAY not in path]
    if own_libraries:
        variables["LD_PRELOAD"] = ":".join(own_libraries)
    if "CUDA_VISIBLE_DEVICES" in os.environ:
        variables["CUDA_VISIBLE_DEVICES"] = os.environ["CUDA_VISIBLE_DEVICES"]
    return variables


def _read_environment(pid: int) -> dict[str, str]:
    """Return the environment with which a process was started; raise OSError if it is hidden."""
    variables = {}
    for entry in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
        name, sign, value = entry.partition(b"=")
        if sign:
            variables[os.fsdecode(name)] = os.fsdecode(value)
    return variables
