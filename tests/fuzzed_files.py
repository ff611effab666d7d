"""Spoil a file of tuilab: cut or garble it, put other values into it, or replace it."""

import copy
import json
import os
import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tests.file_damage import KINDS_OF_DAMAGE, can_make_devices, damage
from tuilab.storage.files import sealed

ESCAPES = "\x1b[2J\x1b]0;title\x07\x9b31m\u202e\r\x08"
NEWER = b'{"format": 99, "tuilab": "9.9", "text": [], "run": {}, "HOST": []}'
VALUES: list[Any] = [
    None, True, -1, -0.5, 2**63, 10**400, 1e308, -1e300, float("nan"), float("inf"), "", ESCAPES, "x" * 30_000, "\ud800", [],
    {}, [ESCAPES], {ESCAPES: ESCAPES}, [[[]]], {"a": {"a": 1}}, json.loads("[" * 200 + "]" * 200),
]  # fmt: skip

# Kinds of `replace_file`, which leave nothing of the old file.
REPLACEMENTS = [*KINDS_OF_DAMAGE, "circle", "newer"]
if can_make_devices():
    REPLACEMENTS.insert(-2, "node")


def replace_file(path: Path, kind: str) -> None:
    """Put something else in the place of a file."""
    if kind == "circle":
        path.unlink()
        path.symlink_to(path)
    elif kind == "newer":
        path.write_bytes(NEWER)
    else:
        damage(path, kind)


def fuzz(data: bytes, chance: random.Random, count: int) -> Iterator[tuple[str, bytes]]:
    """Yield descriptions of damage by a disk, a program or a person, and the damaged content."""
    size = max(len(data), 1)
    for _ in range(count):
        at = chance.randrange(size)
        flipped = bytearray(data or b"\0")
        flipped[at] ^= 1 << chance.randrange(8)
        yield f"cut at {at}", data[:at]
        yield f"a bit of byte {at}", bytes(flipped)
        yield f"noise from {at}", data[:at] + chance.randbytes(20) + data[at + 20 :]
    yield "escapes in every text", _change_lines(data, _add_escapes)
    for evil in chance.choices(VALUES, k=5 * count):
        put_evil = partial(_replace_one, chance=chance, evil=evil)
        yield f"{str(evil)[:30]!r} in one place", _change_lines(data, put_evil)


def _change_lines(data: bytes, change: Callable[[Any], Any]) -> bytes:
    """Change the JSON of each line, and correct the checksum of the line or of the whole content.

    Lines that are not JSON stay.
    """
    if data == sealed(data[9:]):
        return sealed(_change_lines(data[9:], change))
    lines = []
    for line in data.split(b"\n"):
        is_sealed = line == sealed(line[9:])
        body = line[9:] if is_sealed else line
        try:
            changed = json.dumps(change(json.loads(body))).encode()
        except ValueError:
            lines.append(line)
            continue
        lines.append(sealed(changed) if is_sealed else changed)
    return b"\n".join(lines)


def _add_escapes(value: Any) -> Any:
    """Put escape sequences in front of every text in a value."""
    match value:
        case str():
            return ESCAPES + value
        case list():
            return [_add_escapes(item) for item in value]
        case dict():
            return {key: _add_escapes(item) for key, item in value.items()}
    return value


def _replace_one(value: Any, *, chance: random.Random, evil: Any) -> Any:
    """Put another value in one place, at any depth."""
    if not value or not isinstance(value, list | dict) or chance.random() < 0.05:
        return evil
    places = [*value] if isinstance(value, dict) else range(len(value))
    place = chance.choice(places)
    changed = copy.copy(value)
    changed[place] = _replace_one(value[place], chance=chance, evil=evil)
    return changed


def is_stored_in(content: bytes, folder: Path) -> bool:
    """Whether some file of a folder begins with a content."""
    if not content:
        return True
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_file(follow_symlinks=False):
                with open(entry.path, "rb") as file:
                    if file.read(len(content)) == content:
                        return True
    return False
