"""A `tuilab` that waits for tests: one process loads all of it and forks for each call, as loading is most of what it takes.

The fork is a front like any other, with the arguments, the environment, the folder, the cores and the pipes of its call. What
it starts for a run are forks again. A worker is one unless its environment says something that is heeded when a process starts.
What a process loads, and when, is not to be seen in a fork: `tests.engine.start` and the tests in `tests/faults/` start fronts
afresh, and the workers of these are interpreters of their own.
"""

import gc
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

ROOMS = ("catalogue", "judging", "runs", "drawings", "reports", "cli")
PARTS = (
    "tuilab.engine.supervisor",
    "tuilab.engine.early_start",
    "tuilab.engine.sampler",
    "tuilab.engine.judge",
)
WORKERS = ("tuilab.lab.worker", "tuilab.commands.worker")
MARK_ROOM = {
    "TUILAB_RUN": "spare".ljust(120, ".")
}  # others see the mark of a fork where the first process has it
ORDER_BYTES = 1 << 20
TOLD_AT_START = (
    "PYTHON",
    "LANG",
    "LC_",
    "LD_",
    "TZ",
    "CUDA_INJECTION",
    "NSYS_",
)  # heeded when a process starts, and not later


class WarmTuilab:
    """Starts the process that waits with the first call; it ends with the one that started it.

    What it has loaded and does is what a module says with its `load` and `main`, in the surroundings of the first call. This
    one is a front, in the surroundings that it was made in: those of the first call may be of one test alone.
    """

    def __init__(self, program: str, module: str = "") -> None:
        self.program = program
        self.module = module
        self.started_with = heeded_at_start(os.environ)
        self.line: socket.socket | None = None

    def takes(self, environment: Mapping[str, str]) -> bool:
        """Say whether a front with this environment would have started as the one that waits did."""
        return heeded_at_start(environment) == self.started_with

    def run(
        self, words: tuple[str, ...], environment: Mapping[str, str], folder: Path, timeout: float
    ) -> "subprocess.CompletedProcess[str]":
        """Do what `subprocess.run` does with captured texts and no input."""
        line = self.line = self.line or self._start()
        with open(os.devnull, "rb") as nothing, ThreadPoolExecutor(2) as pool:
            (out, theirs_out), (err, theirs_err) = os.pipe(), os.pipe()
            cores = [*os.sched_getaffinity(0)]
            order = json.dumps(
                [self.program, [*words], dict(environment), str(folder), cores]
            ).encode()
            socket.send_fds(line, [order], [nothing.fileno(), theirs_out, theirs_err])
            os.close(theirs_out)
            os.close(theirs_err)
            pid = int(line.recv(64))
            texts = [pool.submit(read_all, fd) for fd in (out, err)]
            line.settimeout(timeout)
            try:
                status = int(line.recv(64))
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                line.settimeout(None)
                line.recv(64)
                raise subprocess.TimeoutExpired([self.program, *words], timeout) from None
            return subprocess.CompletedProcess(
                [self.program, *words], status, *(text.result(timeout) for text in texts)
            )

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, ORDER_BYTES)
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno()), self.module],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,  # pipes for Python to see, as those of a call will be
                stderr=subprocess.PIPE,
                cwd=Path(__file__).parent,
                env=self._surroundings() | MARK_ROOM,
            )
        return ours

    def _surroundings(self) -> dict[str, str]:
        if self.module:
            return dict(os.environ)
        return {
            name: value for name, value in os.environ.items() if not name.startswith(TOLD_AT_START)
        } | self.started_with

    def end(self) -> None:
        if self.line is not None:
            self.line.close()
            self.process.communicate(timeout=60)


def heeded_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(TOLD_AT_START)}


def read_all(fd: int) -> str:
    with open(fd) as file:
        return file.read()


# ---- the process that waits


def serve(line: socket.socket, load: Callable[[], object], main: Callable[[], object]) -> None:
    load()
    gc.freeze()
    while True:
        order, fds, _, _ = socket.recv_fds(line, ORDER_BYTES, 3)
        if not order:
            return
        if not (pid := os.fork()):
            line.close()
            become(main, fds, *json.loads(order))
        for fd in fds:
            os.close(fd)
        line.send(str(pid).encode())
        line.send(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())


def load() -> None:
    import_module("tuilab.__main__")
    for room in ROOMS:
        path = import_module(f"tuilab.{room}").__path__
        for found in pkgutil.walk_packages(path, f"tuilab.{room}."):
            import_module(found.name)
    import_module("jinja2")
    import_module("plotext")
    for part in PARTS + WORKERS:
        import_module(part)
    take_mark = import_module("tuilab.engine.processes").open_mark()
    started_with = heeded_at_start(os.environ)

    class Popen(subprocess.Popen[Any]):
        """Starts the parts of a run as forks, with the streams, the session and the rest of what they are started with."""

        def __init__(self, command: list[str], **more: Any) -> None:
            environment = {**(more.get("env") or os.environ)}
            module = command[3] if command[1:3] == ["-P", "-m"] else ""
            if module in PARTS or (
                module in WORKERS and heeded_at_start(environment) == started_with
            ):
                first = more.get("preexec_fn")
                handed_on = [*more.get("pass_fds", ())]
                more["preexec_fn"] = partial(
                    become_part, first, command[3:], environment, take_mark, handed_on
                )
            super().__init__(command, **more)

    setattr(subprocess, "Popen", Popen)  # noqa: B010


def main() -> None:
    import_module("tuilab.cli.main").main()


def become(
    main: Callable[[], object],
    fds: list[int],
    program: str,
    words: list[str],
    environment: dict[str, str],
    folder: str,
    cores: list[int],
) -> NoReturn:
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
        os.close(fd)
    os.chdir(folder)
    os.sched_setaffinity(0, cores)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = [program, *words]
    try:
        main()
    except BaseException:  # as it ends in an interpreter of its own
        sys.excepthook(*sys.exc_info())
    sys.stdout.flush()
    os._exit(1)


def become_part(
    first: Callable[[], object] | None,
    words: list[str],
    environment: dict[str, str],
    take_mark: Callable[[str], None],
    handed_on: list[int],
) -> NoReturn:
    """Go on as the module of that name with these arguments, where exec would start an interpreter of its own."""
    if first:
        first()
    for fd in map(int, os.listdir("/proc/self/fd")):
        if fd > 2 and fd not in handed_on:
            with suppress(OSError):
                os.close(fd)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_IGN)
    os.environ.clear()
    os.environ.update(environment)
    if run := environment.get(*MARK_ROOM):
        take_mark(run)
    sys.argv = words
    streams = {
        "stdin": os.fdopen(0, closefd=False),
        "stdout": os.fdopen(1, "w", closefd=False),
        "stderr": os.fdopen(2, "w", 1, errors="backslashreplace", closefd=False),
    }
    for name, stream in streams.items():
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    if words[0] in WORKERS:
        del sys.path[0]  # the folder of the program, which `python -P -m` does not have
        setattr(import_module("tuilab.engine.processes"), "open_mark", lambda: take_mark)  # noqa: B010
    code: object = 0
    try:
        import_module(words[0]).main()
    except SystemExit as leaving:
        code = leaving.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    with suppress(OSError):
        sys.stdout.flush()
    os._exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    sys.path[0] = str(
        Path(__file__).parents[1] if sys.argv[2] else Path(sys.executable).parent
    )  # as it is for the program
    told = import_module(sys.argv[2]) if sys.argv[2] else sys.modules[__name__]
    with socket.socket(fileno=int(sys.argv[1])) as waiting:
        serve(waiting, told.load, told.main)
