"""Time runs without screens, from the command to the result, next to a bare import of torch."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.pairs import Measurement, Row, in_rounds
from benchmarks.processes import PYTHON, find_program, run_command, timed

FULL = {"rounds": 5}
TINY = {"rounds": 1}
BARE = "import torch"
EMPTY_SCENARIO = '''"""Nothing at all."""

import torch

from tuilab import Lab


def run(lab: Lab) -> None:
    torch.zeros(1)
'''
LESSONS = ("softmax", "xyy", "xent")


def rows(place: Path, *, rounds: int) -> Iterator[Row]:
    """Yield the times of runs with one worker and with three."""
    empty = [str(place / f"empty{number}.py") for number in range(3)]
    for path in empty:
        Path(path).write_text(EMPTY_SCENARIO)
    runs = (
        ("an empty scenario", empty[:1], "0.85 times"),
        ("three empty scenarios", empty, "1.5 times"),
        ("softmax --quick", [LESSONS[0], "--quick"], "0.85 times"),
        ("three lessons --quick", [*LESSONS, "--quick"], "1.5 times"),
    )
    measurements: dict[str, Measurement] = {
        BARE: partial(time_to_end, [PYTHON, "-c", "import torch"], place)
    }
    goals = {}
    tuilab = find_program("tuilab")
    for name, arguments, goal in runs:
        command = [tuilab, "run", *arguments, "--headless"]
        measurements[name] = partial(time_to_end, command, place)
        goals[name, "s"] = goal
    yield from in_rounds(measurements, rounds, goals, beside=BARE)


def time_to_end(command: list[str], place: Path) -> dict[str, float]:
    """Return the seconds of a command, and the processor time of all that it started."""
    with timed() as times:
        run_command(command, place)
    return times
