"""Spreads of arms and the interval of an estimate as shapes, over an axis of their own."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tuilab.arrays import np
from tuilab.drawings.spreads import MeasuredSpread, find_base, spread_axis
from tuilab.record.blocks import Measure, NoiseFloor
from tuilab.record.finding_words import noise_words
from tuilab.reports.charts.frame import WIDTH, Tick, letter
from tuilab.text.display import told_apart
from tuilab.text.words import format_number

_TIME = Measure()
_NAME_WIDTH = 56  # characters that have room above a row
_ROW, _FIRST = 40, 28  # pixels of a row, and down to the middle of the first one


@dataclass(frozen=True)
class SpreadRow:
    """The spread of one arm."""

    spread: MeasuredSpread
    letter: str
    label: str  # for the eye
    words: str
    ends: tuple[str, ...]  # least, middle half, greatest in words
    y: float
    least: float
    low: float
    mid: float
    high: float
    greatest: float


@dataclass(frozen=True)
class TimingShapes:
    rows: tuple[SpreadRow, ...]
    ticks: tuple[Tick, ...]
    band: tuple[float, float] | None  # the noise floor around the arm that it is of
    noise: str
    height: int
    title: str = "time of a call"
    sample: str = "block"
    width: int = WIDTH
    left: int = 8
    right: int = 560

    @property
    def has_asides(self) -> bool:
        """Whether a row shows the median on the other clock."""
        return any(row.spread.aside for row in self.rows)


def draw_spreads(
    found: Sequence[MeasuredSpread],
    noise: NoiseFloor | None,
    measure: Measure = _TIME,
    *,
    title: str = "time of a call",
) -> TimingShapes:
    """Return the shapes of the arms' times, or of what was measured instead, over one axis."""
    unit = measure.unit
    known = [one for one in found if all(map(math.isfinite, (one.least, one.greatest)))]
    if not known:
        return TimingShapes((), (), None, "", 0)
    axis = spread_axis(known, unit, 5)
    frame = TimingShapes((), (), None, "", _ROW * len(known) + 38, title)

    def place(value: float) -> float:
        return round(
            frame.left + min(max(axis.share(value), 0.0), 1.0) * (frame.right - frame.left), 1
        )

    labels = told_apart([one.label for one in known], _NAME_WIDTH)
    rows = []
    for at, one in enumerate(known):
        places = (
            place(one.least),
            place(one.low),
            place(one.value),
            place(one.high),
            place(one.greatest),
        )
        ends = tuple(
            format_number(end, unit, 3) for end in (one.least, one.low, one.high, one.greatest)
        )
        row = SpreadRow(
            one,
            letter(one.style),
            labels[one.label],
            format_number(one.value, unit, 3),
            ends,
            float(_FIRST + _ROW * at),
            *places,
        )
        rows.append(row)
    ticks = [
        Tick(round(frame.left + share * (frame.right - frame.left), 1), label)
        for share, label in axis.ticks
        if 0 <= share <= 1
    ]
    base, band, words = find_base(known, noise), None, ""
    if base and noise:
        band = place(base.value * (1 - noise.share)), place(base.value * (1 + noise.share))
        words = noise_words(noise)
    return TimingShapes(tuple(rows), tuple(ticks), band, words, frame.height, title, measure.sample)


@dataclass(frozen=True)
class Interval:
    """An estimate with its interval against what was claimed, on a logarithmic axis around 1."""

    low: float
    mid: float
    high: float
    one: float
    bound: float
    band: tuple[float, float] | None  # the noise floor around 1
    label: str = ""  # of the bound
    has_one: bool = True  # whether there is room for a label of 1, too
    width: int = 180
    height: int = 34


def draw_interval(
    estimate: float, low: float, high: float, bound: float, noise: float | None
) -> Interval | None:
    """Return the shapes of an interval; None where one of the numbers has no logarithm."""
    values = [estimate, low, high, bound, 1.0]
    if not all(0 < value < math.inf for value in values):
        return None
    logs = np.log(np.array(values))
    least, greatest = float(logs.min()), float(logs.max())
    span = max(greatest - least, 0.02)

    def place(value: float) -> float:
        return round(8 + (math.log(value) - least) / span * 164, 1)

    band = None
    if noise and noise < 1:
        band = (max(place(1 - noise), 1.0), min(place(1 + noise), 179.0))
    label = f"{bound:.4g}×"
    has_one = abs(place(bound) - place(1.0)) > 12 + 4 * len(label)
    return Interval(
        place(low), place(estimate), place(high), place(1.0), place(bound), band, label, has_one
    )
