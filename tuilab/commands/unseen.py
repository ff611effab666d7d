"""Why no step of a command was seen, as far as that can be told."""

import os
from collections.abc import Sequence

from tuilab.commands.marks import Marks
from tuilab.text import join, plural

_OFF = "TORCH_DEVICE_BACKEND_AUTOLOAD"
_BLIND = {"-I": "python -I leaves PYTHONPATH out", "-E": "python -E leaves PYTHONPATH out"}


def why_unseen(words: Sequence[str], marks: Marks) -> str:
    """Return why nothing stepped: what was seen instead, or what kept the watcher out."""
    processes = marks.processes.values()
    if troubles := [process.trouble for process in processes if process.trouble]:
        return f"the watcher failed: {troubles[0]}"
    if greeted := [process for process in processes if process.hello]:
        versions = join(sorted({str(process.hello.get("torch")) for process in greeted}))
        seen = f"torch {versions} was loaded in {plural(len(greeted), 'process', 'processes')}"
        return f"no optimizer step was seen: {seen}, and no optimizer of torch.optim stepped"
    return f"no process of the command was seen to load torch: {_cause(words)}"


def _cause(words: Sequence[str]) -> str:
    if os.environ.get(_OFF) == "0":
        return f"{_OFF}=0 switches off what watches"
    for word in words[1:]:
        if word in _BLIND:
            return _BLIND[word]
        if not word.startswith("-"):
            break
    return "it has none, or one older than 2.5, or its environment was cleared on the way"
