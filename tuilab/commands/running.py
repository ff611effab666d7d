"""Runs a command to its end, and watches it: what a run of a command does once, and a race of commands again and again."""

import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from subprocess import Popen
from typing import NamedTuple

from tuilab.commands.arms import command_of
from tuilab.commands.failed import Tail, failure_of
from tuilab.commands.passing import Passing
from tuilab.commands.printed import Printed
from tuilab.commands.started import start
from tuilab.commands.watched import Watched
from tuilab.engine.messages import CommandArm, CommandOrder
from tuilab.engine.processes import signal_name
from tuilab.record.journal.writer import Writer

_TURN_S = 0.05
_AS_IT_IS = CommandArm(name="")


class Ended(NamedTuple):
    """How a command ended, and what it took."""

    code: int  # less than 0 is a signal
    cpu_s: float  # of it and of all it waited for
    peak_bytes: int  # resident, of its largest process
    watched: Watched


def run_watched(command: CommandOrder, marks: Path, journal: Writer, arm: CommandArm = _AS_IT_IS, told_as: str = "") -> Ended:
    """Run a command, or an arm of it, to its end; CannotStart where it cannot be started."""
    is_watched = command.watch != "nothing"
    if is_watched:
        marks.mkdir(mode=0o700)
    try:
        child = start(command_of(arm, command.words), marks if is_watched else None, command.watch, arm.env, command.folder)
        printed = Printed(command.metrics)
        watched = Watched(command, marks if is_watched else None, printed, journal, told_as)
        said = Tail()
        streams = _pass_on(child, command.outputs, printed, said)
        code, cpu_s, peak_bytes = _follow(child, watched)
        for stream in streams:
            stream.finish()
        watched.finish(code)
        if code and (failure := failure_of(said.text(), command.words, command.folder)):
            journal.append(failure)
    finally:
        if is_watched:
            shutil.rmtree(marks, ignore_errors=True)
    return Ended(code, cpu_s, peak_bytes, watched)


def _pass_on(child: "Popen[bytes]", outputs: Sequence[int], printed: Printed, said: Tail) -> list[Passing]:
    assert child.stdout and child.stderr

    def take(data: bytes) -> None:
        printed.take(data)
        said.take(data)

    pipes = ((1, child.stdout, printed.take), (2, child.stderr, take))
    return [Passing(pipe, [number, *outputs[number - 1 : number]], on_data) for number, pipe, on_data in pipes]


def _follow(child: "Popen[bytes]", watched: Watched) -> tuple[int, float, int]:
    """Take what is new until the command ends; return its code, the seconds of a core, and the most memory it had."""
    while True:
        pid, status, used = os.wait4(child.pid, os.WNOHANG)
        if pid:
            child.returncode = os.waitstatus_to_exitcode(status)
            return child.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024
        watched.turn()
        time.sleep(_TURN_S)


def how_it_ended(code: int) -> str:
    """Return how a command failed, or nothing."""
    if code < 0:
        return f"the command was ended by {signal_name(-code)}"
    return f"the command ended with exit code {code}" if code else ""
