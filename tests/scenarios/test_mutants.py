"""A claim that cannot fail claims nothing: where no parameter refutes it, a mistake in the experiment does, and only it.

Each mistake is one replaced text in a copy of the lesson, which is run in this process: nothing here is timed.
"""

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.lessons import claimed, source_of
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
    Mistake("broadcast-trap", "torch.tensor([[1.0], [2.0]]", "torch.tensor([1.0, 2.0]", "twelve, given-away"),
    Mistake("broadcast-trap", "torch.ones(3, 4)", "torch.ones(3, 1)", "refused"),
    Mistake("broadcast-trap", "prediction - target.view_as", "prediction + target.view_as", "slope-3"),
    Mistake("ckpt-mlp", "8 * 16 * 1024", "0", "alone, second-cell"),
    Mistake("ckpt-targets", '"with-linear": (1, 3)', '"with-linear": (2, 3)', "with-linear"),
    Mistake("ckpt-targets", '"block": (0, 3)', '"block": (1, 3)', "block, free"),
    Mistake("ckpt-targets", "layers[last:](y)", "layers[last:](y) * (1 + first)", "gradients"),
    Mistake("pin-custom", '"class with pin_memory()": Pinning', '"class with pin_memory()": Plain', "found"),
    Mistake("pin-custom", "Forgetful(StandIn())", "Pinning(StandIn())", "returned"),
    Mistake("autocast-rules", "lambda a, b: a @ b", "lambda a, b: a * b", "matmul"),
    Mistake("autocast-rules", "a + b.float()", "a + b.to(torch.bfloat16)", "add"),
    Mistake("autocast-rules", "a.mean()", "a.float().mean()", "mean"),
    Mistake("autocast-rules", "a.prod()", "a.sum()", "widened"),
    Mistake("autocast-rules", "a.exp()", "a.float().exp()", "cpu-list"),
    Mistake("autocast-rules", '"inside": F.mse_loss', '"inside": by_hand', "inside"),
    Mistake("autocast-rules", "torch.autocast(other,", "torch.autocast(device.type,", "other-device"),
    Mistake("autocast-rules", "lab.warns(torch.cpu.amp.autocast)[0]", '"none"', "deprecated"),
    Mistake("gradscaler", "is_changed for change", "not is_changed for change", "skipped"),
    Mistake("gradscaler", "returned = trial", "returned = not trial", "none"),
    Mistake("gradscaler", "torch.bfloat16, growth", "torch.float16, growth", "bfloat16"),
    Mistake("gradscaler", "Trial(device).scaler.get", "Trial(device, growth_interval=1000).scaler.get", "defaults"),
    Mistake("gradscaler", "(Trial.clip, Trial.unscale)", "(Trial.unscale, Trial.clip)", "clip-early"),
    Mistake("gradscaler", "(Trial.unscale, Trial.clip)", "(Trial.clip, Trial.unscale)", "clip-late"),
    Mistake("gradscaler", "trial.net.weight.grad.dtype", "trial.net.weight.grad.half().dtype", "float32"),
    Mistake("gradscaler", "closure=lambda: 0", "", "refused"),
    Mistake("gradscaler", "enabled=False).scaler", "enabled=True).scaler", "disabled"),
    Mistake("grad-underflow", "loss, 2.0**power", "loss, 1", "rescued, restored"),
    Mistake("grad-underflow", '"bfloat16": torch.bfloat16}', '"bfloat16": torch.float16}', "bfloat16, no-overflow"),
    Mistake("grad-underflow", "dtype, 1, 2.0**24", "dtype, 1, 1", "overflow"),
    Mistake("grad-underflow", "enabled=is_scaled", "enabled=False", "learns"),
    Mistake("grad-underflow", "(torch.float16, 1e-4, 1)", "(torch.bfloat16, 1e-4, 1)", "epsilon"),
    Mistake("grad-underflow", "(torch.float16, 1e-6, 1)", "(torch.bfloat16, 1e-6, 1)", "subnormal"),
    Mistake(
        "layer-precision",
        "return net[-1](x.to(net[-1].weight.dtype))",
        "return net[-1].float()(x.float())",
        "worst, keep-last, autocast, bytes",
    ),
    Mistake("layer-precision", "found**2 for", "2 * found**2 for", "squares"),
    Mistake("layer-precision", "error(every[:-1])", "error(every)", "keep-last"),
    Mistake("layer-precision", 'lab.claim("classes", (y', 'lab.claim("classes", (y.roll(1)', "classes"),
    Mistake("layer-precision", "net = cut(device, every, half)", "net = cut(device, every[:-1], half)", "bytes, autocast"),
    Mistake("layer-precision", "raises(net[0], x)", "raises(net[0], x.to(half))", "refused"),
    Mistake("grad-clip", "lr=rate", "lr=0", "explodes, trained, too-large, low-rate, middle-rate, high-rate, rare"),
    Mistake(
        "grad-clip",
        "partial(nn.utils.clip_grad_norm_, max_norm=10.0)",
        "partial(nn.utils.clip_grad_value_, clip_value=10.0)",
        "by-norm, direction, nan",
    ),
    Mistake("grad-clip", "clip_grad_value_, clip_value=10.0", "clip_grad_norm_, max_norm=10.0", "by-value"),
    Mistake("grad-clip", "clip_grad_norm_(weight, 1.0)", "clip_grad_norm_(weights, 1.0)", "groups, direction"),
    Mistake("grad-clip", "error_if_nonfinite=True", "error_if_nonfinite=False", "raised"),
    Mistake(
        "conv-bias",
        "weight.data.copy_(pair[0][0].weight)",
        "weight.data.copy_(pair[0][0].weight + 1)",
        "same, weights, absorbed",
    ),
    Mistake("conv-bias", "(y * direction).sum()", "(y.detach() * direction + 0 * y).sum()", "weight-norm, relu, group-norm"),
    Mistake("conv-bias", "std=3", "std=0", "one-update"),
    Mistake("conv-bias", "[nn.ReLU(), nn.BatchNorm2d(8)]", "[nn.BatchNorm2d(8)]", "relu"),
    Mistake("conv-bias", "nn.GroupNorm(4, 8)", "nn.GroupNorm(8, 8)", "group-norm"),
    Mistake("conv-bias", "bias=has_bias", "bias=True", "parameters"),
    Mistake("conv-bias", "lab.raises(nn.BatchNorm2d)", "lab.raises(nn.BatchNorm2d, 8)", "no-features"),
    Mistake("conv-bias", "lab.raises(nn.BatchNorm2d(8), rows)", "lab.raises(nn.BatchNorm1d(8), rows)", "linear"),
]


@pytest.mark.library
@pytest.mark.parametrize("mistake", MISTAKES, ids=[f"{mistake.lesson} {mistake.refutes}" for mistake in MISTAKES])
def test_a_mistake_in_the_experiment_refutes_the_claims_that_tell_of_it(tmp_path: Path, mistake: Mistake) -> None:
    source = source_of(mistake.lesson)
    assert mistake.right in source

    claims = claimed(tmp_path, source.replace(mistake.right, mistake.wrong))

    assert {key for key, claim in claims.items() if not holds(claim)} == set(mistake.refutes.split(", "))
