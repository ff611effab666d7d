"""The packages of tuilab and their imports, read from the source."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.conftest import CHECKOUT

SOURCE = CHECKOUT / "tuilab"
# Each package imports only packages that are listed before it.
PACKAGES = [
    "shared", "record", "probes", "catalogue", "judging", "runs", "engine", "fleet", "lab",
    "commands", "drawings", "reports", "doctor", "tui", "cli",
]  # fmt: skip


def find_modules() -> dict[str, Path]:
    """Return the file of each module of tuilab, by the name of the module."""
    modules = {}
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(CHECKOUT).with_suffix("").parts
        name = ".".join(parts).removesuffix(".__init__")
        modules[name] = path
    return modules


MODULES = find_modules()

# Imports against that order:
EXCEPTIONS = {
    ("tuilab", "tuilab.lab.arms"),  # `from tuilab import ArmFailed`, loaded on demand
    ("tuilab", "tuilab.lab.lab"),  # `from tuilab import Lab`, loaded on demand
    ("tuilab.__main__", "tuilab.cli.main"),  # the entry point belongs to no package
}
# Packages whose `__init__` imports modules of the package. Each of these modules is in a cycle with
# it. A process of a command imports the watcher by its name alone, so the watcher needs this.
FACADES = {
    "tuilab.cli.schemas",
    "tuilab.commands.watcher._tuilab_treat",
    "tuilab.commands.watcher._tuilab_watch",
    "tuilab.scrub",
    "tuilab.tui",
}


@cache
def nodes(module: str) -> tuple[ast.AST, ...]:
    """Return all nodes of the syntax tree of a module."""
    return tuple(ast.walk(ast.parse(MODULES[module].read_text())))


def class_names(node: ast.AST, outer: str = "") -> Iterator[str]:
    """Yield the names of the classes in a syntax tree, `Outer.Inner` for a class in a class."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            name = f"{outer}.{child.name}".strip(".")
            yield name
            yield from class_names(child, name)
        else:
            yield from class_names(child, outer)


@cache
def imports(module: str) -> frozenset[str]:
    """Return the modules that a module imports anywhere: at its top, in a function, or for types."""
    return frozenset(_imports(module))


def _imports(module: str) -> Iterator[str]:
    package = module.split(".")
    if MODULES[module].name != "__init__.py":
        package.pop()
    for node in nodes(module):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name
        elif isinstance(node, ast.ImportFrom):
            base: list[str] = []
            if node.level:
                base = package[: len(package) - node.level + 1]
            source = ".".join([*base, *(node.module or "").split(".")]).strip(".")
            for alias in node.names:
                name = f"{source}.{alias.name}"
                yield name if name in MODULES else source


def package_of(module: str) -> str:
    """Return the package of a module; `shared` for modules that all packages may import."""
    parts = module.split(".")
    if len(parts) > 1 and parts[1] in PACKAGES:
        return parts[1]
    return "shared"


def import_pairs() -> set[tuple[str, str]]:
    """Return pairs of modules of tuilab: the first one imports the second one."""
    pairs = set()
    for name in MODULES:
        for imported in imports(name):
            if imported.split(".")[0] == "tuilab":
                pairs.add((name, imported))
    return pairs


def import_pairs_with_packages() -> set[tuple[str, str]]:
    """Return `import_pairs`, and pairs for the packages of imported modules.

    The `__init__` of a package runs before its modules.
    """
    modules = import_pairs() - EXCEPTIONS
    pairs = set(modules)
    for name, other in modules:
        package = other.rpartition(".")[0]
        while "." in package:
            if package not in {name, *FACADES}:
                pairs.add((name, package))
            package = package.rpartition(".")[0]
    return pairs
