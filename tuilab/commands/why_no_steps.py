"""Find out why no step of a command was seen, as far as that is possible."""

import re
from collections.abc import Collection

from tuilab.commands.marks import MarkedProcess, MarksFolder
from tuilab.commands.process_tree import Program, Ran, version_of_torch
from tuilab.commands.start_command import INSIDE
from tuilab.commands.steps import Steps
from tuilab.text.display import join, plural, show

_OFF = "TORCH_DEVICE_BACKEND_AUTOLOAD"
_OLDEST = (2, 5)  # the oldest torch that loads the watcher by itself
_OTHERS = ("jax", "tensorflow", "mlx")


def why_unseen(marks: MarksFolder, ran: Ran, steps_of: Collection[Steps]) -> str:
    """Return why no step was seen: what was seen instead, or what kept the watcher out."""
    processes = marks.processes.values()
    failures = [failure for process in processes if (failure := failure_of_watcher(process))]
    if failures:
        return failures[0]
    if greeted := [process for process in processes if process.has_torch]:
        versions = join(sorted({str(process.hello["torch"]) for process in greeted}))
        if any(steps.is_in_first_step() for steps in steps_of):
            return f"the first step of an optimizer started, but did not end{_what_else(steps_of)}"
        loaded = f"torch {versions} was loaded in {plural(len(greeted), 'process', 'processes')}"
        return f"no optimizer of torch.optim stepped: {loaded}{_what_else(steps_of)}"
    programs = list(ran.programs.values())
    if not programs:
        return "the command ended too early"
    pythons = [program for program in programs if program.is_python]
    with_torch = [program for program in programs if "torch" in program.holds]
    if not (pythons or with_torch):
        return f"none of its processes is Python{_named(programs)}"
    for program in [*with_torch, *pythons]:
        if why := _why_blind(program):
            return why
    if libraries := sorted(
        {name for program in programs for name in program.holds if name in _OTHERS}
    ):
        step = "--metric NAME=PATTERN reads metrics from its output"
        return f"it trains with {join(libraries)}, but only steps of torch are seen; {step}"
    return f"none of {plural(len(pythons), 'Python process', 'Python processes')} loaded torch"


def failure_of_watcher(process: MarkedProcess) -> str:
    """Return how the watcher failed in a process; nothing if it did not."""
    return f"the watcher failed: {show(process.trouble, 300)}" if process.trouble else ""


def _what_else(steps_of: Collection[Steps]) -> str:
    """Return what else was seen in the processes that loaded torch."""
    counts = {
        "backward": sum(steps.backwards for steps in steps_of),
        "batch": sum(steps.waits for steps in steps_of),
    }
    sentences = [
        plural(counts["backward"], "backward"),
        plural(counts["batch"], "batch from a DataLoader", "batches from DataLoaders"),
    ]
    return f"; seen: {join(sentences)}" if any(counts.values()) else ""


def _named(programs: Collection[Program]) -> str:
    names = sorted({show(program.name, 30) for program in programs})[:6]
    return f": {join(names)}; processes in a container or over ssh are not seen" if names else ""


def _why_blind(program: Program) -> str:
    """Return what keeps the watcher out of a process; empty if that cannot be seen."""
    name, environment = show(program.name, 40), program.environment
    for flag in sorted(program.flags() & {"I", "E"}):
        return f"{name} -{flag} ignores PYTHONPATH, which the watcher needs; run it without -{flag}"
    if not program.is_reached:
        return (
            f"the environment of {name} was cleared, for example by env -i or sudo, and the watcher"
            " needs it"
        )
    if environment is not None and environment.get(_OFF) == "0":
        return f"{_OFF}=0 switches off the watcher; unset it"
    if environment is not None and INSIDE not in environment.get("PYTHONPATH", "").split(":"):
        return (
            f"PYTHONPATH was replaced before {name} started; extend it instead:"
            " PYTHONPATH=DIR:$PYTHONPATH"
        )
    if "torch" in program.holds:
        return _of_torch(version_of_torch(program.holds["torch"]))
    return ""


def _of_torch(version: str) -> str:
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    if numbers and numbers < _OLDEST:
        return f"torch {version} was loaded, but the watcher needs torch 2.5 or newer"
    sentence = f"torch {version}".strip()
    return (
        f"{sentence} was loaded, but not the watcher: the process may have set {_OFF}=0, or changed"
        " sys.path"
    )
