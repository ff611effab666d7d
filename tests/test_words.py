"""Every view tells the same bytes in the same words, and draws the same values on the same kind of axis."""

import math
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.made_runs import make_run, started
from tests.report_aids import recorded
from tests.tui import pictures
from tests.tui.screens import app_on, open_run, opened, text
from tuilab.drawings.glyphs import Style
from tuilab.drawings.linechart import LineChart, draw
from tuilab.drawings.lines import lines_of
from tuilab.drawings.spreads import MeasuredSpread, draw_spreads, spread_axis
from tuilab.drawings.units import labels
from tuilab.record import events
from tuilab.record.finding_words import ends_of_curves, last_values, repeat_words
from tuilab.record.folding.fold import fold
from tuilab.record.journal.writer import Writer
from tuilab.record.tracebacks import frames
from tuilab.reports import result_text
from tuilab.reports.charts.geometry import draw_chart as figure
from tuilab.reports.charts.panels import series_panels
from tuilab.reports.charts.spreads import draw_spreads as draw_in_html
from tuilab.reports.formats import html, md
from tuilab.reports.reported_run import ReportedRun, read_subject
from tuilab.reports.sweeps.points import final_values
from tuilab.text.words import extent, formatter_of, seconds, size
from tuilab.tui.state.run_source import note_arms

# What the numbers of the tour say of memory: peak, live and saved of two arms, the processes, a GPU.
TOUR = ["66 KiB", "17.5 KiB", "32 KiB", "257 KiB", "0 B", "128 KiB", "236.7 MiB", "2.794 GiB"]
SIZE = re.compile(r"(?<![\w.])\d[\d.]* (?:[KMGT]i)?B\b")
DECIMAL = re.compile(r"\d [kKMGT]B\b")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0, "0 B"),
        (1000, "1000 B"),
        (1024, "1 KiB"),
        (17_920, "17.5 KiB"),
        (1.5e9, "1.397 GiB"),
        (150_754_820_096, "140.4 GiB"),
    ],
)
def test_sizes_are_told_in_powers_of_1024(value: float, words: str) -> None:
    assert size(value) == words


def test_the_ends_of_a_range_can_be_told_apart() -> None:
    assert [extent(ends) for ends in ([1.231, 1.234], [1.2, 3.4], [5.0, 5.0], [1.0, math.nan], [])] == [
        "1.231..1.234", "1.2..3.4", "5", "NaN", "",
    ]  # fmt: skip
    whose = ["repeat 1", "repeat 2", "repeat 1"]
    assert extent([1.0, 2.0, 3.0], owners=whose) == "1..3"
    assert extent([1.0, 4.0, 3.0], owners=whose) == "1 (repeat 1)..4 (repeat 2)"


@pytest.mark.parametrize(
    ("value", "words"), [(1.5, "1.5 s"), (0.0167, "16.7 ms"), (4.94e-5, "49.4 µs"), (3e-9, "3 ns")]
)
def test_durations_have_three_digits(value: float, words: str) -> None:
    assert seconds(value) == words


def test_what_is_measured_is_written_as_its_name_tells() -> None:
    assert [
        formatter_of("peak_bytes")(2048.0),
        formatter_of("step small batch peak_bytes")(512.0),
        formatter_of("operators")(31.0),
    ] == [
        "2 KiB",
        "512 B",
        "31",
    ]


def test_ticks_beyond_every_unit_are_told_in_the_greatest() -> None:
    assert labels([0.0, 2.0**90], 2.0**90, "bytes") == ["0", "1.1e9 EiB"]


def test_a_long_number_goes_on_below_itself() -> None:
    subject = recorded("tour")
    trust = "over 6 processes: 1 false verdict in 16 trials of 12 processes without a difference; a delay was seen in 14 of 16"
    shown = result_text.render(
        subject.summary, subject.state, subject.run_dir, Style(), 80, has_chart=False, trust=trust
    ).splitlines()

    at = next(number for number, line in enumerate(shown) if line.startswith("calibration"))
    assert (
        shown[at + 1].startswith(" " * len("calibration  ") + " ")
        and shown[at + 1].strip() in trust
    )
    assert max(map(len, shown[at : at + 3])) <= 80


def test_the_numbers_of_a_run_are_the_same_in_text_markdown_and_html() -> None:
    subject = recorded("tour")
    subject.summary.cuda["worker-0"] = {
        "devices": [{"uuid": "fake-0"}],
        "chosen": "fake-0",
    }  # its GPU is the run's

    assert sizes_in(" ".join(number.words for number in subject.result.numbers)) == TOUR
    assert sizes_in(text_of(subject)) == TOUR
    assert sizes_in(md.render([subject]).partition("# Numbers")[2].partition("\n#")[0]) == TOUR
    assert sizes_in(page_of(subject).rpartition(" Numbers ")[2].partition(" Pictures ")[0]) == TOUR


