"""Reads what was removed from a run before it was packed, and how many secrets; a file says so."""

import hashlib
from pathlib import Path

import msgspec

from tuilab.record.events import Count
from tuilab.record.origin.imported import is_imported
from tuilab.storage import user_data
from tuilab.text.display import GONE

FILE = "taken-out.json"  # of an archive, and of the run that came out of it
SOURCE = "source"  # the name of the source among the places
_LIMIT = 64 * 1024


class TakenOut(msgspec.Struct):
    """The secrets that an archive leaves out."""

    places: dict[str, Count]  # by place: how many secrets it had
    digest: str  # of the run with the secrets
    source_sha256: str = ""  # of the source without them; empty in older archives


def taken_out(run_dir: Path) -> TakenOut | None:
    """Return what was removed from a run before it was packed; None if nothing was."""
    return user_data.read(run_dir / FILE, user_data.struct_of(TakenOut), _LIMIT)


def words_taken_from_source(run_dir: Path, source: bytes) -> int | None:
    """Return how many words were removed from the source of a run, as its archive says.

    The number may be 0, because the home folder is replaced as well. It is None if the archive
    contradicts the source, or the run did not come out of an archive: then the file is not the
    rest of the source that ran.
    """
    out = taken_out(run_dir) if is_imported(run_dir) else None
    if out is None:
        return None
    count = out.places.get(SOURCE, 0)
    if out.source_sha256:
        is_same_source = out.source_sha256 == hashlib.sha256(source).hexdigest()
    else:
        is_same_source = 0 < count <= source.count(GONE.encode())
    return count if is_same_source else None
