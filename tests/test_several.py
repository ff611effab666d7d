"""The summary of several runs: short whatever they found, with what is surprising and what to do next."""

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.test_launch import write_lessons
from tuilab.drawings.glyphs import Style
from tuilab.record import events
from tuilab.record.summary import RunSummary
from tuilab.record.summary_parts import Claim
from tuilab.record.verdicts import RULE, Verdict
from tuilab.reports.several_text import MOST_LINES, FinishedRun, overview

STYLE = Style(is_utf8=True, has_colour=False)
Tuilab = Callable[..., "subprocess.CompletedProcess[str]"]


def finished(
    number: int,
    *verdicts: Verdict,
    topic: str = "stability",
    state: str = "succeeded",
    why: str = "measured 7",
) -> FinishedRun:
    """Return a run with these verdicts."""
    run = events.RunStarted(
        format=1, run="", scenario=f"lesson-{number}", topic=topic, title="", source_sha256="", params={},
        supervisor=events.Identity(host="", boot="", pid=1, start=1), tuilab="", wall_ns=0,
    )  # fmt: skip
    summary = RunSummary(run=run, state=state)
    for position, verdict in enumerate(verdicts):
        text = f"claim {position} of lesson {number}"
        reached = events.VerdictReached(text=text, verdict=verdict, rule=RULE, why=why)
        summary.claims[text] = Claim(text=text, key=f"key-{position}", verdict=reached)
    return FinishedRun(
        summary, state, Path(f"/runs/20261128T000000000Z-lesson-{number}-{number:06x}")
    )


def test_each_run_has_a_line_with_its_verdicts() -> None:
    first = finished(1, Verdict.SUPPORTED, Verdict.SUPPORTED)
    second = finished(20, Verdict.SUPPORTED, Verdict.NOT_TESTABLE, why="a GPU")

    lines = overview([first, second], STYLE, 100).splitlines()

    assert lines == [
        "stability/lesson-1   000001  0 s  2 ✓",
        "stability/lesson-20  000014  0 s  1 ✓ 1 –",
        "",
        "2 runs, 3 of 4 claims supported",
        "",
        "– 1 claim not testable here; needs: a GPU",
        "",
        "whole result of lesson-1:  tuilab attach 000001 --root /runs",
        "all results on one page:   tuilab report 000001 000014 -o report.html --root /runs",
    ]


def test_runs_of_a_scenario_on_several_nodes_are_told_apart_by_the_node() -> None:
    runs = [finished(1, Verdict.REFUTED), finished(1, Verdict.REFUTED)]
    for run, node in zip(runs, ("gpu1", "gpu2"), strict=True):
        assert run.summary.run
        run.summary.run.node = node

    lines = overview(runs, STYLE, 100).splitlines()

    assert [line.split("  ")[0] for line in lines[:2]] == [
        "stability/lesson-1 on gpu1",
        "stability/lesson-1 on gpu2",
    ]
    assert "✗ REFUTED  lesson-1 on gpu2: [key-0] claim 0 of lesson 1" in lines
    assert "whole result of lesson-1 on gpu1:  tuilab attach 000001 --root /runs" in lines


def test_surprises_come_with_what_was_measured_the_worst_first() -> None:
    runs = [
        finished(1, Verdict.INCONCLUSIVE),
        finished(2, Verdict.REFUTED),
        finished(3, Verdict.SUPPORTED),
    ]

    lines = overview(runs, STYLE, 100).splitlines()

    assert lines[6:10] == [
        "✗ REFUTED  lesson-2: [key-0] claim 0 of lesson 2",
        "  measured 7",
        "? INCONCLUSIVE  lesson-1: [key-0] claim 0 of lesson 1",
        "  measured 7",
    ]
    assert lines[-2] == "whole result of lesson-2:  tuilab attach 000002 --root /runs"


