"""Subtract the largest logit before the exponential.

softmax divides exp(logit) by the sum of all exp(logit). The exponential leaves the range of the dtype at the logarithm of
its largest number: ln(3.4e38) = 88.72 for float32 and ln(65504) = 11.09 for float16. Then inf / inf is nan. A logit of 12 is
nothing unusual.

Adding a constant to all logits changes nothing on paper, so choose the constant that makes the largest logit 0: every
exponential is at most 1, their sum is at least 1, and what underflows to 0 would have been lost beside a 1 anyway. This is
what `torch.softmax` does. bfloat16 has the range of float32, but its logits near 88 come in steps of 0.5, so its limit is
the point from which they round up to 89.

The largest logit is one *of each row*. The source takes the maximum and the sum over all elements, which is right for one
vector and wrong for a batch, and it calls `torch.reduce_max`, which is a name of TensorFlow.

The chart shows the sum of the exponentials of [step, 0]. A line that stops has become inf, and float32 lies under bfloat16;
the stable sum is 1 for ever.

## Predict
What is the largest whole logit for which a naive softmax still works in float16?

## Look for
- the naive softmax of [1000, 0] is [nan, 0]
- the stable softmax of [1000, 0] is [1, 0]
- in float32 the naive softmax works up to a logit of 88.72
- in bfloat16 the naive softmax works up to a logit of 88.75
- in float16 the naive softmax works up to a logit of 11.09
- the stable softmax agrees with torch.softmax to 1e-6
- with the maximum and the sum of the whole batch the rows of [[1, 2], [3, 4]] sum to 0.119 and 0.881
- with the maximum of the whole batch a row 1000 below it is 0 / 0 = nan
- torch.reduce_max, which the source calls, does not exist

## Try next
`--tied 1000`: a thousand classes share the largest logit. Now the *sum* overflows before any exponential does, so the limits
fall by ln(1000) = 6.9 (float32 81.81, float16 4.18) and the three claims about them are REFUTED. Between the two limits there
is not even a nan to warn you: number / inf makes all probabilities 0.

## Source
000 EffectivePyTorch by vahidk, https://github.com/vahidk/EffectivePyTorch, the chapter on numerical stability: [1000, 0] and
the shift by the maximum. The limits by dtype, ties and batches are ours.
"""

from typing import Literal

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


def limit(softmax, tied, dtype, device):
    """The largest top logit for which the probabilities still sum to about 1, found by halving."""
    low, high = 0.0, 1000.0
    for _ in range(30):
        middle = (low + high) / 2
        logits = torch.tensor([middle] * tied + [0.0]).to(device, dtype)
        works = abs(softmax(logits).double().sum() - 1) < 0.1  # nan is not
        low, high = (middle, high) if works else (low, middle)
    return low


def run(
    lab: Lab,
    tied: int = 1,  # classes that share the largest logit, 1..10000
    device: Literal["auto", "cpu", "cuda"] = "auto",  # where the tensors live
) -> None:
    device = lab.device(device)

    lab.stage("raising one logit")
    for top in range(101):
        for name, dtype in DTYPES.items():
            logits = torch.tensor([top] * tied + [0.0]).to(device, dtype)
            lab.log(top, arm=name, total=logits.exp().sum().item(), probability=naive(logits)[0].item())
        shifted = logits - logits.max()  # of float16, which has the least room
        lab.log(top, arm="stable float16", total=shifted.exp().sum().item(), probability=stable(logits)[0].item())

    pair = torch.tensor([1000.0, 0.0], device=device)
    lab.claim("the naive softmax of [1000, 0] is [nan, 0]", naive(pair), equals=[float("nan"), 0])
    lab.claim("the stable softmax of [1000, 0] is [1, 0]", stable(pair), equals=[1, 0])

    lab.stage("looking for the limits")
    limits = {name: limit(naive, tied, dtype, device) for name, dtype in DTYPES.items()}
    lab.claim("in float32 the naive softmax works up to a logit of 88.72", limits["float32"], equals=88.72, tolerance=0.01)
    lab.claim("in bfloat16 the naive softmax works up to a logit of 88.75", limits["bfloat16"], equals=88.75, tolerance=0.01)
    lab.claim("in float16 the naive softmax works up to a logit of 11.09", limits["float16"], equals=11.09, tolerance=0.01)

    lab.stage("batches")
    torch.manual_seed(0)
    batch = (100 * torch.randn(64, 1000)).to(device)  # (rows, classes)
    gap = (stable(batch) - batch.softmax(-1)).abs().max()
    lab.claim("the stable softmax agrees with torch.softmax to 1e-6", gap, at_most=1e-6)
    lab.claim(
        "with the maximum and the sum of the whole batch the rows of [[1, 2], [3, 4]] sum to 0.119 and 0.881",
        as_in_the_source(torch.tensor([[1.0, 2.0], [3.0, 4.0]], device=device)).sum(-1),
        equals=[0.119, 0.881],
        tolerance=0.001,
    )
    far_apart = torch.tensor([[0.0, 0.0], [1000.0, 0.0]], device=device)
    lab.claim(
        "with the maximum of the whole batch a row 1000 below it is 0 / 0 = nan",
        naive(far_apart - far_apart.max())[0],
        equals=[float("nan"), float("nan")],
    )
    lab.claim("torch.reduce_max, which the source calls, does not exist", not hasattr(torch, "reduce_max"))
