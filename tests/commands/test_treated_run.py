"""A command runs under treatments: tuilab sets the variables, and reads what the processes report."""

import sys
from pathlib import Path

import pytest

from tests.commands.treated_script import TRAINING
from tests.engine import read_stream
from tuilab.commands.run_command import CommandEnd, run_watched
from tuilab.commands.start_command import treating_variables
from tuilab.commands.watcher._tuilab_treat import FACTS, STEPS, TREATMENTS
from tuilab.engine.messages import CommandArm, CommandOrder
from tuilab.judging.learning import COMPARED_VALUES
from tuilab.record import events
from tuilab.record.journal.writer import Writer

pytestmark = [
    pytest.mark.real_torch,
    # A worker ends with its pipes open.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def run(
    folder: Path, script: str, arm: CommandArm, steps: int, *, facts: bool = False
) -> CommandEnd:
    """Run a training under an arm to its end."""
    (folder / "train.py").write_text(TRAINING + script)
    number = len(list(folder.glob("*.jsonl")))
    journal = Writer(folder / f"worker-{number}.jsonl")
    command = CommandOrder(words=[sys.executable, "train.py"], folder=str(folder))
    return run_watched(
        command, folder / "marks", journal, arm, arm.name, last_step=steps, has_facts=facts
    )


def test_arm_is_treated_and_ends_at_its_step(tmp_path: Path) -> None:
    script = "train(DataLoader(data, 16), sgd(), epochs=100)"
    base = run(tmp_path, script, CommandArm(name="base"), 20)
    arm = CommandArm(name="bf16", treatments=["bf16", "fused"])
    treated = run(tmp_path, script, arm, 20, facts=True)

    assert (base.code, treated.code) == (0, 0)
    assert [(report.treatment, report.did) for report in treated.watched.treated()] == [
        ("fused", "SGD(fused=True)"),
        ("bf16", "torch.autocast('cpu', torch.bfloat16) around Sequential.forward"),
    ]
    assert base.watched.treated() == []
    assert treated.watched.script_facts().optimizers[0].kind == "SGD"
    assert [lane.count for lane in treated.watched.lanes.values()] == [20]
    assert not (tmp_path / "marks").exists()


def test_values_from_the_first_treated_step_on_are_kept(tmp_path: Path) -> None:
    script = "train(DataLoader(data, 16), sgd(), epochs=100)"
    base = run(tmp_path, script, CommandArm(name="base"), 20).watched
    treated = run(tmp_path, script, CommandArm(name="a", treatments=["bf16"]), 20).watched
    records = read_stream(tmp_path / "worker-0.jsonl")

    roots = [
        value
        for record in records
        if isinstance(record, events.Logged)
        for name, value in record.v.items()
        if name == "backward root"
    ]
    assert len(base.first_treated_roots()) == COMPARED_VALUES
    assert base.first_treated_roots() == roots[3 : 3 + COMPARED_VALUES]
    assert treated.first_roots()[:3] == base.first_roots()[:3]
    assert treated.first_treated_roots()[0] != base.first_treated_roots()[0]
    assert treated.first_treated_roots() == pytest.approx(base.first_treated_roots(), rel=0.05)


def test_trackers_are_off_if_the_process_ends_early(tmp_path: Path) -> None:
    script = (
        "import os, pathlib\n"
        "names = ('WANDB_MODE', 'TRACKIO_SPACE_ID', 'COMET_MODE')\n"
        "values = [str(os.environ.get(name)) for name in names]\n"
        "pathlib.Path('values.txt').write_text(' '.join(values))\n"
        "train(DataLoader(data, 16), sgd(), epochs=1)"
    )
    variables = {"TRACKIO_SPACE_ID": "ada/space", "COMET_MODE": "OFFLINE"}
    run(tmp_path, script, CommandArm(name="a", env=variables), 99)
    early = (tmp_path / "values.txt").read_text()
    run(tmp_path, script, CommandArm(name="b", env=variables), 0)
    whole = (tmp_path / "values.txt").read_text()

    assert (early, whole) == ("disabled None OFFLINE", "None ada/space OFFLINE")


def test_variables_are_set_only_if_they_are_needed() -> None:
    assert treating_variables([], 0, has_facts=False) == {}
    assert treating_variables(["workers=2", "bf16"], 0, has_facts=True) == {
        TREATMENTS: "workers=2,bf16",
        FACTS: "1",
    }
    early = treating_variables([], 60, has_facts=False)
    assert early[STEPS] == "60" and early["WANDB_MODE"] == "disabled"
