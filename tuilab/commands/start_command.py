"""Start a command of the user unchanged: its arguments, its folder and its variables.

For a command that is watched, PYTHONPATH also gets the folder of the watcher.
"""

import errno
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from tuilab.commands import watcher
from tuilab.commands.watcher._tuilab_treat import FACTS, STEPS, TREATMENTS
from tuilab.commands.watcher._tuilab_treat.uploads import VARIABLES
from tuilab.commands.watcher._tuilab_watch import HOW, VARIABLE
from tuilab.engine import processes
from tuilab.errors import TuilabError
from tuilab.text.display import show

NOT_FOUND, NOT_EXECUTABLE = 127, 126  # the exit codes of shells
OURS = 125  # the exit code if tuilab itself failed, as of env, nohup and timeout
NOT_STARTED = "the command was not started"

_REASONS = {
    errno.ENOEXEC: "it is neither a program nor a script with a #! line",
    errno.E2BIG: "its arguments and variables are too long for this system",
}
INSIDE = str(Path(watcher.__file__ or "").parent)


class CannotStart(TuilabError):
    """The command cannot be started; `code` is the exit code of a shell in that case."""

    def __init__(self, reason: str, code: int) -> None:
        super().__init__(reason)
        self.code = code


def start(
    words: Sequence[str],
    marks: Path | None,
    how: str,
    extra: Mapping[str, str] = {},
    folder: str = "",
    *,
    stdin: int | None = None,
    is_joined: bool = False,
    umask: int = -1,  # that of this process
    others: Sequence[int] = (),
) -> "subprocess.Popen[bytes]":
    """Start a command in its own session; the command ends when this process ends.

    Without `marks`, the command is not watched; `how` says what is watched, and `extra` are
    variables. The command reads from `stdin`, or nothing. It has the descriptors `others` under the
    same numbers. If `is_joined`, its stdout and stderr go into one pipe. Raises CannotStart with
    the reason.
    """
    if folder and not os.path.isdir(folder):
        raise CannotStart(f"its folder {folder} does not exist", NOT_FOUND)
    environment = {**os.environ, **extra}
    if marks is not None:
        own_path = environment.get("PYTHONPATH")
        path = f"{INSIDE}{os.pathsep}{own_path}" if own_path else INSIDE
        environment |= {"PYTHONPATH": path, VARIABLE: str(marks), HOW: how}
    try:
        return subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL if stdin is None else stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if is_joined else subprocess.PIPE,
            bufsize=0,
            env=environment,
            cwd=folder or None,
            umask=umask,
            pass_fds=others,
            start_new_session=True,
            # Whatever the command does later, it ends with this process.
            preexec_fn=partial(processes.start_clean, os.getpid()),
        )
    except FileNotFoundError as problem:
        check_found(words[0])
        reason = f"the interpreter that {show(words[0], 200)} names does not exist"
        raise CannotStart(reason, NOT_FOUND) from problem
    except OSError as problem:
        cause = _REASONS.get(problem.errno or 0) or problem.strerror or str(problem)
        reason = f"{show(words[0], 200)} cannot be executed: {cause}"
        raise CannotStart(reason, NOT_EXECUTABLE) from problem


def treating_variables(
    treatments: Sequence[str], last_step: int, *, has_facts: bool
) -> dict[str, str]:
    """Return the variables that have a process treated, ended early, and described.

    A process that ends early counts for nothing, so its trackers and uploads are switched off.
    """
    variables: dict[str, str] = {}
    if last_step:
        for name, (value, _) in VARIABLES.items():
            variables[name] = value
        variables[STEPS] = str(last_step)
    if treatments:
        variables[TREATMENTS] = ",".join(treatments)
    if has_facts:
        variables[FACTS] = "1"
    return variables


def check_found(name: str) -> None:
    """Raise CannotStart if this command does not exist or cannot be executed, as a shell would."""
    if shutil.which(name) is not None:
        return
    is_path = "/" in name
    path = name if is_path else shutil.which(name, os.F_OK)
    shown_name = show(name, 200)
    if path is None or not os.path.lexists(path):
        place = "" if is_path else " on PATH"
        raise CannotStart(f"no command {shown_name}{place}; check the name", NOT_FOUND)
    if os.path.isdir(path):
        raise CannotStart(f"{shown_name} is a folder, not a command", NOT_EXECUTABLE)
    cannot = f"{shown_name} cannot be executed"
    if name.endswith(".py"):
        raise CannotStart(f"{cannot}; try: python {shown_name}", NOT_EXECUTABLE)
    if os.path.exists(path):
        raise CannotStart(f"{cannot}; try: chmod +x {shown_name}", NOT_EXECUTABLE)
    raise CannotStart(f"{cannot}: the link leads nowhere", NOT_EXECUTABLE)
