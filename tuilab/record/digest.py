"""Computes the digest of a run, which shows whether a record was edited, added or removed since.

It is the digest of the streams, byte for byte, in the order of their names. The streams hold the
digests of the source that ran and of the saved artifacts, so those are covered as well. Notes,
tags, the output of the run and the place of its folder are not covered: the digest stays the same
when a run is noted on, moved, packed and unpacked.
"""

import errno
import hashlib
import os
from pathlib import Path

from tuilab.record.states import FINAL_STATES, RunState
from tuilab.storage.files import open_regular
from tuilab.text.display import show

_DIGITS = 16
_LIMIT = 64 << 30  # bytes of a stream: reading them takes a minute, and no real run logs so many


def digest_of(run_dir: Path, state: str) -> str:
    """Return the digest of a run, or why it has none: `n/a, ...`."""
    if state not in FINAL_STATES and state != RunState.LOST:
        return "n/a, the run has not ended"
    try:
        return _digest(run_dir / "journal")
    except OSError as problem:
        return f"n/a, it cannot be read: {show(problem.strerror or problem)}"


def _digest(journal: Path) -> str:
    """Return the digest over the names and contents of all streams of a journal.

    Raises OSError if a stream cannot be read, or is too large.
    """
    digest = hashlib.sha256()
    names = [os.fsencode(name) for name in os.listdir(journal) if name.endswith(".jsonl")]
    for name in sorted(names):
        with open(open_regular(journal / os.fsdecode(name)), "rb") as stream:
            if os.fstat(stream.fileno()).st_size > _LIMIT:
                raise OSError(errno.EFBIG, f"{os.fsdecode(name)} is too large to be one of ours")
            digest.update(name + b"\n" + hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()[:_DIGITS]
