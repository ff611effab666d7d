"""The marks of verdicts and states, and how they look in a terminal with UTF-8 and colour, or without."""

from collections import Counter
from collections.abc import Iterable
from typing import Literal, NamedTuple, TextIO

from tuilab.record.verdicts import FAILED, Verdict
from tuilab.text.display import has_colour, is_utf8_terminal

Kind = Literal[
    "good", "fair", "bad", "open", "none"
]  # how a claim came out: what gives it its colour in every view

VERDICT_MARKS: dict[str, tuple[str, str, Kind]] = {  # verdict -> (mark, plain mark, kind)
    Verdict.SUPPORTED: ("✓", "+", "good"),
    Verdict.WEAKER: ("≈", "~", "fair"),
    Verdict.NO_DIFFERENCE: ("≈", "=", "fair"),
    Verdict.REFUTED: ("✗", "x", "bad"),
    Verdict.INCONCLUSIVE: ("?", "?", "open"),
    Verdict.INVALID: ("!", "!", "bad"),
    Verdict.NOT_TESTABLE: ("–", "-", "none"),
    FAILED: ("!", "!", "bad"),
}
_PENDING: tuple[str, str, Kind] = ("…", ".", "none")
_COLOURS: dict[Kind, int] = {"good": 32, "fair": 33, "bad": 31, "open": 33, "none": 2}
_ASCII = str.maketrans(
    {
        "µ": "u",
        "…": "...",
        "–": "-",
        "—": "-",
        "×": "x",
        "“": '"',
        "”": '"',
        "’": "'",
        "·": "-",
        "²": "^2",
    }
)


def count_marks(verdicts: Iterable[str]) -> list[tuple[str, int]]:
    """Return how many of some verdicts have each mark, what holds first; what has no verdict is not counted."""
    counts = Counter(VERDICT_MARKS[verdict][0] for verdict in verdicts if verdict in VERDICT_MARKS)
    firsts = {VERDICT_MARKS[verdict][0]: verdict for verdict in reversed(Verdict)}
    return [(firsts[sign], counts[sign]) for sign in reversed(firsts) if counts[sign]]


class Style(NamedTuple):
    """What the terminal can show."""

    is_utf8: bool = True
    has_colour: bool = False

    def mark(self, verdict: str) -> str:
        """Return the mark of a verdict; colour never carries it alone."""
        rich, plain, kind = VERDICT_MARKS.get(verdict, _PENDING)
        return self.paint(rich if self.is_utf8 else plain, _COLOURS[kind])

    def tally(self, verdicts: Iterable[str]) -> str:
        """Return how many verdicts there are of each mark: `3 ✓ 1 ✗`."""
        return " ".join(f"{count} {self.mark(verdict)}" for verdict, count in count_marks(verdicts))

    def verdict(self, verdict: str, width: int = 0) -> str:
        """Return a verdict's name, padded and coloured."""
        return self.paint(verdict.ljust(width), _COLOURS[VERDICT_MARKS.get(verdict, _PENDING)[2]])

    def paint(self, text: str, colour: int) -> str:
        """Return `text` in an ANSI colour, where there is colour."""
        return f"\x1b[{colour}m{text}\x1b[0m" if self.has_colour and text else text

    def bold(self, text: str) -> str:
        return self.paint(text, 1)

    def dim(self, text: str) -> str:
        return self.paint(text, 2)

    def dim_key(self, key: str | None, line: str) -> str:
        """Return the first line of a claim with its key in the background."""
        return line.replace(f"[{key}]", self.dim(f"[{key}]"), 1) if key else line

    def fit(self, text: str) -> str:
        """Return `text` in characters that the terminal has."""
        if self.is_utf8:
            return text
        return text.translate(_ASCII).encode("ascii", "replace").decode()

    @property
    def dot(self) -> str:
        return "·" if self.is_utf8 else "-"


def style_of(stream: TextIO) -> Style:
    """Return what a stream's terminal can show."""
    return Style(is_utf8=is_utf8_terminal(), has_colour=stream.isatty() and has_colour())
