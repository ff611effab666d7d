"""Describe a scenario as its file does: the catalogue lists it, and forms are made from it."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

Type = Literal["int", "float", "bool", "str", "choice"]

# The scope in which the advised value of a variable is the best one: a program that runs alone,
# ranks that run at the same time, or any process.
PROGRAM = "program"
RANKS = "ranks"
PROCESS = "process"

Value = bool | int | float | str


class StatedClaim(NamedTuple):
    """A claim as the lesson states it; the key is empty if it has none."""

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
    claims: tuple[StatedClaim, ...] = ()
    error: str = ""
    is_timed: bool = False  # it has claims about the ratio of two arms, which need repeats
    imports: tuple[str, ...] = ()  # modules of torch that its file imports first
    settings: tuple[tuple[str, str], ...] = ()  # variables that it advises, and their scopes
    # It is timed, or may read clocks by itself: no other process may load modules meanwhile.
    wants_quiet: bool = True
    builds_on: tuple[str, ...] = ()  # earlier lessons of the course that it builds on

    @property
    def error_line(self) -> int:
        """The line of the error in the file; 1 if the error names none."""
        if not self.error.startswith("line "):
            return 1
        number = self.error.removeprefix("line ").partition(":")[0]
        return int(number) if number.isdecimal() else 1
