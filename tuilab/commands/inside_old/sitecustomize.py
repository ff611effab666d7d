"""Lets the watcher in once torch has been imported; the sitecustomize that would have been loaded instead is loaded, too.

Python loads this at its start, also where nothing is ever trained: without torch it costs a look at each import.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec
from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__))


class Door:
    """Finds torch as the others do, once, and has `_tuilab_watch` begin when it is loaded."""

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != "torch" or cls not in sys.meta_path:
            return None
        sys.meta_path.remove(cls)
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target) if hasattr(finder, "find_spec") else None
            if spec is not None:
                begin_behind(spec.loader)
                return spec
        return None


def begin_behind(loader: Any) -> None:
    """Have the watcher begin behind the module that is loaded next by this loader."""
    execute = loader.exec_module

    def exec_module(module: Any) -> None:
        del loader.exec_module
        execute(module)
        import_watcher()

    hide_from_warnings(exec_module)
    loader.exec_module = exec_module


def hide_from_warnings(function: Any) -> None:
    """Give a function a file name that warnings skip, so that what torch warns of names the script that imports torch."""
    if not hasattr(function.__code__, "replace"):  # before Python 3.8
        return
    folder = os.path.join(os.path.dirname(_HERE), "inside", "_tuilab_watch", "importlib_bootstrap")
    path = os.path.join(folder, *[os.pardir] * 3, os.path.basename(_HERE), os.path.basename(__file__))
    function.__code__ = function.__code__.replace(co_filename=path)


def import_watcher() -> None:
    from importlib import import_module

    try:
        watch = import_module("_tuilab_watch")
    except ImportError:  # its folder was taken off the path
        return
    watch.begin()


def load_the_other() -> None:
    """Load the sitecustomize that stands next on the path, in the place of this one."""
    others = [folder for folder in sys.path if os.path.abspath(folder) != _HERE]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        module = sys.modules["sitecustomize"] = module_from_spec(spec)
        spec.loader.exec_module(module)


if os.environ.get("TUILAB_WATCH"):
    sys.meta_path.insert(0, Door)
load_the_other()
