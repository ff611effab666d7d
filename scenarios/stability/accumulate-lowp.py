"""Multiply in 16 bits, add in 32: a long sum in float16 stops growing.

A sum is rounded to a number of its dtype after every addition. Those lie further apart the larger they are. float16 has a step
of 0.03125 between 32 and 64, bfloat16 already between 4 and 8. A term smaller than half a step is rounded away, all of it, and
so is the next one: the sum stands still. Nothing is inf or nan, and no warning comes.

`torch.sum` does not do that. It reads 16 bits, adds in float32, and rounds once at the end; so does a product of matrices, on
Tensor Cores in hardware: float16 times float16 goes exactly into float32, and is added there. A GPU may split a long product of
float16, and add the parts in float16, unless `torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False`: the
default is True. The wide sum has more range, too.
300 * 300 is 90,000 and inf in float16, but in the middle of a product of matrices it is an ordinary number. A loop of your own
has a wide sum only if you give it one, and an optimizer is such a loop: its weight is the sum, its update the term. That is why
mixed precision keeps weights in float32, and casts them for each forward.

The end is rounded all the same: a sum of 70,000 ones has no float16, its mean has one. float32 has the same limit further
out: a counter that adds 1 stands still at 16,777,216.
## Predict
At which number does 0.01 + 0.01 + ..., ten thousand times in float16, stand still?
## Look for
- [float16] 10,000 times 0.01, one by one, is 32 in float16, from the 2798th addition on
- [bfloat16] in bfloat16 it is 4, from the 350th on
- [float32] in float32 it is 100.003
- [sum] torch.sum of the same 10,000 numbers is 100 in float16 and in bfloat16
- [wide] a float32 total of the float16 terms is 100.021: what is left is that float16 has 0.010002 and no 0.01
- [update] 1000 updates of 0.0001 leave a weight of 1 at 1, in float16 and in bfloat16
- [master] a float32 weight with the same updates is 0.9 to 0.0001
- [ones] the product of 4096 float16 ones with 4096 ones is 4096, added one by one in float16 it is 2048
- [cancel] in float16 300 * 300 - 300 * 300 is 0 as a product of matrices, and nan one by one
- [error] 4096 random products, added one by one in float16, are 20 times as wrong as a product of matrices, or more
- [mean] the sum of 70,000 float16 ones is inf, and the mean 1
## Try next
`--carry`: what an addition rounds away is kept in a second number, and added with the next term (Kahan). float16 reaches 100,
bfloat16 99, and both weights move: 32 bits again, in two halves. refutes: float16, bfloat16, float32, update
`--update 0.001`: larger than half a step of float16 below 1, so its weight moves, to 0.022 and not 0. That of bfloat16 stays
where it is. refutes: update, master
## Source
- EffectivePyTorch, chapter "Faster training with automatic mixed precision", https://github.com/vahidk/EffectivePyTorch: 16
  bits are too coarse to accumulate in.
- A note on torch.cuda.amp (in Chinese), section "amp.autocast",
  https://blog.csdn.net/weixin_37804469/article/details/129733868: it says the same.
- "Faster and Memory-Efficient PyTorch models using AMP and Tensor Cores", section on Tensor Cores,
  https://towardsdatascience.com/faster-and-memory-efficient-pytorch-models-using-amp-50fd3c8dd7fe: they multiply float16 and
  add float32.
- Ours: the numbers, the weight, the carry.
"""

import math

import torch

from tuilab import Lab

DTYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32}


def add(start, term, times, carry=False):
    """All totals on the way; with carry, what was rounded away comes back with the next term."""
    total, lost, totals = start, torch.zeros_like(term), []
    for _ in range(times):
        wanted = term - lost if carry else term
        before, total = total, total + wanted
        lost = (total - before) - wanted
        totals.append(total)
    return torch.stack(totals)  # (times,)


def one_by_one(a, b):  # (rows, n), (n, columns)
    total = a.new_zeros(len(a), b.shape[1])
    for i in range(len(b)):
        total = total + a[:, i : i + 1] * b[i : i + 1]  # rounded to the dtype of a, twice
    return total


def error(product, exact):
    return ((product.double() - exact).norm() / exact.norm()).item()


def run(
    lab: Lab,
    update: float = 0.0001,  # what a weight of 1 loses in a step
    carry: bool = False,  # keep what an addition rounds away
) -> None:
    device = lab.device()
    lab.axes("total", x="additions of 0.01", y="total; exactly a hundredth of x", log="")
    found = {}
    for name in lab.sweep(DTYPES, "adding 0.01 ten thousand times"):
        term = torch.tensor(0.01, device=device, dtype=DTYPES[name])
        found[name] = add(torch.zeros_like(term), term, 10_000, carry).tolist()
        for i in range(49, 10_000, 50):
            lab.log(i + 1, arm=name, total=found[name][i])
    ends = {name: [totals[-1], 1 + totals.index(totals[-1])] for name, totals in found.items()}
    lab.claim("float16", ends["float16"], equals=[32, 2798], answers=ends["float16"][0])
    lab.claim("bfloat16", ends["bfloat16"], equals=[4, 350])
    lab.claim("float32", ends["float32"][0], equals=100.003, tolerance=0.0001)
    terms = {name: torch.full((10_000,), 0.01, device=device, dtype=dtype) for name, dtype in DTYPES.items()}
    lab.claim("sum", [terms[name].sum().item() for name in ("float16", "bfloat16")], equals=[100, 100])
    wide = add(torch.zeros((), device=device), terms["float16"][0], 10_000)[-1].item()
    lab.claim("wide", wide, equals=100.021, tolerance=0.001)

    lab.stage("a thousand small updates")
    weights = {}
    for name, dtype in DTYPES.items():
        one = torch.ones((), device=device, dtype=dtype)
        weights[name] = add(one, -update * one, 1000, carry)[-1].item()
    lab.bars("weight of 1 after 1000 updates", {"on paper": 1 - 1000 * update, **weights})
    lab.claim("update", [weights["float16"], weights["bfloat16"]], equals=[1, 1])
    lab.claim("master", weights["float32"], equals=0.9, tolerance=0.0001)

    lab.stage("products of matrices")
    ones = torch.ones(1, 4096, device=device, dtype=torch.float16)
    lab.claim("ones", [(ones @ ones.T).item(), one_by_one(ones, ones.T).item()], equals=[4096, 2048])
    a, b = 300 * ones[:, :2], torch.tensor([[300.0], [-300.0]]).to(ones)
    lab.claim("cancel", [(a @ b).item(), one_by_one(a, b).item()], equals=[0, math.nan])
    a, b = (torch.randn(shape).to(ones) for shape in ((64, 4096), (4096, 64)))
    exact = a.double() @ b.double()
    lab.claim("error", error(one_by_one(a, b), exact) / error(a @ b, exact), at_least=20)
    many = torch.ones(70_000, device=device, dtype=torch.float16)
    lab.claim("mean", [many.sum().item(), many.mean().item()], equals=[math.inf, 1])
