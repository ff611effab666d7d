"""Arrays as pictures: two cells of the array in one of the screen where there is colour, shades where there is none."""

import base64
import binascii
import math

from tuilab.arrays import NDArray, np
from tuilab.drawings.picture import TONES, Canvas, Picture, fit
from tuilab.drawings.symbols import BRAILLE, Symbols, to_ascii
from tuilab.record.events import ImageShown
from tuilab.text.display import show
from tuilab.text.words import format_number

_QUARTERS = " ▗▄▘▚▙▀▜█"  # by three tones of the upper half, each with three of the lower
_LEAST_FOLDED = 5  # rows, of which two may be words
_BAD = len(TONES)  # the tone of what is not finite


def draw_image(
    image: ImageShown,
    width: int,
    height: int,
    symbols: Symbols = BRAILLE,
    *,
    has_colour: bool = True,
    is_named: bool = True,
) -> Picture:
    """Draw a picture that a scenario showed; a damaged one says so."""
    try:
        content = base64.b64decode(image.cells, validate=True)
    except (binascii.Error, ValueError):
        content = b""
    title = (
        " ".join(part for part in (show(image.title, 60), show(image.arm, 30)) if part)
        if is_named
        else ""
    )
    if not 0 < image.cols * image.rows == len(content):
        canvas = Canvas(width, height)
        canvas.put(
            0, 0, to_ascii(fit(f"{title}: a damaged picture", max(width, 0)), symbols), "muted"
        )
        return canvas.picture()
    levels = np.frombuffer(content, np.uint8).reshape(image.rows, image.cols)
    tones = np.where(levels == 255, _BAD, levels.astype(np.int64) * len(TONES) // 255)
    return _draw(tones, (image.low, image.high), title, width, height, symbols, has_colour)


def _draw(
    tones: NDArray[np.int64],
    ends: tuple[float, float],
    title: str,
    width: int,
    height: int,
    symbols: Symbols,
    has_colour: bool,
) -> Picture:
    canvas = Canvas(width, height)
    is_large = (
        tones.shape[0] > 2 * height or tones.shape[1] > width
    )  # what is left out is told, too
    scale_width = (
        len(title)
        + sum(len(format_number(end, digits=3)) for end in ends)
        + 3
        + len(TONES)
        + 11 * is_large
    )
    is_folded = scale_width > width and height > _LEAST_FOLDED
    room = max(height - 1 - is_folded, 1)
    has_room = (
        _fitted(tones, width // 2, room)[1] == 1
    )  # for a cell of the screen, and its neighbour, to each of the array
    has_two = symbols.is_utf8 and (has_colour or not has_room)
    tones, stride = _fitted(tones, width if has_two else width // 2, room * (2 if has_two else 1))
    scale = "" if has_two and has_colour else _QUARTERS[::4] if has_two else symbols.shades
    if scale:
        (_put_quarters if has_two else _put_shades)(canvas, tones, symbols)
    else:
        _put_halves(canvas, tones, symbols)
    rows = -(-len(tones) // 2) if has_two else len(tones)
    if is_folded:
        canvas.put(0, rows, to_ascii(fit(title, width), symbols), "label")
        rows, title = rows + 1, ""
    _put_scale(canvas, rows, ends, title, stride, bool((tones == _BAD).any()), symbols, scale)
    return canvas.picture()


def _fitted(tones: NDArray[np.int64], columns: int, rows: int) -> tuple[NDArray[np.int64], int]:
    """Return the array so large that it fits: every n-th cell of a large one, each cell of a small one several times."""
    height, width = tones.shape
    stride = max(1, math.ceil(width / max(columns, 1)), math.ceil(height / max(rows, 1)))
    tones = tones[::stride, ::stride]
    times = max(1, min(columns // tones.shape[1], rows // tones.shape[0]))
    return np.repeat(np.repeat(tones, times, axis=0), times, axis=1), stride


def _put_halves(canvas: Canvas, tones: NDArray[np.int64], symbols: Symbols) -> None:
    """Put two rows of the array in one of the screen, the upper in the foreground; what is not finite has its own mark."""
    if len(tones) % 2:
        tones = np.vstack([tones, tones[-1:]]) if len(tones) > 1 else np.vstack([tones, tones])
    for y, (upper, lower) in enumerate(zip(tones[::2].tolist(), tones[1::2].tolist(), strict=True)):
        for x, (above, below) in enumerate(zip(upper, lower, strict=True)):
            if above == _BAD or below == _BAD:
                other = below if above == _BAD else above
                canvas.put(x, y, symbols.nan, f"bad on {TONES[other]}" if other != _BAD else "bad")
            elif above == below:
                canvas.put(x, y, "█", TONES[above])
            else:
                canvas.put(x, y, "▀", f"{TONES[above]} on {TONES[below]}")


def _put_quarters(canvas: Canvas, tones: NDArray[np.int64], symbols: Symbols) -> None:
    """Put two rows of the array in one of the screen without colour: of a half all, one quarter or nothing."""
    tones = np.vstack([tones, np.zeros_like(tones[:1])]) if len(tones) % 2 else tones
    levels = tones * 3 // len(TONES)
    for y, row in enumerate((levels[::2] * 3 + levels[1::2]).tolist()):
        canvas.put(0, y, "".join(_QUARTERS[min(pair, 8)] for pair in row), "value")
    for y, x in zip(*np.nonzero(tones == _BAD), strict=True):
        canvas.put(int(x), int(y) // 2, symbols.nan, "bad")


def _put_shades(canvas: Canvas, tones: NDArray[np.int64], symbols: Symbols) -> None:
    shades = symbols.shades
    for y, row in enumerate(tones.tolist()):
        for x, tone in enumerate(row):
            is_bad = tone == _BAD
            mark = symbols.nan if is_bad else shades[tone * len(shades) // len(TONES)]
            canvas.put(2 * x, y, 2 * mark, "bad" if is_bad else "value")


def _put_scale(
    canvas: Canvas,
    y: int,
    ends: tuple[float, float],
    title: str,
    stride: int,
    has_bad: bool,
    symbols: Symbols,
    scale: str,
) -> None:
    """Write below the picture what the tones mean, in the characters of a scale or else in colours, and what was left out."""
    low, high = (to_ascii(format_number(end, digits=3), symbols) for end in ends)
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
