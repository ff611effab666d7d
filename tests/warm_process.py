"""A `tuilab` that waits for tests: one process loads everything, and forks for each call.

Loading takes most of the time of a call. A fork is a client like any other, with the arguments, the
environment, the folder, the cores and the pipes of its call. The processes that it starts for a run
are forks as well; a worker is one unless its environment has a variable that Python reads only at its
start. A fork does not show what a process loads, and when. So `tests.engine.start` and the tests in
`tests/faults/` start new clients, and their workers are interpreters of their own.
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
# Other processes see the mark of a fork in the memory where the first process has this variable.
MARK_ROOM = {"TUILAB_RUN": "spare".ljust(120, ".")}
ORDER_BYTES = 1 << 20
# Variables with these prefixes are read only when a process starts.
TOLD_AT_START = ("PYTHON", "LANG", "LC_", "LD_", "TZ", "CUDA_INJECTION", "NSYS_")


class WarmTuilab:
    """Start the waiting process at the first call, and send it the calls. It ends with this process.

    The waiting process calls `load` and, in each fork, `main` of a module, with the environment of
    the first call. Without a module it is a client, with the environment in which this object was
    made: the environment of the first call may be that of one test only.
    """

    def __init__(self, program: str, module: str = "") -> None:
        self.program = program
        self.module = module
        self.started_with = heeded_at_start(os.environ)
        self.line: socket.socket | None = None

    def takes(self, environment: Mapping[str, str]) -> bool:
        """Whether a client with this environment would have started like the waiting process."""
        return heeded_at_start(environment) == self.started_with

    def run(
        self, words: tuple[str, ...], environment: Mapping[str, str], folder: Path, timeout: float
    ) -> "subprocess.CompletedProcess[str]":
        """Do what `subprocess.run` does with captured texts and no input."""
        if self.line is None:
            self.line = self._start()
        line = self.line
        command = [self.program, *words]
        with open(os.devnull, "rb") as nothing, ThreadPoolExecutor(2) as pool:
            stdout, stdout_of_fork = os.pipe()
            stderr, stderr_of_fork = os.pipe()
            cores = [*os.sched_getaffinity(0)]
            order = [self.program, [*words], dict(environment), str(folder), cores]
            streams = [nothing.fileno(), stdout_of_fork, stderr_of_fork]
            socket.send_fds(line, [json.dumps(order).encode()], streams)
            os.close(stdout_of_fork)
            os.close(stderr_of_fork)
            pid = int(line.recv(64))
            printed = pool.submit(read_all, stdout)
            messages = pool.submit(read_all, stderr)
            line.settimeout(timeout)
            try:
                status = int(line.recv(64))
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                line.settimeout(None)
                line.recv(64)
                raise subprocess.TimeoutExpired(command, timeout) from None
            return subprocess.CompletedProcess(
                command, status, printed.result(timeout), messages.result(timeout)
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
        """Return the environment of the waiting process."""
        environment = dict(os.environ)
        if self.module:
            return environment
        for name in heeded_at_start(environment):
            del environment[name]
        return {**environment, **self.started_with}

    def end(self) -> None:
        if self.line is not None:
            self.line.close()
            self.process.communicate(timeout=60)


def heeded_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that are read only when a process starts."""
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
        pid = os.fork()
        if pid == 0:
            line.close()
            become(main, fds, *json.loads(order))
        for fd in fds:
            os.close(fd)
        line.send(str(pid).encode())
        _, status = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        line.send(str(code).encode())


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
    # A hypervisor that takes this machine's cores must not decide the verdicts of tests.
    setattr(import_module("tuilab.lab.races.sensors"), "steal_in", lambda text, core: (0, 0))  # noqa: B010
    take_mark = import_module("tuilab.engine.processes").open_mark()
    started_with = heeded_at_start(os.environ)

    class Popen(subprocess.Popen[Any]):
        """Start the parts of a run as forks, with all options of the call."""

        def __init__(self, command: list[str], **more: Any) -> None:
            environment = {**(more.get("env") or os.environ)}
            module = command[3] if command[1:3] == ["-P", "-m"] else ""
            can_fork_worker = heeded_at_start(environment) == started_with
            if module in PARTS or (module in WORKERS and can_fork_worker):
                first = more.get("preexec_fn")
                inherited_fds = [*more.get("pass_fds", ())]
                more["preexec_fn"] = partial(
                    become_part, first, command[3:], environment, take_mark, inherited_fds
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
    except BaseException:  # a new interpreter would end in the same way
        sys.excepthook(*sys.exc_info())
    sys.stdout.flush()
    os._exit(1)


def become_part(
    first: Callable[[], object] | None,
    words: list[str],
    environment: dict[str, str],
    take_mark: Callable[[str], None],
    inherited_fds: list[int],
) -> NoReturn:
    """Become the module `words[0]` with these arguments, in place of `exec` of a new interpreter."""
    if first:
        first()
    for fd in map(int, os.listdir("/proc/self/fd")):
        if fd > 2 and fd not in inherited_fds:
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
    run = environment.get("TUILAB_RUN")
    if run:
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
    descriptor, module_name = int(sys.argv[1]), sys.argv[2]
    # The first folder of the path is the same as for the program.
    if module_name:
        sys.path[0] = str(Path(__file__).parents[1])
        module = import_module(module_name)
    else:
        sys.path[0] = str(Path(sys.executable).parent)
        module = sys.modules[__name__]
    with socket.socket(fileno=descriptor) as waiting:
        serve(waiting, module.load, module.main)
