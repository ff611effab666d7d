"""Compute the points of a sweep: every combination of the values that its settings have.

A setting is written as `--set rows=100,1000`.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import prod

from tuilab.catalogue.scenario import Value
from tuilab.errors import UsageError
from tuilab.text.display import show

MOST = 1000  # points: each is a run of its own, and a report describes all of them

Grid = dict[str, list[Value]]


def read(settings: Sequence[str], value_of: Callable[[str, str], Value]) -> Grid:
    """Return the values by name, from settings such as `rows=100,1000`.

    `value_of(name, text)` converts the text of one value, and refuses unknown names. Raise
    UsageError if there is no setting, a name or value comes twice, or there are too many points.
    """
    if not settings:
        raise UsageError("no values to sweep; add for example --set rows=100,1000")
    texts_of_settings = [_split(setting) for setting in settings]
    names = [name for name, _ in texts_of_settings]
    _refuse_duplicates(
        names, "--set names", "give all its values in one --set, for example rows=100,1000"
    )
    counts = [len(texts) for _, texts in texts_of_settings]
    if prod(counts) > MOST:
        product_words = " x ".join(str(count) for count in counts)
        raise UsageError(
            f"{product_words} values make {prod(counts)} points, "
            f"but a sweep takes at most {MOST}; use fewer values"
        )
    grid = {}
    for name, texts in texts_of_settings:
        grid[name] = [value_of(name, text) for text in texts]
    for name, values in grid.items():
        _refuse_duplicates(values, f"--set {show(name, 40)} has", "drop one of them")
    return grid


def points(grid: Grid) -> Iterator[dict[str, Value]]:
    """Yield every combination; the values of the last setting change fastest."""
    for values in product(*grid.values()):
        yield dict(zip(grid, values, strict=True))


def _split(setting: str) -> tuple[str, list[str]]:
    """Return the name of a setting and the texts of its values; UsageError if one is empty."""
    name, equals_sign, values = setting.partition("=")
    name = name.strip()
    texts = [text.strip() for text in values.split(",")]
    if not name or not equals_sign:
        raise UsageError(
            f"--set takes NAME=VALUE,VALUE, for example rows=100,1000, not {show(setting, 60)}"
        )
    if not all(texts):
        raise UsageError(
            f"--set {show(name, 40)} has an empty value; "
            "write NAME=VALUE,VALUE, for example rows=100,1000"
        )
    return name, texts


def _refuse_duplicates(values: Sequence[Value], subject: str, advice: str) -> None:
    for value, count in Counter(values).items():
        if count > 1:
            raise UsageError(f"{subject} {show(str(value), 40)} twice; {advice}")
