"""A picture that a scenario showed, as a PNG: a palette of numbers, red if one is not finite."""

import base64
import binascii
import struct
import zlib

from tuilab.record.events import ImageShown

_ANCHORS = (  # colours (red, green, blue) from dark to light, for colour-blind readers as well
    (68, 1, 84),
    (59, 82, 139),
    (33, 145, 140),
    (94, 201, 98),
    (253, 231, 37),
)
_NOT_FINITE = (230, 40, 60)
_LEVELS = 255  # of numbers; the last colour of the palette is for those that are not finite
_LIMIT = 512  # rows and columns; a recorded picture has at most 128


def png(image: ImageShown) -> bytes:
    """Return the picture as a file; empty if its record is damaged."""
    try:
        cells = base64.b64decode(image.cells, validate=True)
    except (binascii.Error, ValueError):
        return b""
    if not cells or image.rows * image.cols != len(cells):
        return b""
    if max(image.rows, image.cols) > _LIMIT:
        return b""
    rows = []
    for start in range(0, len(cells), image.cols):
        rows.append(b"\0" + cells[start : start + image.cols])  # 0: the row is not filtered
    # 8 bits a cell, of a palette
    # In order: width, height, bits, palette (3), then the only allowed methods of compression,
    # filtering and interlacing.
    header = struct.pack(">IIBBBBB", image.cols, image.rows, 8, 3, 0, 0, 0)
    parts = [
        b"\x89PNG\r\n\x1a\n",
        _part(b"IHDR", header),
        _part(b"PLTE", _palette()),
        _part(b"IDAT", zlib.compress(b"".join(rows), 9)),
        _part(b"IEND", b""),
    ]
    return b"".join(parts)


def data_address(image: ImageShown) -> str:
    """Return the picture as a `data:` address; empty if its record is damaged."""
    data = png(image)
    if not data:
        return ""
    return f"data:image/png;base64,{base64.b64encode(data).decode()}"


def _part(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _palette() -> bytes:
    """Return the colours of the levels, blended between the anchors, then that of not finite."""
    colours = bytearray()
    for level in range(_LEVELS):
        position, share = divmod(level * (len(_ANCHORS) - 1) / (_LEVELS - 1), 1)
        low = _ANCHORS[int(position)]
        high = _ANCHORS[min(int(position) + 1, len(_ANCHORS) - 1)]
        for dark, light in zip(low, high, strict=True):
            colours.append(round(dark + (light - dark) * share))
    return bytes(colours) + bytes(_NOT_FINITE)
