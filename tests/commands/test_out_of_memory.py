"""What is said when torch cannot allocate more on a GPU: who holds its memory, by kind and block."""

import gc
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests.engine import newest, read_stream
from tuilab.commands.facts.memory_shortage import Shortage, describe, read_shortages
from tuilab.commands.watcher._tuilab_watch import out_of_memory
from tuilab.record.events import TableShown, TextShown

MIB = 1024**2


class Cuda:
    """The part of torch that the observer uses. The GPU has what is in the memory of the host."""

    def __init__(self, allocated: int) -> None:
        self.observers: list[Callable[[int, int, int, int], None]] = []
        self.later: list[Callable[[], None]] = []
        self.recorded: dict[str, Any] = {}
        self.segments: list[dict[str, Any]] = []
        self.torch = SimpleNamespace(
            Tensor=torch.Tensor,
            nn=torch.nn,
            optim=torch.optim,
            device=lambda kind, index: torch.device("cpu"),
            _C=SimpleNamespace(_cuda_attach_out_of_memory_observer=self.observers.append),
            cuda=SimpleNamespace(
                _lazy_call=self.later.append,
                memory_stats_as_nested_dict=lambda device: {
                    "allocated_bytes": {"all": {"current": allocated}},
                    "reserved_bytes": {"all": {"current": allocated + 7 * MIB}},
                },
                memory=SimpleNamespace(
                    _record_memory_history=self.recorded.update,
                    _snapshot=lambda device: {"segments": self.segments},
                ),
            ),
        )

    def run_out(self, requested: int = 200 * MIB) -> None:
        """Let torch initialise CUDA if it has not, and then fail to allocate so much."""
        while self.later:
            self.later.pop()()
        (observer,) = self.observers
        observer(0, requested, 0, 3 * MIB)


@pytest.fixture
def net() -> Iterator[torch.nn.Module]:
    """A net of one weight of 1 MiB; of other tests, no large tensor is left."""
    gc.collect()
    yield torch.nn.Linear(512, 512, bias=False)


def held_by(kind: str, cuda: Cuda) -> int:
    return int(out_of_memory.describe(cuda.torch, 0)["kinds"][kind])


def test_parameters_gradients_and_state_are_counted_to_the_byte(net: torch.nn.Module) -> None:
    cuda = Cuda(allocated=100 * MIB)
    kinds = (out_of_memory.PARAMETERS, out_of_memory.GRADIENTS, out_of_memory.STATE)
    before = [held_by(kind, cuda) for kind in kinds]

    other = torch.nn.Linear(512, 512, bias=False)
    optimizer = torch.optim.Adam(other.parameters())
    other(torch.ones(1, 512)).sum().backward()
    optimizer.step()

    after = [held_by(kind, cuda) for kind in kinds]
    grown = [late - early for early, late in zip(before, after, strict=True)]
    assert grown == [MIB, MIB, 2 * MIB + 4]  # and the number of steps, which is a float32


def test_a_storage_is_counted_once_however_many_tensors_show_it() -> None:
    cuda = Cuda(allocated=100 * MIB)
    before = held_by(out_of_memory.TENSORS, cuda)
    large = torch.zeros(MIB // 4)
    views = [large[1:], large.reshape(2, -1), large.detach()]

    assert held_by(out_of_memory.TENSORS, cuda) - before == MIB
    assert len(views) == 3


def test_what_no_tensor_of_python_shows_is_kept_for_the_backward(net: torch.nn.Module) -> None:
    report = out_of_memory.describe(Cuda(allocated=10_000 * MIB).torch, 0)

    assert sum(report["kinds"].values()) == 10_000 * MIB
    assert report["kinds"][out_of_memory.UNSEEN] > 9_000 * MIB
    assert report["reserved"] - report["allocated"] == 7 * MIB


def test_observer_is_attached_when_cuda_begins_and_writes_the_last_error(tmp_path: Path) -> None:
    cuda = Cuda(allocated=100 * MIB)
    large = torch.zeros(MIB, 8)
    out_of_memory.watch(cuda.torch, str(tmp_path))
    assert cuda.observers == []

    cuda.run_out(requested=MIB)
    cuda.run_out(requested=200 * MIB)

    ((_, shortage),) = read_shortages(tmp_path)
    assert (shortage.count, shortage.requested, shortage.free) == (2, 200 * MIB, 3 * MIB)
    assert (large.nbytes, "other tensors of the script", "float32 [1048576, 8]") in shortage.blocks
    assert cuda.recorded == {}
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".memory"] == []


