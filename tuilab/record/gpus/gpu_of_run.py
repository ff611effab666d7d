"""Finds the GPU that a run has already used.

All its repeats, and all arms in processes of their own, run on the same GPU.
The processes of a run know of each other only by the records.
"""

from contextlib import suppress
from pathlib import Path

import msgspec

from tuilab.record.events import EnvironmentRecorded
from tuilab.storage.files import open_regular

_MOST_BYTES = 1024 * 1024  # read of a stream: a device is chosen before anything runs on it
_MARKS = (b'"k":"environment_recorded"', b'"chosen"')
_decode = msgspec.json.Decoder(EnvironmentRecorded).decode


def gpu_of_run(run_dir: Path) -> str:
    """Return torch's UUID of the GPU that a worker chose first; empty if there is none.

    The GPUs of further ranks are ignored.
    """
    for path in sorted((run_dir / "journal").glob("worker-*.jsonl")):
        if "-rank-" in path.stem:
            continue
        with suppress(OSError), open(open_regular(path), "rb") as file:
            for line in file.read(_MOST_BYTES).split(b"\n"):
                if all(mark in line for mark in _MARKS):
                    uuid = _chosen_in(line)
                    if uuid:
                        return uuid
    return ""


def _chosen_in(line: bytes) -> str:
    """Return the UUID of the GPU that a line of a journal says was chosen, or an empty string."""
    with suppress(msgspec.MsgspecError, ValueError):
        record = _decode(line[9:])  # after its checksum
        if record.part == "cuda":
            return str(record.facts.get("chosen", ""))
    return ""
