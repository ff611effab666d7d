"""The line that makes a run again, and how a run that failed tells why: what ran on a cluster names it."""

from pathlib import Path
from typing import Any

import pytest

from tests.made_runs import make_run, started
from tests.report_aids import Elements
from tuilab.drawings.glyphs import Style
from tuilab.record import events
from tuilab.record.events import Sweep
from tuilab.reports.formats import html, md
from tuilab.reports.missing_data import gaps
from tuilab.reports.reported_run import read_subject
from tuilab.reports.result_text import render
from tuilab.runs.command_line import line, rerun_line

RAY = "--engine ray --address 10.0.0.1:6379"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"node": "one", "argv": ["run", "softmax", *RAY.split(), "--per-node"]}, RAY),
        (
            {
                "node": "one",
                "nodes": ["one", "other"],
                "argv": ["run", "softmax", "--engine", "ray"],
            },
            "--engine ray --nnodes 2",
        ),
        (
            {
                "node": "one",
                "sweep": Sweep(
                    id="s", values={}, point={}, argv=["sweep", "--address=10.0.0.1:6379"]
                ),
            },
            RAY,
        ),
        (
            {"node": "one", "argv": ["run", "softmax", "--engine", "ray", "--gpus", "1"]},
            "--engine ray --gpus 1",
        ),
        ({"argv": ["run", "softmax"]}, ""),
    ],
)
def test_what_ran_on_a_cluster_is_made_again_there(fields: dict[str, Any], words: str) -> None:
    assert rerun_line(started(**fields), 1) == " ".join(
        filter(None, ["tuilab run softmax", words, "--headless"])
    )


def test_a_folder_that_is_the_home_can_be_gone_to() -> None:
    folders = ["~", "~/", "~/my runs", "~x"]

    assert [line([folder]) for folder in folders] == ["~", "'~/'", "~/'my runs'", "'~x'"]


@pytest.mark.parametrize(
    ("reason", "lines"),
    [
        (
            "ArmFailed: the node other is lost with its ranks",
            ["failed: ArmFailed: the node other is lost with its ranks"],
        ),
        (
            "ArmFailed: rank 1: ValueError: a  b (on other)",
            ["failed: ArmFailed: rank 1: ValueError: a  b (on other)"],
        ),
        ("ValueError: a b", []),
        ("ArmFailed: ValueError: a", []),  # cut
    ],
)
def test_why_a_run_failed_is_told_beside_what_failed_unless_it_is_the_same(
    tmp_path: Path, reason: str, lines: list[str]
) -> None:
    failed = events.ScenarioFailed(type="ValueError", message="a b", traceback="")
    run_dir = make_run(
        tmp_path, started(), failed, events.StateChanged(state="failed", reason=reason)
    )

    told = render(
        read_subject(run_dir).summary, "failed", run_dir, Style(), 100, has_chart=False
    ).splitlines()

    assert [one for one in told if one.startswith("failed: ")] == lines
    assert "ValueError: a b" in told


@pytest.mark.parametrize(
    ("node", "who"),
    [
        ("", "its supervisor is gone"),
        ("one", "its node (one), or the process that copied it from there, is gone"),
    ],
)
def test_a_run_that_is_lost_says_who_is_gone(tmp_path: Path, node: str, who: str) -> None:
    run_dir = make_run(tmp_path, started(node=node), events.StateChanged(state="running"))
    subject = read_subject(run_dir)

    assert f"lost: {who}" in render(subject.summary, "lost", run_dir, Style(), 100, has_chart=False)
    assert any(who in gap for gap in gaps(subject)) and subject.state == "lost"


@pytest.mark.parametrize(("host", "told"), [("box", "node  one, host box"), ("one", "node  one")])
def test_the_result_and_reports_name_the_node(tmp_path: Path, host: str, told: str) -> None:
    run = started(node="one", supervisor=events.Identity(host=host, boot="b", pid=1, start=1))
    subject = read_subject(make_run(tmp_path, run, events.StateChanged(state="succeeded")))

    lines = render(
        subject.summary, "succeeded", subject.run_dir, Style(), 100, has_chart=False
    ).splitlines()

    assert told in [line.strip() for line in lines]
    assert f"| {told.replace('  ', ' | ')} |" in md.render([subject])
    assert told.replace("  ", "") in Elements(html.render([subject])).text


@pytest.mark.parametrize(
    ("state", "is_told"), [("lost", True), ("failed", True), ("running", False)]
)
def test_what_was_measured_and_never_judged_can_be_judged_and_the_result_says_how(
    tmp_path: Path, state: str, is_told: bool
) -> None:
    """The judge comes last: a supervisor that is killed, or a disk that is full, leaves what was measured without verdicts."""
    one = events.Measured(numbers=[1.0])
    said = events.ClaimMeasured(text="one", key="one", op="equals", got=one, want=one)
    judged = events.VerdictReached(text="one", key="one", verdict="SUPPORTED", rule="r")

    for number, (record, told) in enumerate(
        [(said, is_told), (judged, False), (events.StateChanged(state="running"), False)]
    ):
        run_dir = make_run(tmp_path, started(), record, end=f"{number:06}")
        result = render(
            read_subject(run_dir).summary, state, run_dir, Style(), 200, has_chart=False
        )
        assert (
            f"no claim was judged; to judge them now: tuilab verify {number:06}" in result
        ) == told


def test_a_failure_in_one_frame_is_told_once(tmp_path: Path) -> None:
    frame = '  File "scenario.py", line {}, in {}\n    {}\n'
    one, two = frame.format(8, "run", "go()"), frame.format(3, "go", "raise ValueError")

    for traceback, count in ((one, 1), (one + two, 2)):
        text = f"Traceback (most recent call last):\n{traceback}ValueError: a b\n"
        failed = events.ScenarioFailed(type="ValueError", message="a b", traceback=text)
        run_dir = make_run(
            tmp_path, started(), failed, events.StateChanged(state="failed"), end=f"{count:06}"
        )
        told = render(
            read_subject(run_dir).summary, "failed", run_dir, Style(), 100, has_chart=False
        )
        assert told.count("go()") == 1
        assert told.count("raise ValueError") == (0 if count == 1 else 2)


@pytest.mark.parametrize(
    ("measure", "told"),
    [("cpu", "2 ms a call on the wall clock, median"), ("wall", "2 ms a call, median")],
)
def test_times_without_cpu_time_name_the_wall_clock_if_the_verdict_rests_on_cpu_time(
    tmp_path: Path, measure: str, told: str
) -> None:
    race = events.RaceStarted(arms=["a", "b"], threads=1, device="cpu", loops={})
    blocks = [
        events.BlockTimed(arm=arm, round=0, slot=0, loops=1, wall_ns=2_000_000, cpu_ns=1)
        for arm in ("a", "b")
    ]
    claim = events.ClaimDeclared(text="slower", over="a", under="b", op="at_least", bound=1.5)
    reached = events.VerdictReached(text="slower", verdict="REFUTED", rule="r", measure=measure)
    run_dir = make_run(
        tmp_path, started(), claim, race, *blocks, reached, events.StateChanged(state="succeeded")
    )
    subject = read_subject(run_dir)

    assert told in render(subject.summary, "succeeded", run_dir, Style(), 200, has_chart=False)
    assert ("time of a call on the wall clock" in html.render([subject])) == (measure == "cpu")
