"""Starts a command of the user's as it is: its words, folder, variables; besides, what watches stands on PYTHONPATH."""

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tuilab.commands import inside, inside_old
from tuilab.commands.inside.tuilab_watch import HOW, VARIABLE
from tuilab.commands.torch_version import has_no_door
from tuilab.engine import processes

NOT_FOUND, NOT_EXECUTABLE = 127, 126  # as shells have it

_INSIDE, _INSIDE_OLD = (str(Path(package.__file__ or "").parent) for package in (inside, inside_old))


class CannotStart(Exception):
    """The command cannot be started; `code` is what a shell would end with."""

    def __init__(self, why: str, code: int) -> None:
        super().__init__(why)
        self.code = code


def start(words: Sequence[str], marks: Path | None, how: str, extra: Mapping[str, str] = {}) -> "subprocess.Popen[bytes]":
    """Start a command in a session of its own, which ends when this process does; without `marks` it is not watched."""
    environment = {**os.environ, **extra}
    if marks is not None:
        ours = [_INSIDE_OLD, _INSIDE] if has_no_door(words, environment) else [_INSIDE]
        path = os.pathsep.join([*ours, *filter(None, [environment.get("PYTHONPATH")])])
        environment |= {"PYTHONPATH": path, VARIABLE: str(marks), HOW: how}
    try:
        return subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=environment,
            start_new_session=True,
            preexec_fn=_before_exec(os.getpid()),
        )
    except FileNotFoundError as problem:
        is_script = shutil.which(words[0]) is not None  # what is missing is then its interpreter
        why = f"the interpreter of {words[0]} is not there" if is_script else f"there is no command {words[0]}"
        raise CannotStart(why, NOT_FOUND) from problem
    except OSError as problem:
        raise CannotStart(f"{words[0]} cannot be executed: {problem.strerror}", NOT_EXECUTABLE) from problem


def _before_exec(parent: int) -> Callable[[], None]:
    """Return what the command does between fork and exec: whatever it does then, it does not outlive who watches it."""

    def prepare() -> None:
        processes.die_with_parent(parent)
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])

    return prepare
