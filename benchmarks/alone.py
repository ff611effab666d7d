"""Call a function in a fresh interpreter, and print its processor time and the peak memory.

python -m benchmarks.alone MODULE FUNCTION PATH...
"""

import json
import resource
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from benchmarks.processes import PYTHON, run_command


def main() -> None:
    module, name, *arguments = sys.argv[1:]
    function = getattr(import_module(module), name)
    paths = [Path(argument) for argument in arguments]
    before = resource.getrusage(resource.RUSAGE_SELF)
    function(*paths)
    after = resource.getrusage(resource.RUSAGE_SELF)
    spent_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(json.dumps({"processor s": spent_s, "MiB at most": _peak_memory_kib() / 1024}))


def _peak_memory_kib() -> int:
    """Return the largest memory that this process had.

    `getrusage` would also count the memory of the parent, from before this program was loaded.
    """
    status = Path("/proc/self/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1])


def call_alone(function: Callable[..., object], place: Path, *paths: Path) -> dict[str, float]:
    """Return the cost of a function of a module that is called with some paths."""
    command = [PYTHON, "-m", "benchmarks.alone", function.__module__, function.__name__]
    command.extend(str(path) for path in paths)
    cost: dict[str, float] = json.loads(run_command(command, place))
    return cost


if __name__ == "__main__":
    main()