async def test_the_last_values_are_the_same_on_the_run_screen_and_in_html(tmp_path: Path) -> None:
    page, screen = page_of(recorded("tour")), await screen_of(pictures.recorded("tour", tmp_path))

    for name, value in (("processes", "51.8 MiB"), ("small batch", "17.5 KiB")):
        assert f"{name} {value}" in screen
        assert re.search(rf"{name} (\(6 lines\) )?last {value}", page)
    assert DECIMAL.findall(screen + page) == []


def test_lines_of_one_name_end_in_one_range_in_every_view() -> None:
    ends = {"worker-0": 41.01, "worker-1": 17.5, "worker-2": 10.66}
    logged = [
        (writer, events.Logged(s=0, v={"step_ms": end, "loss": end}, a="base"))
        for writer, end in ends.items()
    ]
    summary = fold([("supervisor", started(command=["x"])), *logged])

    drawn = draw(LineChart(lines_of([*summary.series.values()][::2]), unit="ms"), 60, 12).text
    assert "base 10.7 ms..41 ms" in drawn
    assert [entry.value for panel in series_panels(summary) for entry in figure(panel).entries] == [
        "last 10.7 (worker-2)..41 (worker-0)", "last 10.7 ms (worker-2)..41 ms (worker-0)",
    ]  # fmt: skip
    assert [(entry.label, entry.value) for entry in figure(series_panels(summary, most_lines=2)[1]).entries] == [
        ("base (2 of 3 lines)", "last 10.7 ms (worker-2)..41 ms (worker-0)"),
    ]  # fmt: skip
    assert ends_of_curves(summary) == {"last loss base": "10.7 (worker-2)..41 (worker-0)"}
    assert final_values(summary) == {
        "step_ms": 41.01,
        "loss": 41.01,
    }  # of a sweep, where a point has one place


def test_an_arm_has_one_letter_live_afterwards_and_in_html_and_letters_stand_in_order() -> None:
    race = events.RaceStarted(arms=["base", "bf16"], threads=1, device="process", loops={}, t=1)
    logged = [
        events.Logged(s=0, v={"loss": 1.0}, a=arm, t=t)
        for t, arm in ((2, "base again"), (3, "bf16"), (4, "base"))
    ]
    live: list[str] = []
    for known in ([], logged):
        summary = fold([("worker-0", race), *(("worker-0", one) for one in known)])
        note_arms(live, summary)
    lines = lines_of([*summary.series.values()], order=live)
    (panel,) = series_panels(summary)

    assert live == summary.arms_in_order() == ["base", "bf16", "base again"]
    drawn = draw(LineChart(lines, title="loss"), 60, 12).text
    assert [word for word in drawn.split() if word in {"A", "B", "C"}][:3] == ["A", "B", "C"]
    assert [(one.letter, one.label) for one in figure(panel).entries] == [
        ("A", "base"),
        ("B", "bf16"),
        ("C", "base again"),
    ]


async def test_a_range_names_who_has_its_ends_where_there_is_room(tmp_path: Path) -> None:
    ends = {"worker-0": 1.0, "worker-0-rank-1": 4.0, "worker-1": 2.0, "worker-1-rank-1": 3.0}
    records = [
        started(repeats=2),
        *(
            events.WorkerStarted(writer, 1, 1, int(writer[7]))
            for writer in ("worker-0", "worker-1")
        ),
    ]
    run_dir = make_run(tmp_path, *records, events.StateChanged(state="succeeded"))
    for writer, end in ends.items():
        journal = Writer(run_dir / "journal" / f"{writer}.jsonl")
        journal.append(events.Logged(s=0, v={"loss": end}))
        journal.close()
    seen = []
    for width in (160, 40):
        async with opened(app_on(tmp_path), size=(width, 30)) as pilot:
            await open_run(pilot, run_dir)
            seen.append(text(pilot))

    assert "loss  1 (repeat 1, rank 0)..4 (repeat 1, rank 1)" in seen[0]
    assert "loss  1..4 " in seen[1] and "rank 1" not in seen[1]


def test_the_live_line_tells_the_unit_that_a_name_has() -> None:
    summary = recorded("tour").summary
    summary.series = {key: line for key, line in summary.series.items() if key[0] == "live_bytes"}

    assert set(last_values(summary)) == {
        "live_bytes small batch 17.5 KiB",
        "live_bytes large batch 0 B",
    }


