"""Which run represents its scenario, and which run another run is compared with."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.made_runs import finished, make_run, started
from tuilab.errors import UsageError
from tuilab.record.events import StateChanged, Sweep
from tuilab.record.verdicts import Verdict
from tuilab.runs import notes, past_runs, store
from tuilab.runs.index import Index
from tuilab.runs.representative import (
    Reference,
    ScenarioStatus,
    is_baseline,
    needed_reference,
    pin,
    reference_for,
    representative_runs,
    statuses,
    unpin,
    worst,
)

LISTING = """
import sys
from tuilab.runs.index import Index
from tuilab.runs.representative import statuses
print({scenario: str(status.verdict) for scenario, status in statuses(Index(sys.argv[1])).items()}, 'msgspec' in sys.modules)
"""
POINT: dict[str, Any] = {
    "sweep": Sweep(id="sweep-1", values={"rows": [5, 9]}, point={"rows": 5}),
    "params": {"rows": 5},
}
ROWS: dict[str, Any] = {"params": {"rows": 5}, "changed": ["rows"]}


def status_of(root: Path) -> dict[str, ScenarioStatus]:
    """Return the status of each scenario, which an index from disk confirms."""
    first = statuses(Index(root))
    assert statuses(Index(root)) == first
    return first


def verdicts_of(root: Path) -> dict[str, str]:
    return {scenario: status.verdict for scenario, status in status_of(root).items()}


def reference_of(run_dir: Path) -> Path | None:
    reference = reference_for(run_dir, Index(run_dir.parent))
    return reference.run_dir if reference else None


# ---- the run that represents its scenario


@pytest.mark.parametrize("other", [{"state": "stopped"}, {"quick": True}, ROWS])
def test_run_with_defaults_represents_its_scenario(root: Path, other: dict[str, Any]) -> None:
    usual = finished(root, {"a": "REFUTED"}, at_s=1.5e9, end="aaaaaa")
    finished(root, {"a": "SUPPORTED"}, at_s=1.6e9, end="bbbbbb", **other)

    assert status_of(root) == {"softmax": ScenarioStatus("REFUTED")}
    assert representative_runs(Index(root)) == {"softmax": usual.name}


def test_without_defaults_quick_comes_before_other_parameters_and_stopped(root: Path) -> None:
    finished(root, {"a": "REFUTED"}, at_s=1.5e9, end="aaaaaa", quick=True)
    finished(root, {"a": "SUPPORTED"}, at_s=1.6e9, end="bbbbbb", **ROWS)
    finished(root, {"a": "SUPPORTED"}, name="xyy", at_s=1.5e9, end="cccccc", **ROWS)
    finished(root, {}, name="xyy", at_s=1.6e9, end="dddddd", state="stopped")
    finished(
        root,
        {"a": "SUPPORTED"},
        name="xent",
        at_s=1.5e9,
        end="eeeeee",
        params={"device": "cpu"},
        changed=["device"],
    )

    assert status_of(root) == {
        "softmax": ScenarioStatus("REFUTED", "quick"),
        "xyy": ScenarioStatus("SUPPORTED", "rows=5"),
        "xent": ScenarioStatus("SUPPORTED"),
    }


def test_newest_failed_run_represents_its_scenario_everywhere(root: Path) -> None:
    finished(root, {"a": "SUPPORTED"}, at_s=1.5e9, end="aaaaaa")
    failed = finished(root, {}, at_s=1.6e9, end="bbbbbb", state="failed")

    assert verdicts_of(root) == {"softmax": "FAILED"}
    assert representative_runs(Index(root)) == {"softmax": failed.name}


def test_stopped_run_has_not_failed(root: Path) -> None:
    make_run(root, started(), StateChanged(state="stopped", reason="stop requested"))

    assert verdicts_of(root) == {"softmax": ""}


def test_points_of_a_sweep_with_other_values_represent_nothing(root: Path) -> None:
    finished(
        root, {"a": "SUPPORTED"}, name="xyy", at_s=1.5e9, end="cccccc", **POINT
    )  # 5 is the default
    usual = finished(root, {"a": "REFUTED"}, at_s=1.5e9, end="aaaaaa")
    for number in range(120):
        finished(
            root,
            {"a": "SUPPORTED"},
            at_s=1.6e9 + number,
            end=f"{number:06}",
            **POINT,
            changed=["rows"],
        )
    finished(
        root, {}, name="xent", at_s=1.6e9, end="dddddd", state="failed", **POINT, changed=["rows"]
    )

    assert verdicts_of(root) == {"softmax": "REFUTED", "xyy": "SUPPORTED", "xent": ""}
    shown = past_runs.runs_to_show("softmax", root, Index(root).entry)
    best = past_runs.representative_past_run([past_runs.read_past_run(run) for run in shown])
    assert best and best.run_dir == usual
    assert len(shown) == past_runs.NEWEST + 1


def test_run_in_which_nothing_could_be_tested_comes_last(root: Path) -> None:
    gone: dict[str, Any] = {"params": {"device": "cuda:9"}, "changed": ["device"]}
    good = finished(root, {"a": "SUPPORTED"}, at_s=1.5e9, end="aaaaaa")
    small = finished(root, {"a": "INCONCLUSIVE"}, name="xyy", at_s=1.5e9, end="bbbbbb", quick=True)
    finished(root, {"a": Verdict.NOT_TESTABLE}, name="xent", at_s=1.5e9, end="cccccc")
    for number, name in enumerate(("softmax", "xyy", "xent")):
        finished(
            root, {"a": Verdict.NOT_TESTABLE}, name=name, at_s=1.6e9 + number, end="dddddd", **gone
        )

    assert status_of(root) == {
        "softmax": ScenarioStatus("SUPPORTED"),
        "xyy": ScenarioStatus("INCONCLUSIVE", "quick"),
        "xent": ScenarioStatus(Verdict.NOT_TESTABLE),
    }
    assert (
        representative_runs(Index(root)).items()
        >= {"softmax": good.name, "xyy": small.name}.items()
    )
    for run in (good, small):
        past = [
            past_runs.read_past_run(one) for one in past_runs.runs_of(run.name.split("-")[1], root)
        ]
        best = past_runs.representative_past_run(past)
        assert best and best.run_dir == run


def test_run_on_another_device_has_the_defaults(root: Path) -> None:
    finished(root, {"a": "SUPPORTED"}, at_s=1.5e9, end="aaaaaa")
    newer = finished(
        root,
        {"a": "REFUTED"},
        at_s=1.6e9,
        end="bbbbbb",
        params={"device": "cpu"},
        changed=["device"],
    )

    assert status_of(root) == {"softmax": ScenarioStatus("REFUTED")}
    assert representative_runs(Index(root)) == {"softmax": newer.name}


def test_running_and_queued_runs_are_shown_until_they_end(root: Path) -> None:
    finished(root, {"a": "REFUTED"}, at_s=1.4e9, end="aaaaaa")
    running = make_run(
        root, started(is_alive=True), StateChanged(state="running"), at_s=1.5e9, end="bbbbbb"
    )
    make_run(root, started(is_alive=True), StateChanged(state="queued"), at_s=1.6e9, end="cccccc")

    assert verdicts_of(root) == {"softmax": "running"}
    store.remove(running)
    assert verdicts_of(root) == {"softmax": "queued"}


def test_lost_run_has_failed(root: Path) -> None:
    make_run(root, started(is_alive=False), StateChanged(state="running"), at_s=1.5e9)

    assert verdicts_of(root) == {"softmax": "FAILED"}


@pytest.mark.parametrize("state", ["succeeded", "hibernating"])
def test_run_that_only_a_newer_tuilab_understands_represents_nothing(
    root: Path, state: str
) -> None:
    finished(root, {"a": "REFUTED"}, at_s=1.6e9)
    make_run(
        root,
        started(format=99 if state == "succeeded" else 1, is_alive=True),
        StateChanged(state=state),
    )

    assert verdicts_of(root) == {"softmax": "REFUTED"}


def test_deleted_run_gives_way_to_the_previous_one(root: Path) -> None:
    finished(root, {"a": "REFUTED"}, at_s=1.5e9, end="aaaaaa")
    newer = finished(root, {"a": "SUPPORTED"}, at_s=1.6e9, end="bbbbbb")
    before = verdicts_of(root)
    store.remove(newer)

    assert (before, verdicts_of(root)) == ({"softmax": "SUPPORTED"}, {"softmax": "REFUTED"})


def test_folders_that_are_no_runs_have_no_status(root: Path) -> None:
    finished(root, {"a": "SUPPORTED"})
    os.rename(finished(root, {}, name="xyy"), os.fsencode(root) + b"/20261123T000000000Z-xyy-\xff")
    (root / "notes.txt").write_text("mine")
    (root / "2026").mkdir()

    assert verdicts_of(root) == {"softmax": "SUPPORTED"}


def test_statuses_from_the_index_load_nothing_slow(root: Path) -> None:
    finished(root, {"a": "REFUTED"}, at_s=1.5e9, end="aaaaaa")
    finished(root, {}, name="xyy", at_s=1.6e9, end="bbbbbb")

    printed = [
        subprocess.check_output([sys.executable, "-c", LISTING, root], text=True) for _ in range(2)
    ]
    assert printed == [
        f"{{'xyy': '', 'softmax': 'REFUTED'}} {is_loaded}\n" for is_loaded in (True, False)
    ]


def test_unknown_verdict_is_none() -> None:
    assert [worst([""]), worst(["MOSTLY TRUE"]), worst([])] == ["", "", ""]
    assert worst(["", Verdict.NOT_TESTABLE]) == Verdict.NOT_TESTABLE


# ---- the run that another run is compared with


@pytest.fixture
def runs(root: Path) -> list[Path]:
    """Four runs, one after another: the second failed, the third is quick."""
    kinds: list[dict[str, Any]] = [{}, {"state": "failed"}, {"quick": True}, {}]
    return [
        finished(root, {"a": "SUPPORTED"}, at_s=1.8e9 + at, end=str(at) * 6, **more)
        for at, more in enumerate(kinds)
    ]


def test_scenario_has_one_baseline_the_latest_one(root: Path, runs: list[Path]) -> None:
    other = finished(root, {"a": "SUPPORTED"}, name="xyy", end="ffffff")
    said = [pin(other), pin(runs[3]), pin(runs[0])]

    assert said[1:] == [
        "333333 is the baseline of softmax",
        "000000 is the baseline of softmax, instead of 333333",
    ]
    assert [is_baseline(run) for run in runs] == [True, False, False, False]
    assert reference_of(runs[3]) == runs[0]
    assert unpin(runs[0]) == "000000 is no longer the baseline of softmax"
    assert not is_baseline(runs[0])


def test_newest_of_several_tagged_runs_is_the_baseline(runs: list[Path]) -> None:
    for run in runs[:2]:
        notes.add(run, tags=["baseline"])

    assert reference_of(runs[3]) == runs[1]


def test_reference_is_the_baseline_else_an_earlier_comparable_run(
    root: Path, runs: list[Path]
) -> None:
    without = [reference_of(run) for run in runs]
    pin(runs[3])
    index = Index(root)

    assert without == [None, runs[0], None, runs[0]]
    assert [reference_for(run, index) for run in runs[:3]] == [
        Reference(runs[3], is_baseline=True)
    ] * 3
    assert reference_for(runs[3], index) == Reference(
        runs[0], is_baseline=False
    )  # the baseline itself


def test_point_of_a_sweep_is_compared_only_within_its_sweep(root: Path) -> None:
    usual = finished(root, {}, at_s=1.5e9, end="aaaaaa")
    points = [
        finished(root, {}, at_s=1.6e9 + n, end=f"{n:06}", **POINT, changed=["rows"])
        for n in range(2)
    ]
    last = finished(root, {}, at_s=1.7e9, end="bbbbbb", **ROWS)

    assert [reference_of(run) for run in (last, *reversed(points))] == [usual, points[0], usual]


def test_missing_reference_is_an_error_with_a_next_step(runs: list[Path]) -> None:
    message = r"no run to compare 000000 with: softmax has no other baseline.*tuilab note RUN --tag baseline"
    with pytest.raises(UsageError, match=message):
        needed_reference(runs[0], Index(runs[0].parent))

    assert needed_reference(runs[1], Index(runs[0].parent)) == runs[0]
