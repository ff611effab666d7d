"""The frame of a chart: where its plot is in the picture, and how a line looks beside others."""

from dataclasses import dataclass

from tuilab.drawings.legend import letter as letter_of

WIDTH, HEIGHT = 640, 240
LEFT, RIGHT, TOP, BOTTOM = 62, 616, 22, 208
_COLOURS, _DASHES, _LETTERS = 8, 8, 52


@dataclass(frozen=True)
class Tick:
    at: float
    label: str


def px(share: float) -> float:
    """Return where a share of the way along x stands in the picture."""
    return round(LEFT + min(max(share, -0.5), 1.5) * (RIGHT - LEFT), 1)


def py(share: float) -> float:
    """Return where a share of the way up stands in the picture."""
    return round(BOTTOM - min(max(share, -0.5), 1.5) * (BOTTOM - TOP), 1)


def colour(look: int) -> int:
    """Return which of the colours of the page a look has."""
    return look % _COLOURS


def dash(look: int) -> int:
    """Return which of the dashes of the page a look has: of one colour no two looks have the same, until there are 64."""
    return (look + look // _COLOURS) % _DASHES


def letter(look: int) -> str:
    """Return what tells a line apart without its colour: A to z, then A2."""
    again = look // _LETTERS
    return letter_of(look) + (str(again + 1) if again else "")
