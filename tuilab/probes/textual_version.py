"""Which Textual is installed, and which ones tuilab's own way of drawing was tested with."""

import os
from importlib.util import find_spec

TESTED = ("8.2.5", "8.2.6", "8.2.7", "8.2.8")


def installed_textual() -> str:
    """Return the version of the installed Textual; nothing if the folder beside it does not name one.

    `importlib.metadata` gives the same answer, but loading it takes 20 ms of every start of the screens.
    """
    spec = find_spec("textual")
    if spec is None or spec.origin is None:
        return ""
    packages = os.path.dirname(os.path.dirname(spec.origin))
    for name in os.listdir(packages):
        if name.startswith("textual-") and name.endswith(".dist-info"):
            return name.removeprefix("textual-").removesuffix(".dist-info")
    return ""


def is_tested(version: str) -> bool:
    """Return whether tuilab's own way of drawing was tested with this version of Textual."""
    return version in TESTED
