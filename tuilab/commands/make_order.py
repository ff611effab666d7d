"""Make the order of a run from a command line of the user."""

import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from tuilab.catalogue.imports import SOURCE_LIMIT
from tuilab.commands.arms import command_of
from tuilab.commands.output.patterns import split
from tuilab.commands.start_command import check_found
from tuilab.defaults import REPEATS
from tuilab.engine.messages import CommandArm, CommandOrder, RunOrder, pack
from tuilab.engine.queue_turn import CORES
from tuilab.errors import UsageError
from tuilab.judging.interim_analyses import PLANNED_ANALYSES
from tuilab.probes.gpu.is_present import is_gpu_there
from tuilab.record.tuning.stages import TUNE_TOPIC
from tuilab.scrub import words_for_record
from tuilab.text.display import show

TOPIC = "exec"
RACE_TOPIC = "ab"
WATCH = ("all", "steps", "nothing")
_LONGEST_NAME = 40  # characters of the name of a run
_MOST_BYTES = 150_000  # of a packed command, which must fit into a message to the worker
_ODD = re.compile(r"(?a:[^\w.+-]+)")


def order(
    command: CommandOrder,
    *,
    root: Path,
    name: str = "",
    timeout_s: float | None = None,
    repeats: int | None = None,
    budget_s: float | None = None,
    waits: bool = False,
    argv: Sequence[str] = (),
) -> RunOrder:
    """Return the order for one run of a command.

    A command with arms, variants that are compared, has repeats, and may have a budget. Sets the
    folder and the umask of `command`. Raises UsageError or CannotStart as `check` does.
    """
    check(command)
    command.folder = command.folder or here()
    command.umask = _umask()
    script = script_of(command.words, command.folder)
    run_name = plain_name(name) if name else name_of(command.words, command.folder)
    if command.tune:
        budget_s = command.tune.budget_s
    has_budget = bool(budget_s)
    looks = list(PLANNED_ANALYSES) if has_budget and not repeats else []
    device = "cuda" if is_gpu_there() else CORES
    return RunOrder(
        root=str(root.absolute()),
        scenario=run_name,
        topic=_topic_of(command),
        title=show(shlex.join(words_for_record(command.words)), 200),
        path=str(script or ""),
        params={},
        claims=[claim.text for claim in command.claims],
        claim_keys=[claim.key for claim in command.claims],
        repeats=_planned_repeats(command, repeats, has_budget=has_budget),
        looks=looks,
        budget_s=budget_s,
        timeout_s=timeout_s,
        waits=waits,
        devices=[device],
        argv=list(argv),
        command=command,
    )


def _topic_of(command: CommandOrder) -> str:
    if command.tune:
        return TUNE_TOPIC
    return RACE_TOPIC if command.arms else TOPIC


def _planned_repeats(command: CommandOrder, repeats: int | None, *, has_budget: bool) -> int:
    """Return how many repeats a command has: 1 without arms, else as many as the user asked for.

    If the user asked for no number, a run with a budget may have as many repeats as are planned.
    A tuning has at most its study and two stages, each with as many repeats as are planned.
    """
    if command.tune:
        return 1 + 2 * PLANNED_ANALYSES[-1]
    if not command.arms:
        return 1
    if repeats:
        return repeats
    if has_budget:
        return PLANNED_ANALYSES[-1]
    return REPEATS


def check(command: CommandOrder) -> None:
    """Raise UsageError or CannotStart for a command that cannot be run, before a run of it exists.

    The program of each arm must exist and be executable.
    """
    names = [split(metric)[0] for metric in command.metrics]
    for name in names:
        if names.count(name) > 1:
            shown_name = show(name, 40)
            raise UsageError(f"--metric {shown_name} is given twice; give one of them another name")
    check_named(command.words)
    if any("\0" in word for word in command.words):
        raise UsageError("an argument of the command has a NUL character; remove it")
    size_bytes = len(pack(command))
    if size_bytes > _MOST_BYTES:
        raise UsageError(
            f"the command has {size_bytes} bytes, at most {_MOST_BYTES} are possible; move a part"
            " into a file or a script"
        )
    for arm in command.arms or [CommandArm(name="")]:  # an arm without a name changes nothing
        program = command_of(arm, command.words)[0]
        check_found(program)


def check_named(words: Sequence[str]) -> None:
    """Raise UsageError for an empty command."""
    if not words or not words[0].strip():
        raise UsageError("the command is empty; write for example tuilab exec -- python train.py")


def plain_name(name: str) -> str:
    """Return a name without the characters that the name of a run cannot have.

    Raise UsageError if nothing is left.
    """
    plain = _ODD.sub("_", name).strip("_")[:_LONGEST_NAME]
    if not plain:
        raise UsageError(f"--name {show(name, 40)} has no letters or digits; use some")
    return plain


def name_of(words: Sequence[str], folder: str) -> str:
    """Return the name of a command's run: its script, the module after -m, or the program."""
    script = script_of(words, folder)
    if script:
        name = script.name
    elif "-m" in words[:-1]:
        name = words[words.index("-m") + 1].rpartition(".")[2]
    else:
        name = Path(words[0]).name
    plain = _ODD.sub("_", name.removesuffix(".py"))
    return plain[:_LONGEST_NAME].strip("_") or "command"


def script_of(words: Sequence[str], folder: str) -> Path | None:
    """Return the script that a command runs in a folder, or None.

    The script is the first word that names a script file. Its source is kept with the run, so a
    file that is too large does not count, and a file that cannot be read gives None.
    """
    for word in words:
        if not word.endswith((".py", ".sh")):
            continue
        path = Path(folder, word)
        try:
            if path.is_file() and path.stat().st_size <= SOURCE_LIMIT:
                return path.absolute() if os.access(path, os.R_OK) else None
        except (OSError, ValueError):
            continue
    return None


def _umask() -> int:
    """Return the umask of this process, which can only be read by setting it."""
    umask = os.umask(0o077)
    os.umask(umask)
    return umask


def here() -> str:
    """Return the current folder; an empty string if it was removed."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return ""
