"""The digest of a record: whoever keeps it sees whether anything of the record was edited, added or removed since.

It is of the streams, byte for byte, in the order of their names. These hold the digests of the source that ran and of what it
saved, so that it covers both. Notes, tags and what the run printed are not in it, nor is where the record lies: it stays when a
run is noted on, moved, packed and unpacked.
"""

import errno
import hashlib
import os
from pathlib import Path

from tuilab.record.states import FINAL_STATES, RunState
from tuilab.storage.files import open_regular
from tuilab.text.display import show

_DIGITS = 16
_LIMIT = 64 << 30  # bytes of a stream: reading so many takes a minute, and nobody logs them


def digest_of(run_dir: Path, state: str) -> str:
    """Return the digest of a run's record, or why it has none: `n/a, ...`."""
    if state not in FINAL_STATES and state != RunState.LOST:
        return "n/a, the run has not ended"
    try:
        return _digest(run_dir / "journal")
    except OSError as problem:
        return f"n/a, it cannot be read: {show(problem.strerror or problem)}"


def _digest(journal: Path) -> str:
    found = hashlib.sha256()
    for name in sorted(
        os.fsencode(name) for name in os.listdir(journal) if name.endswith(".jsonl")
    ):
        with open(open_regular(journal / os.fsdecode(name)), "rb") as stream:
            if os.fstat(stream.fileno()).st_size > _LIMIT:
                raise OSError(errno.EFBIG, f"{os.fsdecode(name)} is too large to be one of ours")
            found.update(name + b"\n" + hashlib.file_digest(stream, "sha256").digest())
    return found.hexdigest()[:_DIGITS]
