"""Treatments that need a GPU, on a model of one that has values and no time."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands import warm_gpu_script
from tests.commands.treated_script import (
    Treat,
    TreatedScript,
    environment_of,
    read_treated,
    treating,
    write_training,
)
from tests.fakes import cuda_values
from tests.warm_process import WarmTuilab
from tuilab.commands.watcher._tuilab_watch import layout

pytestmark = pytest.mark.real_torch
ON_GPU = """
device = torch.device("cuda")
model = net().to(device)
optimizer = sgd()
def steps(loader, count=5):
    batches = iter(loader)
    for _ in range(count):
        x, y = next(batches, None) or next(batches := iter(loader))
        optimizer.zero_grad()
        loss = (model(x.to(device)) - y.to(device)).pow(2).mean()
        loss.backward()
        optimizer.step()
"""
STEPS = ON_GPU + "steps(DataLoader(data, 16))\n"


@pytest.fixture(scope="module")
def warm_gpu(environment: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmTuilab]:
    """Wait with torch and the model of a GPU, and fork for each script."""
    if shutil.which("g++") is None:
        pytest.skip("no g++: the model of a GPU is in C++")
    compiled = os.environ.get(warm_gpu_script.LIBRARY)  # by an earlier run, to save time
    library = Path(compiled or tmp_path_factory.mktemp("model") / "libcuda_values.so")
    if not library.exists():
        cuda_values.build(library)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(warm_gpu_script.LIBRARY, str(library))
        waiting = WarmTuilab(sys.executable, "tests.commands.warm_gpu_script")
        yield waiting
    waiting.end()


@pytest.fixture
def treat_gpu(tmp_path: Path, warm_gpu: WarmTuilab) -> Treat:
    """Run a training under treatments on the GPU, and return what it reports."""

    def run(treatments: str, script: str, *, steps: int = 0, facts: bool = False) -> TreatedScript:
        path, marks = write_training(tmp_path, script)
        variables = treating(treatments, steps, facts=facts)
        done = warm_gpu.run((str(path),), environment_of(marks, variables), tmp_path, 200)
        assert done.returncode == 0, done
        return read_treated(path, marks, done)

    return run


def landed(treated: TreatedScript) -> list[float]:
    """Return the losses, which arrive from the GPU after their steps."""
    return [mark.value for mark in treated.seen.marks if mark.kind == layout.LANDED]


def test_pinned_batches_are_copied_without_waiting(treat_gpu: Treat) -> None:
    script = ON_GPU + (
        "plain, copies = torch.Tensor.to, []\n"
        "def to(this, *args, **more):\n"
        "    copies.append(this.is_pinned())\n"
        "    return plain(this, *args, **more)\n"
        "torch.Tensor.to = to\n"
        "loader = DataLoader(data, 16)\n"
        "steps(loader)\n"
        "print(loader.pin_memory, sum(copies), len(copies))\n"
    )
    plain = treat_gpu("", script)
    treated = treat_gpu("pin", script)

    assert (plain.printed, treated.printed) == (["False 0 10"], ["True 10 10"])
    assert landed(treated) == landed(plain) and len(landed(treated)) == 5
    assert treated.did("pin") == [
        "DataLoader(pin_memory=True)",
        "copies from pinned memory with non_blocking=True",
    ]


def test_loader_that_pins_is_already_set(treat_gpu: Treat) -> None:
    script = ON_GPU + (
        "steps(DataLoader(data, 16, pin_memory=True))\n"
        "print(x := torch.ones(2).pin_memory().to(device, non_blocking=True))\n"
    )
    treated = treat_gpu("pin", script)

    assert treated.is_set("pin")
    assert treated.did("pin") == ["copies from pinned memory with non_blocking=True"]


def test_matrix_products_use_tf32_after_three_steps(treat_gpu: Treat) -> None:
    script = STEPS + "print(torch.backends.cuda.matmul.fp32_precision)\n"
    treated = treat_gpu("tf32", script)

    assert treated.printed == ["tf32"]
    assert treated.did("tf32") == ["torch.backends.cuda.matmul.fp32_precision = 'tf32'"]


@pytest.mark.parametrize(
    "line",
    [
        "torch.set_float32_matmul_precision('high')",
        "torch.backends.cuda.matmul.fp32_precision = 'tf32'",
        "torch.backends.cuda.matmul.allow_tf32 = True",
    ],
)
def test_script_that_allows_tf32_is_already_set(treat_gpu: Treat, line: str) -> None:
    treated = treat_gpu("tf32", f"{line}\n{STEPS}")

    assert treated.is_set("tf32") and treated.did("tf32") == []


def test_cudnn_tries_its_algorithms_unless_the_script_wants_fixed_ones(treat_gpu: Treat) -> None:
    shown = "print(torch.backends.cudnn.benchmark)\n"
    treated = treat_gpu("cudnn-benchmark", STEPS + shown)
    already = treat_gpu("cudnn-benchmark", f"torch.backends.cudnn.benchmark = True\n{STEPS}")
    fixed = treat_gpu(
        "cudnn-benchmark", f"torch.backends.cudnn.deterministic = True\n{STEPS}{shown}"
    )

    assert treated.printed == ["True"] and treated.did("cudnn-benchmark")
    assert already.is_set("cudnn-benchmark")
    assert fixed.printed == ["False"]
    assert fixed.why("cudnn-benchmark") == ["the script asks for deterministic algorithms"]


ATTENTION = (
    ON_GPU
    + """
