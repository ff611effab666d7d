"""The lines of a stream: what record is in one, or why there is none."""

import os
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


class Corrupt(NamedTuple):
    """A line that is not a record; it was skipped."""

    stream: str
    offset: int
    reason: str


class Gap(NamedTuple):
    """Records that were written (or tried) and are not here."""

    stream: str
    missing: int


Item = Record | Unknown | Corrupt | Gap


def last_number(path: Path) -> int:
    """Return the number of the last whole record of a stream, -1 where there is none, without reading what is before it."""
    return next((record.n for record in reversed(last_records(path))), -1)


def last_records(path: Path) -> list[Record | Unknown]:
    """Return the last few whole records of a stream, without reading what is before them."""
    with open(open_regular(path), "rb") as stream:
        stream.seek(max(os.fstat(stream.fileno()).st_size - 2 * LINE_LIMIT, 0))
        *lines, _ = stream.read().split(b"\n")
    return [record for record in map(parse, lines) if not isinstance(record, str)]


def are_intact(lines: list[bytes], bodies: list[bytes]) -> bool:
    """Say whether each line begins with the checksum of its body: what `parse` asks of one, twice as fast for many."""
    heads = b"".join([line[:9] for line in lines])
    if len(heads) != 9 * len(lines) or heads[8::9].strip(b" ") or heads != heads.lower():
        return False
    try:
        return bytes.fromhex(heads.decode()) == struct.pack(f">{len(bodies)}I", *map(crc32, bodies))
    except ValueError:
        return False


def parse(line: bytes) -> Record | Unknown | str:
    """Return the record in a line, or why there is none."""
    body = line[9:]
    if line[:9] != b"%08x " % crc32(body):
        return "checksum does not match"
    try:
        record: Record = _decode_record(body)
        return record
    except NOT_A_RECORD:
        return _parse_unknown(body)


def _parse_unknown(body: bytes) -> Unknown | str:
    try:
        fields = _decode_any(body)
        unknown = msgspec.convert(
            {"n": fields.pop("n"), "t": fields.pop("t"), "k": fields.pop("k"), "fields": fields},
            Unknown,
        )
    except (*NOT_A_RECORD, KeyError):
        return "not a record"
    return unknown if is_shallow(fields) else "nested too deeply"
