"""Subtract the largest logit before the exponential.

softmax divides exp(logit) by the sum of all exp(logit). If a logit is above the logarithm of the
largest number of the dtype, its exponential is inf. That number is 3.4e38 for float32 and 65504
for float16. Then inf / inf is nan. Logits of this size are common.

On paper a constant that is added to all logits changes nothing. So choose the constant that makes
the largest logit 0. Then every exponential is at most 1, and their sum is between 1 and the number
of classes. That sum can be too large for float16, and vocabularies have 128,000 entries.
`torch.softmax` shifts in the same way and adds in float32, which is enough.

In each dtype the limit is the largest number of this dtype below the logarithm. Near 88 bfloat16
has steps of 0.5. The next logit after 88.5 is 89, and its exponential is inf.

Each row needs its own largest logit. The source takes the maximum and the sum over all elements,
which is right for one vector and wrong for a batch. It calls `torch.reduce_max`, which is a name
of TensorFlow. And it prints the formula of the shift without a slash, as a product.

The chart shows the sum of the exponentials of [step, 0]. A line ends when the sum becomes inf. The
line of bfloat16 hides the line of float32. The stable sum does not change.

In practice: call `torch.softmax`, or pass the logits to `F.cross_entropy`. In a softmax that you
write yourself, for example in attention, subtract `x.amax(-1, keepdim=True)` first, and add up in
float32.
## Predict
What is the largest whole logit for which a naive softmax still works in float16?
## Look for
- [naive] the naive softmax of [1000, 0] is [nan, 0]
- [stable] the stable softmax of [1000, 0] is [1, 0]
- [limit-f32] in float32 the largest logit with which the naive softmax works is 88.7228
- [limit-bf16] in bfloat16 the largest logit with which the naive softmax works is 88.5
- [limit-f16] in float16 the largest logit with which the naive softmax works is 11.0859
- [agrees] the stable softmax agrees with torch.softmax to 1e-6, for 64 random rows of 1000 float32
  logits
- [many-classes] for 65,536 equal float16 logits the stable softmax is 0 everywhere, and
  torch.softmax 1/65,536
- [whole-batch] with the maximum and the sum of the whole batch the rows of [[1, 2], [3, 4]] sum to
  0.119 and 0.881
- [far-row] with the maximum of the whole batch a row 1000 below it is 0 / 0 = nan
- [reduce-max] torch.reduce_max, which the source calls, does not exist
- [slash] the formula as the source prints it, without a slash, makes [0.503, 1.368] of [1, 2], and
  the softmax is [0.269, 0.731]
## Try next
`--tied 1000`: a thousand classes share the largest logit. Now the sum overflows before any
exponential does. The limits fall by ln(1000) = 6.9: float32 to 81.82, bfloat16 to 81.5, float16
to 4.18. Between the two limits not even a nan warns you: number / inf makes all probabilities 0.
refutes: limit-f32, limit-bf16, limit-f16
`--classes 65000`: the sum of so many ones is in the range of float16, and both softmaxes give
1/65,000. refutes: many-classes
## Source
EffectivePyTorch, chapter "Numerical stability in PyTorch",
https://github.com/vahidk/EffectivePyTorch. Its stable softmax calls torch.reduce_max, and its
formula has lost the slash. Ours: the limits by dtype, ties, many classes and batches.
"""

import torch

from tuilab import Lab

DTYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


def naive(logits):  # (..., classes)
    exps = logits.exp()
    return exps / exps.sum(-1, keepdim=True)


def stable(logits):
    shifted = logits - logits.max(-1, keepdim=True).values
    exps = shifted.exp()
    return exps / exps.sum(-1, keepdim=True)


def as_in_the_source(logits):  # one maximum and one sum for everything
    exps = (logits - logits.max()).exp()
    return exps / exps.sum()


def as_printed_in_the_source(logits):  # (classes,); the formula without its slash
    exps = (logits - logits.max()).exp()
    return exps * exps.sum()


