"""No number, no text and no size makes a drawing fail, and each has exactly the size that was asked for."""

import base64
import math

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from tuilab.drawings.heat import draw_image
from tuilab.drawings.linechart import Guide, LineChart, draw, x_at, x_range
from tuilab.drawings.lines import lines_of, next_bad, next_point, smooth, values_at
from tuilab.drawings.picture import Picture
from tuilab.drawings.spreads import MeasuredSpread, draw_spreads
from tuilab.drawings.strips import Row, Strip, StripMarks, TextRow, draw_strips
from tuilab.drawings.symbols import ALL, Symbols
from tuilab.drawings.units import labels
from tuilab.record.blocks import NoiseFloor
from tuilab.record.events import ImageShown
from tuilab.record.series import Series
from tuilab.text.words import format_number

ODD = [
    math.nan,
    math.inf,
    -math.inf,
    1e308,
    -1e308,
    1.7976931348623157e308,
    5e-324,
    -5e-324,
    0.0,
    -0.0,
    1.0,
    65504.0,
]
numbers = st.one_of(st.sampled_from(ODD), st.floats())
texts = st.text(max_size=12)
widths, heights = st.integers(1, 300), st.integers(1, 80)
symbols = st.sampled_from(ALL)
units = st.sampled_from(["", "bytes", "s", "%", "ms", "°C"])
whole = st.integers(-(2**63), 2**63 - 1)


@st.composite
def many_series(draw_from: st.DrawFn) -> list[Series]:
    found = []
    for _ in range(draw_from(st.integers(0, 3))):
        one = Series("x", draw_from(texts))
        places = st.one_of(
            st.integers(-5, 50), whole, st.floats(allow_nan=False, allow_infinity=False)
        )
        for step, value in draw_from(st.lists(st.tuples(places, numbers), max_size=30)):
            one.add(step, min(abs(int(step)), 2**62), value)
        found.append(one)
    return found


def has_size(picture: Picture, width: int, height: int) -> bool:
    return len(picture.rows) == height and all(
        cell_len("".join(text for text, _ in row)) == width for row in picture.rows
    )


