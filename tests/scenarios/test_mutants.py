"""A claim that cannot fail claims nothing: where no parameter refutes it, a mistake in the experiment does, and only it.

Each mistake is one replaced text in a copy of the lesson, which is run in this process: nothing here is timed.
"""

import inspect
import runpy
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.engine import read_stream
from tuilab.catalogue import catalog
from tuilab.engine import messages
from tuilab.record import events
from tuilab.record.holding import holds
from tuilab.record.journal import Writer


class Mistake(NamedTuple):
    lesson: str
    right: str
    wrong: str
    refutes: str


LARGEST = "logits - logits.max(-1, keepdim=True).values"
MISTAKES = [
    Mistake("softmax", LARGEST, "logits", "agrees, stable"),
    Mistake("softmax", "return exps / exps.sum()", "return stable(logits)", "whole-batch"),
    Mistake("softmax", "far_apart - far_apart.max()", "far_apart - far_apart.max(-1, keepdim=True).values", "far-row"),
    Mistake("softmax", "exps = logits.exp()", "return logits.softmax(-1)", "naive, limit-f32, limit-bf16, limit-f16, far-row"),
    Mistake("xent", LARGEST, "logits", "stable-500, stable-gradient, cross-entropy"),
    Mistake(
        "xent",
        "logits.softmax(-1).log()",
        "logits.log_softmax(-1)",
        "naive-inf, naive-gradient, hard-labels, loss-limit, gradient-limit",
    ),
    Mistake("xyy", "x * y / y  #", "x * (y / y)  #", "product, last-decade"),
    Mistake("xyy", '"float16": torch.float16', '"float16": torch.bfloat16', "f16, digits"),
    Mistake("xyy", "[1e-50, 1e39]", "[1e-30, 1e30]", "source"),
    Mistake("broadcast-trap", "torch.tensor([[1.0], [2.0]]", "torch.tensor([1.0, 2.0]", "twelve, given-away"),
    Mistake("broadcast-trap", "torch.ones(3, 4)", "torch.ones(3, 1)", "refused"),
    Mistake("broadcast-trap", "prediction - target.view_as", "prediction + target.view_as", "slope-3"),
    Mistake("ckpt-mlp", "8 * 16 * 1024", "0", "alone, second-cell"),
    Mistake("ckpt-targets", '"with-linear": (1, 3)', '"with-linear": (2, 3)', "with-linear"),
    Mistake("ckpt-targets", '"block": (0, 3)', '"block": (1, 3)', "block, free"),
    Mistake("ckpt-targets", "layers[last:](y)", "layers[last:](y) * (1 + first)", "gradients"),
    Mistake("saved-tensors", "total.backward(), total", "total.backward(retain_graph=True), total", "once"),
    Mistake("saved-tensors", "torch.relu_(layer(rows))", "torch.relu(layer(rows))", "relu-in-place"),
    Mistake("saved-tensors", '"mean": torch.mean', '"mean": torch.cos', "nothing, input"),
    Mistake("saved-tensors", '"x-2": lambda x: x - 2', '"x-2": torch.rsqrt', "nothing, output"),
    Mistake("saved-tensors", 'chain(x, last)["p"], back', "list(chain(x, last).values()), back", "live, after"),
    Mistake("no-grad", "torch.no_grad()(recorded)", "recorded", "forms"),
    Mistake("no-grad", "net.eval()(x)", "in_block(net.eval(), x)", "substitutes"),
    Mistake("no-grad", "torch.clone, torch.Tensor.item", "torch.Tensor.detach, torch.Tensor.item", "losses"),
    Mistake("no-grad", "        yield\n", "        pass\n    yield\n", "generator"),
    Mistake("no-grad", "torch.inference_mode()(recorded)", "torch.no_grad()(recorded)", "inference"),
    Mistake("no-grad", "made = nn.Parameter", "made = torch.Tensor", "parameter"),
    Mistake("no-grad", "[1], requires_grad", "[1.0], requires_grad", "integer"),
    Mistake("zero-grad", "owner.zero_grad()", "owner.zero_grad(set_to_none=False)", "default"),
    Mistake("zero-grad", "torch.manual_seed(1)", "torch.manual_seed(len(weights))", "same"),
    Mistake("zero-grad", "weight_decay=0.1", "weight_decay=0.0", "zeros-move"),
    Mistake("grad-accum", "[1] * number)", "shares)", "forgotten"),
    Mistake("grad-accum", 'build_net("batch", device)', 'build_net("layer", device)', "batch-norm"),
    Mistake("grad-accum", "[1 / 2, 1 / 2]", "[1000 / ROWS, 24 / ROWS]", "uneven"),
    Mistake("grad-accum", "losses = (share", "losses = list(share", "peak"),
    Mistake("grad-accum", "[sum(losses)] if at_end else losses", "losses", "late"),
    Mistake("grad-accum", "[1] * 3", "[1, 1, 2]", "third"),
    Mistake("grad-accum", "output = net(x)", "output = net(x).detach()", "leaves"),
    Mistake("sdpa-backends", ".softmax(-1) @ v", ".softmax(-1).exp() @ v", "written, math, short, same"),
    Mistake("sdpa-backends", "dropout_p=0.1)\n", "dropout_p=0.0)\n", "asked"),
    Mistake("sdpa-backends", "(attention, q[0], k[0], v[0])", "(attention, q, k, v)", "fallback"),
    Mistake("sdpa-backends", "need_weights=weights", "need_weights=False", "module"),
    Mistake("selective-ckpt", '"products": [ADDMM]', '"products": [ADDMM, torch.ops.aten.gelu.default]', "products, cheap"),
    Mistake(
        "selective-ckpt",
        "block, x, use_reentrant",
        "block, x.clone(), use_reentrant",
        "full, products, first, wrong-name",
    ),
    Mistake("selective-ckpt", "> args[2].shape[0]", ">= 0", "first"),
    Mistake("selective-ckpt", '"wrong name": [MM]', '"wrong name": [ADDMM]', "wrong-name"),
    Mistake("selective-ckpt", "        return net(x)\n", "        return net(2 * x)\n", "plain, gradients"),
    Mistake("selective-ckpt", "counted.saved_bytes)", "counted.live_bytes)", "hooks"),
    Mistake("pin-custom", '"class with pin_memory()": Pinning', '"class with pin_memory()": Plain', "found"),
    Mistake("pin-custom", "Forgetful(StandIn())", "Pinning(StandIn())", "returned"),
]


