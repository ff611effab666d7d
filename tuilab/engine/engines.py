"""The engines that can carry out runs, by name. An engine is a module with the names of `Engine`.

A new engine is one module and one line of this table. Nothing else imports the module of an engine.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

if TYPE_CHECKING:
    from pathlib import Path  # for types only: importing it would cost `tuilab list` 3 ms

    import click

    from tuilab.engine.messages import RunOrder

LOCAL = "local"
ENGINES = {
    LOCAL: None,  # clients start runs on this machine themselves: tuilab/engine/launch.py
    "ray": "tuilab.fleet.engine",
}


class RemoteEnd(NamedTuple):
    """A run that has ended on another machine, or could not start there."""

    node: str
    run_dir: "Path | None"  # the copy on this machine
    problem: str = ""
    code: int = 0
    is_tried_again: bool = False  # another node runs it again, and that result counts


Tell = Callable[[str], None]
Take = Callable[[RemoteEnd], None]


class Engine(Protocol):
    """An engine for other machines; `given` has the values of all options by name."""

    WHERE: str  # for the help of --engine
    # The options of this engine. They are loaded with every subcommand that starts runs.
    OPTIONS: "Sequence[click.Option]"
    SEVERAL: Sequence[str]  # names of options that start an order on several machines

    def check(self, given: Mapping[str, Any]) -> None:
        """Raise UsageError if the options cannot be combined."""

    def has_several(self, given: Mapping[str, Any]) -> bool:
        """Return whether each order runs on several machines."""

    def carry(
        self, orders: "Sequence[RunOrder]", given: Mapping[str, Any], tell: Tell, take: Take
    ) -> bool:
        """Carry out the orders, and return whether Ctrl-C ended that before all were done.

        `tell` gets sentences about progress, `take` each run that has ended.
        """


def load(name: str) -> Engine | None:
    """Return an engine by its name, or None for this machine; KeyError for an unknown name."""
    module = ENGINES[name]
    return cast(Engine, import_module(module)) if module else None


def remote() -> Iterator[tuple[str, Engine]]:
    """Yield the engines for other machines, with their names."""
    for name in ENGINES:
        engine = load(name)
        if engine:
            yield name, engine
