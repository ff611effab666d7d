"""The worker of a run of a user's command: starts it, brings what it marks and prints into the record, and ends as it did.

It never loads torch. A stop reaches the command and this process alike: this one stays until that has ended, and keeps its
last marks. What goes wrong here leaves the command alone.
"""

import contextlib
import os
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from tuilab.commands.passing import Passing
from tuilab.commands.printed import Printed
from tuilab.commands.started import CannotStart, start
from tuilab.commands.watched import Watched
from tuilab.engine import messages
from tuilab.engine.messages import CommandOrder, Farewell, WorkerOrder
from tuilab.engine.processes import signal_name
from tuilab.record import events
from tuilab.record.hidden import cleaner
from tuilab.record.journal.writer import Writer

_TURN_S = 0.05
_stopped: list[int] = []  # the signals that came


def main() -> None:
    """Take the order, run the command, say farewell, and end as it ended."""
    line = socket.socket(fileno=int(sys.argv[1]))
    order = messages.receive(line)
    if not isinstance(order, WorkerOrder) or order.command is None:
        return
    signal.signal(signal.SIGTERM, _stay)
    run_dir = Path(order.run_dir)
    journal = Writer(run_dir / "journal" / f"{order.writer}.jsonl", cleaner(order.params, order.secrets))
    farewell, code = run(order.command, run_dir, order.writer, journal)
    journal.append(events.ScenarioFinished(lost=journal.lost, trouble=journal.trouble))
    journal.sync()
    farewell.lost = journal.lost
    messages.send(line, farewell)
    leave(code)


def _stay(number: int, frame: FrameType | None) -> None:
    """Those that are stopped with this process are waited for."""
    _stopped.append(number)


def run(command: CommandOrder, run_dir: Path, writer: str, journal: Writer) -> tuple[Farewell, int]:
    """Run a command to its end; return what to say of it, and the code it ended with: less than 0 is a signal."""
    marks = None if command.watch == "nothing" else run_dir / f"marks-{writer}"
    if marks:
        marks.mkdir(mode=0o700)
    try:
        child = start(command.words, marks, command.watch, stdin=command.stdin, is_joined=command.is_joined)
    except CannotStart as problem:
        _remove(marks)
        return Farewell(error=str(problem)), problem.code
    if command.stdin is not None:
        os.close(command.stdin)
    printed = Printed(command.metrics)
    streams = _pass_on(child, command.outputs, printed)
    watched = Watched(command, marks, printed, journal)
    watched.begin(child.pid)
    is_well = _watch(child, watched, journal)
    for name, stream in streams.items():
        stream.finish(lambda: bool(_stopped))
        if stream.trouble:
            journal.append(events.Unavailable(what=f"{name} of the command, from some point on", reason=stream.trouble))
    if is_well:
        _do(lambda: watched.finish(child.returncode), journal)
    _remove(marks)
    return Farewell(error=how_it_ended(child.returncode)), child.returncode


def _pass_on(child: "subprocess.Popen[bytes]", outputs: list[int], printed: Printed) -> dict[str, Passing]:
    """Pass on what the command prints, to the worker's own streams, which the supervisor keeps, and to the front's."""
    pipes = {"stdout": child.stdout, "stderr": child.stderr}
    return {
        name: Passing(pipe, number, next(iter(outputs[number - 1 : number]), None), printed.ear())
        for number, (name, pipe) in enumerate(pipes.items(), 1)
        if pipe
    }


def _watch(child: "subprocess.Popen[bytes]", watched: Watched, journal: Writer) -> bool:
    """Record what is new until the command has ended; say whether that went well."""
    is_well = True
    end = select.poll()
    with contextlib.suppress(OSError):  # an old kernel, a sandbox: then it is looked at with every turn
        end.register(os.pidfd_open(child.pid), select.POLLIN)
    while child.poll() is None:
        began = time.monotonic()
        is_well = is_well and _do(watched.turn, journal)
        end.poll(1000 * max(_TURN_S, time.monotonic() - began))  # a core that is busy is left to the command
    return is_well


def _do(act: Callable[[], None], journal: Writer) -> bool:
    """Do what may fail without harm to the command, and say whether it did not."""
    try:
        act()
    except Exception as problem:
        reason = f"tuilab failed at it ({type(problem).__name__}: {problem}), and let the command go on"
        journal.append(events.Unavailable(what="what the command did from some point on", reason=reason[:1000]))
        return False
    return True


def _remove(marks: Path | None) -> None:
    if marks:
        shutil.rmtree(marks, ignore_errors=True)


def how_it_ended(code: int) -> str:
    """Return how a command failed, or nothing."""
    if code < 0:
        return f"the command was ended by {signal_name(-code)}"
    return f"the command ended with exit code {code}" if code else ""


def leave(code: int) -> None:
    """End as the command did: with its code, or by its signal, but without a core of our own."""
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), -code)
    os._exit(code & 0xFF)


if __name__ == "__main__":
    main()
