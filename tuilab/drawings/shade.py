"""Small arrays as pictures made of characters: for a result that is text."""

import base64
import binascii

from tuilab.record.events import ImageShown
from tuilab.text.display import shorten

_SHADES = (" ░▒▓█", " .:*#")
_NOT_FINITE = ("×", "X")


def shade(image: ImageShown, columns: int, *, is_utf8: bool = True) -> str:
    """Return a picture at most `columns` wide, two characters a cell where there is room; empty when it is damaged."""
    try:
        cells = base64.b64decode(image.cells, validate=True)
    except (binascii.Error, ValueError):
        return ""
    if not 0 < image.cols * image.rows == len(cells):
        return ""
    stride = -(-image.cols // columns)
    wide = 2 if image.cols * 2 <= columns else 1
    shades, bad = _SHADES[not is_utf8], _NOT_FINITE[not is_utf8]
    rows = []
    # a character is about twice as high as it is wide
    for row in range(0, image.rows, stride * (1 if wide == 2 else 2)):
        line = cells[row * image.cols : (row + 1) * image.cols : stride]
        rows.append(
            "".join(
                wide * (bad if cell == 255 else shades[cell * 5 // 255]) for cell in line
            ).rstrip()
        )
    title = shorten(" ".join(part for part in (image.title, image.arm) if part), 60)
    return "\n".join([f"{title}: {image.low:.4g} to {image.high:.4g}", *rows])
