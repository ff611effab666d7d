"""A claim that cannot fail claims nothing: where no parameter refutes it, a mistake in the experiment does, and only it.

Each mistake is one replaced text in a copy of the lesson, which is run in this process: nothing here is timed.
"""

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.scenarios.inside import claims_in, source_of
from tuilab.record.holding import holds


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
    Mistake("where-nan", "torch.where(x > 0, f(x), 0.0)", "torch.where(x > 0, f(x), 1.0)", "value"),
    Mistake("where-nan", "torch.where(x > 0, x, 1.0)", "x.clamp(min=0)", "inside"),
    Mistake("where-nan", ".masked_fill(x <= 0, 0.0)", "", "too-late"),
    Mistake("where-nan", "x[x > 0].sqrt()", "x.sqrt()[x > 0]", "selected"),
    Mistake("where-nan", "lambda x: x.square().sum().sqrt()", "torch.linalg.vector_norm", "norm"),
    Mistake("dtype-ranges", '"float16": torch.float16', '"float16": torch.bfloat16', "bits, smallest, counting, patterns"),
    Mistake("dtype-ranges", "pattern(x) + 1", "pattern(x) + 2", "eps"),
    Mistake("dtype-ranges", "pattern(one * math.inf) - 1", "pattern(one * math.inf) - 2", "largest"),
    Mistake("dtype-ranges", "number(1 << bits", "number(1 | bits", "normal"),
    Mistake("accumulate-lowp", "terms[name].sum().item()", "found[name][-1]", "sum"),
    Mistake("accumulate-lowp", "torch.zeros((), device=device)", "torch.zeros((), dtype=torch.float16)", "wide"),
    Mistake("accumulate-lowp", "a.new_zeros(len(a), b.shape[1])", "torch.zeros(len(a), b.shape[1])", "ones, error"),
    Mistake(
        "accumulate-lowp", "total + a[:, i : i + 1] * b[i : i + 1]", "total.addmm(a[:, i : i + 1], b[i : i + 1])", "cancel"
    ),
    Mistake("accumulate-lowp", "many.sum()", "many.sum(dtype=torch.float32)", "mean"),
    Mistake("bf16-vs-fp16", "torch.ones((), device=device), rate", "torch.ones((), dtype=torch.bfloat16), rate", "master"),
    Mistake("bf16-vs-fp16", "+ noise", "+ 2**15", "random"),
    Mistake("bf16-vs-fp16", "(nearest - 0.0001)", "(nearest - 0.01)", "nearest"),
    Mistake("bf16-vs-fp16", "edges.half()", "edges.float()", "overflow"),
    Mistake("bf16-vs-fp16", ".square().tolist()", ".abs().tolist()", "squares"),
    Mistake("bf16-vs-fp16", "torch.full_like(weight, 0.0001)", "torch.full_like(weight, 0.1)", "adam"),
    Mistake("fp8", '"e4m3": torch.float8_e4m3fn', '"e4m3": torch.float8_e4m3fnuz', "e4m3, too-large"),
    Mistake("fp8", '"e5m2": torch.float8_e5m2', '"e5m2": torch.float8_e5m2fnuz', "e5m2, too-large, unscaled"),
    Mistake("fp8", "torch.tensor([17.0, 9.0,", "torch.tensor([18.0, 10.0,", "counting"),
    Mistake("fp8", "1e-6 * torch.randn", "0.01 * torch.randn", "unscaled"),
    Mistake("fp8", "torch.finfo(dtype).max / x", "0.01 / x", "scaled, backward, per-row, wide"),
    Mistake("fp8", "torch.sum, ones)", "torch.clone, ones)", "no-sum"),
    Mistake("fp8", "kept.t(), 1 / scale", "kept.t(), scale", "wide"),
    Mistake("tf32", "[1e38, 1e-38]", "[1e39, 1e-38]", "range"),
    Mistake("tf32", '"float32": error(a @ b', '"float32": error(a.half() @ b.half()', "float32"),
    Mistake("tf32", "(high[0] @ low[1] + high[1] @ low[0])", "high[0] @ low[1]", "split"),
    Mistake("tf32", "[torch.backends.cudnn.allow_tf32", "[not torch.backends.cudnn.allow_tf32", "default"),
    Mistake("tf32", "distances(points, near, 23)", "distances(points, near, bits)", "distance-f32"),
    Mistake("broadcast-trap", "torch.tensor([[1.0], [2.0]]", "torch.tensor([1.0, 2.0]", "twelve, given-away"),
    Mistake("broadcast-trap", "torch.ones(3, 4)", "torch.ones(3, 1)", "refused"),
    Mistake("broadcast-trap", "prediction - target.view_as", "prediction + target.view_as", "slope-3"),
    Mistake("ckpt-mlp", "8 * 16 * 1024", "0", "alone, second-cell"),
    Mistake("ckpt-targets", '"with-linear": (1, 3)', '"with-linear": (2, 3)', "with-linear"),
    Mistake("ckpt-targets", '"block": (0, 3)', '"block": (1, 3)', "block, free"),
    Mistake("ckpt-targets", "layers[last:](y)", "layers[last:](y) * (1 + first)", "gradients"),
    Mistake("pin-custom", '"class with pin_memory()": Pinning', '"class with pin_memory()": Plain', "found"),
    Mistake("pin-custom", "Forgetful(StandIn())", "Pinning(StandIn())", "returned"),
]


@pytest.mark.library
@pytest.mark.parametrize("mistake", MISTAKES, ids=[f"{mistake.lesson} {mistake.refutes}" for mistake in MISTAKES])
def test_a_mistake_in_the_experiment_refutes_the_claims_that_tell_of_it(tmp_path: Path, mistake: Mistake) -> None:
    source = source_of(mistake.lesson)
    assert mistake.right in source

    claims = claims_in(tmp_path, source.replace(mistake.right, mistake.wrong))
    assert {claim.key for claim in claims if not holds(claim)} == set(mistake.refutes.split(", "))