def test_failed_run_says_why_and_is_the_one_to_look_at() -> None:
    failed = finished(2, state="failed")
    failed.summary.failures["worker-0"] = events.ScenarioFailed(
        type="ValueError", message="rows takes 1", traceback=""
    )

    shown = overview([finished(1, Verdict.REFUTED), failed], STYLE, 100)

    assert "! stability/lesson-2 failed: ValueError: rows takes 1" in shown
    assert "whole result of lesson-2:" in shown


def test_run_without_a_reason_says_so() -> None:
    assert "lesson-1 lost: the record gives no reason" in overview(
        [finished(1, state="lost")] * 2, STYLE, 100
    )


@pytest.mark.parametrize("count", [2, 9, 10, 20, 21, 300])
@pytest.mark.parametrize(
    "verdicts",
    [[Verdict.SUPPORTED], [Verdict.REFUTED] * 20, [Verdict.NOT_TESTABLE, Verdict.INVALID]],
)
def test_summary_has_at_most_forty_lines(count: int, verdicts: list[Verdict]) -> None:
    runs = [
        finished(number, *verdicts, topic=f"topic-{number % 12}", why=f"why {number}")
        for number in range(count)
    ]

    lines = overview(runs, STYLE, 80).splitlines()

    assert len(lines) <= MOST_LINES
    assert max(map(len, lines)) <= 80
    surprises = [
        verdict for verdict in verdicts if verdict in (Verdict.REFUTED, Verdict.INVALID)
    ] * count
    shown = [line for line in lines if line.startswith(("✗", "!"))]
    more = [int(line.split()[1]) for line in lines if line.startswith("and ")]
    assert len(shown) + sum(more) == len(surprises)


def test_topics_stand_for_very_many_runs() -> None:
    runs = [
        finished(number, Verdict.SUPPORTED, topic=f"topic-{number % 2}") for number in range(29)
    ]
    runs.append(finished(29, topic="topic-1", state="failed"))

    lines = overview(runs, STYLE, 100).splitlines()

    assert lines[:2] == ["topic-0  15 runs in 0 s  15 ✓", "topic-1  15 runs in 0 s  1 failed  14 ✓"]
    assert lines[-1].endswith("  tuilab report all -o report.html --root /runs")


def test_text_of_a_scenario_cannot_steer_the_terminal() -> None:
    run = finished(1, Verdict.REFUTED, why="\x1b[2J")
    assert run.summary.run
    run.summary.run.scenario = "a\x1b]0;b\x07"
    run.summary.reason = "\x1b[31m"

    assert "\x1b" not in overview([run, replace(run, state="failed")], STYLE, 100)


@pytest.fixture
def lessons(tmp_path: Path) -> str:
    return write_lessons(
        tmp_path, first='lab.claim("one", 1, equals=1)', second='lab.claim("two", 3, equals=2)'
    )


def test_several_runs_print_a_summary_and_a_line_of_progress_each(
    tuilab: Tuilab, lessons: str
) -> None:
    done = tuilab("run", "first", "second", "--headless", "--scenarios", lessons)

    assert done.returncode == 1
    assert "2 runs, 1 of 2 claims supported" in done.stdout
    assert "A lesson that looks at no clock" not in done.stdout
    progress = [line for line in done.stderr.splitlines() if " of 2: " in line]
    assert [line.partition(":")[0] for line in progress] == ["1 of 2", "2 of 2"]
    assert progress[1].startswith("2 of 2: second: ")
    assert progress[1].endswith("1 ✗")


def test_verbose_prints_every_result_before_the_summary(tuilab: Tuilab, lessons: str) -> None:
    done = tuilab("run", "first", "second", "--verbose", "--scenarios", lessons)

    assert done.returncode == 1
    assert done.stdout.count("A lesson that looks at no clock") == 2
    assert done.stdout.index("try/second") < done.stdout.index("2 runs, 1 of 2 claims supported")


def test_one_run_prints_its_whole_result(tuilab: Tuilab, lessons: str) -> None:
    done = tuilab("run", "first", "--headless", "--scenarios", lessons)

    assert "A lesson that looks at no clock" in done.stdout
    assert "claims supported" not in done.stdout
