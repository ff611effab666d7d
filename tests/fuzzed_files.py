"""Whatever may stand in a file of ours: what it held, cut or garbled, other values in it, or no file at all."""

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
REPLACEMENTS = [
    *KINDS_OF_DAMAGE,
    *["node"] * can_make_devices(),
    "circle",
    "newer",
]  # nothing of the file is left


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
    """Yield the content of a file as it may be when a disk, a program or a hand has spoilt it, and how."""
    size = max(len(data), 1)
    for _ in range(count):
        at = chance.randrange(size)
        flipped = bytearray(data or b"\0")
        flipped[at] ^= 1 << chance.randrange(8)
        yield f"cut at {at}", data[:at]
        yield f"a bit of byte {at}", bytes(flipped)
        yield f"noise from {at}", data[:at] + chance.randbytes(20) + data[at + 20 :]
    yield "escapes in every text", _each_line(data, _steering)
    for evil in chance.choices(VALUES, k=5 * count):
        yield (
            f"{str(evil)[:30]!r} in one place",
            _each_line(data, partial(_swapped, chance=chance, evil=evil)),
        )


def _each_line(data: bytes, change: Callable[[Any], Any]) -> bytes:
    """Change what lines of JSON say, with the checksum of each, or of all, set right where there is one; other lines stay."""
    if data == sealed(data[9:]):
        return sealed(_each_line(data[9:], change))
    found = []
    for line in data.split(b"\n"):
        body = line[9:] if line == sealed(line[9:]) else line
        try:
            changed = json.dumps(change(json.loads(body))).encode()
        except ValueError:
            found.append(line)
            continue
        found.append(changed if body is line else sealed(changed))
    return b"\n".join(found)


def _steering(value: Any) -> Any:
    match value:
        case str():
            return ESCAPES + value
        case list():
            return [_steering(one) for one in value]
        case dict():
            return {key: _steering(one) for key, one in value.items()}
    return value


def _swapped(value: Any, *, chance: random.Random, evil: Any) -> Any:
    """Put another value in one place, at any depth."""
    if not value or not isinstance(value, list | dict) or chance.random() < 0.05:
        return evil
    at = chance.choice([*value] if isinstance(value, dict) else range(len(value)))
    inner = _swapped(value[at], chance=chance, evil=evil)
    if isinstance(value, list):
        return [inner if number == at else one for number, one in enumerate(value)]
    return {**value, at: inner}


def is_stored_in(content: bytes, folder: Path) -> bool:
    """Say whether a content is still there: in a file of this folder, or at the beginning of one."""
    files = [
        Path(entry.path) for entry in os.scandir(folder) if entry.is_file(follow_symlinks=False)
    ]
    return not content or any(_begins_with(file, content) for file in files)


def _begins_with(file: Path, content: bytes) -> bool:
    with file.open("rb") as opened:
        return opened.read(len(content)) == content
