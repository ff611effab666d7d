"""Marks a run that came out of an archive, by a file in its folder."""

import os
from pathlib import Path

IMPORTED = "imported"  # archives cannot contain a file of this name


def mark_imported(run_dir: Path) -> None:
    """Mark a run as come out of an archive."""
    (run_dir / IMPORTED).touch(0o600)


def is_imported(run_dir: str | os.PathLike[str]) -> bool:
    """Say whether a run came out of an archive, whose records may name any machine.

    No process of this machine belongs to it, and no process writes to it any more.
    """
    return os.path.lexists(f"{os.fspath(run_dir)}/{IMPORTED}")
