"""Write the event files that TensorBoard reads: records of protocol buffers, with checksums.

TensorBoard's own writer takes 0.1 ms for a number, nearly all of it for two checksums in Python.
Here numpy computes the checksums of many numbers at once, and nothing has to be installed.
"""

import struct
from collections.abc import Mapping, Sequence
from functools import cache

from tuilab.arrays import NDArray, np

ByteRows = NDArray[np.uint8]  # a row of bytes for each record

_TENSOR_STRING, _TENSOR_FLOAT = 7, 1  # element types
_SUCCESS, _FAILURE = 1, 2  # of a run in the table of hyperparameters
_ALL_ONES = 0xFFFFFFFF
_CRC_POLYNOMIAL = 0x82F63B78  # of CRC-32C; the CRC-32 of zlib has another one
_CRC_MASK = 0xA282EAD8


# ---- events


def file_header(wall_s: float) -> bytes:
    """Return the first record of a file."""
    return _frame_record(_double(1, wall_s) + _bytes_field(3, b"brain.Event:2"))


def scalar_records(
    tag: str, wall_s: Sequence[float], steps: Sequence[int], values: Sequence[float]
) -> bytes:
    """Return the records of many numbers of one curve. TensorBoard keeps 32 bits of each.

    A number that is too large for 32 bits becomes infinite. The three sequences have the same
    length, which is at least 1.
    """
    count = len(values)
    with np.errstate(over="ignore"):
        numbers = np.asarray(values, "<f8").astype("<f4")
    value = _bytes_field(1, tag.encode()) + b"\x15"  # the four bytes of a number follow
    summary = b"\x0a" + _varint(len(value) + 4) + value
    prefix = b"\x2a" + _varint(len(summary) + 4) + summary
    # The bytes before each part are its field in the protocol buffer: 1 the time as a double (09),
    # 2 the step as an integer (10), 5 the summary (2a), and in the summary 1 the value (0a).
    columns = (
        _repeat(b"\x09", count),
        _column_bytes(np.asarray(wall_s, "<f8")),
        _repeat(b"\x10", count),
        _varints(steps),
        _repeat(prefix, count),
        _column_bytes(numbers),
    )
    events = np.hstack(columns)
    length = struct.pack("<Q", events.shape[1])
    start = _repeat(length + _mask(_checksum(length)), count)
    end = _column_bytes(_mask_all(_checksums(events)))
    return np.hstack((start, events, end)).tobytes()


def text_record(tag: str, words: str, wall_s: float, step: int = 0) -> bytes:
    """Return the record of a text, which TensorBoard shows as Markdown."""
    text = words.encode(errors="replace")
    tensor = _integer(1, _TENSOR_STRING) + _bytes_field(2, b"") + _bytes_field(8, text)
    value = _bytes_field(1, tag.encode()) + _plugin("text", b"") + _bytes_field(8, tensor)
    return _event(wall_s, step, value)


def image_record(tag: str, png: bytes, rows: int, cols: int, wall_s: float, step: int = 0) -> bytes:
    """Return the record of an image in RGB."""
    image = _integer(1, rows) + _integer(2, cols) + _integer(3, 3) + _bytes_field(4, png)
    return _event(wall_s, step, _bytes_field(1, tag.encode()) + _bytes_field(4, image))


def parameters_record(
    values: Mapping[str, bool | int | float | str], group: str, wall_s: float
) -> bytes:
    """Return the record of the parameters of a run, for the table of hyperparameters."""
    info = b""
    for name, value in values.items():
        info += _bytes_field(1, _bytes_field(1, name.encode()) + _bytes_field(2, _value(value)))
    info += _bytes_field(4, group.encode()) + _double(5, wall_s)
    return _hyperparameter_event("session_start_info", _bytes_field(3, info), wall_s)


