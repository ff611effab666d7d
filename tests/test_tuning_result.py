"""The result of a tuning: the table in a terminal, the JSON document, and the reports."""

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as xml

import pytest

from tests.made_tuning import (
    COMMAND,
    declared,
    hostile_tuning,
    make_tuning,
    plan,
    planned,
    raced,
    running_tuning,
    stopped_tuning,
    tried,
    verdict,
    whole_tuning,
)
from tests.report_aids import Elements, checked_document, in_chromium, open_page
from tuilab.cli.headless import interim_lines, list_news, live_line
from tuilab.commands.arms import parse
from tuilab.drawings.glyphs import Style
from tuilab.judging.interim_results import InterimJudge
from tuilab.record import events
from tuilab.record.live_run import Watch
from tuilab.reports.charts.gains import Gain, draw_gains
from tuilab.reports.formats import csv, html, junit, md, trace
from tuilab.reports.formats import json as json_format
from tuilab.reports.reported_run import ReportedRun, read_subject
from tuilab.reports.result import document, results_of
from tuilab.reports.result_text import render
from tuilab.text.wrapping import cell_width

UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
HOSTILE = "<b>[red]x\x1b]0;owned\x07\x1b[2J\u202e`'\"|$(reboot)</pre><script>"
END = events.StateChanged(state="succeeded")
Made = Callable[[Path], Path]
ALL: list[Made] = [whole_tuning, stopped_tuning, lambda root: running_tuning(root, 3)]
"""Functions that make tunings: with every outcome, stopped, and running."""


def read(run_dir: Path) -> ReportedRun:
    return read_subject(run_dir, keeps_private=True)


def text_of(run_dir: Path, width: int = 80) -> str:
    subject = read(run_dir)
    return render(subject.summary, subject.state, run_dir, Style(), width, has_chart=False)


def tuning_of(run_dir: Path) -> dict[str, Any]:
    """Return the part of the JSON document that is about the tuning. It conforms to its schema."""
    subject = read(run_dir)
    results = results_of([(subject.summary, subject.state, run_dir)], 0)
    (run,) = checked_document(json.loads(json.dumps(document(results))))["runs"]
    tuning: dict[str, Any] = run["tuning"]
    return tuning


def arm_of(tuning: dict[str, Any], name: str) -> dict[str, Any]:
    (arm,) = [treatment for treatment in tuning["treatments"] if treatment["arm"] == name]
    found: dict[str, Any] = arm
    return found


def test_winners_come_first_in_a_table_of_eighty_columns(tmp_path: Path) -> None:
    text = text_of(whole_tuning(tmp_path))

    assert text.splitlines()[3:22] == [
        "unchanged script: 418 ms a step (waits for data 34 %, forward + rest 34 %,",
        "backward 31 %, optimizer 1 %); each process ends after 60 steps",
        "ideal loader: 1.69x (one process, so a rough bound for what faster loading can",
        "gain)",
        "",
        "  #  treatment                    times faster        learning   memory",
        "✓ 1  2 DataLoader workers         1.55x [1.41, 1.7]   the same   +310 MiB",
        "     train.py:14: DataLoader(..., num_workers=2, persistent_workers=True)",
        "✓ 2  channels_last                1.09x [1.02, 1.16]  rounding   +10 MiB",
        "     train.py:20: model.to(memory_format=torch.channels_last)",
        "? 3  bf16 autocast                1.21x [1.12, 1.31]  not shown  -300 MiB",
        "     with torch.autocast('cuda', torch.bfloat16): ...",
        "     faster, but learning not shown: it rounds otherwise, and the first steps",
        "       cannot show what that costs later",
        "combined:",
        "✓    1 + 2 together               1.61x [1.47, 1.77]  rounding   +312 MiB",
        "     1.04x [0.98, 1.1] against number 1 alone: not decided",
        "     without number 3: it is not shown to learn as well",
        "compared, no gain shown:",
    ]


def test_the_table_says_why_the_others_were_not_compared(tmp_path: Path) -> None:
    lines = text_of(whole_tuning(tmp_path), 140).splitlines()

    first = lines.index("not compared:") + 1
    assert lines[first : first + 7] == [
        "✗    attention by math            out of memory: CUDA out of memory: tried to allocate 2 GiB;"
        " the peak of the base is 1000 MiB",
        "✗    prefetch_factor=8            over time: no step within 180 s",
        "–    8 threads                    slower in one process: 0.6x",
        "✗    static_graph=True            failed: RuntimeError: a parameter got no gradient",
        "–    AdamW(fused=True)            the optimizer takes 1 % of a step: at most 1.01x",
        "not applicable (a report has the reasons):",
        "  pin, set-to-none",
    ]


