"""The three sets of characters that drawings are made of: braille, blocks, and plain ASCII."""

from dataclasses import dataclass

# The bits of Unicode's braille block, down the left column of dots and then down the right one.
_BRAILLE_BITS = (0x01, 0x02, 0x04, 0x40, 0x08, 0x10, 0x20, 0x80)


@dataclass(frozen=True, repr=False)
class Symbols:
    """One set of characters.

    A cell is a grid of dots, `across` by `down`. `glyphs` has a character for each set of dots. The
    lowest bits of its index are the left column of the cell, from top to bottom.
    """

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
    columns: str = "▁▂▃▄▅▆▇█"  # bars that fill 1/8, 2/8, ... of a cell
    shades: str = " ░▒▓█"
    is_utf8: bool = True


def _braille() -> str:
    """Return a glyph for each set of dots. The blank is a space, which every font has."""
    glyphs = [" "]
    for dots in range(1, 256):
        bits = 0
        for dot, bit in enumerate(_BRAILLE_BITS):
            if dots >> dot & 1:
                bits |= bit
        glyphs.append(chr(0x2800 + bits))
    return "".join(glyphs)


BRAILLE = Symbols("braille", 2, 4, _braille())
BLOCK = Symbols("block", 2, 2, " ▘▖▌▝▀▞▛▗▚▄▙▐▜▟█")
ASCII = Symbols(
    "ascii",
    across=1,
    down=3,
    glyphs=" '-'.|.|",
    horizontal="-",
    vertical="|",
    corner="+",
    tick_y="+",
    tick_x="+",
    grid=".",
    guide="-",
    point="*",
    inf_up="^",
    inf_down="v",
    nan="x",
    bar="=",
    box="#",
    left="|",
    right="|",
    columns="_.,-=+*#",
    shades=" .:*#",
    is_utf8=False,
)
ALL = (BRAILLE, BLOCK, ASCII)

_ASCII_SPELLINGS = str.maketrans(
    {"µ": "u", "…": "~", "–": "-", "×": "x", "·": "-", "±": "+/-", "≤": "<=", "≥": ">=", "°": ""}
)


def to_ascii(text: str, symbols: Symbols) -> str:
    """Return `text` as it is, or in ASCII if the symbols are ASCII."""
    if symbols.is_utf8 or text.isascii():
        return text
    return text.translate(_ASCII_SPELLINGS).encode("ascii", "replace").decode()
