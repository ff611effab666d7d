"""Subtract the largest logit before the exponential.

softmax divides exp(logit) by the sum of all exp(logit). The exponential leaves the range of the dtype at the logarithm of
its largest number, which is 3.4e38 for float32 and 65504 for float16. Then inf / inf is nan. Such logits are nothing unusual.

Adding a constant to all logits changes nothing on paper, so choose the constant that makes the largest logit 0: every
exponential is at most 1, and their sum lies between 1 and the number of classes. That number can be too large for float16, and
vocabularies have 128,000 entries. `torch.softmax` shifts in the same way and adds in float32, which is enough.

A limit is the largest logit that the dtype has below the logarithm. Logits of bfloat16 come in steps of 0.5 near 88, so after
88.5 the next one is 89, and its exponential is inf.

The largest logit is one *of each row*. The source takes the maximum and the sum over all elements, which is right for one
vector and wrong for a batch, and it calls `torch.reduce_max`, which is a TensorFlow name.

The chart shows the sum of the exponentials of [step, 0]. A line that stops has become inf, and float32 is hidden behind
bfloat16; the stable sum stays where it is.
## Predict
What is the largest whole logit for which a naive softmax still works in float16?
## Look for
- [naive] the naive softmax of [1000, 0] is [nan, 0]
- [stable] the stable softmax of [1000, 0] is [1, 0]
- [limit-f32] in float32 the largest logit with which the naive softmax works is 88.7228
- [limit-bf16] in bfloat16 the largest logit with which the naive softmax works is 88.5
- [limit-f16] in float16 the largest logit with which the naive softmax works is 11.0859
- [agrees] the stable softmax agrees with torch.softmax to 1e-6, for 64 random rows of 1000 float32 logits
- [many-classes] for 65,536 equal float16 logits the stable softmax is 0 everywhere, and torch.softmax 1/65,536
- [whole-batch] with the maximum and the sum of the whole batch the rows of [[1, 2], [3, 4]] sum to 0.119 and 0.881
- [far-row] with the maximum of the whole batch a row 1000 below it is 0 / 0 = nan
- [reduce-max] torch.reduce_max, which the source calls, does not exist
## Try next
`--tied 1000`: a thousand classes share the largest logit. Now the sum overflows before any exponential does, so the limits
fall by ln(1000) = 6.9: float32 to 81.82, bfloat16 to 81.5, float16 to 4.18. Between the two limits there is not even a nan to
warn you: number / inf makes all probabilities 0.
refutes: limit-f32, limit-bf16, limit-f16
`--classes 65000`: the sum of so many ones is in the range of float16, and both softmaxes give 1/65,000.
refutes: many-classes
## Source
EffectivePyTorch, chapter "Numerical stability in PyTorch", https://github.com/vahidk/EffectivePyTorch. Ours: the limits by
dtype, ties, many classes and batches.
"""

from functools import partial

import torch

from tuilab import Lab

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def naive(logits):  # (..., classes)
    exps = logits.exp()
    return exps / exps.sum(-1, keepdim=True)


def stable(logits):
    exps = (logits - logits.max(-1, keepdim=True).values).exp()
    return exps / exps.sum(-1, keepdim=True)


def as_in_the_source(logits):  # one maximum and one sum for everything
    exps = (logits - logits.max()).exp()
    return exps / exps.sum()


def limit(lab, softmax, tied, dtype, device):
    """The largest top logit of the dtype for which the probabilities still sum to about 1."""

    def works(top):
        logits = torch.tensor([top] * tied + [0.0]).to(device, dtype)
        return abs(softmax(logits).double().sum() - 1) < 0.1  # nan is not

    return torch.tensor(lab.limit(works, 0.0, 1000.0), dtype=dtype)


def run(
    lab: Lab,
    tied: int = 1,  # classes that share the largest logit, 1..10000
    classes: int = 65_536,  # equal float16 logits, 1..1000000
) -> None:
    device = lab.device()

    lab.axes("total", x="largest logit", y="sum of the exponentials", log="y")
    lab.axes("probability", x="largest logit", y="probability of the largest logit")
    for top in lab.sweep(range(101), "raising one logit"):
        for name, dtype in DTYPES.items():
            logits = torch.tensor([top] * tied + [0.0]).to(device, dtype)
            lab.log(top, arm=name, total=logits.exp().sum().item(), probability=naive(logits)[0].item())
        half = torch.tensor([top] * tied + [0.0]).to(device, torch.float16)  # the dtype with the least room
        total = (half - half.max()).exp().sum()
        lab.log(top, arm="stable float16", total=total.item(), probability=stable(half)[0].item())

    pair = torch.tensor([1000.0, 0.0], device=device)
    lab.claim("naive", naive(pair), equals=[float("nan"), 0])
    lab.claim("stable", stable(pair), equals=[1, 0])

    lab.stage("looking for the limits")
    limits = {name: limit(lab, naive, tied, dtype, device) for name, dtype in DTYPES.items()}
    crowded = {f"{name}, 1000 tied": limit(lab, naive, 1000, dtype, device) for name, dtype in DTYPES.items()}
    lab.bars("largest logit that works", {**limits, **crowded})
    lab.claim("limit-f32", limits["float32"], equals=88.7228, tolerance=0.0001)
    lab.claim("limit-bf16", limits["bfloat16"], equals=88.5)
    lab.claim("limit-f16", limits["float16"], equals=11.0859, tolerance=0.0001, answers=limits["float16"].floor())

    lab.stage("batches")
    batch = (100 * torch.randn(64, 1000)).to(device)  # (rows, classes)
    gap = (stable(batch) - batch.softmax(-1)).abs().max()
    lab.claim("agrees", gap, at_most=1e-6)
    equal = torch.zeros(classes, device=device, dtype=torch.float16)
    highest = [softmax(equal).max().item() for softmax in (stable, partial(torch.softmax, dim=-1))]
    lab.claim("many-classes", highest, equals=[0, 1 / 65_536])
    of_rows = as_in_the_source(torch.tensor([[1.0, 2.0], [3.0, 4.0]], device=device)).sum(-1)
    lab.claim("whole-batch", of_rows, equals=[0.119, 0.881], tolerance=0.001)
    far_apart = torch.tensor([[0.0, 0.0], [1000.0, 0.0]], device=device)
    lab.claim("far-row", naive(far_apart - far_apart.max())[0], equals=[float("nan"), float("nan")])
    lab.claim("reduce-max", not hasattr(torch, "reduce_max"))
