"""Marks a run that happens on another machine and is copied here: a file names its carrier.

The carrier is a process of this machine. While it lives, the run is in progress; if it is gone, no
process ends the run here.
"""

from pathlib import Path

import msgspec

from tuilab.record.events import Identity
from tuilab.storage.files import Unusable, json_as, read_small, replace

FILE = "carried.json"
AT_ONCE = "at once"
STOP = "stop-asked"  # a file that asks for the run to be stopped; it may contain AT_ONCE
_LIMIT = 4096


class Carrier(msgspec.Struct):
    """The process that copies a run from a node; `is_over` once it has stopped."""

    process: Identity
    node: str
    is_over: bool = False


def write(run_dir: Path, carrier: Carrier) -> None:
    """Write the file that names the carrier of a run; raise OSError if that fails."""
    replace(f"{run_dir}/{FILE}", [msgspec.json.encode(carrier)], 0o600)


def read(run_dir: Path) -> Carrier | None:
    """Return the carrier of a run; None if the run happens here, or the file is unreadable."""
    try:
        return read_small(f"{run_dir}/{FILE}", json_as(Carrier), _LIMIT)
    except Unusable:
        return None


def ask_to_stop(run_dir: Path, *, at_once: bool) -> None:
    """Ask the carrier of a run to stop it."""
    replace(f"{run_dir}/{STOP}", [AT_ONCE.encode() if at_once else b""], 0o600)


def asked_to_stop(run_dir: Path) -> str | None:
    """Return how a run was asked to stop: `at once`, or an empty text; None if it was not asked."""
    try:
        return read_small(f"{run_dir}/{STOP}", bytes.decode, _LIMIT)
    except Unusable:
        return None
