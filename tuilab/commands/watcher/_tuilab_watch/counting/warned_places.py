"""Have a warning of an operator name the line of the script, as without our frame in between.

Python takes the innermost frame for the place of a warning that comes from C++. In a counted step
that is our frame. So the warning is issued once more, for the frame that called the operator.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any

_OWN_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def redirect_warnings(own_globals: dict[str, Any]) -> Callable[[], None]:
    """Begin to redirect warnings; return the function that ends this.

    `own_globals` are those of the module whose frame calls the operators.
    """
    module: Any = warnings
    show = getattr(module, "_showwarnmsg", None)
    if show is None:
        return lambda: None

    def show_at_script(message: Any) -> None:
        registry = own_globals.get("__warningregistry__")
        frame = _outer_frame() if message.filename.startswith(_OWN_FOLDER) else None
        if frame is None:
            show(message)
            return
        if registry:
            registry.clear()  # the next such warning may be from another line of the script
        names = frame.f_globals
        warnings.warn_explicit(
            message.message,
            message.category,
            frame.f_code.co_filename,
            frame.f_lineno,
            names.get("__name__") or "<unknown>",
            names.setdefault("__warningregistry__", {}),
        )

    def end() -> None:
        if module._showwarnmsg is show_at_script:
            module._showwarnmsg = show

    module._showwarnmsg = show_at_script
    return end


def _outer_frame() -> FrameType | None:
    """Return the innermost frame that is not of the watcher or of Python's warnings."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith(_OWN_FOLDER) and path != warnings.__file__:
            return frame
        frame = frame.f_back
    return None
