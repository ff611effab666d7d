"""Say before a tuning starts what it will do with the user's script and folder."""

import shlex
from pathlib import Path

from tuilab.commands.tune import files
from tuilab.engine.messages import CommandOrder
from tuilab.text.display import join, show
from tuilab.text.words import clock, size


def describe_start(command: CommandOrder) -> list[str]:
    """Return, in sentences, how often the script starts and what happens to its files."""
    assert command.tune is not None
    words = show(shlex.join(command.words), 200)
    lines = [
        f"starts `{words}` again and again for at most {clock(command.tune.budget_s)}, and ends"
        " each process after some steps",
        "switches off W&B, trackio and uploads to the Hugging Face Hub in these processes",
    ]
    if not command.tune.is_in_copy:
        folder = show(command.folder, 200)
        lines.append(f"runs in {folder}; what the script writes there, it writes each time")
    return lines


def describe_copy(command: CommandOrder, root: Path) -> list[str]:
    """Return how large the copy is, and which paths lead out of it.

    Raise UsageError if the disk has too little room for the copy.
    """
    needed_bytes = files.bytes_of(command.folder, root)
    root.mkdir(parents=True, exist_ok=True)
    files.check_room(command.folder, needed_bytes, root)
    folder = show(command.folder, 200)
    lines = [f"copies {folder} ({size(needed_bytes)}) and runs in the copy"]
    outside = files.paths_outside(command.words, command.folder)
    if outside:
        paths = join([show(path, 200) for path in outside])
        lines.append(f"outside the copy, and used as it is: {paths}")
    return lines
