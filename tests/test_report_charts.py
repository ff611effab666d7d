"""The charts of a report: names stay whole, noise is a band, letters stand at their lines, siblings are alike."""

import math
import random
from itertools import pairwise
from pathlib import Path

import pytest

from tests.made_runs import make_run, started
from tests.report_aids import Elements
from tuilab.catalogue.lesson import link_parts
from tuilab.drawings.glyphs import Style
from tuilab.drawings.lines import lines_of
from tuilab.record import events
from tuilab.record.series import Series
from tuilab.reports import result_text
from tuilab.reports.charts.frame import colour, dash, letter
from tuilab.reports.charts.geometry import ChartShapes, draw_chart
from tuilab.reports.charts.letters import LineEnd, place_letters, spread_apart
from tuilab.reports.charts.panels import Panel, series_panels, time_spreads
from tuilab.reports.formats import html, md
from tuilab.reports.reported_run import ReportedRun, read_subject
from tuilab.text.display import distinct_labels, shorten

LONG = "llama_7b_bf16_flash_attention_zero3_grad_checkpoint_batch_32_seq_4096_tp_8_pp_2_dp_4_lr_"
ONE, TWO = LONG + "one", LONG + "two"


def subject_of(root: Path, *records: events.Event) -> ReportedRun:
    return read_subject(make_run(root, started(), *records, events.StateChanged(state="succeeded")))


@pytest.fixture
def long_arms(tmp_path: Path) -> ReportedRun:
    """A run of two arms whose names differ behind their 88th character alone."""
    logged = [
        events.Logged(s=step, v={"loss": value}, a=arm)
        for step in range(3)
        for arm, value in ((ONE, 1.0), (TWO, 2.0))
    ]
    timed = [
        events.BlockTimed(arm=arm, round=0, slot=slot, loops=1, wall_ns=wall_ns, cpu_ns=1)
        for slot, (arm, wall_ns) in enumerate(((ONE, 1_000), (TWO, 2_000)))
    ]
    return subject_of(tmp_path, *logged, *timed)


def chart_of(*all_values: list[float], is_log: bool = False, share: float = 1.0) -> ChartShapes:
    found = []
    for at, values in enumerate(all_values):
        found.append(Series("loss", arm=f"arm {at}"))
        for step, value in enumerate(values):
            found[-1].add(step, step, value)
    return draw_chart(Panel("loss", lines_of(found), is_log=is_log), share)


def test_arms_that_share_many_characters_are_two_in_every_chart_and_table(
    long_arms: ReportedRun,
) -> None:
    (panel,) = series_panels(long_arms.summary)
    page = Elements(html.render([long_arms]))

    assert [line.style for line in panel.lines] == [0, 1]
    assert [one.label for one in time_spreads(long_arms.summary)] == [ONE, TWO]
    assert [entry["title"] for entry in page.of("li") if "title" in entry] == [ONE, TWO]
    labels = [curve["data-label"] for curve in page.of("g", class_="curve")]
    assert len(set(labels)) == 2 and [label[-4:] for label in labels] == ["_one", "_two"]
    assert (
        page.text.count(ONE) == page.text.count(TWO) == 3
    )  # values of the lines, of the times, and the numbers


def test_a_terminal_and_markdown_tell_them_apart_as_well(
    long_arms: ReportedRun, tmp_path: Path
) -> None:
    shown = result_text.render(
        long_arms.summary, "succeeded", tmp_path, Style(), 100, has_chart=True
    )
    text = md.render([long_arms])

    for page in (shown, text.replace("\\", "")):
        assert sum("1 µs a call" in line and "_one" in line for line in page.splitlines()) == 1
        assert sum("2 µs a call" in line and "_two" in line for line in page.splitlines()) == 1
        assert "lr_one" in page and "lr_two" in page


def test_names_are_cut_in_the_middle_and_never_look_alike() -> None:
    same_ends = [f"begin{'x' * 80}{middle}{'y' * 80}end" for middle in "12"]
    alike = ["a\x1b", "a\x1c"]

    assert shorten("0123456789", 7) == "012…789"
    assert distinct_labels([ONE, TWO, "short"], 20)["short"] == "short"
    assert [name[-4:] for name in distinct_labels([ONE, TWO], 20).values()] == ["_one", "_two"]
    shown = distinct_labels(same_ends, 24)
    assert len(set(shown.values())) == 2 and all(len(name) <= 24 for name in shown.values())
    assert list(distinct_labels(alike, 24).values()) == ["a\ufffd", "a\ufffd (2)"]


def test_noise_is_a_band_around_its_median() -> None:
    random.seed(1)
    values = [10 + random.uniform(-1, 1) for _ in range(3000)]
    values[1500] = 100.0

    (curve,) = chart_of(values, share=0.05).curves

    mids = [float(mid) for mid in curve.mids.split()]
    assert len(mids) == 100 == len(curve.lows.split()) == len(curve.highs.split())
    assert all(9 < mid < 11 for mid in mids)  # the spike is in the band, and moves no line
    assert max(map(float, curve.highs.split())) == 100
    assert curve.band.startswith("M") and curve.band.endswith("Z")
    assert (curve.path.count("M"), curve.path.count("L"), "V" in curve.path) == (1, 99, False)


