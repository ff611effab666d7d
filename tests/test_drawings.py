"""Spreads, pictures, and what all drawings are made of, as text."""

import base64
import math
import subprocess
import sys
from collections.abc import Sequence

import pytest

from tuilab.drawings.bars import draw_bars
from tuilab.drawings.heat import draw_image
from tuilab.drawings.interval_line import draw_interval
from tuilab.drawings.linechart import LineChart, draw
from tuilab.drawings.lines import Line, lines_of
from tuilab.drawings.picture import Canvas, fit
from tuilab.drawings.spreads import MeasuredSpread, draw_spreads
from tuilab.drawings.strips import Row, Strip, StripMarks, TextRow, column_values, draw_strips
from tuilab.drawings.symbols import ASCII, BRAILLE
from tuilab.drawings.table import draw_table
from tuilab.record.blocks import NoiseFloor
from tuilab.record.events import BarsShown, ImageShown, TableShown
from tuilab.record.series import Series
from tuilab.text.words import clock, format_number, unit_of

CHECKS = [[0, 254, 0, 254], [254, 0, 254, 255]]


def image(cells: list[list[int]]) -> ImageShown:
    content = base64.b64encode(bytes(cell for row in cells for cell in row)).decode()
    return ImageShown(
        title="right",
        rows=len(cells),
        cols=len(cells[0]),
        cells=content,
        low=0.0,
        high=1.0,
        arm="fp16",
    )


def test_spreads_share_an_axis_and_show_the_noise_floor() -> None:
    spreads = [
        MeasuredSpread("fp32", 0.012, 0.0115, 0.0125, 0.010, 0.015, 0),
        MeasuredSpread("amp", 0.006, 0.0058, 0.0062, 0.005, 0.007, 1),
    ]

    assert draw_spreads(
        spreads, 60, 4, BRAILLE, unit="s", noise=NoiseFloor(0.05)
    ).text == SPREADS.strip("\n")
    assert draw_spreads(
        spreads, 60, 4, BRAILLE, unit="s", noise=NoiseFloor(0.05, "amp")
    ).text == OF_AMP.strip("\n")
    of_another = draw_spreads(
        spreads, 60, 4, BRAILLE, unit="s", noise=NoiseFloor(0.05, "bf16")
    ).text
    assert of_another == draw_spreads(spreads, 60, 4, BRAILLE, unit="s").text


SPREADS = """
A fp32                                ├───▇▇█▇───────┤ 12 ms
B amp                 ├──█▇─┤             ░░░░░         6 ms
       0            5 ms            10 ms          15 ms
░ noise floor ±5 %
"""
OF_AMP = """
A fp32                  ░░░           ├───▇▇█▇───────┤ 12 ms
B amp                 ├──█▇─┤                           6 ms
       0            5 ms            10 ms          15 ms
░ noise floor ±5 % (amp against itself)
"""


def test_arms_that_differ_at_their_ends_alone_are_two_names_on_the_screens() -> None:
    ones = [Series("loss", arm=f"{'llama_7b_bf16_' * 8}{end}") for end in ("one", "two")]
    for one in ones:
        one.add(0, 0, 1.0)
    spreads = [
        MeasuredSpread(one.arm, 0.1, 0.1, 0.1, 0.1, 0.1, look) for look, one in enumerate(ones)
    ]
    timed = draw_spreads(spreads, 60, 6).text
    charted = draw(LineChart(lines_of(ones), title="loss"), 60, 12).text

    for text in (timed, charted):
        assert "A llama" in text and "B llama" in text and "one" in text and "two" in text


def test_a_picture_is_two_cells_in_one_where_there_is_colour() -> None:
    picture = draw_image(image(CHECKS), 4, 2)

    assert picture.rows[0] == (
        ("▀", "tone0 on tone7"),
        ("▀", "tone7 on tone0"),
        ("▀", "tone0 on tone7"),
        ("×", "bad on tone7"),
    )


def test_a_picture_is_shades_where_there_is_no_colour() -> None:
    plain = draw_image(image(CHECKS), 30, 3, ASCII, has_colour=False).text

    assert plain.splitlines()[:2] == ["  ##  ##", "##  ##xx"]
    assert (
        draw_image(image(CHECKS), 30, 3, BRAILLE, has_colour=False).text.splitlines()[0]
        == "  ██  ██"
    )
    assert "right fp16 0  .:*# 1  x not fi" in plain


def test_a_large_picture_says_that_cells_were_left_out() -> None:
    assert "scale 1:4" in draw_image(image([[0, 254] * 40] * 40), 60, 6).text


