"""The files that are sent with an order: the scenario, and what it imports from its folder."""

import ast
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from tuilab.catalogue.imports import SOURCE_LIMIT, parsed
from tuilab.engine.messages import RunOrder
from tuilab.errors import UsageError
from tuilab.storage.files import read_regular
from tuilab.text.display import show

_MOST = 200  # files that a scenario may import from its folder


def files_of(order: RunOrder) -> dict[str, bytes]:
    """Return the files that a scenario needs, by name; none for a command.

    A command must exist on the node already. Raises UsageError if a file cannot be read, or if
    there are more than 200.
    """
    if order.command or not order.path:
        return {}
    sources: dict[str, bytes] = {}
    folder, unread = os.path.dirname(order.path), [os.path.basename(order.path)]
    while unread:
        name = unread.pop()
        if len(sources) == _MOST:
            raise UsageError(
                f"{show(order.scenario, 60)} imports more than {_MOST} files from its folder, the"
                " limit for other nodes; install them on the nodes as a package"
            )
        if name in sources:
            continue
        try:
            sources[name] = read_regular(f"{folder}/{name}", SOURCE_LIMIT, may_be_link=True)
        except OSError as problem:
            raise UsageError(
                f"cannot read {show(folder)}/{show(name)}: {problem.strerror}"
            ) from problem
        for module in _imported(sources[name]):
            unread += _files(folder, module)
    return sources


def check_ranks(orders: Sequence[RunOrder]) -> None:
    """Raise UsageError for a scenario without `lab.ranks`, which cannot be divided over nodes."""
    for order in orders:
        source = files_of(order).get(os.path.basename(order.path), b"")
        if not _calls_ranks(source):
            name = show(order.scenario, 60)
            raise UsageError(
                f"{name} does not start ranks with lab.ranks, so --nnodes has nothing to divide;"
                " drop --nnodes"
            )


def _calls_ranks(source: bytes) -> bool:
    """Return whether a source calls a method `ranks`; False if it cannot be parsed."""
    tree = parsed(source)
    if tree is None:
        return False
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr="ranks")):
                return True
    return False


def _imported(source: bytes) -> Iterator[str]:
    """Yield the top-level modules and packages that a source imports."""
    tree = parsed(source)
    if tree is None:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def _files(folder: str, module: str) -> Iterator[str]:
    """Yield the names of the files of a module in a folder; nothing if it is not in that folder.

    A package yields all its modules.
    """
    package = Path(folder, module)
    if os.path.isfile(f"{folder}/{module}.py"):
        yield f"{module}.py"
    elif package.is_dir():
        yield from (str(path.relative_to(folder)) for path in sorted(package.rglob("*.py")))
