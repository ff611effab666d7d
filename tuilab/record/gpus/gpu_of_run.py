"""Which GPU a run has used already: each repeat, and each arm in a process of its own, is to run on the same one.

The processes of a run know of each other only what is on record.
"""

from contextlib import suppress
from pathlib import Path

import msgspec

from tuilab.record.events import EnvironmentRecorded
from tuilab.storage.files import open_regular

_MOST = (
    1024 * 1024
)  # bytes of a stream that are looked through: a device is chosen before anything runs on it
_MARKS = (b'"k":"environment_recorded"', b'"chosen"')
_decode = msgspec.json.Decoder(EnvironmentRecorded).decode


def gpu_of_run(run_dir: Path) -> str:
    """Return torch's name of the GPU that was chosen first, by ranks that of the first; nothing where none was."""
    for path in sorted(
        path for path in (run_dir / "journal").glob("worker-*.jsonl") if "-rank-" not in path.stem
    ):
        with suppress(OSError), open(open_regular(path), "rb") as file:
            for line in file.read(_MOST).split(b"\n"):
                if all(mark in line for mark in _MARKS) and (uuid := _chosen(line)):
                    return uuid
    return ""


def _chosen(line: bytes) -> str:
    with suppress(msgspec.MsgspecError, ValueError):
        record = _decode(line[9:])  # behind its checksum
        if record.part == "cuda":
            return str(record.facts.get("chosen", ""))
    return ""
