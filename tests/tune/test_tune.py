"""`tuilab tune` as a whole, on a trainer whose treatments have made-up effects."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from tests.conftest import TUILAB
from tests.report_aids import find_misfits
from tests.tune.tuned_trainer import write_trainer
from tuilab.cli.schemas import schema_of

Tuilab = Callable[..., CompletedProcess[str]]
TRAIN = "train.py"
MEMORY_ERROR = (
    'Traceback (most recent call last):\n  File "train.py", line 1, in <module>\n    main()\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder in which the script runs."""
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def tune(
    tuilab: Tuilab,
    folder: Path,
    effects: Mapping[str, Mapping[str, Any]],
    *words: str,
    code: int = 0,
    **plan: Any,
) -> dict[str, Any]:
    """Tune the trainer in a folder and return the result."""
    command = write_trainer(folder, effects, **plan)
    options = ["--budget", "60s", "--yes", "--json", *words]
    done = tuilab("tune", *options, "--", sys.executable, *command, cwd=folder)
    assert done.returncode == code, done.stdout + done.stderr
    document = json.loads(done.stdout)
    schema = json.loads(schema_of("tuilab.result/1"))
    assert find_misfits(document, schema, schema) == []
    (run,) = document["runs"]
    result: dict[str, Any] = run
    return result


def outcomes(run: dict[str, Any]) -> dict[str, str]:
    return {each["arm"]: each["outcome"] for each in run["tuning"]["treatments"]}


def reasons(run: dict[str, Any]) -> dict[str, str]:
    return {each["arm"]: each["why"] for each in run["tuning"]["treatments"]}


def test_a_treatment_that_halves_a_step_is_supported(tuilab: Tuilab, folder: Path) -> None:
    run = tune(tuilab, folder, {"fused": {"times": 0.5}}, "--only", "fused")

    assert outcomes(run) == {"fused": "SUPPORTED"}
    (claim,) = run["claims"]
    assert claim["key"] == "fused"
    assert claim["estimate"] == pytest.approx(2.0, rel=0.05)


@pytest.mark.slow
def test_a_treatment_that_changes_nothing_is_no_gain(tuilab: Tuilab, folder: Path) -> None:
    run = tune(tuilab, folder, {}, "--only", "fused")

    assert outcomes(run) == {"fused": "NO MEANINGFUL DIFFERENCE"}


def test_tf32_that_is_faster_is_not_plainly_supported(tuilab: Tuilab, folder: Path) -> None:
    run = tune(tuilab, folder, {"tf32": {"times": 0.5}}, "--only", "tf32")

    assert outcomes(run) == {"tf32": "FASTER BUT LEARNING NOT SHOWN"}
    assert run["claims"][0]["verdict"] == "INCONCLUSIVE"


@pytest.mark.slow
def test_a_faster_treatment_that_learns_otherwise_is_invalid(tuilab: Tuilab, folder: Path) -> None:
    run = tune(tuilab, folder, {"fused": {"times": 0.5, "shift": 0.1}}, "--only", "fused")

    assert outcomes(run) == {"fused": "INVALID"}
    assert "learns something else than base" in reasons(run)["fused"]


def test_a_crash_ends_one_treatment_and_not_the_tuning(tuilab: Tuilab, folder: Path) -> None:
    effects: dict[str, dict[str, Any]] = {"fused": {"code": 3}, "foreach": {"times": 0.5}}
    run = tune(tuilab, folder, effects, "--only", "fused,foreach")

    assert outcomes(run)["fused"] == "FAILED"
    assert "exit code 3" in reasons(run)["fused"]
    assert run["state"] == "succeeded"
    verdicts = {claim["key"]: claim["verdict"] for claim in run["claims"]}
    assert verdicts["fused"] == "NOT TESTABLE HERE"


@pytest.mark.slow
def test_a_lack_of_memory_ends_one_treatment(tuilab: Tuilab, folder: Path) -> None:
    effects = {"fused": {"prints": MEMORY_ERROR, "code": 1}}
    run = tune(tuilab, folder, effects, "--only", "fused")

    assert outcomes(run) == {"fused": "OUT OF MEMORY"}


@pytest.mark.slow
def test_a_treatment_that_hangs_is_over_time(tuilab: Tuilab, folder: Path) -> None:
    run = tune(tuilab, folder, {"fused": {"hangs": True}}, "--only", "fused", "--budget", "30s")

    assert outcomes(run) == {"fused": "OVER TIME"}
    assert "with 0 steps" in reasons(run)["fused"]


def test_a_treatment_that_reports_why_it_did_nothing_is_not_compared(
    tuilab: Tuilab, folder: Path
) -> None:
    nothing = {"report": {"did": "", "why": "the optimizer is not one of torch"}}
    already = {"report": {"did": "", "why": "it is on already", "is_already_set": True}}
    run = tune(tuilab, folder, {"fused": nothing, "tf32": already}, "--only", "fused,tf32")

    assert outcomes(run) == {"fused": "NOT APPLICABLE", "tf32": "ALREADY SET"}
    assert reasons(run)["fused"] == "the optimizer is not one of torch"


