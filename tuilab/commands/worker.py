"""Run a command of the user as the worker of a run, and end as the command ended.

The worker starts the command and records what the command marks and prints. It never loads torch.
A stop reaches both the command and the worker. The worker stays until the command has ended, and
keeps the last marks.
"""

import os
import resource
import signal
import socket
import sys
from functools import partial
from pathlib import Path
from typing import NoReturn

from tuilab.commands.ab.race import race
from tuilab.commands.facts.device_use import STAGE, measure_product
from tuilab.commands.run_command import (
    CommandEnd,
    Turns,
    how_it_ended,
    run_watched,
    stay_when_stopped,
    was_stopped,
)
from tuilab.commands.start_command import NOT_STARTED, OURS, CannotStart
from tuilab.engine import messages
from tuilab.engine.messages import CommandOrder, WorkerOrder, WorkerResult
from tuilab.record import events
from tuilab.record.journal.writer import Writer
from tuilab.record.secrets import Hiding, cleaner
from tuilab.runs.store import cannot_write

# How long the thread that passes on output waits for the thread that searches this output.
_SWITCH_S = 0.0005


def main() -> None:
    """Take the order, run the command, send the result, and end as the command ended.

    Without a journal, the command is not started, and the exit code is OURS.
    """
    line = socket.socket(fileno=int(sys.argv[1]))
    order = messages.receive(line)
    if not isinstance(order, WorkerOrder) or order.command is None:
        return
    stay_when_stopped()
    sys.setswitchinterval(_SWITCH_S)
    run_dir = Path(order.run_dir)
    hide = Hiding(cleaner(order.params, order.secrets, order.command.all_words))
    try:
        journal = Writer(run_dir / "journal" / f"{order.writer}.jsonl", hide)
    except OSError as problem:
        reason = cannot_write(run_dir.parent, problem.strerror or str(problem))
        messages.send(line, WorkerResult(error=f"{NOT_STARTED}: {reason}"))
        leave(OURS)
    if order.command.tune:
        from tuilab.commands.tune.worker import tune  # only a tuning needs so much

        result, code = tune(order.command, run_dir, order.writer, journal)
    elif order.command.arms:
        result, code = race(order.command, order.repeat, run_dir, order.writer, journal)
    else:
        result, code = run(order.command, run_dir, order.writer, journal)
    journal.append(events.ScenarioFinished(lost=journal.lost, trouble=journal.trouble))
    journal.sync()
    result.lost = journal.lost
    messages.send(line, result)
    leave(code)


def run(
    command: CommandOrder, run_dir: Path, writer: str, journal: Writer
) -> tuple[WorkerResult, int]:
    """Run a command to its end; return the result and the exit code (negative: a signal).

    A command that cannot be started is an error in the result, with the exit code of a shell.
    """
    try:
        ended = run_watched(command, run_dir / f"marks-{writer}", journal)
    except CannotStart as problem:
        return WorkerResult(error=str(problem)), problem.code
    Turns(partial(record_device_use, ended), journal).take()
    result = WorkerResult(error=how_it_ended(ended, is_seen=True), left=[*ended.left_processes])
    return result, ended.code


def record_device_use(ended: CommandEnd) -> None:
    """Record how much of its device the command used.

    A matrix product is timed only after a command that ended well, so that a failure and a stop
    are reported at once.
    """

    def measure(counted: events.StepCounted, kind: str) -> float | str:
        if was_stopped():
            return "the run was stopped"
        if ended.code:
            return "it is measured only after a command that ends with exit code 0"
        ended.watched.enter(STAGE)
        return measure_product(counted, kind, was_stopped)

    ended.watched.record_device_use(measure)


def leave(code: int) -> NoReturn:
    """End as the command did: with its exit code or by its signal, but without a core dump."""
    if code < 0:
        number = -code
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if number not in (signal.SIGKILL, signal.SIGSTOP):  # these two have no handler
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(code & 0xFF)


if __name__ == "__main__":
    main()
