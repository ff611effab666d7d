"""A GPU is calibrated by itself: what runs there, what is kept of it and by which name, and which verdicts go by it."""

import math
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from statistics import fmean
from subprocess import CompletedProcess
from typing import TYPE_CHECKING

import pytest
import torch
from click.testing import CliRunner
from msgspec.structs import replace

from tests.engine import read_stream
from tests.fakes.cuda_tensors import SPEEDS, give_tensors
from tests.made_runs import started
from tests.test_calibration import trials
from tuilab import Lab
from tuilab.cli.verbs import calibrate
from tuilab.engine import messages
from tuilab.engine.messages import WorkerOrder
from tuilab.engine.spawn import socket_pair
from tuilab.errors import BoxLacks, ScenarioError
from tuilab.judging import calibration, calibration_file
from tuilab.judging.calibration_file import Trials
from tuilab.judging.evidence import Evidence, gather_evidence
from tuilab.judging.ratio import judge_ratio
from tuilab.lab import calibration_scenario
from tuilab.record import events
from tuilab.record.folding.fold import fold
from tuilab.record.journal.writer import Writer
from tuilab.record.summary import RunSummary

if TYPE_CHECKING:
    from tests.fakes.cuda import FakeCuda

pytest_plugins = ["tests.fakes.cuda"]

WAYS = {
    "within one process": Trials(9, 1, 9, 9, 0.01, 9),
    "over 6 processes": Trials(6, 0, 6, 6, 0.01, 12),
}
CLAIM = events.ClaimDeclared(
    text="c", over="left loop 0", under="right loop 0", op="at_least", bound=1.0
)


