"""FLOPs, tokens, copies and reads of the steps that are counted, and that nothing else changes."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands.watched_script import Unwatched, Watch, read_marks, run_afresh, run_unwatched
from tests.commands.watched_script import watched_environment as environment_of
from tests.fakes import cuda_values
from tuilab.commands.facts.counted_steps import CountedPart, CountedParts
from tuilab.commands.watcher._tuilab_watch.counting import COUNT

pytestmark = pytest.mark.real_torch

LOOP = """
losses = []
for step in range(60):
    o.zero_grad()
    value = loss()
    value.backward()
    o.step()
    losses.append(value.item())
print(losses)
"""
MLP = """
net = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.ReLU(), torch.nn.Linear(5, 3))
o = torch.optim.AdamW(net.parameters())
def loss(): return net(torch.randn(7, 6)).pow(2).mean()
"""
GPT = """
class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = torch.nn.Linear(16, 48), torch.nn.Linear(16, 16)
    def forward(self, x):
        q, k, v = (part.unflatten(-1, (4, 4)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        seen = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(seen.transpose(1, 2).flatten(2))
net = torch.nn.Sequential(
    torch.nn.Embedding(32, 16), Attention(), torch.nn.Linear(16, 64), torch.nn.GELU(),
    torch.nn.Linear(64, 16), torch.nn.Linear(16, 32),
)
o = torch.optim.AdamW(net.parameters())
def loss():
    tokens = torch.randint(0, 32, (2, 8))
    return torch.nn.functional.cross_entropy(net(tokens).flatten(0, 1), tokens.flatten())
"""
GAN = """
other = torch.nn.Linear(1, 4)
o, p = sgd(), torch.optim.Adam(other.parameters())
def loss():
    with torch.no_grad(): made = other(torch.randn(8, 1))
    part = model(made).mean()
    p.zero_grad(); model(other(torch.randn(8, 1))).mean().backward(); p.step()
    return part
"""
SCALED = """
o = sgd()
scaler = torch.amp.GradScaler("cpu")
losses = []
for step in range(60):
    with torch.autocast("cpu", dtype=torch.bfloat16): value = loss()
    o.zero_grad()
    scaler.scale(value).backward()
    scaler.step(o); scaler.update()
    losses.append(float(value.detach()))
print(losses)
"""
CHECKPOINTED = """
from torch.utils.checkpoint import checkpoint
net = torch.nn.ModuleList([torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.1)) for _ in range(2)])
o = torch.optim.AdamW(net.parameters())
def loss():
    x = torch.randn(8, 4, requires_grad=True)
    for index, part in enumerate(net): x = checkpoint(part, x, use_reentrant=bool(index))
    return x.pow(2).mean()
"""
LBFGS = """
o = torch.optim.LBFGS(model.parameters(), max_iter=4)
def closure():
    o.zero_grad()
    value = loss()
    value.backward()
    return value
print([o.step(closure).item() for _ in range(60)])
"""
# The mode of the script begins before the counted step ends, and ends after it.
MODES = """
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
class Operators(TorchDispatchMode):
    count = 0
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        Operators.count += 1
        return function(*args, **(kwargs or {}))
class Functions(TorchFunctionMode):
    count = 0
    def __torch_function__(self, function, types, args=(), kwargs=None):
        Functions.count += 1
        return function(*args, **(kwargs or {}))
o = sgd()
mode = Operators()
for step in range(60):
    if step == 5: mode.__enter__()
    with Functions(): value = loss()
    value.backward()
    o.step()
    if step == 8: mode.__exit__(None, None, None)
print(Operators.count, Functions.count, value.item(), torch._C._len_torch_dispatch_stack())
"""
RAISING = """
o = sgd()
losses = []
for step in range(60):
    try:
        if step in (5, 6): model(torch.ones(2, 3))
        o.zero_grad(); value = loss(); value.backward(); o.step()
        losses.append(value.item())
    except RuntimeError as problem:
        losses.append(str(problem))
