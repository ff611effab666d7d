"""Arrays as pictures.

With colour, a cell of the screen shows two cells of the array. Without colour it shows shades.
"""

import math
from typing import Literal

from tuilab.arrays import NDArray, np
from tuilab.drawings.picture import TONES, Canvas, Picture, fit
from tuilab.drawings.shade import decode_cells
from tuilab.drawings.symbols import BRAILLE, Symbols, to_ascii
from tuilab.record.events import ImageShown
from tuilab.text.display import show
from tuilab.text.words import format_number

# How cells of the array become characters: two of them in the upper and the lower half of a cell,
# by colours or by three levels of filling, or each as two characters of one shade.
_Method = Literal["colours", "quarters", "shades"]

_QUARTERS = " ▗▄▘▚▙▀▜█"  # by 3 x the level of the upper half + the level of the lower half
_TITLE_ROW_ABOVE = 5  # rows: a higher picture may have its title in a row of its own
_BAD = len(TONES)  # the tone of a value that is not finite
_NOT_FINITE = 255  # the level of such a value in the record
_STRIDE_COLUMNS = 11  # for `scale 1:16` behind the scale


def draw_image(
    image: ImageShown,
    width: int,
    height: int,
    symbols: Symbols = BRAILLE,
    *,
    has_colour: bool = True,
    is_named: bool = True,
) -> Picture:
    """Draw a picture that a scenario showed, or a note that its record is damaged."""
    title = ""
    if is_named:
        parts = (show(image.title, 60), show(image.arm, 30))
        title = " ".join(part for part in parts if part)
    cells = decode_cells(image)
    canvas = Canvas(width, height)
    if not cells:
        note = fit(f"{title}: a damaged picture", max(width, 0))
        canvas.put(0, 0, to_ascii(note, symbols), "muted")
        return canvas.picture()
    levels = np.frombuffer(cells, np.uint8).reshape(image.rows, image.cols)
    tones = levels.astype(np.int64) * len(TONES) // _NOT_FINITE
    tones = np.where(levels == _NOT_FINITE, _BAD, tones)
    _put_image(canvas, tones, (image.low, image.high), title, symbols, has_colour=has_colour)
    return canvas.picture()


