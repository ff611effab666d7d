"""A scenario as its file describes it: what the catalogue lists and the forms are made from."""

from dataclasses import dataclass, field

from tuilab.params import Param


@dataclass(frozen=True)
class Scenario:
    """One scenario file; `error` is why it cannot be used."""

    id: str
    topic: str
    path: str
    title: str = ""
    lesson: str = ""  # the docstring below the title, sections included
    sections: dict[str, str] = field(default_factory=dict)
    params: tuple[Param, ...] = ()
    arms: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    error: str = ""