@pytest.fixture(autouse=True)
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The file in which calibrations are kept, which is not there yet."""
    monkeypatch.setenv("TUILAB_ROOT", str(tmp_path / "runs"))
    monkeypatch.setenv("COLUMNS", "300")
    return tmp_path / "calibration.json"


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    (tmp_path / "scenario.py").write_text('"""A lesson."""\ndef run(lab): pass\n')
    (tmp_path / "journal").mkdir()
    ours, theirs = socket_pair()
    order = WorkerOrder(run_dir=str(tmp_path), writer="worker-0", source_dir=str(tmp_path))
    with ours, theirs, closing(Writer(tmp_path / "journal" / "worker-0.jsonl")) as journal:
        yield Lab(journal, tmp_path, messages.WorkerLine(ours), order)


def on_gpu(
    summary: RunSummary, uuid: str = "a-gpu", luck: float | None = None, name: str = "Fake GPU"
) -> RunSummary:
    """Let all races of a run be on a GPU."""
    for writer, race in summary.races:
        race.device, race.uuid, race.luck = "cuda", uuid, luck
        summary.cuda[writer] = {
            "devices": [{"uuid": "another", "name": "Another"}, {"uuid": uuid, "name": name}]
        }
    return summary


# ---- what runs


def test_the_trials_run_on_the_gpu_that_is_calibrated(
    lab: Lab, cuda: "FakeCuda", monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    give_tensors(monkeypatch, cuda)

    calibration_scenario.run(lab, races=1, seconds=0.1, device="cuda:1")  # type: ignore[arg-type]

    supervisor = events.WorkerStarted(writer="worker-0", pid=1, start=1, repeat=0)
    journal = [("worker-0", item) for item in read_stream(tmp_path / "journal" / "worker-0.jsonl")]
    summary = fold([("supervisor", supervisor), *journal])
    (race,) = (one for _, one in summary.races)
    assert (race.arms, race.device, race.uuid) == (
        ["left product 0", "right product 0"],
        "cuda",
        cuda.gpus[1].uuid,
    )
    found = calibration.assess(summary).trials_of_method["within one process"]
    assert (found.trials, found.false, found.delays) == (1, 0, 1)
    (delayed,) = gathered(replace(CLAIM, over=race.arms[0], under=race.arms[1]), summary).delayed
    assert math.exp(fmean(delayed)) == pytest.approx(1.05, abs=0.005)
    assert [gpu.is_touched for gpu in cuda.gpus] == [False, True]


def test_each_kind_of_work_has_another_pace(
    cuda: "FakeCuda", monkeypatch: pytest.MonkeyPatch
) -> None:
    """The arithmetic of the GPU, its memory, and the host that launches a hundred kernels which do next to nothing."""
    give_tensors(monkeypatch, cuda)
    told, done = {}, {}
    for kind, make in calibration_scenario.on_gpu(torch.device("cuda:1")):
        work = make()
        torch.cuda.synchronize(1)
        began = cuda.now
        work()
        told[kind] = cuda.now - began
        torch.cuda.synchronize(1)
        done[kind] = cuda.now - began - cuda.WAIT

    assert told == {"product": cuda.LAUNCH, "copy": cuda.LAUNCH, "launches": 100 * cuda.LAUNCH}
    assert done["product"] == pytest.approx(2e9 * 4096**3 / SPEEDS["ieee"], rel=0.01)
    assert done["copy"] == pytest.approx(1e9 * (512 << 20) / SPEEDS["memory"], rel=0.05)
    assert done["launches"] == pytest.approx(100 * cuda.LAUNCH, rel=0.01)


@pytest.mark.slow
@pytest.mark.real_torch
def test_without_a_gpu_the_first_process_is_the_last_and_says_why(
    tuilab: Callable[..., "CompletedProcess[str]"],
) -> None:
    done = tuilab("calibrate", "--device", "cuda")

    assert (done.returncode, done.stdout) == (3, "")
    assert "not testable here: a CUDA GPU is needed, but torch " in done.stderr
    assert done.stderr.splitlines()[-1].startswith("tuilab: a CUDA GPU is needed, but torch ")


# ---- what is kept


def test_a_gpu_and_the_box_that_it_is_in_have_a_calibration_each() -> None:
    calibration_file.save(WAYS, 0.02)
    calibration_file.save(WAYS, 0.001, "a-gpu", "Fake GPU")
    calibration_file.save(WAYS, None, "a-gpu", "Fake GPU")

    assert (calibration_file.load().process_sd, calibration_file.load("a-gpu").process_sd) == (
        0.02,
        0.001,
    )
    assert calibration_file.load("another").trials_of_method == {}
    (calibrated,) = calibration_file.load_gpus().items()
    assert calibrated[0] == "a-gpu"
    assert (calibrated[1].name, calibrated[1].trials_of_method) == ("Fake GPU", WAYS)


def test_gpus_of_another_box_are_known_by_their_uuid_and_not_listed_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calibration_file.save(WAYS, 0.001, "a-gpu", "Fake GPU")
    monkeypatch.setattr("socket.gethostname", lambda: "another")

    assert calibration_file.load_gpus() == {}
    assert calibration_file.load("a-gpu").trials_of_method == WAYS


def test_a_gpu_whose_part_is_damaged_is_not_listed(kept: Path) -> None:
    kept.write_text(
        '{"GPU a-gpu": {"over 6 processes": 7}, "GPU b": [], "GPU c": {"name": "Fake GPU"}}'
    )

    assert calibration_file.load_gpus() == {}


def test_the_gpu_that_was_calibrated_is_named_by_what_raced_there() -> None:
    assert calibrate.gpu_of(on_gpu(trials(1.0, processes=2))) == ("a-gpu", "Fake GPU")
    assert calibrate.gpu_of(trials(1.0, processes=1)) == ("", "")


def test_a_calibration_that_belongs_to_no_gpu_or_to_two_is_kept_for_none() -> None:
    with pytest.raises(BoxLacks, match="which this torch does not report"):
        calibrate.gpu_of(on_gpu(trials(1.0, processes=1), uuid=""))
    two = on_gpu(trials(1.0, processes=2))
    two.races[-1][1].uuid = "another"
    with pytest.raises(ScenarioError, match="--device cuda:0"):
        calibrate.gpu_of(two)


def test_what_is_kept_is_shown_of_the_box_and_of_each_gpu() -> None:
    calibration_file.save(WAYS, 0.02)
    calibration_file.save(WAYS, 0.001, "a-gpu", "Fake GPU")

    lines = CliRunner().invoke(calibrate.command, ["--show"]).output.splitlines()

    assert [line[:24] for line in lines] == [
        "within one process: 1 fa", "over 6 processes: 0 fals", "variation between proces",
        "Fake GPU (a-gpu):", "  within one process: 1 ", "  over 6 processes: 0 fa", "  variation between proc",
    ]  # fmt: skip
    assert lines[-1].endswith("about 0.1 %") and lines[2].endswith("about 2 %")


# ---- who goes by it


@pytest.mark.parametrize(("repeats", "luck"), [(1, 0.004), (6, None)])
def test_a_race_of_one_process_records_the_luck_of_its_gpu(
    lab: Lab, cuda: "FakeCuda", tmp_path: Path, repeats: int, luck: float | None
) -> None:
    calibration_file.save(WAYS, 0.02)
    calibration_file.save(WAYS, 0.004, cuda.gpus[1].uuid, "Fake GPU")
    lab.repeats = repeats

    def work() -> None:
        cuda.work(500_000, cuda.gpus[1].current)

    lab.race(a=work, b=work, seconds=0.1, device=torch.device("cuda:1"))

    (race,) = (
        one
        for one in read_stream(tmp_path / "journal" / "worker-0.jsonl")
        if isinstance(one, events.RaceStarted)
    )
    assert race.luck == luck


def test_a_verdict_on_a_gpu_goes_by_its_luck_and_not_by_that_of_the_cpu() -> None:
    known, unknown = (on_gpu(trials(1.01, processes=1), luck=luck) for luck in (0.001, None))
    for summary in (known, unknown):
        summary.run = started(repeats=1, luck=0.2)

    told = [judge_ratio(CLAIM, gathered(CLAIM, summary)) for summary in (known, unknown)]
    assert "an assumed 0.25 % variation between processes, by the calibration" in told[0].why
    words = "an assumed 5 % variation between processes, as this GPU was never calibrated"
    assert words in told[1].why


def test_beside_verdicts_stands_what_is_known_of_the_gpu_that_they_were_reached_on() -> None:
    summary = with_claim(on_gpu(trials(1.0, processes=1)))
    never = calibration.describe_trust(summary)
    calibration_file.save({"within one process": Trials(5, 5, 5, 5)})
    calibration_file.save(WAYS, None, "a-gpu", "Fake GPU")

    assert never == "n/a, this GPU is not calibrated yet; run `tuilab calibrate --device cuda`"
    assert calibration.describe_trust(summary).startswith(
        "on Fake GPU, within one process: 1 false verdict in 9 trials"
    )


def test_a_run_on_both_has_what_is_known_of_both_and_a_nameless_gpu_says_so() -> None:
    summary = with_claim(on_gpu(trials(1.0, processes=1), uuid=""))
    summary.races[0][1].device = "cpu"

    assert calibration.describe_trust(summary) == (
        "n/a, torch does not report the UUID of this GPU, which its calibration needs; "
        "n/a, this machine is not calibrated yet; run `tuilab calibrate`"
    )


def gathered(claim: events.ClaimDeclared, summary: RunSummary) -> Evidence:
    found = gather_evidence(claim, summary)
    assert found is not None
    return found


def with_claim(summary: RunSummary) -> RunSummary:
    """Let a run claim something about time."""
    claimed = fold(
        [
            (
                "worker-0",
                events.ClaimDeclared(text="c", over="a", under="b", op="at_least", bound=1.0),
            )
        ]
    )
    summary.claims = claimed.claims
    return summary


def test_a_calibration_is_of_a_device_that_is_named(
    tuilab: "Callable[..., CompletedProcess[str]]",
) -> None:
    done = tuilab("calibrate", "--device", "auto")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        "tuilab: --device auto is not possible, as a calibration is for one device; "
        "use cpu, cuda (the GPU with the most free memory) or cuda:N"
    ]


def test_a_uuid_that_a_file_says_is_shown_and_not_obeyed(kept: Path) -> None:
    calibration_file.save(WAYS, 0.02, "\x1b[2Jmine", "Fake GPU")

    told = "".join(calibration.describe_saved())
    assert "mine):" in told and told.isprintable()
