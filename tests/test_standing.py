"""How claims stand while a run goes on: provisional, from whole repeats, and reckoned only when there is a new one."""

import json
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.engine import until, write_scenario
from tests.test_verdict import LOOKS, race, recorded
from tuilab.cli.headless import interim_lines
from tuilab.drawings.glyphs import Style
from tuilab.judging.interim_results import (
    InterimJudge,
    InterimResult,
    compute_interim_results,
    describe_interim_result,
)
from tuilab.judging.judge_run import judge
from tuilab.record import events
from tuilab.record.folding.fold import fold
from tuilab.record.journal.lines import Item
from tuilab.record.summary import RunSummary
from tuilab.reports.pages import claim_row
from tuilab.reports.result import claim_of, document, results_of
from tuilab.reports.result_text import render
from tuilab.tui.widgets.run.claims import describe_in_one_line

Tuilab = Callable[..., "CompletedProcess[str]"]


def planned(summary: RunSummary, repeats: int) -> RunSummary:
    assert summary.run is not None
    summary.run.repeats = repeats
    return summary


def words(summary: RunSummary) -> list[str]:
    return [describe_interim_result(standing) for standing in compute_interim_results(summary)]


def begun(summary: RunSummary, repeat: int, ratio: float) -> RunSummary:
    """Add a repeat that is still running: it has raced, but not ended."""
    writer = f"worker-{repeat}"
    started = events.WorkerStarted(writer=writer, pid=1, start=1, repeat=repeat)
    return fold(
        [("supervisor", started), *((writer, event) for event in race(ratio, repeat, ("c",)))],
        summary,
    )


@pytest.mark.parametrize(
    ("repeats", "expected"),
    [
        (1, "so far a/b 3 after 1 of 8 repeats"),
        (2, "so far a/b 3 [2.93, 3.07] at 98.45 % after 2 of 8 repeats"),
        (5, "so far a/b 3 [3, 3] at 98.45 % after 5 of 8 repeats"),
        (6, "so far SUPPORTED, a/b 3 [3, 3] at 98.45 % after 6 of 8 repeats"),
    ],
)
def test_the_first_repeat_has_no_interval_and_the_first_six_are_no_verdict(
    repeats: int, expected: str
) -> None:
    assert words(planned(recorded(repeats, ratio=3.0), 8)) == [expected]


def test_the_interval_narrows_as_repeats_come_in() -> None:
    found = [
        compute_interim_results(planned(recorded(repeats, ratio=3.0), 8))[0].judgement
        for repeats in (2, 3, 4, 6, 8)
    ]

    widths = [one.high - one.low for one in found if one.high is not None and one.low is not None]
    assert len(widths) == 5 and widths == sorted(widths, reverse=True)
    assert [one.more_repeats for one in found] == [4, 3, 2, None, None]


def test_a_repeat_that_has_not_finished_does_not_count() -> None:
    summary = planned(recorded(3, ratio=3.0), 8)
    before = compute_interim_results(summary)

    assert compute_interim_results(begun(summary, 3, ratio=30.0)) == before


def test_after_the_last_repeat_a_claim_stands_as_it_is_judged() -> None:
    summary = planned(recorded(8, ratio=3.0, texts=("c", "d")), 8)

    stands = [one.judgement for one in compute_interim_results(summary)]
    reached = judge(summary)
    assert [(one.verdict, one.low, one.high, one.confidence) for one in stands] == [
        (one.verdict, one.low, one.high, one.confidence) for one in reached
    ]


def test_between_looks_a_claim_stands_as_at_the_last_look() -> None:
    summary = planned(recorded(9, ratio=3.0, looks=LOOKS), 40)

    assert words(summary) == ["so far SUPPORTED, a/b 3 [3, 3.01] at 99.83 % after 8 of 40 repeats"]


@pytest.mark.parametrize("looks", [LOOKS, ()])
@pytest.mark.parametrize("repeats", [1, 5, 6, 7, 8, 20, 39, 40])
def test_whoever_watches_and_stops_gets_what_was_shown(
    repeats: int, looks: tuple[int, ...]
) -> None:
    summary = planned(recorded(repeats, ratio=2.01, looks=looks), 40)
    (shown,) = compute_interim_results(summary)
    fold([("supervisor", events.StateChanged(state="stopping", reason="stop requested"))], summary)

    (reached,) = judge(summary)
    assert (reached.verdict, reached.low, reached.high) == (
        shown.judgement.verdict,
        shown.judgement.low,
        shown.judgement.high,
    )
    assert (reached.units, reached.why) == (shown.repeats, shown.judgement.why)


def test_a_control_that_fails_is_said_at_once() -> None:
    summary = planned(recorded(1, ratio=3.0), 8)
    summary.differences[0][1].is_same, summary.differences[0][1].difference = (
        False,
        "b does not compute what a does",
    )

    assert words(summary) == ["so far INVALID, a/b 3 after 1 of 8 repeats"]


