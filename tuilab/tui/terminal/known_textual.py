"""Check that this Textual has every private part that tuilab's own driver and frames use."""

import importlib
import inspect
from typing import Any

from tuilab.probes import textual_version

VALUE = None  # instead of parameters: the part is a value and is not called
# For each owner: the name of each part, and the parameters that the part takes.
PARTS: dict[str, dict[str, str | None]] = {
    # This part is public, but rich 14.0 does not have it yet.
    "rich.cells": {"split_graphemes": "text, unicode_version"},
    "textual._context": {"active_message_pump": VALUE, "visible_screen_stack": VALUE},
    "textual._compositor:Compositor": {
        "_dirty_regions": VALUE,
        "_full_map": VALUE,
        "cuts": VALUE,  # public, like `visible_widgets`
        "visible_widgets": VALUE,
    },
    "textual._styles_cache:StylesCache": {"get_inner_outer": "cls, base_background, background"},
    "textual._xterm_parser:XTermParser": {
        "__init__": "self, debug",
        "_timeout_time": VALUE,
        "feed": "self, data",
        "tick": "self",
    },
    "textual.app:App": {
        "_background_screens": VALUE,
        "_batch_count": VALUE,
        "_clipboard": VALUE,
        "_closed": VALUE,
        "_display": "self, screen, renderable",
        "_fatal_error": "self",
        "_handle_exception": "self, error",
        "_notifications": VALUE,
        "_unnotify": "self, notification, refresh",
        "_update_mouse_over": "self, screen",
    },
    "textual.command:CommandPalette": {"_action_command_list": "self, action"},
    "textual.drivers.linux_driver:LinuxDriver": {
        "_get_terminal_size": "self",
        "_key_thread": VALUE,
        "_must_signal_resume": VALUE,
        "_query_in_band_window_resize": "self",
        "_request_terminal_sync_mode_support": "self",
        "_sigcont_application": "self, *_",
        "_sigtstp_application": "self, *_",
    },
    "textual.screen:Screen": {
        "_compositor": VALUE,
        "_compositor_refresh": "self",
        "_dirty_widgets": VALUE,
        "_get_breakpoint_classes": "self, dimension, breakpoints",
        "_refresh_layout": "self, size, scroll",
    },
}


def why_unknown() -> str:
    """Return why the screens have to use Textual's own driver; nothing if they can use ours."""
    version = textual_version.installed_textual()
    if not textual_version.is_tested(version):
        return f"Textual {version or 'of an unknown version'} was not tested"
    for owner, parts in PARTS.items():
        for name, parameters in parts.items():
            reason = lack(owner, name, parameters)
            if reason:
                return reason
    return ""


def lack(owner: str, name: str, parameters: str | None) -> str:
    """Return what is missing or different in one part; nothing if it is as it was tested."""
    module, _, class_name = owner.partition(":")
    try:
        holder: Any = importlib.import_module(module)
        if class_name:
            holder = getattr(holder, class_name)
    except (ImportError, AttributeError):
        return f"{owner}.{name} is gone"
    part = getattr(holder, name, None)
    if part is None and not _is_set_at_start(holder, name):
        return f"{owner}.{name} is gone"
    if not callable(part):
        if parameters is VALUE:
            return ""
        return f"{owner}.{name} is a value, and was called"
    if parameters is VALUE:
        return f"{owner}.{name} is called, and was a value"
    names = []
    for parameter in inspect.signature(part).parameters.values():
        bare = parameter.replace(annotation=parameter.empty, default=parameter.empty)
        names.append(str(bare))
    installed_parameters = ", ".join(names)
    if installed_parameters == parameters:
        return ""
    return f"{owner}.{name} takes ({installed_parameters}), not ({parameters})"


def _is_set_at_start(holder: Any, name: str) -> bool:
    """Return whether an object of this class has an attribute that only `__init__` sets."""
    for base in getattr(holder, "__mro__", ()):
        code = getattr(vars(base).get("__init__"), "__code__", None)
        if code is not None and name in code.co_names:
            return True
    return False
