"""Reads the record in a line of a stream, or says why there is none."""

import os
import re
import struct
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import msgspec

from tuilab.record.encoding import LINE_LIMIT
from tuilab.record.events import Record, Unknown, is_shallow
from tuilab.storage.files import open_regular

_decode_record = msgspec.json.Decoder(Record, strict=False).decode
decode_records = msgspec.json.Decoder(list[Record], strict=False).decode
_decode_any = msgspec.json.Decoder(dict[str, Any]).decode
NOT_A_RECORD = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
CUT = "cut short"  # the reason of a line that a full disk or a kill cut
_HEAD_LENGTH = 9  # of a line: the checksum and a space
_HEAD = re.compile(rb"[0-9a-f]{0,8}|[0-9a-f]{8} ")  # whole or cut
_TRUNCATED = "Input data was truncated"  # what msgspec says of the beginning of a JSON text


class Corrupt(NamedTuple):
    """A line that is no record; it was skipped."""

    stream: str
    offset: int
    reason: str


class Gap(NamedTuple):
    """Records that are missing from a stream, by the numbers of the records around them."""

    stream: str
    missing: int


Item = Record | Unknown | Corrupt | Gap


def last_number(path: Path) -> int:
    """Return the number of the last whole record of a stream, -1 if there is none."""
    records = last_records(path)
    return records[-1].n if records else -1


def next_number(path: Path) -> int:
    """Return the number of the next record of a stream; a record that was cut keeps its number."""
    number = last_number(path) + 1
    with open(open_regular(path), "rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(size - 1, 0))
        is_cut = stream.read() not in (b"", b"\n")
    return number + 1 if is_cut else number


def last_records(path: Path) -> list[Record | Unknown]:
    """Return the last few whole records of a stream; only the end of the file is read."""
    with open(open_regular(path), "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        stream.seek(max(size - 2 * LINE_LIMIT, 0))
        *lines, _ = stream.read().split(b"\n")  # the last part is not a whole line
    return [record for record in map(parse, lines) if not isinstance(record, str)]


def are_intact(lines: list[bytes], bodies: list[bytes]) -> bool:
    """Say whether each line begins with the checksum of its body; twice as fast as `parse`."""
    heads = b"".join([line[:9] for line in lines])  # eight hex digits and a space each
    if len(heads) != 9 * len(lines) or heads[8::9].strip(b" ") or heads != heads.lower():
        return False
    checksums = struct.pack(f">{len(bodies)}I", *map(crc32, bodies))
    try:
        return bytes.fromhex(heads.decode()) == checksums
    except ValueError:
        return False


def parse(line: bytes) -> Record | Unknown | str:
    """Return the record in a line, or why there is none."""
    body = line[9:]
    if line[:9] != b"%08x " % crc32(body):
        return CUT if _is_cut(line) else "checksum does not match"
    try:
        record: Record = _decode_record(body)
        return record
    except NOT_A_RECORD:
        return _parse_unknown(body)


def _is_cut(line: bytes) -> bool:
    """Say whether a line is the beginning of a line that could be a record.

    A whole record with another checksum is no such beginning: somebody changed it.
    """
    if not _HEAD.fullmatch(line[:_HEAD_LENGTH]):
        return False
    body = line[_HEAD_LENGTH:]
    # A number may be cut where it is none, as in `1.`; a further digit makes it one.
    return _is_truncated(body) or _is_truncated(body + b"0")


def _is_truncated(body: bytes) -> bool:
    try:
        _decode_any(body)
    except NOT_A_RECORD as problem:
        return str(problem) == _TRUNCATED
    return False


def _parse_unknown(body: bytes) -> Unknown | str:
    try:
        fields = _decode_any(body)
        envelope: dict[str, Any] = {name: fields.pop(name) for name in ("n", "t", "k")}
        unknown = msgspec.convert({**envelope, "fields": fields}, Unknown)
    except (*NOT_A_RECORD, KeyError):
        return "not a record"
    return unknown if is_shallow(fields) else "nested too deeply"