print(losses, torch._C._len_torch_dispatch_stack())
"""


@pytest.fixture(autouse=True)
def counting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(COUNT, "1")


def counted(watch: Watch, script: str) -> list[CountedPart]:
    """Return what was counted in a script."""
    (process,) = watch(script).processes
    return process.counted.parts


def test_flops_of_an_mlp_equal_those_by_hand(watch: Watch) -> None:
    first, later = counted(watch, MLP + LOOP)

    forward = 2 * 7 * 6 * 5 + 2 * 7 * 5 * 3
    # The input needs no gradient, so the first layer has one product less.
    backward = 2 * 7 * 6 * 5 + 2 * (2 * 7 * 5 * 3)
    assert first.flops == later.flops == forward + backward
    assert first.kinds == {"float32": forward + backward}
    assert (first.uncounted, first.tokens, first.reason) == ([], 0, "")


def test_flops_and_tokens_of_a_gpt_equal_those_by_hand(watch: Watch) -> None:
    first, later = counted(watch, GPT + LOOP)

    tokens, width = 2 * 8, 16
    weights = width * 48 + width * width + 2 * width * 64 + width * 32
    products = 3 * 2 * tokens * weights
    # Two products forward, and five backward: one of them is computed again.
    attention = 7 * 2 * tokens * 8 * width
    assert first.flops == later.flops == products + attention
    assert (first.tokens, first.tokens_from) == (tokens, "module")


def test_tokens_come_from_the_loader_without_a_module(watch: Watch) -> None:
    script = """
    from torch.utils.data import DataLoader, TensorDataset
    weight = torch.randn(10, 4, requires_grad=True)
    o = torch.optim.SGD([weight], lr=0.1)
    for batch, in DataLoader(TensorDataset(torch.randint(0, 10, (180, 5))), batch_size=3):
        o.zero_grad()
        weight[batch].pow(2).mean().backward()
        o.step()
    """

    first, _ = counted(watch, script)

    assert (first.tokens, first.tokens_from) == (15, "DataLoader")


def test_reads_are_counted_by_line(watch: Watch) -> None:
    script = "o = sgd()\n" + LOOP.replace(
        "    losses.append(value.item())", "    float(value); value.item()\n    a = f'{value:.3f}'"
    )

    first, later = counted(watch, script)

    for part in (first, later):
        places = {place.source: (place.kind, place.count) for place in part.places}
        assert places == {
            "float(value); value.item()": (".item()", 2),
            "a = f'{value:.3f}'": (".item()", 1),
        }
        assert (part.copies, part.reads) == (0, 0), "on the host, a read costs nothing"


@pytest.mark.parametrize(
    "script",
    [MLP + LOOP, GPT + LOOP, GAN + LOOP, SCALED, CHECKPOINTED + LOOP, LBFGS, MODES, RAISING],
    ids=["mlp", "gpt", "gan", "scaled", "checkpointed", "lbfgs", "modes", "raising"],
)
def test_counting_changes_no_bit_of_what_a_script_prints(
    watch: Watch, unwatched: Unwatched, script: str
) -> None:
    watched = watch(script)
    plain = unwatched(script)

    (process,) = watched.processes
    assert [part for part in process.counted.parts if part.flops]
    assert plain.stdout
    assert watched.done.stdout == plain.stdout


def test_warnings_of_a_counted_step_name_the_same_lines(watch: Watch, unwatched: Unwatched) -> None:
    script = """
    import warnings
    o = sgd()
    for step in range(60):
        torch.add(torch.ones(2), 1, out=torch.ones(3))
        if step == 5: torch.add(torch.ones(2), 1, out=torch.ones(3))
        if step == 6: torch.add(torch.ones(2), 1, out=torch.ones(3))
        if step == 5:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                torch.add(torch.ones(4), 1, out=torch.ones(3))
            print(caught[0].filename == __file__, caught[0].lineno, len(caught))
        o.zero_grad(); loss().backward(); o.step()
    """

    watched = watch(script)
    plain = unwatched(script)

    assert plain.stderr.count("was resized") == 4, "twice at the first line: filters have changed"
    assert plain.stdout.startswith("True")
    assert (watched.done.stdout, watched.done.stderr) == (plain.stdout, plain.stderr)


def test_a_script_within_its_own_mode_is_not_counted(watch: Watch) -> None:
    script = MODES.partition("o = sgd()")[0] + "o = sgd()\nwith Operators():\n"
    script += "\n".join(f"    {line}" for line in LOOP.splitlines())

    (part,) = counted(watch, script)

    assert part.reason == "the script uses a TorchDispatchMode of its own"


def test_an_optimizer_that_steps_within_a_backward_is_not_counted(watch: Watch) -> None:
    script = """
    o = sgd()
    def step(parameter): o.step()
    model.weight.register_post_accumulate_grad_hook(step)
    for _ in range(60): loss().backward()
    """

    (part,) = counted(watch, script)

    assert part.reason == "an optimizer steps during a backward"


def test_the_mode_leaves_a_script_that_makes_no_more_steps(watch: Watch) -> None:
    script = """
    o = sgd()
    for _ in range(5): loss().backward(); o.step()
    one = torch.ones(1)
    with torch.no_grad():
        for _ in range(300_010): one.neg_()
    print(torch._C._len_torch_dispatch_stack(), sys.getprofile())
    """

    assert watch(script).done.stdout == "0 None\n"


def test_custom_operators_are_named(watch: Watch) -> None:
    script = """
    @torch.library.custom_op("mine::double", mutates_args=())
    def double(x: torch.Tensor) -> torch.Tensor: return x * 2
    o = sgd()
    plain = loss
    def loss(): double(torch.ones(3)); return plain()
    """

    first, _ = counted(watch, script.replace("\n    ", "\n") + LOOP)

    assert first.uncounted == ["mine::double"]


def test_a_torch_without_formulas_is_a_reason(watch: Watch) -> None:
    hidden = "sys.modules['torch.utils.flop_counter'] = None\n"

    (part,) = counted(watch, hidden + MLP + LOOP)

    assert part.reason.startswith("counting cannot begin: ModuleNotFoundError")


@pytest.mark.slow
def test_a_compiled_model_is_not_counted_and_keeps_its_graphs(tmp_path: Path) -> None:
    script = """
