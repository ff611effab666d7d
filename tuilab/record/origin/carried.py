"""Whether a run happens on another box and is carried here while it goes on: a file in its folder says who carries it.

The one that carries it is a process of this box: while that lives, the run goes on; when it is gone, nobody ends the run here.
"""

from pathlib import Path

import msgspec

from tuilab.record.events import Identity
from tuilab.storage.files import Unusable, json_as, read_small, replace

FILE = "carried.json"
AT_ONCE = "at once"
STOP = (
    "stop-asked"  # whoever wants a carried run to stop leaves this file, in which AT_ONCE may stand
)
_LIMIT = 4096


class Carrier(msgspec.Struct):
    """Who carries a run, from which node; `is_over` when it has stopped doing so."""

    process: Identity
    node: str
    is_over: bool = False


def write(run_dir: Path, carrier: Carrier) -> None:
    replace(f"{run_dir}/{FILE}", [msgspec.json.encode(carrier)], 0o600)


def read(run_dir: Path) -> Carrier | None:
    """Return who carries a run; None where it happens here, or where that cannot be told."""
    try:
        return read_small(f"{run_dir}/{FILE}", json_as(Carrier), _LIMIT)
    except Unusable:
        return None


def ask_to_stop(run_dir: Path, *, at_once: bool) -> None:
    """Leave word for whoever carries a run."""
    replace(f"{run_dir}/{STOP}", [AT_ONCE.encode() if at_once else b""], 0o600)


def asked_to_stop(run_dir: Path) -> str | None:
    """Return how a run was asked to stop: `at once`, or nothing; None where nobody asked."""
    try:
        return read_small(f"{run_dir}/{STOP}", bytes.decode, _LIMIT)
    except Unusable:
        return None