def make_logits(top, tied, device, dtype):
    """Return logits of which `tied` are the largest, and one is 0."""
    return torch.tensor([top] * tied + [0.0]).to(device, dtype)


def find_limit(lab, softmax, tied, device, dtype):
    """Return the largest logit for which the probabilities still sum to about 1."""

    def works(top):
        total = softmax(make_logits(top, tied, device, dtype)).double().sum()
        return abs(total - 1) < 0.1  # False for nan

    return torch.tensor(lab.limit(works, 0.0, 1000.0), dtype=dtype)


def raise_one_logit(lab, tied, device):
    lab.axes("total", x="largest logit", y="sum of the exponentials", log="y")
    lab.axes("probability", x="largest logit", y="probability of the largest logit")
    for top in lab.sweep(range(101), "raising one logit"):
        for name, dtype in DTYPES.items():
            logits = make_logits(top, tied, device, dtype)
            total = logits.exp().sum().item()
            probability = naive(logits)[0].item()
            lab.log(top, arm=name, total=total, probability=probability)
        logits = make_logits(top, tied, device, torch.float16)  # the dtype with the smallest range
        shifted = logits - logits.max()
        total = shifted.exp().sum().item()
        probability = stable(logits)[0].item()
        lab.log(top, arm="stable float16", total=total, probability=probability)


def claim_limits(lab, tied, device):
    lab.stage("looking for the limits")
    limits = {}
    tied_limits = {}
    for name, dtype in DTYPES.items():
        limits[name] = find_limit(lab, naive, tied, device, dtype)
        tied_limits[f"{name}, 1000 tied"] = find_limit(lab, naive, 1000, device, dtype)
    lab.bars("largest logit that works", {**limits, **tied_limits})
    whole = limits["float16"].floor()
    lab.claim("limit-f32", limits["float32"], equals=88.7228, tolerance=0.0001)
    lab.claim("limit-bf16", limits["bfloat16"], equals=88.5)
    lab.claim("limit-f16", limits["float16"], equals=11.0859, tolerance=0.0001, answers=whole)


def claim_batches(lab, classes, device):
    lab.stage("batches")
    batch = (100 * torch.randn(64, 1000)).to(device)  # (rows, classes)
    difference = stable(batch) - batch.softmax(-1)
    lab.claim("agrees", difference.abs().max(), at_most=1e-6)
    equal = torch.zeros(classes, device=device, dtype=torch.float16)
    largest = [stable(equal).max().item(), equal.softmax(-1).max().item()]
    lab.claim("many-classes", largest, equals=[0, 1 / 65_536])
    rows = torch.tensor([[1.0, 2.0], [3.0, 4.0]], device=device)
    row_sums = as_in_the_source(rows).sum(-1)
    lab.claim("whole-batch", row_sums, equals=[0.119, 0.881], tolerance=0.001)
    far_apart = torch.tensor([[0.0, 0.0], [1000.0, 0.0]], device=device)
    far_row = naive(far_apart - far_apart.max())[0]
    lab.claim("far-row", far_row, equals=[float("nan"), float("nan")])


def run(
    lab: Lab,
    tied: int = 1,  # classes that share the largest logit, 1..10000
    classes: int = 65_536,  # equal float16 logits, 1..1000000
) -> None:
    device = lab.device()
    raise_one_logit(lab, tied, device)

    pair = torch.tensor([1000.0, 0.0], device=device)
    lab.claim("naive", naive(pair), equals=[float("nan"), 0])
    lab.claim("stable", stable(pair), equals=[1, 0])
    claim_limits(lab, tied, device)
    claim_batches(lab, classes, device)

    lab.claim("reduce-max", not hasattr(torch, "reduce_max"))
    small = torch.tensor([1.0, 2.0], device=device)
    values = [*as_printed_in_the_source(small).tolist(), *stable(small).tolist()]
    lab.claim("slash", values, equals=[0.503, 1.368, 0.269, 0.731], tolerance=0.001)
