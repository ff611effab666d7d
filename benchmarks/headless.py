"""Runs without screens, from the command to its result, beside a bare import of torch."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.pairs import Row, Way, in_rounds
from benchmarks.processes import PYTHON, command, counted, output

FULL = {"rounds": 5}
TINY = {"rounds": 1}
BARE = "import torch"
EMPTY = '"""Nothing at all."""\n\nimport torch\n\nfrom tuilab import Lab\n\n\ndef run(lab: Lab) -> None:\n    torch.zeros(1)\n'
LESSONS = ("softmax", "xyy", "xent")


def rows(place: Path, *, rounds: int) -> Iterator[Row]:
    empty = [place / f"empty{number}.py" for number in range(3)]
    for path in empty:
        path.write_text(EMPTY)
    ways: dict[str, Way] = {BARE: lambda: taken([PYTHON, "-c", "import torch"], place)}
    goals = {}
    for name, words, goal in (
        ("an empty scenario", empty[:1], "0.85 times"),
        ("three empty scenarios", empty, "1.5 times"),
        ("softmax --quick", [LESSONS[0], "--quick"], "0.85 times"),
        ("three lessons --quick", [*LESSONS, "--quick"], "1.5 times"),
    ):
        ways[name] = partial(
            taken, [command("tuilab"), "run", *map(str, words), "--headless"], place
        )
        goals[name, "s"] = goal
    yield from in_rounds(ways, rounds, goals, beside=BARE)


def taken(words: list[str], place: Path) -> dict[str, float]:
    """Return the seconds until a command ends, and those of processors of all that it started."""
    with counted() as found:
        output(words, place)
    return found
