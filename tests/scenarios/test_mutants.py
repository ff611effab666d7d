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
    Mistake("softmax", "exps = logits.exp()", "exps = (logits / 2).exp()", "limit-f32, limit-bf16, limit-f16"),
    Mistake("softmax", "pair = torch.tensor([1000.0", "pair = torch.tensor([80.0", "naive, stable"),
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
    Mistake("tensor-basics", "torch.from_numpy)", "torch.tensor)", "shared, bytes"),
    Mistake("tensor-basics", "tensor.numpy()\n", "tensor.clone().numpy()\n", "back"),
    Mistake("tensor-basics", "torch.zeros(3, 32, 32)", "torch.zeros(1, 3, 32, 32)", "ranks"),
    Mistake("tensor-basics", "torch.randn(5, 4, device", "torch.randn(5, 5, device", "product"),
    Mistake("tensor-basics", "torch.add, x, y", "torch.add, x, x", "sum"),
    Mistake("tensor-basics", "requires_grad=True).numpy", "requires_grad=False).numpy", "gradient"),
    Mistake("autograd-chain", "torch.equal(gradients, -2 * curve)", "torch.equal(gradients, 2 * curve)", "everywhere"),
    Mistake("autograd-chain", "return -(x * x)", "return -(x * x) * 1", "nodes, one-pass"),
    Mistake("module-registry", "nn.Linear(64, 32)", "nn.Linear(63, 32)", "sequential"),
    Mistake("module-registry", "self.first(x).tanh()", "self.first(x).detach().tanh()", "gradients"),
    Mistake("module-registry", "(net, net.forward)", "(net, net)", "hooks"),
    Mistake("linear-fit", "torch.eye(2).to(steepness) -", "torch.eye(2).to(steepness) - 2 *", "foretold"),
    Mistake("linear-fit", "nn.init.zeros_(weight)", "nn.init.normal_(weight)", "layer"),
    Mistake("same-code", "first, x, weight)", "first, *meta)", "cpu"),
    Mistake("same-code", "device=x.device)\n    return", "device=x.device) * 2\n    return", "values"),
    Mistake("same-code", "asked(*meta), asked", "asked(*meta).half(), asked", "same"),
    Mistake("same-code", "*tensors(64, arm)", "*tensors(64 + (arm == 'meta'), arm)", "flops"),
    Mistake("same-code", "scores.softmax(-1) @ x", "scores.softmax(-1) @ (x + 0 if x.is_meta else x)", "operators"),
    Mistake("same-code", 'for arm in ("cpu", "meta"))', 'for arm in ("cpu", "cpu"))', "no-memory"),
    Mistake("same-code", "there.sum().item", "here.sum().item", "value"),
    Mistake("same-code", "there[there > 0]", "here[here > 0]", "mask"),
    Mistake("operator-table", "x % y: remainder", "x % y: fmod", "same"),
    Mistake("operator-table", "x | y: logical_or", "x | y: logical_xor", "logical"),
    Mistake("operator-table", "row[1:3]", "row[1:2]", "slice"),
    Mistake("operator-table", "torch.narrow, 0, 1, 2", "torch.narrow, row, 0, 1, 2", "narrow"),
    Mistake("operator-table", "lambda: ~x]", "lambda: -x]", "floats"),
    Mistake("operator-table", "(seven // 2)", "seven.div(2, rounding_mode='trunc')", "floor"),
    Mistake("operator-table", "whole.__iadd__, 0.5", "whole.__iadd__, 1", "cast"),
    Mistake("operator-table", "requires_grad=True", "requires_grad=False", "leaf"),
    Mistake("operator-table", "x = x + 1\n    lab", "x += 1\n    lab", "new"),
    Mistake("broadcast-basics", "torch.ones(3, 1,", "torch.ones(2, 3, 1,", "valid"),
    Mistake("broadcast-basics", "plain.value, with", "plain.value, -with", "equal"),
    Mistake("broadcast-basics", "return a + b", "return a + 2 * b", "operators, bytes, peak, gradient"),
    Mistake("broadcast-basics", "b.detach().expand(rows,", "b.detach().repeat(1,", "stride, written"),
    Mistake("broadcast-basics", "by_shape[1][shape])", "-by_shape[1][shape])", "gradients"),
    Mistake("squeeze-dim", "torch.zeros(1, 1,", "torch.zeros(2, 1,", "number"),
    Mistake("squeeze-dim", "torch.zeros(3, 2,", "torch.zeros(3, 1,", "silent"),
    Mistake("squeeze-dim", "torch.ones(1, 4,", "torch.ones(2, 4,", "reduced"),
    Mistake("squeeze-dim", "(3 * x + 1)[", "(2 * x + 1)[", "slope-3"),
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
