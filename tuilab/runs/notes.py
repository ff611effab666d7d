"""Notes and tags that people put on runs: lines of JSON in `notes.jsonl` in the run's folder.

Not in the journal, which says what was measured and which only the processes of the run write. In the run's folder, so
that they go where it goes: into an archive, to another box, and away with it. Only `tuilab note` writes there, one line at
a time, at the end: two people at once lose nothing.
"""

import errno
import os
import re
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from tuilab.errors import CannotRecord, UsageError
from tuilab.storage import user_data
from tuilab.text.display import show

FILE = "notes.jsonl"
_LIMIT = 256 * 1024
_LONGEST = 2000
_TAG = r"(?a:[\w][\w.+-]{0,39})"  # compiled where there is one


class Notes(NamedTuple):
    """What people wrote about a run."""

    texts: list[tuple[float | None, str]] = []  # when, in seconds since 1970
    tags: list[str] = []


def read(run_dir: str | os.PathLike[str]) -> Notes:
    """Return the notes of a run, as far as they can be read."""
    notes = Notes([], [])
    user_data.read_lines(
        f"{os.fspath(run_dir)}/{FILE}", lambda fields: _fold(notes, fields), _LIMIT
    )
    return notes


def add(
    run_dir: str | os.PathLike[str],
    text: str = "",
    tags: Sequence[str] = (),
    untags: Sequence[str] = (),
) -> None:
    """Write a note, put tags on a run, or take them off."""
    check(text, tags, untags)
    fields: dict[str, Any] = {"wall_s": round(time.time(), 3), "text": show(text, _LONGEST)}
    fields |= {name: list(words) for name, words in (("tags", tags), ("untags", untags)) if words}
    try:
        user_data.append_line(f"{os.fspath(run_dir)}/{FILE}", fields, _LIMIT)
    except OSError as problem:
        if problem.errno == errno.EFBIG:
            raise UsageError(
                f"cannot write the note: the disk is full ({problem.strerror})"
            ) from problem
        raise CannotRecord(
            f"cannot write the note into {show(run_dir)}: {problem.strerror}"
        ) from problem


def check(text: str, tags: Sequence[str], untags: Sequence[str]) -> None:
    """Raise UsageError for words that cannot be written."""
    for tag in (*tags, *untags):
        if not is_tag(tag):
            raise UsageError(
                f"{show(tag, 60)} cannot be a tag; use one word of up to 40 letters, digits and ._+-"
            )
    if len(text) > _LONGEST:
        raise UsageError(f"the note has {len(text)} characters; shorten it to at most {_LONGEST}")


def day(when: float | None) -> str:
    """Return when a note was written."""
    return time.strftime("%Y-%m-%d %H:%MZ", time.gmtime(when)) if when is not None else "n/a"


def is_tag(word: str) -> bool:
    return re.fullmatch(_TAG, word) is not None


def _fold(notes: Notes, fields: dict[str, Any]) -> None:
    """Take in what a line says, as far as it is of a kind that we write; ValueError where some of it is not."""
    when, text = fields.get("wall_s"), fields.get("text", "")
    is_time = isinstance(when, int | float) and not isinstance(when, bool) and 0 <= when < 1e11
    if isinstance(text, str) and text:
        notes.texts.append((when if is_time else None, show(text, _LONGEST)))
    put, taken_off = (_tags(fields.get(name, [])) for name in ("tags", "untags"))
    notes.tags[:] = dict.fromkeys(tag for tag in [*notes.tags, *put] if tag not in taken_off)
    if not (
        is_time
        and isinstance(text, str)
        and put == fields.get("tags", [])
        and taken_off == fields.get("untags", [])
    ):
        raise ValueError("part of the line is of another kind")


def _tags(words: object) -> list[str]:
    return (
        [word for word in words if isinstance(word, str) and is_tag(word)]
        if isinstance(words, list)
        else []
    )
