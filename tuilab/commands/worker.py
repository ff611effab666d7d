"""The worker of a run of a user's command: starts it, brings what it marks and prints into the record, and ends as it did.

It never loads torch. A stop reaches the command and this process alike: this one stays until that has ended, and keeps its
last marks.
"""

import os
import resource
import shutil
import signal
import socket
import sys
import time
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


def run(command: CommandOrder, run_dir: Path, writer: str, journal: Writer) -> tuple[Farewell, int]:
    """Run a command to its end; return what to say of it, and the code it ended with: less than 0 is a signal."""
    marks = None if command.watch == "nothing" else run_dir / f"marks-{writer}"
    if marks:
        marks.mkdir(mode=0o700)
    try:
        child = start(command.words, marks, command.watch)
    except CannotStart as problem:
        return Farewell(error=str(problem)), problem.code
    assert child.stdout and child.stderr
    printed = Printed(command.metrics)
    watched = Watched(command, marks, printed, journal)
    streams = [
        Passing(pipe, [number, *command.outputs[number - 1 : number]], printed.take)
        for number, pipe in ((1, child.stdout), (2, child.stderr))
    ]
    while child.poll() is None:
        watched.turn()
        time.sleep(_TURN_S)
    for stream in streams:
        stream.finish()
    watched.finish(child.returncode)
    if marks:
        shutil.rmtree(marks, ignore_errors=True)
    return Farewell(error=how_it_ended(child.returncode)), child.returncode


def how_it_ended(code: int) -> str:
    """Return how a command failed, or nothing."""
    if code < 0:
        return f"the command was ended by {signal_name(-code)}"
    return f"the command ended with exit code {code}" if code else ""


def leave(code: int) -> None:
    """End as the command did: with its code, or by its signal, but without a core of our own."""
    sys.stdout.flush()
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), -code)
    os._exit(code & 0xFF)


if __name__ == "__main__":
    main()
