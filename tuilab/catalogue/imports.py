"""Find the modules of torch that a scenario file imports first.

A worker process that waits for its turn may have loaded them before it gets the file.
"""

import ast
import sys
import warnings
from collections.abc import Iterator

SOURCE_LIMIT = 1024 * 1024  # bytes of a scenario file that are listed, run, kept and shipped


def first_imports(tree: ast.Module) -> tuple[str, ...]:
    """Return the modules of torch that a file imports before any code that could detect them.

    Only the standard library and the lab may come before: any other statement or module may set
    something that torch reads when it is loaded, such as a variable of the environment.
    """
    torch_modules = []
    for name in _leading_imports(tree.body):
        package = name.partition(".")[0]
        if package == "torch":
            torch_modules.append(name)
        elif package != "tuilab" and package not in sys.stdlib_module_names:
            break
    return tuple(dict.fromkeys(torch_modules))


def still_first(modules: list[str], source: bytes) -> list[str]:
    """Return those modules that a source still imports first; it may have been edited since."""
    if not modules:
        return []
    tree = parsed(source)
    if tree is None:
        return []
    current = first_imports(tree)
    return [name for name in modules if name in current]


def parsed(source: bytes) -> ast.Module | None:
    """Return the syntax tree of a source; None if it has errors, which the worker reports."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _leading_imports(body: list[ast.stmt]) -> Iterator[str]:
    """Yield the modules imported before the first statement that is no import and no docstring."""
    for node in body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            return
