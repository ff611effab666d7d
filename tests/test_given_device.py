"""What a run says of the device that its scenario was given, and which GPU all its processes keep to."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch

from tests.engine import read_stream
from tests.made_runs import make_run, started
from tuilab import Lab
from tuilab.cli.headless import list_news
from tuilab.drawings.glyphs import Style
from tuilab.engine import messages
from tuilab.engine.messages import ArmOrder, WorkerOrder
from tuilab.engine.spawn import socket_pair
from tuilab.lab.command_prefix import complete
from tuilab.record import events
from tuilab.record.finding_words import device_notices, device_words
from tuilab.record.folding.fold import fold
from tuilab.record.gpus.gpu_of_run import gpu_of_run
from tuilab.record.gpus.raced_gpu import torch_uuid
from tuilab.record.journal.writer import Writer
from tuilab.record.summary import RunSummary
from tuilab.reports import result_text
from tuilab.reports.missing_data import gaps
from tuilab.reports.numbers import key_numbers
from tuilab.reports.reported_run import read_subject

if TYPE_CHECKING:
    from tests.fakes.cuda import FakeCuda

pytest_plugins = ["tests.fakes.cuda"]

MakeLab = Callable[..., Lab]
FULL = "CUDA error: out of memory"


@pytest.fixture
def make_lab(tmp_path: Path) -> Iterator[MakeLab]:
    """Return the lab of a worker of one run."""
    (tmp_path / "scenario.py").write_text('"""A lesson."""\ndef run(lab): pass\n')
    (tmp_path / "journal").mkdir()
    with ExitStack() as stack:

        def make(writer: str, arm: ArmOrder | None = None) -> Lab:
            ours, theirs = socket_pair()
            stack.enter_context(ours)
            stack.enter_context(theirs)
            order = WorkerOrder(
                run_dir=str(tmp_path), writer=writer, source_dir=str(tmp_path), arm=arm
            )
            journal = stack.enter_context(closing(Writer(tmp_path / "journal" / f"{writer}.jsonl")))
            return Lab(journal, tmp_path, messages.WorkerLine(ours), order)

        yield make


def summary_of(run_dir: Path) -> RunSummary:
    return fold(
        (path.stem, item)
        for path in sorted(run_dir.glob("journal/*.jsonl"))
        for item in read_stream(path)
    )


def test_the_device_and_why_it_is_that_one_are_on_record(
    make_lab: MakeLab, cuda: "FakeCuda", tmp_path: Path
) -> None:
    assert make_lab("worker-1").device("cuda:1") == torch.device("cuda:1")

    summary = summary_of(tmp_path)
    assert summary.environment["device"] == {
        "wanted": "cuda:1",
        "chosen": "cuda:1",
        "why": "asked for",
        "notice": "",
    }
    assert summary.environment["cuda"]["chosen"] == cuda.gpus[1].uuid
    assert device_words(summary) == "cuda:1, asked for"
    assert ("device", "cuda:1, asked for") in key_numbers(summary)


def test_each_process_of_a_run_gets_the_gpu_of_the_first(
    make_lab: MakeLab, make_cuda: "Callable[..., FakeCuda]"
) -> None:
    """Though its memory may not be given back yet, and another one is emptier."""
    make_cuda(3).gpus[0].refuses = FULL
    first = make_lab("worker-1").device("auto")
    make_cuda(3)

    assert [first, make_lab("worker-2").device("auto"), make_lab("worker-10").device("cuda")] == [
        torch.device("cuda:1")
    ] * 3


def test_ranks_have_each_its_own_gpu_and_the_run_that_of_the_first(
    make_lab: MakeLab,
    make_cuda: "Callable[..., FakeCuda]",
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    cuda = make_cuda(3)
    arm = ArmOrder(arm="ranks", function="body", prefix=complete(["torchrun"]))
    for number, writer in ((1, "worker-2-rank-1"), (0, "worker-2")):
        monkeypatch.setenv("LOCAL_RANK", str(number))
        assert make_lab(writer, arm).device("auto") == torch.device("cuda", number)

    assert gpu_of_run(tmp_path) == cuda.gpus[0].uuid
    assert make_lab("worker-3").device("auto") == torch.device("cuda:0")
    assert device_notices(summary_of(tmp_path)) == []


def test_a_gpu_is_looked_for_in_records_and_in_nothing_that_only_looks_like_one(
    make_lab: MakeLab, tmp_path: Path
) -> None:
    lab = make_lab("worker-1")
    lab.text('"k":"environment_recorded" "chosen":"evil"')
    lab.record(events.EnvironmentRecorded(part="box", facts={"chosen": "evil"}))
    with open(tmp_path / "journal/worker-2.jsonl", "wb") as file:
        file.write(b'00000000 {"k":"environment_recorded","chosen":\n\xff"chosen"')

    assert gpu_of_run(tmp_path) == gpu_of_run(tmp_path / "none") == ""


def test_the_gpu_that_a_worker_was_given_is_the_one_it_races_on() -> None:
    facts = {"devices": [{"uuid": "first"}, {"uuid": "second"}]}

    assert torch_uuid("", {**facts, "chosen": "second"}) == "second"
    assert (torch_uuid("told", {**facts, "chosen": "second"}), torch_uuid("", facts)) == (
        "told",
        "first",
    )


def test_a_device_of_another_kind_is_refused(make_lab: MakeLab) -> None:
    for wanted in ("mps", "cuda:", "cuda:-1", "MIG-1"):
        with pytest.raises(
            ValueError, match=f"wanted takes auto, cpu, cuda or cuda:N, not '{wanted}'"
        ):
            make_lab(f"worker-{wanted}").device(wanted)


def given(*devices: tuple[str, str, str]) -> RunSummary:
    """Return a run whose workers were given these, each as (wanted, chosen, notice)."""
    facts = [
        {"wanted": wanted, "chosen": chosen, "why": "why", "notice": notice}
        for wanted, chosen, notice in devices
    ]
    return fold(
        (f"worker-{at}", events.EnvironmentRecorded(part="device", facts=one))
        for at, one in enumerate(facts)
    )


def test_what_is_to_be_known_of_a_device_is_told_once_and_harmless() -> None:
    summary = given(*[("auto", "cpu", "ran on the \x1b[2JCPU")] * 6)

    (notice,) = device_notices(summary)
    assert notice.startswith("ran on the ") and "\x1b" not in notice
    assert list_news(summary, Style())[0] == ("notice", f"notice: {notice}")
    assert device_words(summary) == ""


def test_a_result_and_a_report_begin_with_it(tmp_path: Path) -> None:
    fallen = events.EnvironmentRecorded(
        part="device", facts={"wanted": "auto", "chosen": "cpu", "notice": "ran on the CPU"}
    )
    run_dir = make_run(tmp_path, started(), fallen, events.StateChanged(state="succeeded"))
    subject = read_subject(run_dir)

    result = result_text.render(
        subject.summary, subject.state, run_dir, Style(), 100, has_chart=False
    )

    assert result.splitlines()[1] == "notice: ran on the CPU"
    assert gaps(subject)[0] == "Ran on the CPU."


def test_a_run_that_did_not_stay_on_one_device_says_so() -> None:
    assert device_notices(given(("auto", "cuda:1", ""), ("auto", "cpu", "full"))) == [
        "full",
        "the run used more than one device: cuda:1, cpu",
    ]
    assert device_notices(given(("cpu", "cpu", ""), ("cuda:1", "cuda:1", ""))) == []
