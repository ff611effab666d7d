"""Find out why no step of a command was seen, as far as that is possible."""

import re
from collections.abc import Collection

from tuilab.commands.marks import MarkedProcess, MarksFolder
from tuilab.commands.process_tree import ProcessTree, Program, version_of_torch
from tuilab.commands.start_command import INSIDE
from tuilab.commands.steps import Steps
from tuilab.text.display import join, plural, show

_OFF = "TORCH_DEVICE_BACKEND_AUTOLOAD"
_OLDEST = (2, 5)  # the oldest torch that loads the watcher by itself
_OTHER_LIBRARIES = {"jax", "tensorflow", "mlx"}
_MOST_NAMES = 6  # of programs in a sentence


def why_unseen(marks: MarksFolder, process_tree: ProcessTree, steps_of: Collection[Steps]) -> str:
    """Return why no step was seen: what was seen instead, or what kept the watcher out."""
    processes = marks.processes.values()
    for process in processes:
        if failure := failure_of_watcher(process):
            return failure
    torch_processes = [process for process in processes if process.has_torch]
    if torch_processes:
        return _why_torch_made_no_step(torch_processes, steps_of)
    programs = list(process_tree.programs.values())
    if not programs:
        return "the command ended too early"
    pythons = [program for program in programs if program.is_python]
    with_torch = [program for program in programs if "torch" in program.holds]
    if not pythons and not with_torch:
        return f"none of its processes is Python{_list_programs(programs)}"
    for program in [*with_torch, *pythons]:
        if reason := _why_blind(program):
            return reason
    libraries: set[str] = set()
    for program in programs:
        libraries |= program.holds.keys() & _OTHER_LIBRARIES
    if libraries:
        step = "--metric NAME=PATTERN reads metrics from its output"
        return f"it trains with {join(sorted(libraries))}, but only steps of torch are seen; {step}"
    return f"none of {plural(len(pythons), 'Python process', 'Python processes')} loaded torch"


def _why_torch_made_no_step(
    torch_processes: Collection[MarkedProcess], steps_of: Collection[Steps]
) -> str:
    """Return how far the processes came that loaded torch."""
    seen_instead = _describe_marks(steps_of)
    if any(steps.is_in_first_step() for steps in steps_of):
        return f"the first step of an optimizer started, but did not end{seen_instead}"
    versions = {str(process.hello["torch"]) for process in torch_processes}
    count = plural(len(torch_processes), "process", "processes")
    loaded = f"torch {join(sorted(versions))} was loaded in {count}"
    return f"no optimizer of torch.optim stepped: {loaded}{seen_instead}"


def failure_of_watcher(process: MarkedProcess) -> str:
    """Return how the watcher failed in a process; nothing if it did not."""
    if not process.trouble:
        return ""
    return f"the watcher failed: {show(process.trouble, 300)}"


def _describe_marks(steps_of: Collection[Steps]) -> str:
    """Return what else was seen in the processes that loaded torch; empty if nothing was."""
    backwards = sum(steps.backwards for steps in steps_of)
    waits = sum(steps.waits for steps in steps_of)
    if not backwards and not waits:
        return ""
    batches = plural(waits, "batch from a DataLoader", "batches from DataLoaders")
    return f"; seen: {join([plural(backwards, 'backward'), batches])}"


def _list_programs(programs: Collection[Program]) -> str:
    names = sorted({show(program.name, 30) for program in programs})[:_MOST_NAMES]
    if not names:
        return ""
    return f": {join(names)}; processes in a container or over ssh are not seen"


def _why_blind(program: Program) -> str:
    """Return what keeps the watcher out of a process; empty if that cannot be seen."""
    name = show(program.name, 40)
    blinding_flags = sorted(program.flags() & {"I", "E"})
    if blinding_flags:
        flag = blinding_flags[0]
        return f"{name} -{flag} ignores PYTHONPATH, which the watcher needs; run it without -{flag}"
    if not program.is_reached:
        cleared = f"the environment of {name} was cleared, for example by env -i or sudo"
        return f"{cleared}, and the watcher needs it"
    if program.environment is not None:
        if program.environment.get(_OFF) == "0":
            return f"{_OFF}=0 switches off the watcher; unset it"
        if INSIDE not in program.environment.get("PYTHONPATH", "").split(":"):
            replaced = f"PYTHONPATH was replaced before {name} started"
            return f"{replaced}; extend it instead: PYTHONPATH=DIR:$PYTHONPATH"
    if "torch" in program.holds:
        return _why_torch_is_blind(version_of_torch(program.holds["torch"]))
    return ""


def _why_torch_is_blind(version: str) -> str:
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    if numbers and numbers < _OLDEST:
        return f"torch {version} was loaded, but the watcher needs torch 2.5 or newer"
    torch = f"torch {version}".strip()
    # The libraries of torch are seen from the middle of `import torch` on. Torch loads the watcher
    # at the end of it, so all of these look the same.
    cause = f"the process may have ended during `import torch`, set {_OFF}=0, or changed sys.path"
    return f"the process loaded libraries of {torch}, but not the watcher: {cause}"
