"""Verdicts that were measured on a GPU belong to that GPU: those of two cards in one box are never one, nor a change of one."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.advice_aids import make_raced_run
from tests.engine import read_stream
from tests.made_runs import judged, make_run, started
from tests.tui.screens import opened
from tests.tui.screens import shown as shown_by
from tuilab.judging.judge_run import judge
from tuilab.record import events
from tuilab.record.folding.fold import fold
from tuilab.record.journal.writer import Writer
from tuilab.record.live_run import read_run
from tuilab.record.summary import RunSummary
from tuilab.reports.advice.advised import advise
from tuilab.reports.advice.env_file import env_file
from tuilab.reports.advice.validity import facts_of
from tuilab.reports.opening import opening_of
from tuilab.reports.reported_run import read_subject
from tuilab.runs import earlier_verdicts, read_entry
from tuilab.runs.comparing import comparison
from tuilab.runs.filters import words_of
from tuilab.runs.notes import Notes
from tuilab.text.words import gpu_words

Tuilab = Callable[..., "subprocess.CompletedProcess[str]"]
H100: dict[str, Any] = {"gpu": "aaaaaaaa-1111", "gpu_name": "NVIDIA H100"}
A100: dict[str, Any] = {"gpu": "bbbbbbbb-2222", "gpu_name": "NVIDIA A100"}
RACE: dict[str, Any] = {"arms": ["a", "b"], "threads": 1, "loops": {"a": 1, "b": 1}}
TWO = {"devices": [{"uuid": "u0", "name": "NVIDIA A100"}, {"uuid": "u1", "name": "NVIDIA H100"}]}
CHOSEN = events.EnvironmentRecorded(part="cuda", facts={**TWO, "chosen": "u1"})
FASTER = events.ClaimDeclared(
    key="faster", text="a is faster", over="a", under="b", op="at_most", bound=1.0
)
COUNTED = events.ClaimMeasured(
    key="count",
    text="it is 1",
    got=events.Measured(numbers=[1.0]),
    op="equals",
    want=events.Measured(numbers=[1.0]),
)


def test_a_gpu_is_called_by_its_model_and_the_beginning_of_its_uuid() -> None:
    assert gpu_words("NVIDIA H100", "GPU-1a2b3c4d-5e6f") == "NVIDIA H100 (1a2b3c4d)"
    assert gpu_words("", "1a2b3c4d-5e6f, 9a8b7c6d-5e6f") == "GPU (1a2b3c4d, 9a8b7c6d)"
    assert gpu_words("", "") == ""


# ---- what a verdict is about


def verdicts(*records: events.Record, **workers: list[events.Record]) -> dict[str, tuple[str, str]]:
    found = fold([("supervisor", started()), *(("worker-0", record) for record in records)])
    for stream, more in workers.items():
        fold([(stream.replace("_", "-"), record) for record in more], found)
    return {verdict.claim_id: (verdict.gpu, verdict.gpu_name) for verdict in judge(found)}


def test_a_verdict_names_the_gpu_that_was_raced_on_and_the_one_that_a_value_was_computed_on() -> (
    None
):
    race = events.RaceStarted(**RACE, device="cuda", uuid="u0")

    found = verdicts(CHOSEN, FASTER, COUNTED, race, lacking("faster"))
    assert found == {"faster": ("u0", "NVIDIA A100"), "count": ("u1", "NVIDIA H100")}


def lacking(key: str) -> events.ClaimNotTestable:
    """Have a verdict without the many blocks of a race."""
    return events.ClaimNotTestable(key=key, text="a is faster", needs="time")


def test_a_race_on_the_cpu_is_about_no_gpu_though_the_run_had_one() -> None:
    race = events.RaceStarted(**RACE, device="cpu")

    assert verdicts(CHOSEN, FASTER, race, lacking("faster")) == {"faster": ("", "")}


def test_a_race_of_processes_is_about_the_gpu_that_these_had() -> None:
    records = [
        events.WorkerStarted(writer="worker-0", pid=1, start=1),
        events.WorkerStarted(writer="worker-1", pid=2, start=1, arm="a"),
    ]

    found = verdicts(
        FASTER,
        events.RaceStarted(**RACE, device="process"),
        lacking("faster"),
        *records,
        worker_1=[CHOSEN],
    )
    assert found == {"faster": ("u1", "NVIDIA H100")}


# ---- History, and how often it was run before


def on(root: Path, number: int, verdict: str = "SUPPORTED", **gpu: Any) -> Path:
    """Make a run that was judged on a GPU."""
    run_dir = judged(root, number, verdict)
    stream = run_dir / "journal" / "supervisor.jsonl"
    records: list[Any] = read_stream(stream)
    stream.unlink()
    writer = Writer(stream)
    for record in records:
        if isinstance(record, events.VerdictReached):
            record.gpu, record.gpu_name = gpu.get("gpu", ""), gpu.get("gpu_name", "")
        record.n, record.t = -1, 0
        writer.append(record)
    writer.close()
    return run_dir


def told(run_dir: Path) -> dict[str, str]:
    return earlier_verdicts.describe_earlier_verdicts(run_dir, read_run(run_dir))


def test_runs_on_another_gpu_and_on_the_cpu_are_not_counted(root: Path) -> None:
    on(root, 1, "REFUTED", **A100)
    on(root, 2, "INCONCLUSIVE")
    on(root, 3, "SUPPORTED", **H100)

    assert told(on(root, 4, **H100)) == {
        "sum": "2nd run of this claim on this GPU, NVIDIA H100 (aaaaaaaa); the other: SUPPORTED"
    }
    assert told(on(root, 5)) == {
        "sum": "2nd run of this claim on this machine; the other: INCONCLUSIVE"
    }


def test_the_list_of_runs_names_the_gpu_and_finds_by_it(tuilab: Tuilab, root: Path) -> None:
    h100, cpu = read_entry.read_entry(on(root, 1, **H100)), read_entry.read_entry(on(root, 2))

    assert (h100.gpus, cpu.gpus) == (["NVIDIA H100 (aaaaaaaa)"], [])
    assert "nvidia h100 (aaaaaaaa)" in words_of(h100, Notes())
    printed = tuilab("runs", "--root", str(root)).stdout
    assert printed.count("on NVIDIA H100 (aaaaaaaa)") == 1
    listed = json.loads(tuilab("runs", "--json", "--root", str(root)).stdout)["runs"]
    assert [run["gpus"] for run in listed] == [
        [],
        [{"uuid": "aaaaaaaa-1111", "name": "NVIDIA H100"}],
    ]


def test_a_run_of_a_command_is_found_by_the_gpu_that_it_held_memory_on(root: Path) -> None:
    run_dir = make_run(
        root,
        started(topic="exec", command=["python", "train.py"]),
        events.StateChanged(state="succeeded"),
    )
    of_others: dict[str, list[events.Record]] = {
        "sampler": [
            events.GpuFound(uuid=f"GPU-{at}-1", index=0, name=name, bytes_total=1)
            for at, name in enumerate("ab")
        ],
        "worker-0": [events.Logged(s=1, v={"loss": 1.0}), events.GpuHeld("1-1", 5, 6)],
    }
    for stream, records in of_others.items():
        journal = Writer(run_dir / "journal" / f"{stream}.jsonl")
        for record in records:
            journal.append(record)
        journal.close()

    entry = read_entry.read_entry(run_dir)
    assert (entry.gpu_names, entry.state, entry.claims) == ({"1-1": "b"}, "succeeded", [])
    assert "b (1-1)" in words_of(entry, Notes())


async def test_history_names_the_gpu_of_the_run(tmp_path: Path) -> None:
    on(tmp_path, 1, **H100)

    async with opened(tmp_path, "h", size=(120, 40)) as pilot:
        assert "on NVIDIA H100 (aaaaaaaa)" in await shown_by(pilot, "NVIDIA")


# ---- runs side by side


def ratio(estimate: float, verdict: str, **gpu: Any) -> RunSummary:
    declared = events.ClaimDeclared(text="faster", over="a", under="b", op="at_least", bound=1.0)
    numbers: dict[str, Any] = {
        "estimate": estimate,
        "low": estimate * 0.99,
        "high": estimate * 1.01,
        "confidence": 0.95,
    }
    reached = events.VerdictReached(
        text="faster", verdict=verdict, rule="r", units=6, unit="repeats", **numbers, **gpu
    )
    return fold([("supervisor", started()), ("worker-0", declared), ("judge", reached)])


@pytest.mark.parametrize("other", ["SUPPORTED", "REFUTED"])
def test_what_another_gpu_says_is_no_regression_and_no_change_of_an_estimate(other: str) -> None:
    found = comparison.compare([ratio(2.0, "SUPPORTED", **H100), ratio(1.5, other, **A100)])

    assert comparison.regressions(found) == []
    assert found.claims[0].shifts == (None,)
    words = (
        "different verdicts, on different GPUs: NVIDIA H100 (aaaaaaaa) and NVIDIA A100 (bbbbbbbb)"
    )
    assert comparison.difference_words(found.claims[0]) == (words if other == "REFUTED" else "")


def test_on_the_same_gpu_it_is_one() -> None:
    found = comparison.compare([ratio(2.0, "SUPPORTED", **H100), ratio(1.5, "REFUTED", **H100)])

    assert comparison.regressions(found) == ["run 2: faster: REFUTED, was SUPPORTED"]
    assert comparison.difference_words(found.claims[0]) == "different verdicts"


def test_side_by_side_the_gpus_of_the_runs_are_what_differs() -> None:
    one, two = (
        fold([("supervisor", started()), ("worker-0", chosen(uuid))]) for uuid in ("u0", "u1")
    )

    differences = {
        (row.part, row.name): row.values for row in comparison.compare([one, two]).differences
    }
    assert differences["environment", "GPU of the run"] == ("NVIDIA A100 (u0)", "NVIDIA H100 (u1)")


def chosen(uuid: str) -> events.EnvironmentRecorded:
    return events.EnvironmentRecorded(part="cuda", facts={**TWO, "chosen": uuid})


# ---- a report of the box, and its settings


def test_a_report_of_a_box_with_two_cards_names_the_card_of_each_finding(root: Path) -> None:
    two = [read_subject(on(root, 1, **H100)), read_subject(on(root, 2, **A100))]

    def names(subjects: list[Any]) -> set[str]:
        return {finding.name for group in opening_of(subjects).groups for finding in group.findings}

    assert {name.rpartition("NVIDIA ")[2] for name in names(two)} == {
        "H100 (aaaaaaaa)",
        "A100 (bbbbbbbb)",
    }
    assert not any("NVIDIA" in name for name in names(two[:1]))


def test_a_setting_says_on_which_gpu_its_values_raced(root: Path) -> None:
    subject = make_raced_run(root, before=(CHOSEN,))
    here = facts_of(subject.summary, ["worker-0"])

    assert here["GPU"] == "NVIDIA H100" and ", NVIDIA H100, " in env_file(advise([subject], here))
