"""A picture that a scenario showed, as a PNG of its own size: a palette for its numbers, red where there is none."""

import base64
import binascii
import struct
import zlib

from tuilab.record.events import ImageShown

_ANCHORS = (
    (68, 1, 84),
    (59, 82, 139),
    (33, 145, 140),
    (94, 201, 98),
    (253, 231, 37),
)  # dark to light, for every kind of eye
_NOT_FINITE = (230, 40, 60)
_LIMIT = 512  # rows and columns; a recorded picture has at most 128


def png(image: ImageShown) -> bytes:
    """Return the picture's file; empty when it is damaged."""
    try:
        cells = base64.b64decode(image.cells, validate=True)
    except (binascii.Error, ValueError):
        return b""
    if not 0 < image.rows * image.cols == len(cells) or max(image.rows, image.cols) > _LIMIT:
        return b""
    rows = b"".join(b"\0" + cells[at : at + image.cols] for at in range(0, len(cells), image.cols))
    header = struct.pack(">IIBBBBB", image.cols, image.rows, 8, 3, 0, 0, 0)
    parts = (
        (b"IHDR", header),
        (b"PLTE", _palette()),
        (b"IDAT", zlib.compress(rows, 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(_part(kind, data) for kind, data in parts)


def data_address(image: ImageShown) -> str:
    """Return the picture as an address that holds it."""
    data = png(image)
    return f"data:image/png;base64,{base64.b64encode(data).decode()}" if data else ""


def _part(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _palette() -> bytes:
    colours = []
    for level in range(255):
        at, share = divmod(level * (len(_ANCHORS) - 1) / 254, 1)
        low, high = _ANCHORS[int(at)], _ANCHORS[min(int(at) + 1, len(_ANCHORS) - 1)]
        colours.append(tuple(round(a + (b - a) * share) for a, b in zip(low, high, strict=True)))
    return bytes(part for colour in (*colours, _NOT_FINITE) for part in colour)
