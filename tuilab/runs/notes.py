"""Notes and tags that users put on runs: lines of JSON in `notes.jsonl` in the run's folder.

They are not in the journal: it has the measurements, and only the processes of the run write it.
They are in the run's folder, so that they go where it goes: into an archive, to another machine,
and away when the run is deleted. Only `tuilab note` and the screens write the file, one line at a
time, at its end: two users who write at once lose nothing.
"""

import errno
import os
import re
import time
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from tuilab.errors import CannotRecord, UsageError
from tuilab.storage import user_data
from tuilab.text.display import show

FILE = "notes.jsonl"
_LIMIT = 256 * 1024
_LONGEST = 2000
_TAG = r"(?a:[\w][\w.+-]{0,39})"  # compiled when a tag is checked


class Notes(NamedTuple):
    """The notes and tags of a run."""

    texts: list[tuple[float | None, str]] = []  # with the time in seconds since 1970, if known
    tags: list[str] = []


def read(run_dir: str | os.PathLike[str]) -> Notes:
    """Return the notes and tags of a run, as far as they can be read; none if there is no file."""
    notes = Notes([], [])
    path = f"{os.fspath(run_dir)}/{FILE}"
    user_data.read_lines(path, partial(_fold, notes), _LIMIT)
    return notes


def add(
    run_dir: str | os.PathLike[str],
    text: str = "",
    tags: Sequence[str] = (),
    untags: Sequence[str] = (),
) -> None:
    """Append a line to the notes of a run: a text, tags to put on it, and tags to remove.

    Raise UsageError if one of them cannot be written or the file would be too large, and
    CannotRecord for another problem of the disk.
    """
    check(text, tags, untags)
    fields: dict[str, Any] = {"wall_s": round(time.time(), 3), "text": show(text, _LONGEST)}
    if tags:
        fields["tags"] = list(tags)
    if untags:
        fields["untags"] = list(untags)
    try:
        user_data.append_line(f"{os.fspath(run_dir)}/{FILE}", fields, _LIMIT)
    except OSError as problem:
        if problem.errno == errno.EFBIG:
            raise UsageError(f"cannot write the note: {problem.strerror}") from problem
        raise CannotRecord(
            f"cannot write the note into {show(run_dir)}: {problem.strerror}"
        ) from problem


def check(text: str, tags: Sequence[str], untags: Sequence[str]) -> None:
    """Raise UsageError for a note or a tag that cannot be written."""
    for tag in (*tags, *untags):
        if not is_tag(tag):
            raise UsageError(
                f"{show(tag, 60)} cannot be a tag; "
                "use one word of up to 40 letters, digits and ._+-"
            )
    if len(text) > _LONGEST:
        raise UsageError(f"the note has {len(text)} characters; shorten it to at most {_LONGEST}")


def day(wall_s: float | None) -> str:
    """Return when a note was written, to the minute in UTC."""
    if wall_s is None:
        return "n/a"
    return time.strftime("%Y-%m-%d %H:%MZ", time.gmtime(wall_s))


def is_tag(word: str) -> bool:
    return re.fullmatch(_TAG, word) is not None


def _fold(notes: Notes, fields: dict[str, Any]) -> None:
    """Add the fields of a line to the notes, as far as they are of a kind that we write.

    ValueError if one of them is of another kind.
    """
    wall_s = fields.get("wall_s")
    text = fields.get("text", "")
    is_time = False
    if isinstance(wall_s, int | float) and not isinstance(wall_s, bool):
        is_time = 0 <= wall_s < 1e11
    if isinstance(text, str) and text:
        written_s = wall_s if is_time else None
        notes.texts.append((written_s, show(text, _LONGEST)))
    tags = _tags_among(fields.get("tags", []))
    untags = _tags_among(fields.get("untags", []))
    remaining = [tag for tag in notes.tags + tags if tag not in untags]
    notes.tags[:] = dict.fromkeys(remaining)
    has_other_tags = tags != fields.get("tags", []) or untags != fields.get("untags", [])
    if not is_time or not isinstance(text, str) or has_other_tags:
        raise ValueError("part of the line is of another kind")


def _tags_among(words: object) -> list[str]:
    if not isinstance(words, list):
        return []
    return [word for word in words if isinstance(word, str) and is_tag(word)]
