"""The rooms of tuilab stand in one order, and each imports only what stands before it."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

HOUSE = Path(__file__).resolve().parent.parent / "tuilab"
ROOMS = [
    "ground", "record", "probes", "catalogue", "judging", "runs", "engine", "lab",
    "drawings", "reports", "doctor", "tui", "cli",
]  # fmt: skip
MOST = 20  # modules in a folder that one still finds one's way in
MODULES = {".".join(path.relative_to(HOUSE.parent).with_suffix("").parts): path for path in HOUSE.rglob("*.py")}
MODULES = {name.removesuffix(".__init__"): path for name, path in MODULES.items()}

# Who may import what stands above it, and why.
EXCEPTIONS = {
    ("tuilab", "tuilab.lab.lab"): "the public `from tuilab import Lab`, loaded when it is asked for",
    ("tuilab.__main__", "tuilab.cli"): "the door: it stands beside the rooms and opens the last one",
}


def imports(module: str) -> Iterator[str]:
    """Yield what a module imports anywhere: at its top, in a function, for types, or relative to itself."""
    package = module.split(".")[: None if MODULES[module].name == "__init__.py" else -1]
    for node in ast.walk(ast.parse(MODULES[module].read_text())):
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


def test_a_room_imports_only_what_stands_before_it() -> None:
    upward = {arrow for arrow in arrows() if ROOMS.index(room_of(arrow[1])) > ROOMS.index(room_of(arrow[0]))}

    assert upward == EXCEPTIONS.keys()


def test_modules_import_each_other_in_no_circle() -> None:
    """Not for types and not late either; the public door, which everything stands behind, is left out."""
    below = defaultdict(set)
    for one, other in arrows() - EXCEPTIONS.keys():
        below[one].add(other)

    left = set(MODULES)
    while ends := {name for name in left if not below[name] & left}:
        left -= ends

    assert left == set()


def test_every_room_says_what_lives_in_it() -> None:
    inits = [path for name, path in MODULES.items() if path.name == "__init__.py"]

    assert {room_of(".".join(path.relative_to(HOUSE.parent).parts)) for path in inits} == set(ROOMS)
    assert [path for path in inits if not ast.get_docstring(ast.parse(path.read_text()))] == []


def test_no_folder_holds_more_than_one_can_look_through() -> None:
    folders = {path.parent for path in MODULES.values()}

    assert [folder for folder in folders if len([*folder.glob("[!_]*.py")]) > MOST] == []


@pytest.mark.parametrize(("library", "room"), [("torch", "lab"), ("textual", "tui")])
def test_only_one_room_imports_what_is_heavy(library: str, room: str) -> None:
    knows = {name for name in MODULES if library in {other.split(".")[0] for other in imports(name)}}

    assert {room_of(name) for name in knows} == {room}
