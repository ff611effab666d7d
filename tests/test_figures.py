"""Bars, tables and lanes: as text in braille and in plain characters, wide and narrow, and in every report."""

import json
import math
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.made_runs import make_run, started
from tests.report_aids import Elements, find_misfits, json_document
from tests.test_drawings_never_raise import has_size, numbers, symbols, texts
from tuilab.cli.schemas import schema_of
from tuilab.drawings.bars import draw_bars
from tuilab.drawings.figures import draw_figure, draw_figures, figures_of
from tuilab.drawings.lanes import Lanes, draw_lanes, lanes_of
from tuilab.drawings.symbols import ASCII
from tuilab.drawings.table import draw_table
from tuilab.record.events import (
    BarsShown,
    Event,
    SpanShown,
    StateChanged,
    TableShown,
    WorkerStarted,
)
from tuilab.record.folding.fold import fold
from tuilab.record.summary import RunSummary
from tuilab.reports.formats import html, md
from tuilab.reports.reported_run import read_subject

LOGITS = BarsShown(
    title="largest logit", names=["float32", "float16", "none"], values=[88.72, 11.0859, math.nan]
)
CALLS = TableShown(
    title="calls",
    head=["call", "raises", "n"],
    rows=[["x @ y", "", 1], ["a + b", "sizes 2 and 4 must match", 1_048_576]],
)


def spans(*found: tuple[str, float, float, str], **same: Any) -> list[Event]:
    return [
        SpanShown(lane=lane, began=began, ended=ended, name=name, **same)
        for lane, began, ended, name in found
    ]


def folded(*streams: tuple[str, list[Event]]) -> RunSummary:
    return fold([(stream, event) for stream, found in streams for event in found])  # type: ignore[misc]


def lanes(*found: tuple[str, float, float, str], **same: Any) -> Lanes:
    (picture,) = lanes_of(folded(("worker-0", spans(*found, **same))))
    return picture


def test_bars_begin_at_zero_and_say_their_values() -> None:
    assert draw_bars(LOGITS, 40).text == (
        "largest logit\n"
        "float32 █████████████████████████  88.72\n"
        "float16 ███▏                      11.086\n"
        "none    ×                            NaN"
    )
    assert draw_bars(LOGITS, 40, ASCII).text == (
        "largest logit\n"
        "float32 #########################  88.72\n"
        "float16 ###                       11.086\n"
        "none    x                            NaN"
    )


def test_a_bar_below_zero_goes_the_other_way_and_bytes_are_told_as_everywhere() -> None:
    found = BarsShown(title="saved", names=["more", "less"], values=[2048.0, -1024.0], unit="B")

    assert (
        draw_bars(found, 30).text
        == "saved\nmore       ████████████  2 KiB\nless ██████             -1 KiB"
    )


def test_a_table_aligns_numbers_and_folds_texts() -> None:
    assert draw_table(CALLS, 60).text == (
        "calls\n"
        "call   raises                          n\n"
        "────────────────────────────────────────\n"
        "x @ y                                  1\n"
        "a + b  sizes 2 and 4 must match  1048576"
    )
    assert draw_table(CALLS, 30, ASCII).text == (
        "calls\n"
        "call   raises                n\n"
        "------------------------------\n"
        "x @ y                        1\n"
        "a + b  sizes 2 and 4   1048576\n"
        "       must match"
    )


def test_lanes_have_an_axis_with_a_unit_that_begins_with_the_first_span() -> None:
    found = lanes(
        ("worker", 100.0, 100.04, "loads"),
        ("worker", 100.04, 100.08, "loads"),
        ("loop", 100.04, 100.05, "trains"),
        arm="1 worker",
    )

    assert draw_lanes(found, 41).text == (
        "1 worker  █ loads  ▒ trains\n"
        "worker │█████████████████▐███████████████\n"
        "  loop │                 ▒▒▒▒\n"
        "       └┬────────────────────┬───────────\n"
        "        0                  50 ms"
    )


def test_lanes_over_steps_are_told_as_they_are() -> None:
    found = lanes(("a", 3, 5, "up"), ("a", 6, 7, "down"), ("b", 5, 6, ""), unit="steps")

    assert draw_lanes(found, 40, ASCII).text == (
        "lanes  # up  = down\n"
        "a |##################          =========\n"
        "b |                  ++++++++++\n"
        "  ++--------+--------+---------+--------\n"
        "   3        4        5         6   steps"
    )