def test_a_line_of_few_points_has_no_band() -> None:
    (curve,) = chart_of([1.0, 3.0, 2.0]).curves

    assert (curve.band, curve.mids, curve.highs, curve.lows) == ("", "", "", "1 3 2")


def test_a_band_is_broken_where_the_line_is() -> None:
    values = [math.nan if step == 1500 else step % 7 + 1.0 for step in range(3000)]

    (curve,) = chart_of(values, share=0.05).curves

    assert curve.band.count("M") == curve.path.count("M") == 2
    assert len(curve.breaks.split()) == 1


def test_letters_stand_at_their_lines_in_the_order_of_their_lines() -> None:
    chart = chart_of([0.0, 5.0], [0.0, 1.0], [0.0, 9.0], [0.0, 5.1])

    shown = {letter(one.look): one for one in chart.letters}
    assert [letter(one.look) for one in chart.letters] == ["C", "D", "A", "B"]
    assert [one.y for one in chart.letters] == sorted(one.y for one in chart.letters)
    assert shown["B"].y == shown["B"].end_y and not shown["B"].has_leader
    middle = (shown["A"].end_y + shown["D"].end_y) / 2
    assert (shown["A"].y, shown["D"].y) == pytest.approx((middle + 7, middle - 7), abs=0.1)


def test_letters_spread_both_ways_within_the_chart_and_nearest_to_their_lines() -> None:
    assert spread_apart([50, 50, 50], 10, 0, 100) == [40, 50, 60]
    assert spread_apart([0, 1, 99], 10, 0, 100) == [0, 10, 99]
    assert spread_apart([99, 99, 100], 10, 0, 100) == [80, 90, 100]
    assert spread_apart([10, 30, 31], 10, 0, 100) == [10, 25.5, 35.5]


def test_where_lines_crowd_some_have_no_letter_and_none_is_on_another() -> None:
    shown = place_letters([LineEnd(look, 600, 20 + look) for look in range(40)], 22, 208)

    ys = [one.y for one in shown]
    assert 10 < len(shown) < 40
    assert min(after - before for before, after in pairwise(ys)) >= 14
    assert min(ys) >= 22 and max(ys) <= 208
    assert all(one.has_leader == (abs(one.y - one.end_y) > 4) for one in shown)


def test_sixty_four_lines_look_each_like_no_other() -> None:
    assert len({(colour(look), dash(look)) for look in range(64)}) == 64
    assert len({letter(look) for look in range(120)}) == 120


def test_siblings_are_all_on_one_kind_of_axis(tmp_path: Path) -> None:
    falling = {f"layer.{at}/norm": 100.0 / (at + 1) for at in range(3)}
    records = [
        events.Logged(
            s=step,
            v={
                **{name: value / (step + 1) for name, value in falling.items()},
                "lr/norm_of_it": 1.2**step,
            },
        )
        for step in range(100)
    ]
    alike = subject_of(tmp_path / "alike", *records).summary
    with_zero = subject_of(
        tmp_path / "zero", *records, events.Logged(s=100, v={"layer.7/norm": -1.0})
    ).summary

    assert [panel.is_log for panel in series_panels(alike)] == [True, True, True, True]
    assert [panel.is_log for panel in series_panels(with_zero)] == [
        False,
        False,
        False,
        True,
        False,
    ]


def test_a_chart_says_in_words_and_in_a_table_what_it_draws(long_arms: ReportedRun) -> None:
    page = Elements(html.render([long_arms]))

    described = [svg["aria-label"] for svg in page.of("svg", role="img") if "data-frame" in svg]
    assert (
        described[0].startswith("loss, value over steps: llama_7b")
        and "from 1 to 1, between 1 and 1" in described[0]
    )
    assert "".join(page.text.split()).count("Lineleastgreatestatstep012") == 1
    regions = [div for div in page.of("div") if div.get("class") == "scroll"]
    assert regions and all(div["tabindex"] == "0" and div["aria-label"] for div in regions)


def test_addresses_are_links_only_where_they_say_where_they_lead() -> None:
    def linked(text: str) -> list[str]:
        assert "".join(words for _, words in link_parts(text)) == text
        return [address for address, _ in link_parts(text) if address]

    assert linked("see https://a.org/x_(y). Or (http://b.org:80/q?a=1#c), too") == [
        "https://a.org/x_(y)",
        "http://b.org:80/q?a=1#c",
    ]
    assert (
        linked(
            "javascript:alert(1) ftp://a.org x=https://a.org https://u@a.org/ https://a.org/<b> https://a.org\u202e"
        )
        == []
    )
