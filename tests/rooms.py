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
    ("tuilab", "tuilab.lab.arms"): "the public `from tuilab import ArmFailed`, loaded when it is asked for",
    ("tuilab", "tuilab.lab.lab"): "the public `from tuilab import Lab`, loaded when it is asked for",
    ("tuilab.__main__", "tuilab.cli.main"): "the entry point: it belongs to no package and opens the last one",
}
# Packages whose `__init__` imports modules of its own, so each of these makes a cycle with it. The watcher has to be one: a
# process of a command imports it by its name alone.
FACADES = {"tuilab.cli.schemas", "tuilab.commands.inside._tuilab_watch", "tuilab.scrub", "tuilab.tui"}


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


def with_packages() -> set[tuple[str, str]]:
    """Return `arrows`, and from each module to the packages of what it imports, whose `__init__` runs first."""
    known = arrows() - EXCEPTIONS.keys()
    found = set(known)
    for name, other in known:
        package = other.rpartition(".")[0]
        while "." in package:
            if package not in {name, *FACADES}:
                found.add((name, package))
            package = package.rpartition(".")[0]
    return found


def arrows_of_rooms() -> set[tuple[str, str]]:
    """Return which room imports which other one, without the exceptions."""
    rooms = {(room_of(one), room_of(other)) for one, other in arrows() - EXCEPTIONS.keys()}
    return {(one, other) for one, other in rooms if one != other}
