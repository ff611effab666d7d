"""Notes and tags that people put on runs: lines of JSON in `notes.jsonl` in the run's folder.

Not in the journal, which says what was measured and which only the processes of the run write. In the run's folder, so
that they go where it goes: into an archive, to another box, and away with it. Only `tuilab note` writes there, one line at
a time, at the end: two people at once lose nothing.
"""

import json
import os
import re
import stat
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tuilab.errors import CannotRecord, UsageError
from tuilab.files import Unusable, open_to_append, read_small
from tuilab.text import show

FILE = "notes.jsonl"
_LIMIT = 256 * 1024
_LONGEST = 2000
_TAG = re.compile(r"(?a:[\w][\w.+-]{0,39})")


@dataclass(frozen=True)
class Notes:
    """What people wrote about a run."""

    texts: list[tuple[float | None, str]] = field(default_factory=list)  # when, in seconds since 1970
    tags: list[str] = field(default_factory=list)


def read(run_dir: Path) -> Notes:
    """Return the notes of a run; of a file of no use none."""
    with suppress(Unusable):
        return read_small(run_dir / FILE, _decode, _LIMIT)
    return Notes()


def add(run_dir: Path, text: str = "", tags: Sequence[str] = (), untags: Sequence[str] = ()) -> None:
    """Write a note, put tags on a run, or take them off."""
    check(text, tags, untags)
    fields: dict[str, Any] = {"wall_s": round(time.time(), 3), "text": show(text, _LONGEST)}
    fields |= {name: list(words) for name, words in (("tags", tags), ("untags", untags)) if words}
    line = json.dumps(fields).encode() + b"\n"
    try:
        fd = open_to_append(run_dir / FILE)
        try:
            seen = os.fstat(fd)
            if not stat.S_ISREG(seen.st_mode):
                raise CannotRecord(f"cannot write the note into {show(run_dir)}: {FILE} is no plain file")
            if seen.st_size + len(line) > _LIMIT:
                raise UsageError(f"there is no room for more notes on this run: {_LIMIT // 1024} KiB are full")
            os.write(fd, line)
        finally:
            os.close(fd)
    except OSError as problem:
        raise CannotRecord(f"cannot write the note into {show(run_dir)}: {problem.strerror}") from problem


def check(text: str, tags: Sequence[str], untags: Sequence[str]) -> None:
    """Raise UsageError for words that cannot be written."""
    for tag in (*tags, *untags):
        if not is_tag(tag):
            raise UsageError(f"{show(tag, 60)} cannot be a tag: one word of letters, digits and ._+-, at most 40 of them")
    if len(text) > _LONGEST:
        raise UsageError(f"a note has at most {_LONGEST} characters; this one has {len(text)}")


def day(when: float | None) -> str:
    """Return when a note was written."""
    return time.strftime("%Y-%m-%d %H:%MZ", time.gmtime(when)) if when is not None else "n/a"


def is_tag(word: str) -> bool:
    return _TAG.fullmatch(word) is not None


def _decode(data: bytes) -> Notes:
    """Take in each line that makes sense: one that was cut, or that a hand broke, takes no other with it."""
    notes = Notes()
    for line in data.splitlines():
        with suppress(ValueError, RecursionError):
            fields = json.loads(line)
            if isinstance(fields, dict):
                _fold(notes, fields)
    return notes


def _fold(notes: Notes, fields: dict[str, Any]) -> None:
    when, text = fields.get("wall_s"), fields.get("text")
    if isinstance(text, str) and text:
        is_time = isinstance(when, int | float) and not isinstance(when, bool) and 0 <= when < 1e11
        notes.texts.append((when if is_time else None, show(text, _LONGEST)))
    for name, is_put in (("tags", True), ("untags", False)):
        words = fields.get(name)
        for tag in words if isinstance(words, list) else []:
            if isinstance(tag, str) and is_tag(tag) and (tag in notes.tags) != is_put:
                notes.tags.append(tag) if is_put else notes.tags.remove(tag)
