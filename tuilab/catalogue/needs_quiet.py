"""Decide whether a scenario needs a quiet machine: whether it may read clocks or resource usage.

While such a scenario runs, no other process loads modules ahead of time.
"""

import ast
import sys

_CLOCKS = (
    "time",
    "timeit",
    "datetime",
    "perf_counter",
    "monotonic",
    "process_time",
    "thread_time",
    "times",
    "Timer",
    "Event",
)
_METERS = (
    "elapsed_time",
    "benchmark",
    "profile",
    "profiler",
    "cProfile",
    "resource",
    "psutil",
    "getloadavg",
)
_OF_LAB = ("race", "span", "effective_cores", "neighbours")
_MEASURING = frozenset([*_CLOCKS, *_METERS, *_OF_LAB])


def wants_quiet(tree: ast.Module) -> bool:
    """Return whether a file names anything that may measure times or usage.

    A module that belongs neither to torch, numpy and tuilab nor to Python may measure anything.
    """
    return any(_may_measure(node) for node in ast.walk(tree))


def _may_measure(node: ast.AST) -> bool:
    """Return whether a node names something that measures, or imports a module that may measure."""
    match node:
        case ast.Attribute(attr=name):
            return name in _MEASURING
        case ast.Constant(value=str(text)):
            # only the first line counts: a lesson may explain /proc
            return "/proc/" in text.partition("\n")[0]
        case ast.ImportFrom(module=module, names=aliases, level=level):
            if level or _may_module_measure(module or ""):
                return True
            return _has_measuring([alias.name for alias in aliases])
        case ast.Import(names=aliases):
            return any(_may_module_measure(alias.name) for alias in aliases)
    return False


def _may_module_measure(module: str) -> bool:
    """Return whether a module is not known, or one of the names of its path measures."""
    parts = module.split(".")
    package = parts[0]
    is_known = package in ("torch", "numpy", "tuilab") or package in sys.stdlib_module_names
    return not is_known or _has_measuring(parts)


def _has_measuring(names: list[str]) -> bool:
    return not _MEASURING.isdisjoint(names)
