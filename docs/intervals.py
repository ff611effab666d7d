"""Draws which verdict follows from which interval, for the page about verdicts.

    python docs/intervals.py     writes docs/at-least.svg and docs/at-most.svg

The rule itself judges each example, so that a picture cannot show a verdict that tuilab would not give.
"""

import html
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))

from tuilab.judging.evidence import Evidence
from tuilab.judging.judgement import Judgement
from tuilab.judging.ratio import judge_ratio
from tuilab.record.events import ClaimDeclared

HERE = Path(__file__).resolve().parent
# Pixels. The background is part of the picture: it is read on light and on dark pages.
WIDTH, TOP, ROW, BOTTOM = 800, 84, 38, 56
PLOT_LEFT, PLOT_RIGHT = 280, 772
SMALLEST, LARGEST = 0.8, 1.8  # ratios at the ends of the logarithmic axis
TICKS = (0.8, 0.9, 1.0, 1.2, 1.4, 1.6, 1.8)
BACKGROUND, FRAME, INK, QUIET = "#ffffff", "#b8b8b8", "#222222", "#595959"
MARGIN_COLOUR, BOUND_COLOUR, INTERVAL_COLOUR = "#e9e1c8", "#b23a22", "#1f6080"


class Example(NamedTuple):
    """A measured ratio, and how far the repeats differ from it, as a share."""

    ratio: float
    spread: float


class Picture(NamedTuple):
    """A claim and examples of what may be measured for it."""

    name: str
    claim: ClaimDeclared
    examples: list[Example]


PICTURES = [
    Picture(
        "at-least",
        ClaimDeclared(
            text="a takes at least 1.3 times as long as b",
            over="a",
            under="b",
            op="at_least",
            bound=1.3,
        ),
        [
            Example(1.5, 0.06),
            Example(1.16, 0.05),
            Example(1.0, 0.016),
            Example(1.06, 0.06),
            Example(0.89, 0.04),
            Example(1.24, 0.11),
        ],
    ),
    Picture(
        "at-most",
        ClaimDeclared(
            text="a takes at most 1.3 times as long as b",
            over="a",
            under="b",
            op="at_most",
            bound=1.3,
        ),
        [Example(1.08, 0.06), Example(1.5, 0.06), Example(1.28, 0.08)],
    ),
]


def judge(claim: ClaimDeclared, example: Example) -> Judgement:
    """Return the judgement on six repeats, half of them above the ratio, with controls that are in order."""
    deviation = math.log1p(example.spread)
    rounds = [[math.log(example.ratio) + sign * deviation] for sign in (1, -1, 1, -1, 1, -1)]
    same = [[sign * 0.001] for sign in (1, -1, 1, -1, 1, -1)]
    delayed = [[math.log(1.05) + ratio] for (ratio,) in same]
    return judge_ratio(claim, Evidence(rounds, same=same, delayed=delayed, is_single_process=False))


def draw(picture: Picture) -> str:
    """Return the picture as SVG."""
    height = TOP + ROW * len(picture.examples) + BOTTOM
    axis_y = height - BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="15">',
        f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="6" fill="{BACKGROUND}" stroke="{FRAME}"/>',
        text(20, 32, f"Claim: {picture.claim.text}", 'font-weight="bold"'),
        *draw_background(picture.claim, axis_y),
    ]
    for number, example in enumerate(picture.examples):
        parts += draw_example(judge(picture.claim, example), TOP + ROW * number + ROW // 2)
    return "\n".join([*parts, "</svg>\n"])


def draw_background(claim: ClaimDeclared, axis_y: int) -> Iterator[str]:
    """Yield the margin, the bound and the axis."""
    left, right = place(1 / (1 + claim.margin)), place(1 + claim.margin)
    bound = place(claim.bound)
    yield f'<rect x="{left}" y="{TOP - 8}" width="{right - left:.1f}" height="{axis_y - TOP + 8}" fill="{MARGIN_COLOUR}"/>'
    yield text(
        place(1),
        TOP - 16,
        f"margin: 1 ± {claim.margin:.0%}".replace("%", " %"),
        'text-anchor="middle"',
        QUIET,
    )
    yield line(
        bound,
        TOP - 8,
        bound,
        axis_y,
        f'stroke="{BOUND_COLOUR}" stroke-width="2" stroke-dasharray="6 4"',
    )
    yield text(bound, TOP - 16, f"bound: {claim.bound:g}", 'text-anchor="middle"', BOUND_COLOUR)
    yield line(PLOT_LEFT, axis_y, PLOT_RIGHT, axis_y, f'stroke="{INK}"')
    for tick in TICKS:
        yield line(place(tick), axis_y, place(tick), axis_y + 6, f'stroke="{INK}"')
        yield text(place(tick), axis_y + 23, f"{tick:g}", 'text-anchor="middle" font-size="13"')
    middle = (PLOT_LEFT + PLOT_RIGHT) / 2
    label = "measured: a takes so many times as long as b"
    yield text(middle, axis_y + 44, label, 'text-anchor="middle" font-size="13"', QUIET)


def draw_example(judgement: Judgement, y: int) -> Iterator[str]:
    """Yield a verdict and its interval, with a dot at the estimate."""
    assert judgement.low is not None
    assert judgement.high is not None
    assert judgement.estimate is not None
    low, high = place(judgement.low), place(judgement.high)
    style = f'stroke="{INTERVAL_COLOUR}" stroke-width="3"'
    yield text(20, y + 5, str(judgement.verdict))
    yield line(low, y, high, y, style)
    for end in (low, high):
        yield line(end, y - 8, end, y + 8, style)
    yield f'<circle cx="{place(judgement.estimate)}" cy="{y}" r="5" fill="{INTERVAL_COLOUR}"/>'


def place(ratio: float) -> float:
    """Return where a ratio is along the logarithmic axis, in pixels."""
    share = math.log(ratio / SMALLEST) / math.log(LARGEST / SMALLEST)
    return round(PLOT_LEFT + share * (PLOT_RIGHT - PLOT_LEFT), 1)


def line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" {style}/>'


def text(x: float, y: float, words: str, more: str = "", colour: str = INK) -> str:
    return f'<text x="{x}" y="{y}" fill="{colour}"{" " if more else ""}{more}>{html.escape(words)}</text>'


if __name__ == "__main__":
    for picture in PICTURES:
        (HERE / f"{picture.name}.svg").write_text(draw(picture))
