"""The clock that a verdict was judged on comes first in every view, and the other clock is named."""

import re
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.made_runs import make_run, started
from tests.tui.screens import app_on, open_run, opened, shown, text
from tuilab.drawings.glyphs import Style
from tuilab.record import events
from tuilab.record.journal.writer import Writer
from tuilab.record.timing.clocks import CPU, WALL, arm_times
from tuilab.reports.compare_text import render
from tuilab.reports.documents.compare_document import compared_runs
from tuilab.reports.formats import html, md
from tuilab.reports.formats.trace import trace
from tuilab.reports.reported_run import ReportedRun, read_subject
from tuilab.reports.result import document, results_of
from tuilab.reports.result_text import render as render_result
from tuilab.runs.comparing.comparison import compare, slowdowns

Tuilab = Callable[..., CompletedProcess[str]]
MS = 1_000_000
WALL_MS = {"index": 31.6, "unbind": 1.76, "sum": 0.5}
CPU_MS = {"index": 1.27, "unbind": 1.26, "sum": 0.4}
PAIRS = {"index/unbind": ("index", "unbind"), "index/sum": ("index", "sum")}


def block(arm: str, number: int, wall_ms: float, cpu_ms: float | None) -> events.BlockTimed:
    return events.BlockTimed(
        arm=arm,
        round=number,
        slot=0,
        loops=2,
        wall_ns=round(2 * wall_ms * MS),
        cpu_ns=round(2 * (cpu_ms or wall_ms) * MS),
        thread_ns=None if cpu_ms is None else round(2 * cpu_ms * MS),
        is_disturbed=True,
    )


def timed_run(
    root: Path, measures: dict[str, str], *, has_thread_times: bool = True, end: str = "aaaaaa"
) -> ReportedRun:
    """Return a run with a claim for each of some pairs of arms, each judged on a clock."""
    arms = list(dict.fromkeys(arm for pair in measures for arm in PAIRS[pair]))
    records: list[events.Event] = [
        events.WorkerStarted(writer="supervisor", pid=1, start=1),  # all records have this writer
        events.RaceStarted(arms=arms, threads=1, device="cpu", loops={}),
    ]
    for pair in measures:
        over, under = PAIRS[pair]
        records.append(
            events.ClaimDeclared(text=pair, over=over, under=under, op="at_least", bound=1.3)
        )
    for arm in arms:
        for number in range(3):
            cpu_ms = CPU_MS[arm] if has_thread_times else None
            records.append(block(arm, number, WALL_MS[arm], cpu_ms))
    records.append(events.RaceFinished(arms=arms))
    for pair, measure in measures.items():
        records.append(
            events.VerdictReached(
                text=pair,
                verdict="INCONCLUSIVE",
                rule="r",
                measure=measure,
                estimate=1.01,
                low=0.739,
                high=1.39,
            )
        )
    return read_subject(
        make_run(root, started(), *records, events.StateChanged(state="succeeded"), end=end)
    )


def printed(subject: ReportedRun) -> str:
    result = render_result(
        subject.summary, "succeeded", subject.run_dir, Style(), 200, has_chart=False
    )
    return re.sub(r" +", " ", result)


def test_cpu_times_come_first_if_every_verdict_rests_on_cpu_time(tmp_path: Path) -> None:
    subject = timed_run(tmp_path, {"index/unbind": CPU})
    times = arm_times(subject.summary)

    assert [(arm, one.clock) for arm, one in times.items()] == [("index", CPU), ("unbind", CPU)]
    assert times["index"].times == pytest.approx([0.00127] * 3)
    assert times["index"].others == pytest.approx([0.0316] * 3)


def test_printed_result_shows_the_judged_clock_first_and_names_the_other(tmp_path: Path) -> None:
    result = printed(timed_run(tmp_path, {"index/unbind": CPU}))

    assert (
        "index 1.27 ms CPU time a call (judged; wall clock 31.6 ms), median of 3 blocks" in result
    )
    assert (
        "unbind 1.26 ms CPU time a call (judged; wall clock 1.76 ms), median of 3 blocks" in result
    )
    assert (
        "index/unbind 1.01 [0.739, 1.39] in CPU time (18 on the wall clock), claimed at least 1.3"
        in result
    )


def test_arm_judged_on_both_clocks_shows_both_as_judged(tmp_path: Path) -> None:
    result = printed(timed_run(tmp_path, {"index/unbind": CPU, "index/sum": WALL}))

    assert "index 1.27 ms CPU time a call, wall clock 31.6 ms (both judged), median" in result
    assert "sum 500 µs wall clock a call (judged; CPU time 400 µs), median" in result


def test_run_judged_on_the_wall_clock_names_no_other_clock(tmp_path: Path) -> None:
    result = printed(timed_run(tmp_path, {"index/unbind": WALL}))

    assert "index 31.6 ms a call, median of 3 blocks" in result
    assert "CPU time" not in result


def test_ratio_on_the_wall_clock_is_that_of_means_as_the_judged_one_is(tmp_path: Path) -> None:
    """The median of three blocks would leave out the one that was held up."""
    subject = timed_run(tmp_path, {"index/unbind": CPU})
    (writer, arm) = next(key for key in subject.summary.blocks if key[1] == "index")
    subject.summary.blocks[writer, arm][0].step_s *= 8

    assert "index/unbind 1.01 [0.739, 1.39] in CPU time (35.9 on the wall clock)" in printed(
        subject
    )


