"""What was taken out of a run before it was packed: a file of the archive says so, and where the secrets stood."""

import hashlib
from pathlib import Path

import msgspec

from tuilab.record.events import Count
from tuilab.record.origin.imported import is_imported
from tuilab.storage import user_data
from tuilab.text.display import GONE

FILE = "taken-out.json"  # of an archive, and of the run that came out of it
SOURCE = "source"  # what the source is called among the places
_LIMIT = 64 * 1024


class TakenOut(msgspec.Struct):
    """What an archive has not."""

    places: dict[str, Count]  # how many secrets stood where
    digest: str  # of the record with them
    source_sha256: str = ""  # of what is left of the source; older archives do not say it


def taken_out(run_dir: Path) -> TakenOut | None:
    """Return what was taken out of a run before it was packed, if it came out of an archive from which something was."""
    return user_data.read(run_dir / FILE, user_data.struct_of(TakenOut), _LIMIT)


def words_taken_from_source(run_dir: Path, source: bytes) -> int | None:
    """Return how many words the archive of a run says to have taken out of its source, if that agrees with the source.

    None if it does not agree, or the run came out of no archive: then this is not what is left of the source that ran. It may
    be 0, for the home folder is replaced, too.
    """
    out = taken_out(run_dir) if is_imported(run_dir) else None
    if out is None:
        return None
    count = out.places.get(SOURCE, 0)
    if out.source_sha256:
        is_agreed = out.source_sha256 == hashlib.sha256(source).hexdigest()
    else:
        is_agreed = 0 < count <= source.count(GONE.encode())
    return count if is_agreed else None
