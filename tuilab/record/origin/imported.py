"""Whether a run came out of an archive: a file in its folder says so."""

import os
from pathlib import Path

IMPORTED = "imported"  # no archive can bring a file of this name, or leave it out


def mark_imported(run_dir: Path) -> None:
    """Note that a run came out of an archive."""
    (run_dir / IMPORTED).touch(0o600)


def is_imported(run_dir: str | os.PathLike[str]) -> bool:
    """Say whether a run came out of an archive, which may say what it likes about the box that it ran on.

    Nothing of this box belongs to it, and nobody writes to it any more.
    """
    return os.path.lexists(f"{os.fspath(run_dir)}/{IMPORTED}")