def test_a_history_names_the_line_of_the_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(out_of_memory.HISTORY, "1")
    cuda = Cuda(allocated=100 * MIB)
    frames = [
        {"filename": "/venv/lib/python3.12/site-packages/torch/nn/modules/linear.py", "line": 125},
        {"filename": "/home/ada/train.py", "line": 31, "name": "forward"},
    ]
    cuda.segments = [
        {
            "device": 0,
            "blocks": [
                {"size": MIB, "state": "active_allocated", "frames": []},
                {"size": 9 * MIB, "state": "active_allocated", "frames": frames},
                {"size": 50 * MIB, "state": "inactive", "frames": frames},
            ],
        },
        {"device": 1, "blocks": [{"size": 90 * MIB, "state": "active_allocated"}]},
    ]
    out_of_memory.watch(cuda.torch, str(tmp_path))
    cuda.run_out()

    ((_, shortage),) = read_shortages(tmp_path)
    assert cuda.recorded["stacks"] == "python"
    assert shortage.blocks == [
        (9 * MIB, "", "/home/ada/train.py:31 forward"),
        (MIB, "", "no line of the script"),
    ]


def test_a_torch_without_the_observer_is_left_alone(tmp_path: Path) -> None:
    out_of_memory.watch(
        SimpleNamespace(_C=SimpleNamespace(), cuda=SimpleNamespace()), str(tmp_path)
    )

    assert list(tmp_path.iterdir()) == []


def test_an_observer_that_fails_raises_nothing_into_the_script(tmp_path: Path) -> None:
    cuda = Cuda(allocated=MIB)
    cuda.torch.cuda.memory_stats_as_nested_dict = None
    out_of_memory.watch(cuda.torch, str(tmp_path))

    cuda.run_out()

    (trouble,) = tmp_path.glob("*.trouble")
    assert "not callable" in trouble.read_text()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "7",
        "[" * 50_000,
        '{"device": 0}',
        '{"device": -1, "count": 1, "requested": 1, "allocated": 1, "reserved": 1, "free": 1}',
        '{"device": 0, "count": 1, "requested": 1e30, "allocated": 1, "reserved": 1, "free": 1}',
        "x" * 100_000,
    ],
)
def test_a_file_of_another_form_is_left_out(tmp_path: Path, text: str) -> None:
    (tmp_path / "7.memory").write_text(text)
    (tmp_path / "x.memory").write_text("{}")

    assert list(read_shortages(tmp_path)) == []


def test_enough_free_memory_in_pieces_is_said_with_what_to_try() -> None:
    shortage = Shortage(
        device=1, count=3, requested=5 * MIB, allocated=70 * MIB, reserved=80 * MIB, free=MIB,
        kinds={"parameters": 60 * MIB, "gradients": 2 * MIB},
    )  # fmt: skip

    assert describe(shortage).splitlines() == [
        "cuda:1 had 1 MiB free when torch needed 5 MiB more; torch held 80 MiB, of which 70 MiB were in use",
        "most of it: parameters, 60 MiB",
        "torch had enough free memory, but in pieces: "
        "try PYTORCH_ALLOC_CONF=expandable_segments:True",
        "this was the last of 3 such errors",
    ]


SCRIPT = """
import json, os, sys
report = {
    "device": 0, "count": 1, "requested": 209715200, "allocated": 900, "reserved": 1000, "free": 10,
    "kinds": {"parameters": 300, "kept for the backward, or temporary": 600, "\\x1b[31mred": 1},
    "blocks": [[600, "other tensors of the script", "float32 [150]"]],
}
path = os.path.join(os.environ["TUILAB_WATCH"], f"{os.getpid()}.memory")
open(path, "w").write(json.dumps(report))
print(os.environ.get("TUILAB_WATCH_MEMORY", "no history"))
raise MemoryError("CUDA out of memory. Tried to allocate 200.00 MiB.")
"""


def test_result_of_a_command_has_who_held_the_memory(
    tuilab: Callable[..., "CompletedProcess[str]"], root: Path, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(SCRIPT))

    done = tuilab("exec", "--headless", "--memory-history", "--", "python", str(script))

    run_dir = newest(root)
    assert run_dir is not None
    records = read_stream(run_dir / "journal" / "worker-0.jsonl")
    (text,) = [record.text for record in records if isinstance(record, TextShown)]
    tables = [record for record in records if isinstance(record, TableShown)]
    assert done.stdout.startswith("1\n")
    assert "cuda:0 had 10 B free when torch needed 200 MiB more" in text
    assert "most of it: kept for the backward, or temporary, 600 B" in done.stdout + done.stderr
    assert tables[0].rows[0] == ["parameters", "300 B", "30 %"]
    assert tables[0].rows[-1] == ["reserved by torch, but free", "100 B", "10 %"]
    assert tables[1].rows == [["600 B", "other tensors of the script", "float32 [150]"]]
    assert "\x1b[31m" not in done.stdout + done.stderr


def test_memory_history_needs_all_to_be_watched(
    tuilab: Callable[..., "CompletedProcess[str]"],
) -> None:
    done = tuilab("exec", "--headless", "--memory-history", "--watch", "steps", "--", "true")

    assert done.returncode == 2
    assert "--memory-history has no effect with --watch steps" in done.stderr
