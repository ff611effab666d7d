"""Find the installed version of Textual, and say whether our own driver was tested with it."""

import os
from importlib.util import find_spec

TESTED = ("8.2.5", "8.2.6", "8.2.7", "8.2.8")


def installed_textual() -> str:
    """Return the version of the installed Textual; empty if no folder next to it names one.

    `importlib.metadata` gives the same answer, but loading it takes 20 ms of every start of the
    screens.
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
    """Return whether our own driver was tested with this version of Textual."""
    return version in TESTED
