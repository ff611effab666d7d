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
    print(json.dumps({"processor s": spent_s, "MiB at most": after.ru_maxrss / 1024}))


def alone(step: Callable[..., object], place: Path, *paths: Path) -> dict[str, float]:
    """Return what a function of a module takes with some paths."""
    words = [PYTHON, "-m", "benchmarks.alone", step.__module__, step.__name__, *map(str, paths)]
    found: dict[str, float] = json.loads(output(words, place))
    return found


if __name__ == "__main__":
    main()