def _put_image(
    canvas: Canvas,
    tones: NDArray[np.int64],
    ends: tuple[float, float],
    title: str,
    symbols: Symbols,
    *,
    has_colour: bool,
) -> None:
    """Put an array by the method that suits its size, with its scale and title below.

    `tones` has the number of a colour for each cell, or `_BAD` if its value is not finite. `ends`
    are the values of the first and the last tone.
    """
    width = canvas.width
    height = canvas.height
    is_large = tones.shape[0] > 2 * height or tones.shape[1] > width  # the stride may be noted
    scale_columns = len(title) + 3 + len(TONES)
    scale_columns += sum(len(format_number(end, digits=3)) for end in ends)
    if is_large:
        scale_columns += _STRIDE_COLUMNS
    has_title_row = scale_columns > width and height > _TITLE_ROW_ABOVE
    room = max(height - 1 - has_title_row, 1)
    method = _choose_method(tones, width, room, symbols, has_colour=has_colour)
    if method == "shades":
        tones, stride = _fit_array(tones, width // 2, room)
        _put_shades(canvas, tones, symbols)
        rows = len(tones)
        scale = symbols.shades
    else:
        tones, stride = _fit_array(tones, width, 2 * room)
        rows = math.ceil(len(tones) / 2)
        scale = ""
        if method == "quarters":
            _put_quarters(canvas, tones, symbols)
            scale = _QUARTERS[::4]  # the glyphs whose two halves have the same level
        else:
            _put_halves(canvas, tones, symbols)
    if has_title_row:
        canvas.put(0, rows, to_ascii(fit(title, width), symbols), "label")
        rows += 1
        title = ""
    has_bad = bool((tones == _BAD).any())
    _put_scale(canvas, rows, ends, title, stride, scale, symbols, has_bad=has_bad)


def _choose_method(
    tones: NDArray[np.int64], width: int, room: int, symbols: Symbols, *, has_colour: bool
) -> _Method:
    """Return the method that shows most of an array.

    Colours, if there are any. Else shades, which take two characters a cell, if there is room for
    every cell, or without UTF-8. Else quarters: two cells in a character, of three levels each.
    """
    if symbols.is_utf8 and has_colour:
        return "colours"
    _, stride = _fit_array(tones, width // 2, room)
    if symbols.is_utf8 and stride > 1:
        return "quarters"
    return "shades"


def _fit_array(tones: NDArray[np.int64], columns: int, rows: int) -> tuple[NDArray[np.int64], int]:
    """Return an array in a size that fits, and the stride at which it was thinned.

    Of a large array every n-th cell is left. Each cell of a small one is repeated.
    """
    height, width = tones.shape
    stride = max(1, math.ceil(width / max(columns, 1)), math.ceil(height / max(rows, 1)))
    tones = tones[::stride, ::stride]
    times = max(1, min(columns // tones.shape[1], rows // tones.shape[0]))
    return np.repeat(np.repeat(tones, times, axis=0), times, axis=1), stride


def _put_halves(canvas: Canvas, tones: NDArray[np.int64], symbols: Symbols) -> None:
    """Put two rows of the array into one of the screen, the upper one in the foreground.

    A cell with a value that is not finite has a mark of its own.
    """
    if len(tones) % 2:
        tones = np.vstack([tones, tones[-1:]])
    upper_rows = tones[::2].tolist()
    lower_rows = tones[1::2].tolist()
    for y, (upper, lower) in enumerate(zip(upper_rows, lower_rows, strict=True)):
        for x, (above, below) in enumerate(zip(upper, lower, strict=True)):
            if above == _BAD and below == _BAD:
                canvas.put(x, y, symbols.nan, "bad")
            elif above == _BAD or below == _BAD:
                canvas.put(x, y, symbols.nan, f"bad on {TONES[min(above, below)]}")
            elif above == below:
                canvas.put(x, y, "█", TONES[above])
            else:
                canvas.put(x, y, "▀", f"{TONES[above]} on {TONES[below]}")


def _put_quarters(canvas: Canvas, tones: NDArray[np.int64], symbols: Symbols) -> None:
    """Put two rows of the array into one of the screen without colour.

    Each half of a cell is empty, filled by a quarter of the cell, or full.
    """
    if len(tones) % 2:
        tones = np.vstack([tones, np.zeros_like(tones[:1])])
    levels = tones * 3 // len(TONES)
    pairs = np.minimum(levels[::2] * 3 + levels[1::2], len(_QUARTERS) - 1)
    for y, row in enumerate(pairs.tolist()):
        canvas.put(0, y, "".join(_QUARTERS[pair] for pair in row), "value")
    for y, x in zip(*np.nonzero(tones == _BAD), strict=True):
        canvas.put(int(x), int(y) // 2, symbols.nan, "bad")


def _put_shades(canvas: Canvas, tones: NDArray[np.int64], symbols: Symbols) -> None:
    """Put each cell of the array as two characters of one shade."""
    shades = symbols.shades
    for y, row in enumerate(tones.tolist()):
        for x, tone in enumerate(row):
            if tone == _BAD:
                canvas.put(2 * x, y, 2 * symbols.nan, "bad")
            else:
                canvas.put(2 * x, y, 2 * shades[tone * len(shades) // len(TONES)], "value")


def _put_scale(
    canvas: Canvas,
    y: int,
    ends: tuple[float, float],
    title: str,
    stride: int,
    scale: str,
    symbols: Symbols,
    *,
    has_bad: bool,
) -> None:
    """Write the scale below the picture: its characters, or colours if there are none.

    Notes behind it say which mark is not finite, and at which stride the array was thinned.
    """
    low = to_ascii(format_number(ends[0], digits=3), symbols)
    high = to_ascii(format_number(ends[1], digits=3), symbols)
    x = canvas.put(0, y, to_ascii(f"{title} {low} ".lstrip(), symbols), "label")
    if scale:
        x = canvas.put(x, y, scale, "value")
    else:
        for tone in TONES:
            x = canvas.put(x, y, "█", tone)
    x = canvas.put(x, y, f" {high}", "label")
    if has_bad:
        x = canvas.put(x + 2, y, to_ascii(f"{symbols.nan} not finite", symbols), "bad")
    if stride > 1:
        canvas.put(x + 2, y, f"scale 1:{stride}", "muted")