def test_the_live_line_tells_which_repeat_it_is() -> None:
    """What a repeat has done of its own steps, and when it will be done with them, says nothing of the run."""
    summary = fold([("supervisor", started(repeats=6))])
    before = repeat_words(summary)
    fold(
        [("supervisor", events.WorkerStarted(writer="worker-1", pid=1, start=1, repeat=1))], summary
    )
    fold(
        [("supervisor", events.WorkerStarted(writer="arm-1", pid=2, start=1, repeat=9, arm="one"))],
        summary,
    )

    assert (before, repeat_words(summary)) == ("", "repeat 2 of 6")
    assert summary.run is not None
    summary.run.budget_s = 60.0
    assert repeat_words(summary) == "repeat 2, budget 60 s"


@pytest.mark.parametrize(
    ("name", "values", "is_log"),
    [
        ("loss", [[100.0, 1.0]], True),
        ("loss", [[100.0, 2.0]], False),
        ("loss", [[100.0, 0.0]], False),
        ("loss", [[2.0, 1.0], [100.0, 3.0]], True),
        ("wait_ms", [[100.0, 1.0]], True),
        ("kept_bytes", [[1e9, 1.0]], False),
        ("busy_percent", [[100.0, 1.0]], False),
    ],
    ids=[
        "a loss",
        "a factor of 50",
        "down to zero",
        "two repeats",
        "a duration",
        "bytes",
        "a share",
    ],
)
@pytest.mark.first(2)
async def test_every_view_has_the_same_kind_of_axis(
    tmp_path: Path, name: str, values: list[list[float]], is_log: bool
) -> None:
    run_dir = logged(tmp_path, name, values)
    subject = read_subject(run_dir)

    assert (f"{name} (log)" in text_of(subject)) is is_log
    assert (f"{name} (log)" in md.render([subject])) is is_log
    assert ("logarithmic over steps" in page_of(subject)) is is_log
    assert (f"{name}, log" in await screen_of(run_dir)) is is_log


@pytest.mark.parametrize(("name", "has_guide"), [("norm", True), ("kept_bytes", False)])
async def test_the_greatest_number_of_a_format_is_no_guide_where_there_is_a_unit(
    tmp_path: Path, name: str, has_guide: bool
) -> None:
    screen = await screen_of(logged(tmp_path, name, [[60_000.0, 70_000.0]]))

    assert ("fp16 max" in screen) is has_guide


def test_the_times_of_arms_are_on_the_same_kind_of_axis_on_the_screen_and_in_html() -> None:
    near, far = (
        [
            MeasuredSpread("one", low, low, low, low, low),
            MeasuredSpread("two", 0.1, 0.1, 0.1, 0.1, 0.1, style=1),
        ]
        for low in (0.05, 0.001)
    )

    assert [spread_axis(found, "s", 5).is_log for found in (near, far)] == [False, True]
    assert [
        draw_spreads(found, 60, 4, unit="s").text.splitlines()[-1].split()[0]
        for found in (near, far)
    ] == ["0", "log"]
    assert [draw_in_html(found, None).ticks[0].label for found in (near, far)] == ["0", "1 ms"]


@pytest.mark.parametrize(
    ("traceback", "message", "left"),
    [
        ('Traceback (most recent call last):\n  File "a"\n    x()\nValueError: no', "no", '  File "a"\n    x()'),
        ('Traceback (most recent call last):\n  File "a"\n…\n    x()\nE: no\n  so\na note', "no\n  so",
         '  File "a"\n…\n    x()\na note'),
        ("Traceback (most recent call last):\nKeyboardInterrupt", "", ""),
        ("", "no", ""),
    ],
)  # fmt: skip
def test_the_frames_of_a_failure_stand_beside_what_is_told_of_it(
    traceback: str, message: str, left: str
) -> None:
    assert frames(events.ScenarioFailed(type="E", message=message, traceback=traceback)) == left


def logged(root: Path, name: str, values: Sequence[Sequence[float]]) -> Path:
    """Make a run that logged values of a name, those of each repeat in their own process."""
    run_dir = make_run(root, started(), events.StateChanged(state="succeeded"))
    for repeat, found in enumerate(values):
        journal = Writer(run_dir / "journal" / f"worker-{repeat}.jsonl")
        for step, value in enumerate(found):
            journal.append(events.Logged(s=step, v={name: value}))
        journal.close()
    return run_dir


def text_of(subject: ReportedRun) -> str:
    return result_text.render(
        subject.summary, subject.state, subject.run_dir, Style(), 100, has_chart=True
    )


def page_of(subject: ReportedRun) -> str:
    """Return the words of the HTML report."""
    return " ".join(re.sub("<[^>]*>", " ", html.render([subject])).split())


async def screen_of(run_dir: Path) -> str:
    async with opened(app_on(run_dir.parent), size=(200, 50)) as pilot:
        await open_run(pilot, run_dir)
        return text(pilot)


def sizes_in(text: str) -> list[str]:
    return SIZE.findall(text)
