"""Say where the plot of a chart lies in its picture, and how a line is told from other lines."""

from dataclasses import dataclass

from tuilab.drawings.legend import letter as letter_of

WIDTH, HEIGHT = 640, 240
LEFT, RIGHT, TOP, BOTTOM = 62, 616, 22, 208
_COLOURS, _DASHES, _LETTERS = 8, 8, 52  # that the page has for line styles
_OVERSHOOT = 0.5  # share of the plot, by which a line may leave it


@dataclass(frozen=True)
class Tick:
    position: float  # pixels
    label: str


def px(share: float) -> float:
    """Return the pixel of a share of the x axis."""
    return round(LEFT + _limit(share) * (RIGHT - LEFT), 1)


def py(share: float) -> float:
    """Return the pixel of a share of the y axis, which points up."""
    return round(BOTTOM - _limit(share) * (BOTTOM - TOP), 1)


def _limit(share: float) -> float:
    return min(max(share, -_OVERSHOOT), 1 + _OVERSHOOT)


def colour(look: int) -> int:
    """Return the number of the colour of a line style."""
    return look % _COLOURS


def dash(look: int) -> int:
    """Return the number of the dash pattern of a line style.

    The first 64 styles differ from each other: no two of one colour have the same dashes.
    """
    return (look + look // _COLOURS) % _DASHES


def letter(look: int) -> str:
    """Return the letter of a line style, which needs no colour: A to z, then A2 to z2."""
    round_number = look // _LETTERS + 1
    if round_number == 1:
        return letter_of(look)
    return f"{letter_of(look)}{round_number}"
