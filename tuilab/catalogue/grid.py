"""The points of a sweep: every combination of the values that its settings take, as `--set rows=100,1000` says them."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import prod

from tuilab.catalogue.scenario import Value
from tuilab.errors import UsageError
from tuilab.text.display import show

MOST = 1000  # points: each is a run of its own, and a report tells of all

Grid = dict[str, list[Value]]


def read(settings: Sequence[str], value_of: Callable[[str, str], Value]) -> Grid:
    """Return the values by name; `value_of` reads the text of one, and knows which names there are."""
    texts = [_split(setting) for setting in settings]
    if not texts:
        raise UsageError("no values to sweep; add for example --set rows=100,1000")
    _refuse_twice(
        [name for name, _ in texts],
        "--set names",
        "give all its values in one --set, for example rows=100,1000",
    )
    points = prod(len(values) for _, values in texts)
    if points > MOST:
        counts = " x ".join(str(len(values)) for _, values in texts)
        raise UsageError(
            f"{counts} values make {points} points, but a sweep takes at most {MOST}; use fewer values"
        )
    found = {name: [value_of(name, text) for text in values] for name, values in texts}
    for name, values in found.items():
        _refuse_twice(values, f"--set {show(name, 40)} has", "drop one of them")
    return found


def points(grid: Grid) -> Iterator[dict[str, Value]]:
    """Yield every combination; the values of the last setting change fastest."""
    for values in product(*grid.values()):
        yield dict(zip(grid, values, strict=True))


def _split(setting: str) -> tuple[str, list[str]]:
    """Return the name of a setting and the texts of its values."""
    name, sign, listed = setting.partition("=")
    name, texts = name.strip(), [text.strip() for text in listed.split(",")]
    if not (name and sign):
        raise UsageError(
            f"--set takes NAME=VALUE,VALUE, for example rows=100,1000, not {show(setting, 60)}"
        )
    if not all(texts):
        raise UsageError(
            f"--set {show(name, 40)} has an empty value; write NAME=VALUE,VALUE, for example rows=100,1000"
        )
    return name, texts


def _refuse_twice(given: Sequence[Value], who: str, step: str) -> None:
    twice = next((one for one, count in Counter(given).items() if count > 1), None)
    if twice is not None:
        raise UsageError(f"{who} {show(str(twice), 40)} twice; {step}")