import torch._dynamo.utils
o = sgd()
for step in range(60):
    if step == 5: model = torch.compile(model, backend="eager")
    o.zero_grad(); value = loss(); value.backward(); o.step()
counters = torch._dynamo.utils.counters
print(value.item(), counters["stats"]["unique_graphs"], sum(counters["graph_break"].values()))
"""

    watched = run_afresh(tmp_path, script)
    plain = run_unwatched(tmp_path, script)

    (process,) = watched.processes
    assert process.counted.why_not().startswith("torch.compile is in use")
    assert (watched.done.stdout, watched.done.stderr) == (plain.stdout, plain.stderr)


ON_GPU = """
import sys
from pathlib import Path
sys.path.insert(0, {folder!r})
from tests.fakes import cuda_values
cuda_values.load(Path({library!r}))
import torch
model = torch.nn.Linear(16, 4).to("cuda")
o = torch.optim.AdamW(model.parameters())
for step in range(60):
    x = torch.ones(8, 16).to("cuda")
    y = torch.ones(8, 4).pin_memory().to("cuda", non_blocking=True)
    value = (model(x) - y).pow(2).mean()
    o.zero_grad(); value.backward(); o.step()
    value.item()
"""


@pytest.mark.library
@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++: the model of a GPU is in C++")
def test_copies_and_reads_on_a_gpu_are_counted_by_line(tmp_path: Path) -> None:
    library = tmp_path / "libcuda_values.so"
    cuda_values.build(library)
    path = tmp_path / "script.py"
    path.write_text(ON_GPU.format(folder=str(Path(__file__).parents[2]), library=str(library)))
    marks = tmp_path / "marks"
    marks.mkdir()
    done = subprocess.run(
        [sys.executable, str(path)],
        capture_output=True,
        text=True,
        env=environment_of(marks),
        timeout=100,
    )
    assert done.returncode == 0, done.stderr

    (process,) = read_marks(marks, done).processes
    first, _ = process.counted.parts
    places = {
        (place.line, place.kind, place.memory, place.count, place.bytes) for place in first.places
    }
    assert places == {
        (11, "host to device", "pageable", 1, 8 * 16 * 4),
        (12, "host to device", "pinned, non_blocking", 1, 8 * 4 * 4),
        (15, ".item()", "cuda", 1, 4),
    }
    assert (first.copies, first.reads, first.device) == (2, 1, "cuda")


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"flops": -1}', '{"flops": "many"}', '{"places": [1]}', "[" * 9999]
)
def test_a_report_of_another_form_is_ignored(text: str) -> None:
    parts = CountedParts()

    parts.take(text)

    assert (parts.parts, parts.why_not()) == ([], "")


def test_the_counted_step_and_the_one_after_it_are_left_out() -> None:
    parts = CountedParts()
    parts.take(json.dumps({"began": 100, "ended": 200, "until": 210, "flops": 7}))

    found = [
        parts.is_counted(began, ended)
        for began, ended in ((0, 99), (99, 200), (200, 300), (300, 400))
    ]

    assert found == [False, True, True, False]
    (record,) = parts.take_finished(200, "rank 0", 5)
    assert (record.flops, record.step, record.steps, record.arm) == (7, 5, 1, "rank 0")
    assert parts.take_finished(400, "rank 0", 6) == []


def test_counting_is_off_without_the_variable(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(COUNT)

    assert COUNT not in os.environ
    assert counted(watch, MLP + LOOP) == []
