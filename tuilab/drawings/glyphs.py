"""The marks of verdicts, and how a terminal with or without UTF-8 and colour shows them."""

from collections import Counter
from collections.abc import Iterable
from typing import Literal, NamedTuple, TextIO

from tuilab.record.verdicts import FAILED, Verdict
from tuilab.text.display import has_colour, is_utf8_terminal

# The outcome of a claim, which decides its colour in every view.
Kind = Literal["good", "fair", "bad", "open", "none"]

VERDICT_MARKS: dict[str, tuple[str, str, Kind]] = {  # (mark, mark in ASCII, kind)
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
_ASCII_SPELLINGS = str.maketrans(
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
    """Return how many verdicts have each mark, supported claims first.

    If several verdicts share a mark, the first of them in `Verdict` names it, and the last one
    gives its place. Claims without a verdict are not counted.
    """
    counts: Counter[str] = Counter()
    for verdict in verdicts:
        if verdict in VERDICT_MARKS:
            mark, _, _ = VERDICT_MARKS[verdict]
            counts[mark] += 1
    first_verdicts: dict[str, str] = {}
    for verdict in Verdict:
        mark, _, _ = VERDICT_MARKS[verdict]
        first_verdicts[mark] = first_verdicts.pop(mark, verdict)  # moves the mark to the end
    counted = []
    for mark, verdict in first_verdicts.items():
        if counts[mark]:
            counted.append((verdict, counts[mark]))
    return counted


class Style(NamedTuple):
    """Whether the terminal shows UTF-8 and colour."""

    is_utf8: bool = True
    has_colour: bool = False

    def mark(self, verdict: str) -> str:
        """Return the coloured mark of a verdict. Verdicts never differ by colour alone."""
        utf8_mark, ascii_mark, kind = VERDICT_MARKS.get(verdict, _PENDING)
        mark = utf8_mark if self.is_utf8 else ascii_mark
        return self.paint(mark, _COLOURS[kind])

    def tally(self, verdicts: Iterable[str]) -> str:
        """Return how many verdicts have each mark: `3 ✓ 1 ✗`."""
        parts = []
        for verdict, count in count_marks(verdicts):
            parts.append(f"{count} {self.mark(verdict)}")
        return " ".join(parts)

    def verdict(self, verdict: str, width: int = 0) -> str:
        """Return a verdict's name, padded and coloured."""
        _, _, kind = VERDICT_MARKS.get(verdict, _PENDING)
        return self.paint(verdict.ljust(width), _COLOURS[kind])

    def paint(self, text: str, colour: int) -> str:
        """Return `text` in an ANSI colour if the terminal has colour."""
        if not self.has_colour or not text:
            return text
        return f"\x1b[{colour}m{text}\x1b[0m"

    def bold(self, text: str) -> str:
        return self.paint(text, 1)

    def dim(self, text: str) -> str:
        return self.paint(text, 2)

    def dim_key(self, key: str | None, line: str) -> str:
        """Return the first line of a claim with its `[key]` dimmed."""
        if not key:
            return line
        tag = f"[{key}]"
        return line.replace(tag, self.dim(tag), 1)

    def fit(self, text: str) -> str:
        """Return `text` as it is, or in ASCII if the terminal has no UTF-8."""
        if self.is_utf8:
            return text
        return text.translate(_ASCII_SPELLINGS).encode("ascii", "replace").decode()

    @property
    def dot(self) -> str:
        return "·" if self.is_utf8 else "-"


def style_of(stream: TextIO) -> Style:
    """Return the style of a stream's terminal."""
    return Style(is_utf8=is_utf8_terminal(), has_colour=stream.isatty() and has_colour())
