"""The files that TensorBoard reads: records with checksums, each an event in the binary form of protocol buffers.

TensorBoard's own writer takes a tenth of a millisecond for a number, nearly all of it for two checksums in Python. Here numpy
makes those of many numbers at once, and nothing has to be installed to write a file.
"""

import struct
from collections.abc import Mapping, Sequence
from functools import cache

from tuilab.arrays import NDArray, np

Bytes = NDArray[np.uint8]  # a row for each record

_STRING, _FLOAT = 7, 1  # types of tensors


def head(wall_s: float) -> bytes:
    """Return the record that a file begins with."""
    return _record(_double(1, wall_s) + _field(3, b"brain.Event:2"))


def scalars(
    tag: str, wall_s: Sequence[float], steps: Sequence[int], values: Sequence[float]
) -> bytes:
    """Return the records of many numbers of one curve; TensorBoard keeps 32 bits of each."""
    count = len(values)
    with np.errstate(over="ignore"):
        numbers = np.asarray(values, "<f8").astype("<f4")
    value = _field(1, tag.encode()) + b"\x15"  # and the number
    inner = b"\x0a" + _varint(len(value) + 4) + value
    before = b"\x2a" + _varint(len(inner) + 4) + inner
    parts = (
        _same(b"\x09", count), _bytes_of(np.asarray(wall_s, "<f8")), _same(b"\x10", count), _varints(steps),
        _same(before, count), _bytes_of(numbers),
    )  # fmt: skip
    events = np.hstack(parts)
    length = struct.pack("<Q", events.shape[1])
    start = _same(length + _masked(_checksum(length)), count)
    return np.hstack((start, events, _bytes_of(_masked_all(_checksums(events))))).tobytes()


def text(tag: str, words: str, wall_s: float, step: int = 0) -> bytes:
    """Return the record of a text, which is shown as Markdown."""
    tensor = _whole(1, _STRING) + _field(2, b"") + _field(8, words.encode(errors="replace"))
    return _event(
        wall_s, step, _field(1, tag.encode()) + _field(9, _plugin("text", b"")) + _field(8, tensor)
    )


def picture(tag: str, png: bytes, rows: int, cols: int, wall_s: float, step: int = 0) -> bytes:
    """Return the record of a picture."""
    image = _whole(1, rows) + _whole(2, cols) + _whole(3, 3) + _field(4, png)
    return _event(wall_s, step, _field(1, tag.encode()) + _field(4, image))


def parameters(values: Mapping[str, bool | int | float | str], group: str, wall_s: float) -> bytes:
    """Return the record of what a run was made with, for the table of hyperparameters."""
    pairs = b"".join(
        _field(1, _field(1, name.encode()) + _field(2, _plain(value)))
        for name, value in values.items()
    )
    info = pairs + _field(4, group.encode()) + _double(5, wall_s)
    return _hyperparameters("session_start_info", _field(3, info), wall_s)


def ending(has_succeeded: bool, wall_s: float) -> bytes:
    """Return the record of how a run ended, for the same table."""
    return _hyperparameters(
        "session_end_info",
        _field(4, _whole(1, 1 if has_succeeded else 2) + _double(2, wall_s)),
        wall_s,
    )


def _hyperparameters(name: str, content: bytes, wall_s: float) -> bytes:
    tensor = _whole(1, _FLOAT) + _field(2, _field(2, b""))  # one that is empty
    tag = _field(1, f"_hparams_/{name}".encode())
    return _event(wall_s, 0, tag + _field(9, _plugin("hparams", content)) + _field(8, tensor))


def _plugin(name: str, content: bytes) -> bytes:
    return _field(1, _field(1, name.encode()) + (_field(2, content) if content else b""))


def _plain(value: bool | int | float | str) -> bytes:
    if isinstance(value, bool):
        return _whole(4, int(value))
    return (
        _field(3, value.encode(errors="replace"))
        if isinstance(value, str)
        else _double(2, float(value))
    )


def _event(wall_s: float, step: int, value: bytes) -> bytes:
    return _record(_double(1, wall_s) + _whole(2, step) + _field(5, _field(1, value)))


# ---- protocol buffers: a number of the field and its kind, then what is in it


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _whole(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _double(number: int, value: float) -> bytes:
    return _varint(number << 3 | 1) + struct.pack("<d", value)


def _varint(value: int) -> bytes:
    return _varints([value]).tobytes()


def _varints(values: Sequence[int]) -> Bytes:
    """Return whole numbers seven bits a byte, all as long as the longest: readers take the zeros at their ends."""
    left = np.asarray(values, "<i8").view("<u8")
    length = max(-(-int(left.max()).bit_length() // 7), 1)
    found = np.empty((len(left), length), np.uint8)
    for at in range(length):
        found[:, at] = left & 0x7F | (0x80 if at < length - 1 else 0)
        left = left >> np.uint64(7)
    return found


# ---- records: length, its checksum, what is in it, the checksum of that


def _record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + _masked(_checksum(length)) + data + _masked(_checksum(data))


def _same(part: bytes, count: int) -> Bytes:
    return np.broadcast_to(np.frombuffer(part, np.uint8), (count, len(part)))


def _bytes_of(column: NDArray[np.generic]) -> Bytes:
    return column.reshape(-1, 1).view(np.uint8)


@cache
def _table() -> NDArray[np.uint32]:
    """Return the table of CRC-32C, which has another polynomial than the CRC-32 of zlib."""
    found = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        found = np.where(found & 1, found >> 1 ^ np.uint32(0x82F63B78), found >> 1)
    return found


def _checksum(data: bytes) -> int:
    table, found = _table().tolist(), 0xFFFFFFFF
    for byte in data:
        found = table[(found ^ byte) & 0xFF] ^ found >> 8
    return found ^ 0xFFFFFFFF


def _checksums(rows: Bytes) -> NDArray[np.uint32]:
    """Return the checksum of every row: byte by byte, but of all rows at once."""
    table, found = _table(), np.full(len(rows), 0xFFFFFFFF, np.uint32)
    for column in rows.T:
        found = table[(found ^ column) & 0xFF] ^ found >> 8
    return found ^ np.uint32(0xFFFFFFFF)


def _masked(checksum: int) -> bytes:
    """Return a checksum as these files have it: turned and shifted, as it is of data that hold checksums themselves."""
    return struct.pack("<I", ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def _masked_all(checksums: NDArray[np.uint32]) -> NDArray[np.uint32]:
    return (checksums >> np.uint32(15) | checksums << np.uint32(17)) + np.uint32(0xA282EAD8)
