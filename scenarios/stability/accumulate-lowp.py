"""Multiply in 16 bits, add in 32: a long sum in float16 stops growing.

A sum is rounded to a number of its dtype after every addition. The step from one number to the
next doubles at each power of two. In float16 it is 1 between 1024 and 2048, and 1/2 between 512
and 1024. In bfloat16 the steps are eight times as long. A term smaller than half a step is
rounded away completely, and so are all terms after it: the sum stops growing. Nothing is inf or
nan, and no warning appears.

`torch.sum` does not add in 16 bits. It reads 16 bits, adds in float32, and rounds once at the
end. A matrix product does the same, on Tensor Cores in hardware: the product of two float16
numbers fits into float32, and is added there. (Only `allow_fp16_accumulation = True` makes a GPU
add it in float16.) A wide sum also has more range. In float16
300 * 300 is inf, but in the middle of a matrix product it is an ordinary number.

A loop of your own has a wide sum only if you give it one. An optimizer is such a loop: its weight
is the sum, and its update is the term. That is why mixed precision keeps weights in float32, and
casts them for each forward.

Three limits remain. A GPU may split a long product, and add the parts in 16 bits. The switches
`allow_fp16_reduced_precision_reduction` and `allow_bf16_reduced_precision_reduction` of
`torch.backends.cuda.matmul` allow it by default. The end is rounded in any case: a sum of 70,000
ones is too large for float16, though their mean is not. And float32 has the same limit further
out: a counter that adds 1 stops at 16,777,216.

In practice: sum with `torch.sum`, or give a loop a total with `dtype=torch.float32`. Keep the
weights in float32 and use `torch.autocast` instead of `model.half()`. If a long float16 product
gives inf or nan on a GPU, set
`torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False`.
## Predict
At which number does 0.01 + 0.01 + ..., ten thousand times in float16, stop growing?
## Look for
- [float16] 10,000 times 0.01, added term by term in float16, is 32, from the 2798th addition on
- [bfloat16] 10,000 times 0.01, added term by term in bfloat16, is 4, from the 350th addition on
- [float32] 10,000 times 0.01, added term by term in float32, is 100.003
- [sum] torch.sum of 10,000 times 0.01 is 100 in float16 and in bfloat16
- [wide] a float32 total of the float16 terms is 100.021, because float16 has 0.010002 and no 0.01
- [update] 1000 updates of 0.0001 leave a weight of 1 at 1, in float16 and in bfloat16
- [master] a float32 weight of 1 with 1000 updates of 0.0001 is 0.9 to 0.0001
- [ones] 4096 products of float16 ones are 4096 as a matrix product, and 2048 if they are added term
  by term
- [cancel] in float16 300 * 300 - 300 * 300 is 0 as a matrix product, and nan term by term
- [error] 4096 random products, added term by term in float16, are at least 20 times as wrong as a
  matrix product
- [mean] the sum of 70,000 float16 ones is inf, and their mean is 1
- [switches] by default allow_fp16_reduced_precision_reduction and
  allow_bf16_reduced_precision_reduction are True, and allow_fp16_accumulation is False
- [gpu-off] on a GPU with allow_fp16_reduced_precision_reduction=False, a product is 0 whose halves
  are 131,072 and -131,072
## Try next
`--carry`: what an addition rounds away is kept in a second number, and added with the next term
(Kahan). The sums then reach 100 in float16 and 99 in bfloat16, and both weights move.
refutes: float16, bfloat16, float32, update
`--update 0.001`: the update is larger than half a step of float16 below 1. The weight moves, to
0.022 and not to 0. The bfloat16 weight does not move. refutes: update, master
## Source
- EffectivePyTorch, chapter "Faster training with automatic mixed precision",
  https://github.com/vahidk/EffectivePyTorch: 16 bits are too coarse to accumulate in.
- A note on torch.cuda.amp (in Chinese), section "amp.autocast",
  https://blog.csdn.net/weixin_37804469/article/details/129733868: it says the same.
- "Faster and Memory-Efficient PyTorch models using AMP and Tensor Cores", section on Tensor Cores,
  https://towardsdatascience.com/faster-and-memory-efficient-pytorch-models-using-amp-50fd3c8dd7fe:
  they multiply float16, and add in float16 or float32.
- Ours: the numbers, the weight, the carry and the switches.
"""

import math

import torch

from tuilab import Lab

DTYPES = {
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float32": torch.float32,
}
SWITCHES = torch.backends.cuda.matmul
TIMES = 10_000  # additions of 0.01


def add_repeatedly(start, term, times, carry=False):
    """Return all totals. With carry, what was rounded away is added with the next term."""
    total = start
    lost = torch.zeros_like(term)
    totals = []
    for _ in range(times):
        wanted = term - lost if carry else term
        next_total = total + wanted
        lost = (next_total - total) - wanted
        total = next_total
        totals.append(total)
    return torch.stack(totals)  # (times,)


def multiply_one_by_one(a, b):  # (rows, n), (n, columns)
    total = a.new_zeros(len(a), b.shape[1])
    for i in range(len(b)):
        total = total + a[:, i : i + 1] * b[i : i + 1]  # rounded to the dtype of a, twice
    return total