def test_old_journal_without_cpu_times_names_the_wall_clock(tmp_path: Path) -> None:
    result = printed(timed_run(tmp_path, {"index/unbind": CPU}, has_thread_times=False))

    assert "index 31.6 ms a call on the wall clock, median of 3 blocks" in result


def test_reports_show_the_judged_clock_first_and_name_the_other(tmp_path: Path) -> None:
    subject = timed_run(tmp_path, {"index/unbind": CPU})
    page = html.render([subject])
    summary_page = md.render([subject])

    assert "CPU time of a call (judged)" in page
    assert page.index("1.27 ms") < page.index("wall clock 31.6 ms")
    assert "1.01 [0.739, 1.39] in CPU time (18 on the wall clock)" in page
    assert "1.27 ms CPU time a call (judged; wall clock 31.6 ms)" in summary_page


def test_chart_of_a_mixed_run_has_a_row_for_each_clock(tmp_path: Path) -> None:
    page = html.render([timed_run(tmp_path, {"index/unbind": CPU, "index/sum": WALL})])

    assert "time of a call, by clock" in page
    assert page.index("index, CPU time") < page.index("index, wall clock")
    assert page.index("sum, wall clock") < page.index("sum, CPU time")


def test_json_has_the_times_on_both_clocks(tmp_path: Path) -> None:
    subject = timed_run(tmp_path, {"index/unbind": CPU})
    race = document(results_of([(subject.summary, "succeeded", subject.run_dir)], 0))["runs"][0][
        "races"
    ][0]

    assert race["step_s"] == pytest.approx([0.0316] * 3)
    assert race["thread_s"] == pytest.approx([0.00127] * 3)


def test_comparison_shows_times_on_the_same_clock_and_the_judged_one_first(tmp_path: Path) -> None:
    looks = [timed_run(tmp_path, {"index/unbind": CPU}, end=end) for end in ("aaaaaa", "bbbbbb")]
    found = compare([look.summary for look in looks])
    result = render(looks, found, Style(), 200, has_chart=False)

    assert result.index("index, CPU time") < result.index("index, wall clock")
    assert "1.01 [0.739, 1.39] in CPU time" in result
    assert compared_runs(looks, found).judged_on_cpu == ["index", "unbind"]


def test_comparison_of_runs_on_two_clocks_names_both(tmp_path: Path) -> None:
    looks = [
        timed_run(tmp_path, {"index/unbind": CPU}, end="aaaaaa"),
        timed_run(tmp_path, {"index/unbind": WALL}, end="bbbbbb"),
    ]
    found = compare([look.summary for look in looks])
    result = render(looks, found, Style(), 200, has_chart=False)

    assert result.index("index, wall clock") < result.index("index, CPU time")
    assert not found.judged_on_cpu


def two_process_run(root: Path, end: str, factor: float) -> ReportedRun:
    """Return a run of two processes, judged on CPU time; `factor` makes the calls of index longer on that clock alone."""
    race = events.RaceStarted(arms=["index", "unbind"], threads=1, device="cpu", loops={})
    claim = events.ClaimDeclared(
        text="index/unbind", over="index", under="unbind", op="at_least", bound=1.3
    )
    reached = events.VerdictReached(
        text="index/unbind", verdict="INCONCLUSIVE", rule="r", measure=CPU, estimate=1.01
    )
    run_dir = make_run(
        root, started(), claim, reached, events.StateChanged(state="succeeded"), end=end
    )
    for worker in range(2):
        journal = Writer(run_dir / "journal" / f"worker-{worker}.jsonl")
        journal.append(race)
        journal.append(block("index", 0, 31.6, CPU_MS["index"] * factor))
        journal.append(block("unbind", 0, 1.76, CPU_MS["unbind"]))
        journal.close()
    return read_subject(run_dir)


def test_slower_compares_times_on_the_judged_clock(tmp_path: Path) -> None:
    runs = [two_process_run(tmp_path, "aaaaaa", 1.0), two_process_run(tmp_path, "bbbbbb", 2.0)]
    found = compare([run.summary for run in runs])

    assert slowdowns(found, 0.1) == ["run 2: a call of index takes 2.54 ms of CPU time (x2 [2, 2])"]


@pytest.mark.parametrize("size", [(120, 40), (80, 24)])
async def test_timings_pane_draws_the_judged_clock_and_names_the_other(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    subject = timed_run(tmp_path, {"index/unbind": CPU})
    async with opened(app_on(tmp_path), size=size) as pilot:
        await open_run(pilot, subject.run_dir)
        await shown(pilot, "CPU time of a call (judged)")
        picture = text(pilot)

    assert "1.27 ms" in picture
    assert "wall clock 31.6 ms" in picture


def test_verify_names_the_clock_of_a_ratio(root: Path, tuilab: Tuilab) -> None:
    subject = timed_run(root, {"index/unbind": CPU})
    result = tuilab("verify", subject.id, "--rejudge")

    assert "INCONCLUSIVE  1.01 [0.739, 1.39] in CPU time" in result.stdout


def test_trace_has_the_cpu_time_of_each_block(tmp_path: Path) -> None:
    subject = timed_run(tmp_path, {"index/unbind": CPU})
    told = [one["args"] for one in trace([subject])["traceEvents"] if one.get("cat") == "block"]

    assert [one["thread_s"] for one in told[:3]] == pytest.approx([0.00127] * 3)