def test_without_colour_a_picture_that_has_no_room_is_made_of_halves_of_cells() -> None:
    board = [[254 * ((x // 2 + y // 2) % 2) for x in range(16)] for y in range(16)]
    drawn = draw_image(image(board), 16, 10, BRAILLE, has_colour=False).text.splitlines()

    assert drawn[0] == "  ██" * 4 and drawn[1] == "██  " * 3 + "██"
    assert "scale" not in drawn[-1] and " ▚█" in drawn[-1]


def test_a_damaged_picture_is_called_so() -> None:
    assert (
        draw_image(
            ImageShown(title="t", rows=9, cols=9, cells="!", low=0, high=1), 40, 2
        ).text.strip()
        == "t: a damaged picture"
    )


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (65504, "", "65504"), (100003, "", "100003"), (123456789.4, "", "123456789"), (1234567890, "", "1.235e9"),
        (0.00001234, "", "1.234e-5"), (1e308, "", "1e308"), (0, "bytes", "0 B"),
        (1536, "bytes", "1.5 KiB"), (80 * 2**30, "bytes", "80 GiB"), (0.00025, "s", "250 µs"), (12.5, "%", "12.5 %"),
        (-math.inf, "s", "-Inf"), (math.nan, "", "NaN"), (90, "time", "1:30"),
    ],
)  # fmt: skip
def test_numbers_are_short(value: float, unit: str, text: str) -> None:
    assert format_number(value, unit) == text


def test_times_are_clocks() -> None:
    assert [clock(seconds) for seconds in (0, 5, 65, 3661)] == ["0 s", "5 s", "1:05", "1:01:01"]


def test_the_name_of_a_series_tells_its_unit() -> None:
    assert [
        unit_of(name)
        for name in ("rss_bytes", "wait_ms", "cpu_percent", "loss", "GPU-1 power_w", "gb_per_s")
    ] == [
        "bytes",
        "ms",
        "%",
        "",
        "W",
        "",
    ]


def test_wide_characters_never_move_what_follows() -> None:
    canvas = Canvas(8, 1)
    canvas.put(0, 0, "模型模型")
    canvas.put(3, 0, "x")
    canvas.put(7, 0, "模")

    assert canvas.picture().text == "模 x模"
    assert fit("模型模型", 5) == "模型…"


def test_accents_and_vowel_signs_stay_with_the_character_before_them() -> None:
    canvas = Canvas(8, 2)
    canvas.put(0, 0, "ภาษาที่นี่")
    canvas.put(0, 1, "e\u0301值\u0302xxxxxx")

    assert canvas.picture().text == "ภาษาที่นี่\ne\u0301值\u0302xxxxx"
    canvas.put(0, 1, "ea")
    assert canvas.picture().text.splitlines()[1] == "ea xxxxx"
    assert fit("ภาษาที่นี่", 5) == "ภาษา…"
    assert fit("ภาษาที่นี่", 4) == "ภาษ…"
    assert fit("e\u0301e\u0301e", 2) == "e\u0301…"


def test_tables_and_bars_have_their_words_whole() -> None:
    table = TableShown(title="ภาษาที่นี่", head=["ที่", "n"], rows=[["e\u0301", 1]])
    bars = BarsShown(title="ภาษาที่นี่", names=["ที่"], values=[1.0], unit="")

    assert draw_table(table, 20).text.splitlines() == ["ภาษาที่นี่", "ที่  n", "────", "e\u0301  1"]
    assert "ที่ █" in draw_bars(bars, 20).text


def test_blanks_have_no_role_so_that_they_do_not_change_with_their_neighbours() -> None:
    canvas = Canvas(5, 1)
    canvas.put(0, 0, "a b", "title")

    assert canvas.picture().rows == ((("a", "title"), (" ", ""), ("b", "title"), ("  ", "")),)


def test_drawings_know_neither_the_screens_nor_torch() -> None:
    modules = ["heat", "linechart", "spreads"]
    code = f"import sys, {', '.join(f'tuilab.drawings.{name}' for name in modules)}; print(*sys.modules)"

    loaded = set(
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.split()
    )

    assert loaded & {"torch", "textual", "scipy", "plotext"} == set()


def made_line(values: Sequence[float], every_s: float = 1.0) -> Line:
    series = Series("x", "")
    for at, value in enumerate(values):
        series.add(at, round(at * every_s * 1e9), value)
    return lines_of([series], is_timed=True)[0]


def test_strips_share_an_axis_of_time_and_have_their_last_values() -> None:
    rows: list[Row] = [
        Strip("busy", made_line([0, 50, 100, 100]), "%", 100.0),
        Strip("clock", made_line([2000, 1000, 2000, 2000]), "MHz", is_least=True, style=1),
        StripMarks("held", ((1.0, 2.0, True), (2.5, 3.0, False))),
        TextRow("others", "alice (pid 7) 3 GiB"),
    ]

    assert draw_strips(rows, 40, 5, span=(0.0, 3.0)).text.splitlines() == [
        "busy   ▁▁▁▁▁▁▁▄▄▄▄▄▄▄▄█████████    100 %",
        "clock  ███████▄▄▄▄▄▄▄▄▄████████ 2000 MHz",
        "held   ········█████████···▒▒▒▒",
        "others alice (pid 7) 3 GiB",
        "                     2 s            last",
    ]


def test_of_marks_that_share_a_column_the_grave_one_is_seen() -> None:
    (row,) = draw_strips(
        [StripMarks("held", ((0.0, 1.0, True), (1.0, 2.0, False)))], 20, 1, span=(0.0, 1000.0)
    ).rows

    assert ("█", "bad") in row and not [text for text, role in row if role == "guide"]


def test_at_the_cursor_strips_have_the_values_of_that_moment() -> None:
    rows: list[Row] = [Strip("busy", made_line([0, 50, 100, 100]), "%", 100.0)]

    assert draw_strips(rows, 30, 1, span=(0.0, 3.0), cursor=1.2).text.endswith("50 %")
    assert draw_strips(rows, 30, 2, span=(0.0, 3.0), cursor=1.2).text.endswith("at 1.2 s")
    (row,) = draw_strips(rows, 30, 1, span=(0.0, 3.0), cursor=1.2).rows
    assert [text for text, role in row if role == "cursor"] == ["▄"]
    assert draw_strips(rows, 30, 1, span=(0.0, 3.0), cursor=-1.0).text.endswith("n/a")


def test_a_strip_has_gaps_where_nothing_was_read_for_long() -> None:
    times = [*range(10), *range(40, 50)]
    series = Series("x", "")
    for at, second in enumerate(times):
        series.add(at, second * 10**9, 1.0)
    (line,) = lines_of([series], is_timed=True)

    found = column_values(Strip("x", line), 0.0, 50.0, 10)
    assert [value == value for value in found.tolist()] == [
        True,
        True,
        *[False] * 5,
        True,
        True,
        True,
    ]
    ends = [
        draw_strips([Strip("x", line)], 30, 1, span=(0.0, 50.0), cursor=at).text.split()[-1]
        for at in (9.5, 25.0, 41.0)
    ]
    assert ends == ["1", "n/a", "1"]


def test_strips_grow_with_the_room_and_what_does_not_fit_is_counted() -> None:
    rows: list[Row] = [
        TextRow("", "GPU 0"),
        Strip("busy", made_line([50, 100]), "%", 100.0),
        StripMarks("held"),
        TextRow("others", "nobody"),
    ]

    assert draw_strips(rows, 30, 8, span=(0.0, 1.0)).text.splitlines() == [
        "GPU 0",
        "                       █",
        "                       █",
        "       █████████████████",
        "busy   █████████████████ 100 %",
        "held   ·················",
        "others nobody",
        "             0.5 s        last",
    ]
    assert (
        draw_strips(rows, 30, 2, span=(0.0, 1.0)).text.splitlines()[-1]
        == "busy   ▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄█    +2"
    )


@pytest.mark.parametrize(
    ("ratio", "line"),
    [
        ((280, 312, 350, 100), "  1                           |100  [*"),
        ((0.9, 1.05, 1.2, 1.3), "  [---------1----*------------]   1.3|"),
        ((1.2, 1.5, 1.8, 1.3), "  1          [----|-------*----------]"),
        ((1.0, 1.0, 1.0, 1.0), "  *1"),
    ],
)
def test_interval_line_shows_the_estimate_next_to_its_bound(
    ratio: tuple[float, float, float, float], line: str
) -> None:
    assert draw_interval(*ratio, 40, ASCII) == line


@pytest.mark.parametrize("ratio", [(0.0, 1.0, 2.0, 1.3), (1.0, math.nan, 2.0, 1.3)])
def test_interval_line_of_an_impossible_ratio_is_empty(
    ratio: tuple[float, float, float, float],
) -> None:
    assert draw_interval(*ratio, 40, ASCII) == ""
    assert draw_interval(1.0, 1.1, 1.2, 1.3, 8, ASCII) == ""