@settings(max_examples=120, suppress_health_check=[HealthCheck.too_slow])
@given(
    found=many_series(), width=widths, height=heights, signs=symbols, unit=units, title=texts, is_timed=st.booleans(),
    is_log=st.booleans(), is_over=st.booleans(), is_smooth=st.booleans(), end=st.none() | numbers, guide=numbers,
    window=st.none() | st.tuples(st.floats(-1e3, 1e3), st.floats(1e-3, 1e20)), cursor=st.none() | numbers,
    is_log_x=st.booleans(), behind=many_series(),
)  # fmt: skip
def test_a_line_chart_takes_anything(
    behind: list[Series],
    found: list[Series], width: int, height: int, signs: Symbols, unit: str, title: str, is_timed: bool, is_log: bool,
    is_over: bool, is_smooth: bool, end: float | None, guide: float, window: tuple[float, float] | None, cursor: float | None,
    is_log_x: bool,
) -> None:  # fmt: skip
    is_log_x = is_log_x and not is_timed
    lines = lines_of(found, is_timed=is_timed, is_log_x=is_log_x)
    chart = LineChart(
        tuple(map(smooth, lines)) if is_smooth else lines, lines if is_smooth else (), title, unit, is_timed, is_log, is_over,
        end, (window[0], window[0] + window[1]) if window else None, cursor, (Guide(guide, title),),
        is_log_x=is_log_x, x_name=title, overlays=lines_of(behind, is_timed=is_timed, is_log_x=is_log_x),
    )  # fmt: skip

    assert "Traceback" not in draw(chart, width, height, signs).text
    low, high = x_range(chart)
    assert low <= high
    x_at(chart, width, height, width // 2, signs)
    place = cursor if cursor is not None and math.isfinite(cursor) else 0.0
    (
        values_at(lines, place),
        next_bad(lines, place),
        next_point(lines, place, place + 1),
        next_point(lines, None, place),
    )


@settings(max_examples=60)
@given(found=many_series(), width=widths, height=heights, signs=symbols)
def test_a_line_chart_has_the_size_that_was_asked_for(
    found: list[Series], width: int, height: int, signs: Symbols
) -> None:
    plain = [Series("x", "模型 é"[:number_]) for number_ in range(len(found))]
    for one, like in zip(plain, found, strict=True):
        for step, high in zip(like.steps, like.highs, strict=True):
            one.add(step, 0, high)

    assert has_size(draw(LineChart(lines_of(plain)), width, height, signs), width, height)


@settings(max_examples=60)
@given(
    values=st.lists(numbers, max_size=12), names=st.lists(texts, min_size=12, max_size=12), width=widths, height=heights,
    signs=symbols, unit=units, noise=st.none() | numbers,
)  # fmt: skip
def test_spreads_take_anything(
    values: list[float],
    names: list[str],
    width: int,
    height: int,
    signs: Symbols,
    unit: str,
    noise: float | None,
) -> None:
    low, high, least, greatest = (values * 4 or [0.0] * 4)[:4]
    spreads = [
        MeasuredSpread(name, value, low, high, least, greatest, 3)
        for name, value in zip(names, values, strict=False)
    ]

    assert (
        len(
            draw_spreads(
                spreads,
                width,
                height,
                signs,
                unit=unit,
                noise=noise if noise is None else NoiseFloor(noise),
            ).rows
        )
        == height
    )
    (
        labels([value for value in values if math.isfinite(value)], 0.1, unit),
        [format_number(value, unit) for value in values],
    )


@settings(max_examples=60)
@given(
    found=many_series(), text=texts, spans=st.lists(st.tuples(numbers, numbers, st.booleans()), max_size=4),
    span=st.tuples(numbers, numbers), cursor=st.none() | numbers, top=st.none() | numbers, width=widths, height=heights,
    signs=symbols,
)  # fmt: skip
def test_strips_take_anything(
    found: list[Series], text: str, spans: list[tuple[float, float, bool]], span: tuple[float, float], cursor: float | None,
    top: float | None, width: int, height: int, signs: Symbols,
) -> None:  # fmt: skip
    strips = [
        Strip(text, line, "%", top, at % 2 == 0, at)
        for at, line in enumerate(lines_of(found, is_timed=True))
    ]
    rows: list[Row] = [
        TextRow("", text),
        *strips,
        StripMarks(text, tuple(spans)),
        TextRow(text, text),
    ]

    assert len(draw_strips(rows, width, height, signs, span=span, cursor=cursor).rows) == height


@settings(max_examples=60)
@given(
    levels=st.binary(min_size=1, max_size=12), title=texts, ends=st.tuples(numbers, numbers), width=widths, height=heights,
    signs=symbols, has_colour=st.booleans(),
)  # fmt: skip
def test_a_picture_takes_anything(
    levels: bytes,
    title: str,
    ends: tuple[float, float],
    width: int,
    height: int,
    signs: Symbols,
    has_colour: bool,
) -> None:
    cells = base64.b64encode(2 * levels).decode()
    image = ImageShown(
        title=title, rows=2, cols=len(levels), cells=cells, low=ends[0], high=ends[1]
    )

    assert len(draw_image(image, width, height, signs, has_colour=has_colour).rows) == height


@given(
    cells=st.text(),
    rows=st.integers(0, 9),
    cols=st.integers(0, 9),
    ends=st.tuples(numbers, numbers),
    width=widths,
)
def test_a_picture_that_makes_no_sense_is_called_damaged(
    cells: str, rows: int, cols: int, ends: tuple[float, float], width: int
) -> None:
    image = ImageShown(title="t", rows=rows, cols=cols, cells=cells, low=ends[0], high=ends[1])

    assert len(draw_image(image, width, 10).rows) == 10