def test_the_lanes_of_a_repeat_are_one_picture_whoever_of_it_showed_them() -> None:
    repeats = {"worker-0": 0, "worker-0-a": 0, "worker-1": 1}
    started: list[Event] = [
        WorkerStarted(writer=name, pid=1, start=1, repeat=at) for name, at in repeats.items()
    ]
    streams = [
        (name, spans((name, 0, 1, "runs"))) for name in ("worker-1", "worker-0-a", "worker-0")
    ]

    (picture,) = lanes_of(folded(("supervisor", started), *streams))

    assert picture.lanes == ["worker-0-a", "worker-0"]


def test_the_last_of_a_title_is_shown_where_the_first_stood() -> None:
    older, newer = (
        BarsShown(t=1, title="a", names=["x"], values=[1.0]),
        BarsShown(t=3, title="a", names=["x"], values=[2.0]),
    )
    table = TableShown(t=2, title="b", rows=[])

    for order in ([older, table, newer], [newer, table, older]):
        assert figures_of(folded(("worker-0", order))) == [newer, table]


@settings(max_examples=60)
@given(
    names=st.lists(texts, max_size=6), values=st.lists(numbers, min_size=6, max_size=6), unit=texts, width=st.integers(0, 200),
    rows=st.lists(st.lists(texts | numbers | st.integers(), max_size=4), max_size=4), signs=symbols,
)  # fmt: skip
def test_figures_take_anything(
    names: list[str],
    values: list[float],
    unit: str,
    width: int,
    rows: list[list[str | float]],
    signs: object,
) -> None:
    ends = zip(names, values, values[::-1], strict=False)
    given_spans = [
        SpanShown(lane=name, began=began, ended=ended, name=name, unit=unit)
        for name, began, ended in ends
    ]
    bars = BarsShown(title=unit, names=names, values=values[: len(names)], unit=unit)
    summary = folded(
        ("worker-0", [bars, TableShown(title=unit + "2", rows=rows, head=names), *given_spans])
    )
    figures = figures_of(summary)

    are_plain = all(str(text).isascii() for text in (*names, unit, *rows))
    for figure in figures:
        picture = draw_figure(figure, width, signs)  # type: ignore[arg-type]
        assert has_size(picture, width, len(picture.rows)) or not are_plain
    draw_figures(figures, width)


def test_every_report_has_the_figures(tmp_path: Path) -> None:
    run_dir = make_run(
        tmp_path,
        started(),
        LOGITS,
        CALLS,
        *spans(("worker", 0.0, 0.5, "loads"), ("loop", 0.5, 1.0, "trains"), arm="2 workers"),
        StateChanged(state="succeeded"),
    )
    subject = read_subject(run_dir)
    page, (run,) = Elements(html.render([subject])), json_document([subject])["runs"]
    text = md.render([subject])

    assert [len(page.of("rect", class_=f"span f{look} s{look} o{look}")) for look in (0, 1)] == [
        2,
        2,
    ]  # one each is in the legend
    assert ("88.72" in page.text, "sizes 2 and 4 must match" in page.text) == (True, True)
    assert "| a + b | sizes 2 and 4 must match | 1048576 |" in text
    assert "float16 ███" in text and "2 workers  █ loads  ▒ trains" in text
    assert run["bars"] == [
        {
            "title": "largest logit",
            "unit": "",
            "names": ["float32", "float16", "none"],
            "values": [88.72, 11.0859, "nan"],
        }
    ]
    assert run["tables"][0]["rows"] == [
        ["x @ y", "", 1],
        ["a + b", "sizes 2 and 4 must match", 1_048_576],
    ]
    assert [(one["lane"], one["began"], one["ended"], one["name"]) for one in run["spans"]] == [
        ("worker", 0.0, 0.5, "loads"),
        ("loop", 0.5, 1.0, "trains"),
    ]
    assert (
        find_misfits(
            json_document([subject]),
            json.loads(schema_of("tuilab.report/2")),
            json.loads(schema_of("tuilab.report/2")),
        )
        == []
    )