def end_record(has_succeeded: bool, wall_s: float) -> bytes:
    """Return the record of the end of a run, for the same table."""
    status = _SUCCESS if has_succeeded else _FAILURE
    info = _integer(1, status) + _double(2, wall_s)
    return _hyperparameter_event("session_end_info", _bytes_field(4, info), wall_s)


def _hyperparameter_event(name: str, content: bytes, wall_s: float) -> bytes:
    tag = _bytes_field(1, f"_hparams_/{name}".encode())
    empty_tensor = _integer(1, _TENSOR_FLOAT) + _bytes_field(2, _bytes_field(2, b""))
    value = tag + _plugin("hparams", content) + _bytes_field(8, empty_tensor)
    return _event(wall_s, 0, value)


def _plugin(name: str, content: bytes) -> bytes:
    """Return the field that names the plugin of a value."""
    plugin = _bytes_field(1, name.encode())
    if content:
        plugin += _bytes_field(2, content)
    return _bytes_field(9, _bytes_field(1, plugin))


def _value(value: bool | int | float | str) -> bytes:
    if isinstance(value, bool):
        return _integer(4, int(value))
    if isinstance(value, str):
        return _bytes_field(3, value.encode(errors="replace"))
    return _double(2, float(value))


def _event(wall_s: float, step: int, value: bytes) -> bytes:
    summary = _bytes_field(5, _bytes_field(1, value))
    return _frame_record(_double(1, wall_s) + _integer(2, step) + summary)


# ---- protocol buffers: the number of a field and its kind, then its content


def _bytes_field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _integer(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _double(number: int, value: float) -> bytes:
    return _varint(number << 3 | 1) + struct.pack("<d", value)


def _varint(value: int) -> bytes:
    return _varints([value]).tobytes()


def _varints(values: Sequence[int]) -> ByteRows:
    """Return integers with seven bits a byte, a row each, all as long as the longest integer.

    Readers accept the zeros at the ends of shorter integers. A negative integer takes ten bytes.
    """
    rest = np.asarray(values, "<i8").view("<u8")
    length = max(-(-int(rest.max()).bit_length() // 7), 1)
    rows = np.empty((len(rest), length), np.uint8)
    for position in range(length):
        is_last = position == length - 1
        rows[:, position] = rest & 0x7F | (0 if is_last else 0x80)
        rest = rest >> np.uint64(7)
    return rows


# ---- records: length, checksum of the length, content, checksum of the content


def _frame_record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + _mask(_checksum(length)) + data + _mask(_checksum(data))


def _repeat(part: bytes, count: int) -> ByteRows:
    return np.broadcast_to(np.frombuffer(part, np.uint8), (count, len(part)))


def _column_bytes(column: NDArray[np.generic]) -> ByteRows:
    return column.reshape(-1, 1).view(np.uint8)


@cache
def _crc_table() -> NDArray[np.uint32]:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, table >> 1 ^ np.uint32(_CRC_POLYNOMIAL), table >> 1)
    return table


def _checksum(data: bytes) -> int:
    table = _crc_table().tolist()
    crc = _ALL_ONES
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ _ALL_ONES


def _checksums(rows: ByteRows) -> NDArray[np.uint32]:
    """Return the checksum of every row: byte by byte, but of all rows at once."""
    table = _crc_table()
    crcs = np.full(len(rows), _ALL_ONES, np.uint32)
    for column in rows.T:
        crcs = table[(crcs ^ column) & 0xFF] ^ crcs >> 8
    return crcs ^ np.uint32(_ALL_ONES)


def _mask(checksum: int) -> bytes:
    """Return a checksum rotated and shifted, as these files store it.

    A checksum of data that contain checksums would be weak otherwise.
    """
    masked = ((checksum >> 15 | checksum << 17) + _CRC_MASK) & _ALL_ONES
    return struct.pack("<I", masked)


def _mask_all(checksums: NDArray[np.uint32]) -> NDArray[np.uint32]:
    return (checksums >> np.uint32(15) | checksums << np.uint32(17)) + np.uint32(_CRC_MASK)
