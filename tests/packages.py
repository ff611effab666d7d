"""The packages of tuilab and their imports, read from the source."""

import ast
from collections.abc import Iterator
from functools import cache

from tests.conftest import CHECKOUT

HOUSE = CHECKOUT / "tuilab"
PACKAGES = [  # each imports only those before it
    "shared", "record", "probes", "catalogue", "judging", "runs", "engine", "fleet", "lab",
    "commands", "drawings", "reports", "doctor", "tui", "cli",
]  # fmt: skip
MODULES = {
    ".".join(path.relative_to(HOUSE.parent).with_suffix("").parts): path
    for path in HOUSE.rglob("*.py")
}
MODULES = {name.removesuffix(".__init__"): path for name, path in MODULES.items()}

# Imports against that order, and why they are allowed.
EXCEPTIONS = {
    (
        "tuilab",
        "tuilab.lab.arms",
    ): "the public `from tuilab import ArmFailed`, loaded when it is asked for",
    (
        "tuilab",
        "tuilab.lab.lab",
    ): "the public `from tuilab import Lab`, loaded when it is asked for",
    (
        "tuilab.__main__",
        "tuilab.cli.main",
    ): "the entry point: it belongs to no package and opens the last one",
}
# Packages whose `__init__` imports modules of its own, so each of these makes a cycle with it. The watcher has to be one: a
# process of a command imports it by its name alone.
FACADES = {
    "tuilab.cli.schemas",
    "tuilab.commands.watcher._tuilab_watch",
    "tuilab.scrub",
    "tuilab.tui",
}


@cache
def nodes(module: str) -> tuple[ast.AST, ...]:
    """Return all that a module is made of."""
    return tuple(ast.walk(ast.parse(MODULES[module].read_text())))


def class_names(node: ast.AST, outer: str = "") -> Iterator[str]:
    """Yield the names of the classes in a piece of source, `Outer.Inner` for a class within a class."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            name = f"{outer}.{child.name}".strip(".")
            yield name
            yield from class_names(child, name)
        else:
            yield from class_names(child, outer)


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


def package_of(module: str) -> str:
    """Return the package that a module belongs to; `shared` for modules that all packages may import."""
    parts = module.split(".")
    if len(parts) > 1 and parts[1] in PACKAGES:
        return parts[1]
    return "shared"


def import_pairs() -> set[tuple[str, str]]:
    """Return pairs of modules of tuilab: the first one imports the second one."""
    return {
        (name, other)
        for name in MODULES
        for other in imports(name)
        if other.split(".")[0] == "tuilab"
    }


def import_pairs_with_packages() -> set[tuple[str, str]]:
    """Return `import_pairs`, and a pair for each package of an imported module, because its `__init__` runs first."""
    modules = import_pairs() - EXCEPTIONS.keys()
    pairs = set(modules)
    for name, other in modules:
        package = other.rpartition(".")[0]
        while "." in package:
            if package not in {name, *FACADES}:
                pairs.add((name, package))
            package = package.rpartition(".")[0]
    return pairs
