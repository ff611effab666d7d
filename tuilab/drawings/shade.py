"""Small arrays as pictures made of characters, for a result that is text."""

import base64
import binascii
import math

from tuilab.record.events import ImageShown
from tuilab.text.display import shorten

_SHADES, _ASCII_SHADES = " ░▒▓█", " .:*#"
_NOT_FINITE, _ASCII_NOT_FINITE = "×", "X"


def decode_cells(image: ImageShown) -> bytes:
    """Return the cells of a picture, row by row; empty if it is damaged."""
    try:
        cells = base64.b64decode(image.cells, validate=True)
    except (binascii.Error, ValueError):
        return b""
    if len(cells) != image.rows * image.cols:
        return b""
    return cells


def shade(image: ImageShown, columns: int, *, is_utf8: bool = True) -> str:
    """Return a picture of at most `columns` columns below its title; empty if it is damaged.

    A cell of the array is two characters wide where there is room. A large array is thinned.
    """
    cells = decode_cells(image)
    if not cells:
        return ""
    stride = math.ceil(image.cols / columns)
    marks = [_mark(value, is_utf8=is_utf8) for value in range(256)]
    row_stride = 2 * stride  # a character is about twice as high as it is wide
    if image.cols * 2 <= columns:
        row_stride = stride
        marks = [2 * mark for mark in marks]
    names = [part for part in (image.title, image.arm) if part]
    rows = [f"{shorten(' '.join(names), 60)}: {image.low:.4g} to {image.high:.4g}"]
    for row in range(0, image.rows, row_stride):
        line = cells[row * image.cols : (row + 1) * image.cols : stride]
        text = "".join(marks[cell] for cell in line)
        rows.append(text.rstrip())
    return "\n".join(rows)


def _mark(value: int, *, is_utf8: bool) -> str:
    """Return the character of a cell. 255 stands for a value that is not finite."""
    if value == 255:
        return _NOT_FINITE if is_utf8 else _ASCII_NOT_FINITE
    shades = _ASCII_SHADES
    if is_utf8:
        shades = _SHADES
    return shades[value * len(shades) // 255]
