"""The three sets of characters that drawings are made of: braille, blocks, and plain ASCII."""

from dataclasses import dataclass

_BRAILLE_BITS = (
    0x01,
    0x02,
    0x04,
    0x40,
    0x08,
    0x10,
    0x20,
    0x80,
)  # down the left column, then down the right one


@dataclass(frozen=True, repr=False)
class Symbols:
    """A cell is a grid of dots, `across` by `down`; `glyphs` has a character for each set of dots, the left column first."""

    name: str
    across: int
    down: int
    glyphs: str
    horizontal: str = "─"
    vertical: str = "│"
    corner: str = "└"
    tick_y: str = "┤"
    tick_x: str = "┬"
    grid: str = "·"
    guide: str = "╌"
    point: str = "●"
    inf_up: str = "▲"
    inf_down: str = "▼"
    nan: str = "×"
    bar: str = "▇"
    box: str = "█"
    left: str = "├"
    right: str = "┤"
    columns: str = "▁▂▃▄▅▆▇█"  # a column of each height, the lowest first
    shades: str = " ░▒▓█"
    is_utf8: bool = True


def _braille() -> str:
    codes = [
        sum(bit for dot, bit in enumerate(_BRAILLE_BITS) if dots >> dot & 1) for dots in range(256)
    ]
    return " " + "".join(chr(0x2800 + code) for code in codes[1:])


BRAILLE = Symbols("braille", 2, 4, _braille())
BLOCK = Symbols("block", 2, 2, " ▘▖▌▝▀▞▛▗▚▄▙▐▜▟█")
ASCII = Symbols(
    "ascii", 1, 3, " '-'.|.|", "-", "|", "+", "+", "+", ".", "-", "*", "^", "v", "x", "=", "#", "|", "|",
    "_.,-=+*#", " .:*#", is_utf8=False,
)  # fmt: skip
ALL = (BRAILLE, BLOCK, ASCII)

_PLAIN = str.maketrans(
    {"µ": "u", "…": "~", "–": "-", "×": "x", "·": "-", "±": "+/-", "≤": "<=", "≥": ">=", "°": ""}
)


def to_ascii(text: str, symbols: Symbols) -> str:
    """Return `text` in characters that the terminal has."""
    if symbols.is_utf8 or text.isascii():
        return text
    return text.translate(_PLAIN).encode("ascii", "replace").decode()