def test_a_treatment_that_was_only_tried_has_the_ratio_of_its_process(tmp_path: Path) -> None:
    ruled_out = tried("workers-2", outcome="NOT COMPARED", why="no budget", ratio=None)
    run_dir = make_tuning(tmp_path, *plan(), tried("workers-2"), ruled_out, END)

    assert "2 DataLoader workers         no budget; 1.5x in one process" in text_of(run_dir)


def test_a_wide_terminal_has_the_change_on_the_line_of_its_row(tmp_path: Path) -> None:
    (row,) = [
        line for line in text_of(whole_tuning(tmp_path), 160).splitlines() if " 2  ch" in line
    ]

    assert row.endswith("+10 MiB     train.py:20: model.to(memory_format=torch.channels_last)")


@pytest.mark.parametrize("width", [20, 40, 80, 120])
def test_no_line_of_the_table_is_wider_than_the_terminal(tmp_path: Path, width: int) -> None:
    text = text_of(whole_tuning(tmp_path), width)

    table = text.partition("\nrun ")[0].partition("not compared:")[0]
    # However narrow the terminal is, a row has its numbers.
    most = max(width, 64)
    assert [line for line in table.splitlines()[3:] if cell_width(line) > most] == []


def test_compiling_is_shown_with_the_step_from_which_it_pays(tmp_path: Path) -> None:
    run_dir = whole_tuning(tmp_path)

    compiled = arm_of(tuning_of(run_dir), "compile")
    assert (compiled["graphs"], compiled["compile_s"]) == (2, 31.0)
    saved_s = 0.414 * (1 - 1 / 1.04)
    assert compiled["pays_from_step"] == 1947 == -(-31.0 // saved_s)
    assert "2 graphs, compiled in 31 s, pays from step 1,947 on" in text_of(run_dir)


def test_a_slower_compiled_step_never_pays(tmp_path: Path) -> None:
    records = [*plan(), tried("compile", ratio=0.9), END]

    assert arm_of(tuning_of(make_tuning(tmp_path, *records)), "compile")["pays_from_step"] is None


def test_memory_that_was_not_measured_is_not_zero(tmp_path: Path) -> None:
    records = [*plan(), tried("workers-2", peak_bytes=None), declared("workers-2")]
    run_dir = make_tuning(tmp_path, *records, *raced(["workers-2"]), verdict("workers-2"), END)

    arm = arm_of(tuning_of(run_dir), "workers-2")
    assert (arm["peak_bytes"], arm["base_peak_bytes"]) == (None, None)
    assert "1.55x [1.41, 1.7]  the same  n/a" in text_of(run_dir)


@pytest.mark.parametrize("make", ALL)
def test_every_tuning_conforms_to_the_schema_of_its_document(tmp_path: Path, make: Made) -> None:
    tuning = tuning_of(make(tmp_path))

    assert (tuning["steps"], tuning["step_s"], tuning["process_s"]) == (60, 0.414, 28.0)
    assert len(tuning["treatments"]) == 15


def test_the_document_has_ratio_change_and_parts_of_each_treatment(tmp_path: Path) -> None:
    tuning = tuning_of(whole_tuning(tmp_path))

    workers = arm_of(tuning, "workers-2")
    assert workers["outcome"] == "SUPPORTED"
    assert workers["ratio"]["over"] == "base"
    assert [workers["ratio"][end] for end in ("low", "high", "confidence")] == [1.41, 1.7, 0.95]
    assert workers["diff"].startswith("--- train.py")
    assert (workers["file"], workers["line"]) == ("/home/ada/project/train.py", 14)
    assert workers["part_s"]["waits for data"] == 0.0
    assert tuning["part_s"]["waits for data"] == 0.14
    (combination,) = tuning["combinations"]
    assert combination["over_best"]["estimate"] == 1.038
    assert combination["left_out"] == {"bf16": "it is not shown to learn as well"}


def test_another_run_has_no_tuning_in_its_document(tmp_path: Path) -> None:
    assert tuning_of(make_tuning(tmp_path, END, topic="exec")) is None


def test_a_tuning_that_ended_before_its_plan_has_no_steps(tmp_path: Path) -> None:
    run_dir = make_tuning(tmp_path, events.StateChanged(state="failed", reason="no step was seen"))

    assert tuning_of(run_dir)["steps"] is None
    assert "unchanged script" not in text_of(run_dir)
    assert "no step was seen" in text_of(run_dir)


def test_an_absurd_interval_of_two_repeats_is_too_wide(tmp_path: Path) -> None:
    wide = verdict("compile", "INCONCLUSIVE", 1.06, 1.09e-12, 1.03e12)
    records = [*plan(), tried("compile"), declared("compile"), *raced(["compile"]), wide, END]

    assert "1.06x [too wide]" in text_of(make_tuning(tmp_path, *records))


# ---- commands


def learning_command(run_dir: Path) -> list[str]:
    """Return the words of the command that compares what is learned with bf16."""
    return shlex.split(arm_of(tuning_of(run_dir), "bf16")["next_command"])


def test_the_command_about_learning_is_an_ab_with_the_treatment(tmp_path: Path) -> None:
    words = learning_command(whole_tuning(tmp_path))

    assert words[:4] == ["cd", "/home/ada/project", "&&", "tuilab"]
    assert words[4:8] == ["ab", "--measure", "val_loss", "--different-learning"]
    assert words[-len(COMMAND) - 1 :] == ["--", *COMMAND]
    base, bf16 = parse([words[9], words[11]])
    assert (base.name, bf16.name) == ("base", "bf16")
    assert bf16.env == {"TUILAB_TREAT": "bf16"}


def test_the_command_about_learning_measures_the_logged_metric(tmp_path: Path) -> None:
    logged = events.Logged(s=1, v={"train loss": 2.0, "eval acc (printed)": 0.5})
    records = [*plan(), logged, tried("bf16"), declared("bf16"), *raced(["bf16"])]

    words = learning_command(make_tuning(tmp_path, *records, verdict("bf16"), END))
    assert words[words.index("--measure") + 1] == "eval acc"


def test_the_command_about_learning_quotes_variables_and_prefix(tmp_path: Path) -> None:
    odd = {"treatments": ["bf16", "a b"], "env": {"A": "it's; $(x)"}, "prefix": ["nice", "-n 1"]}
    records = [planned("bf16", **odd), *plan([])]
    records += [tried("bf16"), declared("bf16"), *raced(["bf16"]), verdict("bf16"), END]
    words = learning_command(make_tuning(tmp_path, *records, command=["python", "a'b.py"]))

    _, bf16 = parse([words[9], words[11]])
    assert bf16.env == {"TUILAB_TREAT": "bf16,a b", "A": "it's; $(x)"}
    assert bf16.prefix == ["nice", "-n 1"]
    assert words[-2:] == ["python", "a'b.py"]


def test_inconclusive_treatments_are_tuned_again_in_twice_the_budget(tmp_path: Path) -> None:
    run_dir = whole_tuning(tmp_path)

    (line,) = [line for line in text_of(run_dir).splitlines() if line.startswith("to settle")]
    assert "tuilab tune --budget 1800s --only compile " in line
    assert line.endswith("-- python train.py --data 'my data'")


def test_a_tuning_is_repeated_by_its_own_words(tmp_path: Path) -> None:
    argv = ["tune", "--only", "bf16", "--in-copy", "--headless", "--", *COMMAND]
    subject = read(whole_tuning(tmp_path, argv=argv))

    (report,) = json.loads("".join(json_format.render([subject])))["runs"]
    assert report["command"] == ["tuilab", "tune", "--only", "bf16", "--in-copy", "--", *COMMAND]


# ---- reports


@pytest.mark.parametrize("make", [*ALL, lambda root: hostile_tuning(root, HOSTILE)])
def test_every_format_of_reports_can_show_a_tuning(tmp_path: Path, make: Made) -> None:
    subject = read(make(tmp_path))

    checked_document(json.loads("".join(json_format.render([subject]))))
    xml.fromstring(junit.render([subject]))
    assert "".join(csv.render([subject]))
    assert "Faster" in md.render([subject]) or subject.state != "succeeded"
    assert "</html>" in html.render([subject])


def test_a_trace_shows_the_processes_of_the_comparison(tmp_path: Path) -> None:
    marks = json.loads("".join(trace.render([read(whole_tuning(tmp_path))])))

    assert any(mark.get("name") == "workers-2" for mark in marks["traceEvents"])


def test_a_page_has_a_bar_with_interval_and_bound_for_each_comparison(tmp_path: Path) -> None:
    page = html.render([read(whole_tuning(tmp_path))])

    elements = Elements(page)
    # seven treatments and the combination were compared; jemalloc and that have no known bound
    assert page.count('class="box"') == 8
    assert len(elements.of("rect", class_="ghost")) == 6
    assert "The parts of a step before and after" in elements.text
    assert "+    loader = DataLoader(data, batch_size=64, num_workers=2" in elements.text
    assert "already set" in elements.text.lower()
    assert "at most 1.72x (all time that the script waits for data)" in elements.text


def test_hostile_texts_reach_no_markup_and_no_terminal(tmp_path: Path) -> None:
    run_dir = hostile_tuning(tmp_path, HOSTILE)
    subject = read(run_dir)

    page = html.render([subject])
    for shown in (text_of(run_dir), page, md.render([subject])):
        assert not UNSAFE.search(shown)
    assert "<b>[red]" not in page
    assert page.count("<script>") == 1
    outside_code = md.render([subject]).split("```")[0]
    assert "<script>" not in outside_code.replace("\\<", "")


def test_a_page_of_many_treatments_says_how_many_it_leaves_out(tmp_path: Path) -> None:
    refused = {"title": "one of many", "outcome": "NOT APPLICABLE", "why": "no"}
    arms = [planned(f"arm {number}", **refused) for number in range(500)]
    subject = read(make_tuning(tmp_path, *arms, *plan([]), END))

    assert "not applicable: 100 more, see the .json report." in html.render([subject])


@in_chromium
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_of_a_tuning_is_no_wider_than_the_window(tmp_path: Path, width: int) -> None:
    page = tmp_path / "tune.html"
    probe = "<script>document.title = document.documentElement.scrollWidth</script>"
    content = html.render([read(whole_tuning(tmp_path))])
    # The policy of the page refuses scripts of others.
    start, _, rest = content.partition("<meta http-equiv")
    page.write_text((start + rest.partition(">")[2]).replace("</body>", f"{probe}</body>"))

    shown = open_page(page, f"--window-size={width},900", "--dump-dom")
    scroll_width = int(shown.partition("<title>")[2].partition("<")[0])
    assert scroll_width <= max(width, 500)  # Chromium has no window below 500 pixels


# ---- the chart


def gain(estimate: float, low: float | None, high: float | None, at_most: float | None) -> Gain:
    return Gain("a", "words", "good", estimate, low, high, at_most)


def test_bars_begin_at_one_and_end_at_the_estimate() -> None:
    chart = draw_gains([gain(2.0, 1.5, 2.5, 3.0), gain(0.5, 0.4, 0.6, None)])

    faster, slower = chart.rows
    assert (faster.x, slower.x + slower.width) == (chart.unity, chart.unity)
    assert faster.width == pytest.approx(slower.width, abs=0.2)
    assert faster.interval is not None and faster.bound is not None
    assert faster.interval[0] < faster.x + faster.width < faster.interval[1]
    assert chart.left < slower.x and faster.bound[0] + faster.bound[1] < chart.right
    assert slower.bound is None


def test_a_bound_far_away_is_cut_and_marked() -> None:
    near, far = draw_gains([gain(1.2, 1.1, 1.3, 1.5), gain(1.1, 1.0, 1.2, 900.0)]).rows

    assert not near.is_bound_cut
    assert far.is_bound_cut
    assert far.bound is not None and far.bound[0] + far.bound[1] <= 540.1


@pytest.mark.parametrize("ratio", [0.0, -1.0, float("nan"), float("inf"), 1e300])
def test_ratios_without_a_place_are_left_out(ratio: float) -> None:
    assert draw_gains([gain(ratio, 1.0, 2.0, 2.0)]).rows == ()
    (row,) = draw_gains([gain(1.5, ratio, ratio, ratio)]).rows
    assert row.interval is None


# ---- without screens


def test_progress_without_screens_has_intervals_and_the_rest_of_the_budget(tmp_path: Path) -> None:
    watch = Watch(running_tuning(tmp_path, 4))
    watch.catch_up()
    judge = InterimJudge()
    interim_lines(watch.summary, judge, Style())
    while judge.is_loading:  # scipy, in a thread
        interim_lines(watch.summary, judge, Style())

    first, *_ = interim_lines(watch.summary, judge, Style())
    assert first.endswith(
        "faster than the unchanged script: so far 1.58x [1.19, 2.08] after 4 repeats"
    )
    news = [line for kind, line in list_news(watch.summary, Style()) if kind == "claim"]
    assert news[:3] == [
        "plan: tries 12 treatments; 3 others cannot help here",
        "… ideal loader: 1.69x in one process",
        "… 2 DataLoader workers: 1.5x in one process",
    ]
    assert "✗ prefetch_factor=8: over time: no step within 180 s" in news
    line = live_line(watch)
    assert "comparison, 34 processes" in line
    assert line.endswith("of the budget left")
    watch.close()
