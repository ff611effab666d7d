"""A mistake: one replaced text in a copy of a lesson, and the claims that it must refute."""

from typing import NamedTuple


class Mistake(NamedTuple):
    lesson: str
    right: str
    wrong: str
    refutes: str
