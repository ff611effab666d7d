"""Values one after another, with the stage and how far it is."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from tuilab.lab.given import told

T = TypeVar("T")

Tell = Callable[[int, int, str], object]  # how many are done, of how many, and what they are


def swept(values: Iterable[T], unit: str, tell: Tell) -> Iterator[T]:
    """Return values one after another, and tell when each is done; what they are is known before the first."""
    if isinstance(values, range):  # which may be long, and holds nothing
        return _each(values, unit, tell)
    try:
        if isinstance(values, str | bytes):
            raise TypeError("a text is one value")
        return _each([*values], unit, tell)
    except TypeError as problem:
        raise TypeError(f"values takes a list of values, for example [1, 10, 100], not {told(values)}") from problem


def _each(values: "list[T] | range", unit: str, tell: Tell) -> Iterator[T]:
    total = len(values)
    for done, value in enumerate(values, 1):
        yield value  # type: ignore[misc]  # of a range they are whole numbers
        tell(done, total, unit)