@pytest.mark.library
@pytest.mark.parametrize("mistake", MISTAKES, ids=[f"{mistake.lesson} {mistake.refutes}" for mistake in MISTAKES])
def test_a_mistake_in_the_experiment_refutes_the_claims_that_tell_of_it(tmp_path: Path, mistake: Mistake) -> None:
    (source,) = [Path(found.path).read_text() for found in catalog.load() if found.id == mistake.lesson]
    assert mistake.right in source
    (tmp_path / "scenario.py").write_text(source.replace(mistake.right, mistake.wrong))

    assert refuted_in(tmp_path) == set(mistake.refutes.split(", "))


def refuted_in(folder: Path) -> set[str]:
    """Return the keys of the exact claims of the scenario of a folder that do not hold."""
    return {claim.key for claim in claimed_in(folder) if not holds(claim)}


def claimed_in(folder: Path) -> list[events.ClaimMeasured]:
    """Run the scenario of a folder in this process and return what it claims exactly."""
    import torch

    from tuilab.lab.lab import Lab

    journal = Writer(folder / "worker-0.jsonl")
    order = messages.WorkerOrder(run_dir=str(folder), writer="worker-0", source_dir=str(folder), quick=True)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    run = runpy.run_path(str(folder / "scenario.py"))["run"]
    params = {"device": "cpu"} if "device" in inspect.signature(run).parameters else {}
    ours, theirs = messages.pair()
    with ours, theirs:
        run(Lab(journal, folder, messages.WorkerLine(ours), order, "cpu"), **params)
    journal.close()
    torch.set_num_threads(before)
    return [event for event in read_stream(folder / "worker-0.jsonl") if isinstance(event, events.ClaimMeasured)]
