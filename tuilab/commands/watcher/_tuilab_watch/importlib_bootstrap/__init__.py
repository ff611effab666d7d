"""Hide the frames of the watcher from Python's warnings, so that a warning names the usual place.

`warnings.warn(..., stacklevel=2)` names the caller of the function that warns. If the watcher wraps
that function, the caller is a frame of ours. Then the message, a filter by module and the registry
of shown warnings are those of our file. Python's warnings, and from 3.11 on its logging, skip each
frame whose file name has `importlib` and `_bootstrap` in it. So our code gets such a file name. The
name leads through this folder, so that a traceback still finds our source.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType

_PACKAGE = __name__.partition(".importlib_bootstrap")[0]
_FOLDER = os.path.dirname(os.path.abspath(__file__))


def hide_frames() -> None:
    """Change the file name of all code that the watcher has loaded."""
    if not hasattr(CodeType, "replace"):  # before Python 3.8
        return
    for function in our_functions():
        function.__code__ = _hidden(function.__code__)


def our_functions() -> Iterator[FunctionType]:
    """Yield the functions and methods of the watcher's modules."""
    for name, module in list(sys.modules.items()):
        if name != _PACKAGE and not name.startswith(_PACKAGE + "."):
            continue
        for value in list(vars(module).values()):
            members = [value]
            if isinstance(value, type):
                members = list(vars(value).values())
            for member in members:
                # A property has its function in `fget`, a class method has it in `__func__`.
                getter = getattr(member, "fget", member)
                function = getattr(member, "__func__", getter)
                if not isinstance(function, FunctionType):
                    continue
                module_name = function.__module__ or ""
                if module_name.startswith(_PACKAGE):
                    yield function


def _hidden(code: CodeType) -> CodeType:
    """Return the code with a file name that warnings skip.

    The code of the functions that it makes gets such a name as well.
    """
    if "importlib_bootstrap" in code.co_filename:
        return code
    constants = []
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            constant = _hidden(constant)
        constants.append(constant)
    path_within = os.path.relpath(code.co_filename, os.path.dirname(_FOLDER))
    path = os.path.join(_FOLDER, os.pardir, path_within)
    return code.replace(co_filename=path, co_consts=tuple(constants))
