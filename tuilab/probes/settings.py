"""A setting that a supported claim speaks for, as in `lab.claim(..., advises="OMP_NUM_THREADS=2")`."""

import re
from typing import NamedTuple

from tuilab.probes.env import VARIABLES

# Read by nothing by itself: a training script, or whoever starts it, passes them on.
PASSED_ON = ("DATALOADER_NUM_WORKERS", "DATALOADER_PIN_MEMORY", "DATALOADER_PERSISTENT_WORKERS", "LAUNCH_PREFIX")
_SETTING = re.compile(r"([A-Z][A-Z0-9_]{1,60})=([\w./:,=+@% -]{1,200})", re.ASCII)


class Setting(NamedTuple):
    """A variable and its value."""

    name: str
    value: str


def read_setting(text: str) -> Setting:
    """Return the setting that a text spells, or raise ValueError; only variables of training are settings."""
    found = _SETTING.fullmatch(text)
    if not found:
        raise ValueError(f"advises= takes one setting such as OMP_NUM_THREADS=2, not {text[:100]!r}")
    if found[1] not in (*VARIABLES, *PASSED_ON):
        raise ValueError(f"{found[1]} is no setting of threads, allocators, workers or pinning that tuilab knows")
    return Setting(found[1], found[2])