def relative_error(product, exact):
    return ((product.double() - exact).norm() / exact.norm()).item()


def multiply_with_switch(a, b, allowed):
    """Multiply while a GPU may, or may not, add the parts of a product in float16."""
    before = SWITCHES.allow_fp16_reduced_precision_reduction
    SWITCHES.allow_fp16_reduced_precision_reduction = allowed
    try:
        return a @ b
    finally:
        SWITCHES.allow_fp16_reduced_precision_reduction = before


def add_hundredths(lab, device, carry):
    """Add 0.01 in each dtype. Return the last total, and the last addition that changed it."""
    lab.axes("total", x="additions of 0.01", y="total; exactly a hundredth of x", log="")
    ends = {}
    for name in lab.sweep(DTYPES, "adding 0.01 ten thousand times"):
        term = torch.tensor(0.01, device=device, dtype=DTYPES[name])
        zero = torch.zeros_like(term)
        totals = add_repeatedly(zero, term, TIMES, carry).tolist()
        for i in range(49, TIMES, 50):
            lab.log(i + 1, arm=name, total=totals[i])
        last = totals[-1]
        ends[name] = [last, 1 + totals.index(last)]
    return ends


def update_weights(device, update, carry):
    """Return a weight of 1 after 1000 updates, by dtype."""
    weights = {}
    for name, dtype in DTYPES.items():
        weight = torch.ones((), device=device, dtype=dtype)
        step = -update * weight
        weights[name] = add_repeatedly(weight, step, 1000, carry)[-1].item()
    return weights


def claim_products(lab, device):
    lab.stage("products of matrices")
    ones = torch.ones(1, 4096, device=device, dtype=torch.float16)
    totals = [(ones @ ones.T).item(), multiply_one_by_one(ones, ones.T).item()]
    lab.claim("ones", totals, equals=[4096, 2048])

    a = 300 * ones[:, :2]  # (1, 2)
    b = torch.tensor([[300.0], [-300.0]]).to(ones)  # (2, 1)
    totals = [(a @ b).item(), multiply_one_by_one(a, b).item()]
    lab.claim("cancel", totals, equals=[0, math.nan])

    a = torch.randn(64, 4096).to(ones)
    b = torch.randn(4096, 64).to(ones)
    exact = a.double() @ b.double()
    product_error = relative_error(a @ b, exact)
    loop_error = relative_error(multiply_one_by_one(a, b), exact)
    lab.claim("error", loop_error / product_error, at_least=20)
    many = torch.ones(70_000, device=device, dtype=torch.float16)
    lab.claim("mean", [many.sum().item(), many.mean().item()], equals=[math.inf, 1])


def claim_switches(lab, device):
    lab.stage("parts of a product")
    switches = [
        SWITCHES.allow_fp16_reduced_precision_reduction,
        SWITCHES.allow_bf16_reduced_precision_reduction,
        SWITCHES.allow_fp16_accumulation,
    ]
    lab.claim("switches", switches, equals=[True, True, False])
    if device.type != "cuda":
        lab.claim("gpu-off", lacks="a CUDA device")
        return
    a = torch.ones(64, 65_536, device=device, dtype=torch.float16)
    b = torch.full((65_536, 64), 4.0, device=device, dtype=torch.float16)
    b[32_768:] = -4
    allowed = multiply_with_switch(a, b, True)  # (64, 64)
    refused = multiply_with_switch(a, b, False)
    rows = [
        ("True, the default", allowed[0, 0].item()),
        ("False", refused[0, 0].item()),
    ]
    head = ("allow_fp16_reduced_precision_reduction", "131,072 - 131,072")
    lab.table("the halves of a product", rows, head=head)
    lab.claim("gpu-off", [refused.min(), refused.max()], equals=[0, 0])


def run(
    lab: Lab,
    update: float = 0.0001,  # what a weight of 1 loses in a step
    carry: bool = False,  # keep what an addition rounds away
) -> None:
    device = lab.device()
    ends = add_hundredths(lab, device, carry)
    lab.claim("float16", ends["float16"], equals=[32, 2798], answers=ends["float16"][0])
    lab.claim("bfloat16", ends["bfloat16"], equals=[4, 350])
    lab.claim("float32", ends["float32"][0], equals=100.003, tolerance=0.0001)

    half_terms = torch.full((TIMES,), 0.01, device=device, dtype=torch.float16)
    brain_terms = torch.full((TIMES,), 0.01, device=device, dtype=torch.bfloat16)
    lab.claim("sum", [half_terms.sum().item(), brain_terms.sum().item()], equals=[100, 100])
    wide_zero = torch.zeros((), device=device)  # float32
    wide_totals = add_repeatedly(wide_zero, half_terms[0], TIMES)
    lab.claim("wide", wide_totals[-1].item(), equals=100.021, tolerance=0.001)

    lab.stage("a thousand small updates")
    weights = update_weights(device, update, carry)
    on_paper = {"on paper": 1 - 1000 * update}
    lab.bars("weight of 1 after 1000 updates", {**on_paper, **weights})
    lab.claim("update", [weights["float16"], weights["bfloat16"]], equals=[1, 1])
    lab.claim("master", weights["float32"], equals=0.9, tolerance=0.0001)

    claim_products(lab, device)
    claim_switches(lab, device)
