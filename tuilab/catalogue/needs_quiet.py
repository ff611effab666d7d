"""Whether a scenario file wants the box for itself: nothing is loaded beside what looks at clocks, or at what processes use."""

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
_LOOKS = frozenset([*_CLOCKS, *_METERS, *_OF_LAB])


def wants_quiet(tree: ast.Module) -> bool:
    """Say whether a file names anything that tells times or use; of a module that is neither torch nor Python's who knows."""
    return any(_may_look(node) for node in ast.walk(tree))


def _may_look(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in _LOOKS
    if isinstance(node, ast.Constant):
        return (
            isinstance(node.value, str) and "/proc/" in node.value.partition("\n")[0]
        )  # a lesson may well tell of it
    if isinstance(node, ast.ImportFrom):
        return (
            bool(node.level)
            or _is_unknown(node.module or "")
            or not _LOOKS.isdisjoint(alias.name for alias in node.names)
        )
    return isinstance(node, ast.Import) and any(_is_unknown(alias.name) for alias in node.names)


def _is_unknown(module: str) -> bool:
    top, *rest = module.split(".")
    is_ours = top in ("torch", "numpy", "tuilab") or top in sys.stdlib_module_names
    return not is_ours or not _LOOKS.isdisjoint((top, *rest))
