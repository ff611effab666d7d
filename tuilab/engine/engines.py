"""The engines that can carry out runs, by name. An engine is a module with the names of `Engine`.

A new engine is one module and one line of this table. Nothing else imports the module of an engine.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

if TYPE_CHECKING:
    from pathlib import Path  # an import of 3 ms, which `tuilab list` does without

    import click

    from tuilab.engine.messages import RunOrder

LOCAL = "local"
ENGINES = {
    LOCAL: None,  # clients start the runs of this machine themselves, and follow them live: tuilab/engine/launch.py
    "ray": "tuilab.fleet.engine",
}


class RemoteEnd(NamedTuple):
    """A run that has ended elsewhere, or could not start."""

    node: str
    run_dir: "Path | None"  # here, where the engine has copied it to
    problem: str = ""
    code: int = 0
    is_tried_again: bool = False  # on another node, whose result counts


Tell = Callable[[str], None]
Take = Callable[[RemoteEnd], None]


class Engine(Protocol):
    """What an engine that carries out runs elsewhere has to offer. `given` holds the values of all options by name."""

    WHERE: str  # in the help of --engine
    OPTIONS: "Sequence[click.Option]"  # of this engine alone; its help and its types are loaded with every subcommand that runs
    SEVERAL: Sequence[str]  # names of those that start an order on several machines

    def check(self, given: Mapping[str, Any]) -> None:
        """Raise UsageError if the options cannot be combined."""

    def has_several(self, given: Mapping[str, Any]) -> bool:
        """Return whether each order runs on several machines."""

    def carry(
        self, orders: "Sequence[RunOrder]", given: Mapping[str, Any], tell: Tell, take: Take
    ) -> bool:
        """Carry out the orders; `tell` gets progress, `take` each run that has ended. Return whether Ctrl-C ended it."""


def load(name: str) -> Engine | None:
    """Return an engine, or None for this machine."""
    module = ENGINES[name]
    return cast(Engine, import_module(module)) if module else None


def remote() -> Iterator[tuple[str, Engine]]:
    """Yield the engines for other machines, with their names."""
    for name in ENGINES:
        engine = load(name)
        if engine:
            yield name, engine
