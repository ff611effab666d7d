"""A scenario as its file describes it: what the catalogue lists and the forms are made from."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

Type = Literal["int", "float", "bool", "str", "choice"]


# For whom a value of a variable is the best one: a program that is alone, ranks beside each other, or any process.
PROGRAM, RANKS, PROCESS = "program", "ranks", "process"

Value = bool | int | float | str


class Stated(NamedTuple):
    """A claim as the lesson states it; the key is empty where it has none."""

    key: str
    text: str


class Param(NamedTuple):
    """One parameter of a scenario: a field of its form and an option of its command."""

    name: str
    type: Type
    default: Value
    choices: tuple[Value, ...] = ()
    label: str = ""
    low: float | None = None
    high: float | None = None
    quick: Value | None = None


class Scenario(NamedTuple):
    """One scenario file; `error` is why it cannot be used."""

    id: str
    topic: str
    path: str
    title: str = ""
    lesson: str = ""  # the docstring below the title, sections included
    sections: Mapping[str, str] = {}
    params: tuple[Param, ...] = ()
    arms: tuple[str, ...] = ()
    claims: tuple[Stated, ...] = ()
    error: str = ""
    is_timed: bool = False  # has claims about the ratio of two arms, which want repeats
    imports: tuple[
        str, ...
    ] = ()  # modules of torch that its file imports before it does anything else
    settings: tuple[
        tuple[str, str], ...
    ] = ()  # variables whose values it holds against each other, and for whom
    wants_quiet: bool = (
        True  # it is timed, or may look at clocks by itself: nothing is loaded beside it
    )
    builds_on: tuple[str, ...] = ()  # lessons that stand before it in the course

    @property
    def error_line(self) -> int:
        """The line of the file that cannot be used; the first where none is to blame."""
        number = self.error.removeprefix("line ").partition(":")[0]
        return int(number) if self.error.startswith("line ") and number.isdecimal() else 1
