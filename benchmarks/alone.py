"""Takes one step in an interpreter of its own, and tells what that took: its processor time, and the most memory of all.

python -m benchmarks.alone MODULE FUNCTION PATH...
"""

import json
import resource
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from benchmarks.processes import PYTHON, output


def main() -> None:
    module, function, *paths = sys.argv[1:]
    step = getattr(import_module(module), function)
    before = resource.getrusage(resource.RUSAGE_SELF)
    step(*map(Path, paths))
    after = resource.getrusage(resource.RUSAGE_SELF)
    spent_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(json.dumps({"processor s": spent_s, "MiB at most": _most_memory() / 1024}))


def _most_memory() -> int:
    """Return the most KiB that this process had; what `getrusage` says counts who started it, before it was this program."""
    (line,) = [
        line
        for line in Path("/proc/self/status").read_text().splitlines()
        if line.startswith("VmHWM:")
    ]
    return int(line.split()[1])


def alone(step: Callable[..., object], place: Path, *paths: Path) -> dict[str, float]:
    """Return what a function of a module takes with some paths."""
    words = [PYTHON, "-m", "benchmarks.alone", step.__module__, step.__name__, *map(str, paths)]
    found: dict[str, float] = json.loads(output(words, place))
    return found


if __name__ == "__main__":
    main()
