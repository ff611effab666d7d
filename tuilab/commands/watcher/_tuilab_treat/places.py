"""Find the line of the user's own code that called something, and the arguments of a call."""

from __future__ import annotations

import os
import sys
import sysconfig
from typing import Any

Place = tuple[str, int]
NOWHERE: Place = ("", 0)
_INSTALLED = ("site-packages", "dist-packages")
_is_own: dict[str, bool] = {}  # by file name


def user_place() -> Place:
    """Return the file and line of the innermost frame that is the user's own.

    Frames of torch, of installed packages, of Python's library and of tuilab are not. The place is
    NOWHERE if there is no such frame, or if it cannot be found out.
    """
    try:
        return _find_place(sys._getframe(1))
    except Exception:  # the folder of the process may be gone
        return NOWHERE


def _find_place(frame: Any) -> Place:
    """Return the place of the innermost frame of the user, from a frame on outwards."""
    while frame is not None:
        name = frame.f_code.co_filename
        is_own = _is_own.get(name)
        if is_own is None:
            is_own = _is_user_file(name)
            _is_own[name] = is_own
        if is_own:
            return os.path.abspath(name), frame.f_lineno
        frame = frame.f_back
    return NOWHERE


def arguments_by_name(
    names: list[str], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """Return the arguments of a call by their names; `names` are those of the parameters."""
    given = dict(kwargs)
    for index, value in enumerate(args[: len(names)]):
        given[names[index]] = value
    return given


def _is_user_file(name: str) -> bool:
    if name.startswith("<") or "importlib_bootstrap" in name:
        return False
    path = os.path.abspath(name)
    if any(part in _INSTALLED for part in path.split(os.sep)):
        return False
    return not path.startswith(tuple(_folders_of_others()))


def _folders_of_others() -> list[str]:
    """Return the folders of torch, of Python's library and of tuilab, each with its separator."""
    folders = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
    torch = sys.modules.get("torch")
    if torch is not None and getattr(torch, "__file__", None):
        folders.append(os.path.dirname(os.path.abspath(str(torch.__file__))))
    paths = sysconfig.get_paths()
    folders += [paths[name] for name in ("stdlib", "platstdlib") if paths.get(name)]
    return [os.path.join(folder, "") for folder in folders]