@pytest.mark.slow
def test_two_winners_are_combined_and_compared_with_the_best(tuilab: Tuilab, folder: Path) -> None:
    effects = {"fused": {"times": 0.7}, "cudnn-benchmark": {"times": 0.6}}
    run = tune(tuilab, folder, effects, "--only", "fused,cudnn-benchmark")

    (combination,) = run["tuning"]["combinations"]
    assert combination["parts"] == ["cudnn-benchmark", "fused"]
    assert combination["best"] == "cudnn-benchmark"
    verdicts = {claim["key"]: claim["verdict"] for claim in run["claims"]}
    assert verdicts["combined"] == "SUPPORTED"
    assert verdicts["combined-best"] == "SUPPORTED"


@pytest.mark.slow
def test_of_two_winners_that_exclude_each_other_none_is_combined(
    tuilab: Tuilab, folder: Path
) -> None:
    effects = {"fused": {"times": 0.7}, "foreach": {"times": 0.6}}
    run = tune(tuilab, folder, effects, "--only", "fused,foreach")

    assert outcomes(run) == {"fused": "SUPPORTED", "foreach": "SUPPORTED"}
    assert run["tuning"]["combinations"] == []


# ---- files


def test_a_script_that_changes_a_file_is_not_started_again(
    tuilab: Tuilab, folder: Path, root: Path
) -> None:
    (folder / "weights.pt").write_text("old")
    command = write_trainer(folder, {}, writes=["weights.pt"])
    words = ["tune", "--budget", "60s", "--headless", "--", sys.executable, *command]
    printed = answer_yes(words, folder, root)

    assert "the script changed 1 file (weights.pt), so it is not started again" in printed
    assert "add --in-copy" in printed
    assert (folder / "weights.pt").read_text() == "oldx"


def answer_yes(words: list[str], folder: Path, root: Path) -> str:
    """Run tuilab in a terminal, agree to its question, and return what it printed, in one line."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TUILAB_ROOT": str(root)}
    process = subprocess.Popen(
        [TUILAB, *words], stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, env=environment
    )
    os.close(theirs)
    os.write(ours, b"y\n")
    printed = b""
    while True:
        try:
            data = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        printed += data
    process.wait()
    os.close(ours)
    return " ".join(printed.decode(errors="replace").split())


@pytest.mark.slow
def test_the_result_lists_what_the_script_wrote(tuilab: Tuilab, folder: Path) -> None:
    run = tune(tuilab, folder, {}, "--only", "fused", writes=["out.txt"])

    assert run["tuning"]["written"] == ["out.txt"]
    assert (folder / "out.txt").exists()


@pytest.mark.slow
def test_the_copy_is_gone_at_the_end(tuilab: Tuilab, folder: Path, root: Path) -> None:
    tune(tuilab, folder, {}, "--only", "fused", "--in-copy", writes=["out.txt"])

    assert not (folder / "out.txt").exists()
    (run_dir,) = root.glob("*-train.tune-*")
    assert "copy" not in os.listdir(run_dir)


# ---- scripts that cannot be tuned


def test_a_script_that_fails_gets_one_sentence(tuilab: Tuilab, folder: Path) -> None:
    run = tune(tuilab, folder, {}, "--only", "fused", code=4, ends_with=3)

    assert "the script failed while it was watched" in run["reason"]
    assert "exit code 3" in run["reason"]


def test_a_script_with_too_few_steps_gets_one_sentence(tuilab: Tuilab, folder: Path) -> None:
    run = tune(tuilab, folder, {}, "--only", "fused", code=4, steps=5)

    assert run["reason"] == ("the script made 5 steps, and a tuning needs 8; let it train longer")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--only", "fusd"], "no treatment is named 'fusd'; did you mean fused?"),
        (["--budget", "3s"], "--budget 3s is too short to compare anything"),
        ([], "add --yes to agree, or --in-copy to run it in a copy"),
    ],
)
def test_wrong_options_are_refused_before_anything_runs(
    tuilab: Tuilab, folder: Path, words: list[str], sentence: str
) -> None:
    command = write_trainer(folder, {})
    done = tuilab("tune", *words, "--", sys.executable, *command, cwd=folder)

    assert done.returncode == 2
    assert sentence in done.stderr


def test_a_compilation_without_graphs_is_not_applicable(
    tuilab: Tuilab, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", sys.executable)  # the plan only asks whether a compiler exists
    run = tune(tuilab, folder, {"compile": {"times": 0.5}}, "--only", "compile")

    assert outcomes(run)["compile"] == "NOT APPLICABLE"
    assert reasons(run)["compile"] == "torch.compile made no graph"


def test_options_that_contradict_each_other_are_refused_before_the_question(
    tuilab: Tuilab, folder: Path
) -> None:
    command = write_trainer(folder, {})
    done = tuilab("tune", "--json", "--jsonl", "--", sys.executable, *command, cwd=folder)

    assert done.returncode == 2
    assert done.stderr.startswith("tuilab: --json prints one document")