class Attending(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)
    def forward(self, x):
        x = self.inner(x)[None]
        return torch.nn.functional.scaled_dot_product_attention(x, x, x)[0]
model = Attending().to(device)
optimizer = sgd()
steps(DataLoader(data, 16))
cuda = torch.backends.cuda
print(cuda.flash_sdp_enabled(), cuda.mem_efficient_sdp_enabled(), cuda.math_sdp_enabled())
"""
)


def test_one_back_end_of_attention_is_left(treat_gpu: Treat) -> None:
    plain = treat_gpu("", ATTENTION)
    treated = treat_gpu("attention=math", ATTENTION)

    assert (plain.printed, treated.printed) == (["True True True"], ["False False True"])
    assert treated.did("attention=math") == ["scaled_dot_product_attention may use math only"]
    assert treated.places("attention=math") == {
        "return torch.nn.functional.scaled_dot_product_attention(x, x, x)[0]"
    }
    assert landed(treated) == pytest.approx(landed(plain), rel=1e-5)


def test_training_without_attention_keeps_all_back_ends(treat_gpu: Treat) -> None:
    treated = treat_gpu("attention=flash,attention=warp", STEPS)
    unknown = treat_gpu("attention=warp", STEPS)

    assert unknown.why("attention=warp") == ["this torch has no back end 'warp'"]
    assert not any(report.did for report in treated.reports)


def test_torch_chooses_foreach_on_a_gpu_by_itself(treat_gpu: Treat) -> None:
    treated = treat_gpu("foreach", STEPS)

    assert treated.is_set("foreach") and treated.did("foreach") == []


def test_losses_that_are_on_the_gpu_arrive_before_the_process_ends(treat_gpu: Treat) -> None:
    treated = treat_gpu("bf16", ON_GPU + "steps(DataLoader(data, 16), 1000)", steps=7, facts=True)

    assert len(treated.seen.steps) == len(landed(treated)) == 7
    facts = treated.facts
    assert (facts.settings.has_cuda, facts.settings.capability) == (True, "9.0")
    assert (facts.roots[0].device, facts.optimizers[0].device) == ("cuda", "cuda")
    assert treated.did("bf16") == [
        "torch.autocast('cuda', torch.bfloat16) around Sequential.forward"
    ]