def test_standings_are_reckoned_once_a_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    reckoned: list[RunSummary] = []

    def reckon(summary: RunSummary) -> list[InterimResult]:
        reckoned.append(summary)
        return []

    monkeypatch.setattr("tuilab.judging.interim_results.compute_interim_results", reckon)
    known, summary = InterimJudge(), recorded(3, ratio=3.0)

    for _ in range(50):
        known.results(summary)
    until(lambda: known.results(summary) == [] and not known.is_loading)
    begun(summary, 3, ratio=3.0)
    known.results(summary)
    fold([("supervisor", events.WorkerExited(writer="worker-3", code=0))], summary)
    known.results(summary)

    assert len(reckoned) == 2


LOADS_SLOWLY = """
import os, sys, time
from tests.test_verdict import recorded
from tuilab.judging.interim_results import InterimJudge
known = InterimJudge()
def look(repeats, planned):
    return len(known.results(recorded(repeats, ratio=3.0, planned=planned))), known.is_loading
here, there = os.pipe()
os.dup2(here, 0)
print(look(1, 1), "scipy" in sys.modules, look(0, 6))
while "scipy" not in sys.modules: time.sleep(0.01)  # it begins before anything is measured
print(look(1, 6), look(2, 6), look(2, 6))
os.write(there, b"it has come\\n")
while known.is_loading: look(2, 6)
print(look(2, 6), "textual" in sys.modules, flush=True)
os._exit(0)
"""


def test_scipy_is_loaded_beside_a_view_of_several_repeats_which_does_not_wait_for_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "scipy").mkdir()
    there = find_spec("scipy")
    assert there and there.submodule_search_locations
    slow = f"import sys; sys.stdin.readline(); __path__ = {there.submodule_search_locations!r}"
    (tmp_path / "scipy" / "__init__.py").write_text(slow)
    command = [
        sys.executable,
        "-c",
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{LOADS_SLOWLY}",
    ]

    done = subprocess.run(command, capture_output=True, text=True, timeout=60)

    expected = ["(0, False) False (0, False)", "(1, False) (1, True) (1, True)", "(1, False) False"]
    assert done.stdout.splitlines() == expected, done.stderr


def test_the_lines_end_when_only_the_verdict_is_left_to_come() -> None:
    plain = Style(is_utf8=False)

    known, five = InterimJudge(), planned(recorded(5, 3.0), 6)
    until(lambda: known.results(five))
    open_, ended = (
        interim_lines(planned(recorded(count, 3.0), 6), known, plain) for count in (5, 6)
    )

    assert open_ == ["? c: so far a/b 3 [3, 3] after 5 of 6 repeats"]
    assert ended == []


@pytest.mark.real_torch
@pytest.mark.slow
def test_a_pipe_gets_a_line_after_each_repeat_but_the_last(tuilab: Tuilab, tmp_path: Path) -> None:
    body = """
lab.claim_ratio("slow-is-slower", "slow/fast", at_least=2)
lab.race(slow=lambda: sum(range(20000)), fast=lambda: sum(range(200)), seconds=0.05)
"""
    done = tuilab("run", str(write_scenario(tmp_path, body)), "--json", "--repeat", "3")

    said = [line for line in done.stderr.splitlines() if "so far" in line]
    assert [line.rpartition(" after ")[2] for line in said] == ["1 of 3 repeats", "2 of 3 repeats"]
    assert all(line.startswith("probe: ? slow is slower: so far slow/fast ") for line in said)
    assert ["[" in line for line in said] == [False, True]
    assert json.loads(done.stdout)["runs"][0]["claims"][0]["verdict"] == "INCONCLUSIVE"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ([events.StateChanged(state="failed")], "the run ended early (failed)"),
        ([], "the recorded data has no end of the run"),
        (
            [
                events.Unavailable(what="verdicts", reason="the judge: timed out after 60 s"),
                events.StateChanged(state="succeeded"),
            ],
            "the judge: timed out after 60 s",
        ),
        ([events.StateChanged(state="succeeded")], "its verdict was not recorded"),
    ],
)
def test_why_a_claim_was_not_judged_is_one_sentence_in_every_view(
    said: list[Item], why: str
) -> None:
    summary = fold([("supervisor", event) for event in said], recorded(2, ratio=3.0))
    claim, run_dir = summary.claims["c"], Path("a-run")
    (told,) = document(results_of([(summary, summary.state, run_dir)], 0))["runs"][0]["claims"]

    assert told["why"] == claim_row(claim_of(claim, summary)).why == why
    assert f"… not judged  c  {why}\n" in render(
        summary, summary.state, run_dir, Style(), 100, has_chart=False
    )
    assert not summary.is_over or describe_in_one_line(claim, summary) == f"…  c  not judged: {why}"
