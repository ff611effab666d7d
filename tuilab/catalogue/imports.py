"""What a scenario file imports before it does anything else: a process that waits for its turn may have loaded that already."""

import ast
import sys
import warnings
from collections.abc import Iterator

SOURCE_LIMIT = (
    1024 * 1024
)  # bytes of a scenario file; who runs it reads no more than who has listed it


def first_imports(tree: ast.Module) -> tuple[str, ...]:
    """Return the modules of torch that a file imports before anything that could tell whether they are loaded.

    Only the standard library and the lab may come before: any other statement or module may set what torch reads when it is
    loaded, such as a variable of the environment.
    """
    found = []
    for name in _leading(tree.body):
        top = name.partition(".")[0]
        if top == "torch":
            found.append(name)
        elif top != "tuilab" and top not in sys.stdlib_module_names:
            break
    return tuple(dict.fromkeys(found))


def still_first(modules: list[str], source: bytes) -> list[str]:
    """Return those of some modules that a source imports first; it may have been edited since they were read."""
    tree = parsed(source) if modules else None
    found = first_imports(tree) if tree else ()
    return [name for name in modules if name in found]


def parsed(source: bytes) -> ast.Module | None:
    """Return what a source is made of; None of one that is none: the worker says what is wrong."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _leading(body: list[ast.stmt]) -> Iterator[str]:
    """Yield the names of the modules that are imported at the beginning; the lesson does nothing."""
    for node in body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            return
