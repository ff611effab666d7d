"""The rooms of tuilab as its imports have them: who imports whom, read from the source."""

import ast
from collections.abc import Iterator
from functools import cache

from tests.conftest import CHECKOUT

HOUSE = CHECKOUT / "tuilab"
ROOMS = [
    "ground", "record", "probes", "catalogue", "judging", "runs", "engine", "fleet", "lab",
    "commands", "drawings", "reports", "doctor", "tui", "cli",
]  # fmt: skip
MODULES = {".".join(path.relative_to(HOUSE.parent).with_suffix("").parts): path for path in HOUSE.rglob("*.py")}
MODULES = {name.removesuffix(".__init__"): path for name, path in MODULES.items()}

# Who may import what stands above it, and why.
EXCEPTIONS = {
    ("tuilab", "tuilab.lab.lab"): "the public `from tuilab import Lab`, loaded when it is asked for",
    ("tuilab.__main__", "tuilab.cli"): "the door: it stands beside the rooms and opens the last one",
}


@cache
def nodes(module: str) -> tuple[ast.AST, ...]:
    """Return all that a module is made of."""
    return tuple(ast.walk(ast.parse(MODULES[module].read_text())))


@cache
def imports(module: str) -> frozenset[str]:
    """Return what a module imports anywhere: at its top, in a function, for types, or relative to itself."""
    return frozenset(_imports(module))


def _imports(module: str) -> Iterator[str]:
    package = module.split(".")[: None if MODULES[module].name == "__init__.py" else -1]
    for node in nodes(module):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*base, *(node.module or "").split(".")]).strip(".")
            for alias in node.names:
                yield name if (name := f"{source}.{alias.name}") in MODULES else source


def room_of(module: str) -> str:
    """Return the room that a module stands in; what stands in none is the ground."""
    return next((part for part in module.split(".")[1:2] if part in ROOMS), "ground")


def arrows() -> set[tuple[str, str]]:
    """Return who imports whom, within tuilab."""
    return {(name, other) for name in MODULES for other in imports(name) if other.split(".")[0] == "tuilab"}


def arrows_of_rooms() -> set[tuple[str, str]]:
    """Return which room imports which other one, without the exceptions."""
    rooms = {(room_of(one), room_of(other)) for one, other in arrows() - EXCEPTIONS.keys()}
    return {(one, other) for one, other in rooms if one != other}
