"""Eight bits hold a tensor only together with its scale.

e4m3 has 4 bits of exponent and 3 of mantissa: it ends at 448, and from 1 up to 2 there are 8 numbers. e5m2 has 5 and 2: 57344,
and 4 numbers. e4m3 gives up inf for more range. A gradient of 1e-6 is 0 in both. So each tensor is multiplied by a scale before
the conversion, which moves its largest element to the largest number, and a product of matrices is divided by both scales.

A scale moves a tensor, it does not make it narrower. One row that is far larger takes the range from all others, and a scale
for each row gives it back. From its largest number down to 0 e4m3 has 5.7 decades, e5m2 9.9: gradients that span eight lose
their small ones in e4m3 only. So e4m3 is for forward, and e5m2 for gradients.
What is too large for e4m3 becomes 448, and so does inf: who looks for inf to find an overflow finds nothing. Until the spring
of 2026 PyTorch made nan of it. With a scale nothing is too large.
These are formats to store and to multiply. Nothing is added in them: a product of matrices adds in float32.
## Predict
4096 gradients, normal numbers times 1e-6, are converted to e4m3 without a scale. How many become 0?
## Look for
- [e4m3] the 256 patterns of e4m3 are 254 numbers up to 448 and 2 nan, and there is no inf
- [e5m2] those of e5m2 are 248 numbers up to 57344, 6 nan, inf and -inf
- [counting] 17 is 16 in e4m3, and 9 is 8 in e5m2
- [too-large] in e4m3 neither 1000 nor inf is inf, in e5m2 1000 is 1024 and 100,000 is inf
- [unscaled] of 4096 normal numbers times 1e-6 all are 0 in both
- [scaled] with the scale of the tensor none is 0, and they are off by 2.6 % in e4m3 and 5.2 % in e5m2
- [spread] of 4096 numbers over 8 decades a fifth or more are 0 in e4m3, with the scale of the tensor
- [backward] in e5m2 none of them is 0
- [outlier] one row of 64 that is 100,000 times larger makes a third of the others 0 in e4m3, or more
- [per-row] with a scale for each row they are off by 2.6 % again
- [no-sum] neither the sum of two e4m3 tensors nor that of one is implemented
- [wide] 4096 products of 0.001 and 0.001, from e4m3 tensors and their scales, add up to 0.004096 in float32
## Try next
`--decades 2`: the numbers lie closer together, and e4m3 has room for them. refutes: spread
`--outlier 1`: rows alike need no scales of their own. refutes: outlier
## Source
Ours. The two formats are those of "FP8 Formats for Deep Learning" (https://arxiv.org/abs/2209.05433); since when an overflow is
448: https://github.com/pytorch/pytorch/pull/178817.
"""

import math

import torch
import torch.nn.functional as F

from tuilab import Lab

DTYPES = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}


def there_and_back(x, dtype, scale=1.0):
    return (x * scale).to(dtype).float() / scale


def scale_of(x, dtype, **of):
    return torch.finfo(dtype).max / x.abs().amax(**of)  # moves the largest element to the largest number


def error(back, x):
    return ((back - x).norm() / x.norm()).item()


def zeros(back):
    return (back == 0).float().mean().item()


def product(x, dtype):  # (n, k) -> (n, n)
    scale = scale_of(x, dtype)
    kept, whole = (x * scale).to(dtype), F.ScalingType.TensorWise
    return F.scaled_mm(kept, kept.t(), 1 / scale, whole, 1 / scale, whole, output_dtype=torch.float32)


def census(dtype):
    """How many of the patterns are finite, nan and inf, and the largest number."""
    every = torch.arange(256, dtype=torch.uint8).view(dtype).float()
    kinds = (every.isfinite(), every.isnan(), every.isinf())
    return [*(kind.sum().item() for kind in kinds), every[kinds[0]].max().item()]


def run(
    lab: Lab,
    decades: float = 8.0,  # over which gradients are spread
    outlier: float = 100_000.0,  # how much larger one row is
) -> None:
    device = lab.device()
    lab.axes("error", x="number", y="largest relative error", log="xy")
    for power in lab.sweep(range(-20, 19), "powers of two"):
        for name, dtype in {**DTYPES, "bfloat16": torch.bfloat16}.items():
            x = 2.0**power * torch.linspace(1, 1.999, 101, device=device)
            lab.log(2.0**power, arm=name, error=((there_and_back(x, dtype) - x) / x).abs().max())

    lab.stage("the formats")
    e4m3, e5m2 = DTYPES.values()
    lab.claim("e4m3", census(e4m3), equals=[254, 2, 0, 448])
    lab.claim("e5m2", census(e5m2), equals=[248, 6, 2, 57_344])
    few = torch.tensor([17.0, 9.0, 1000.0, math.inf, 100_000.0], device=device)
    in_e4m3, in_e5m2 = there_and_back(few, e4m3).tolist(), there_and_back(few, e5m2).tolist()
    lab.claim("counting", [in_e4m3[0], in_e5m2[1]], equals=[16, 8])
    lab.claim("too-large", [math.inf in in_e4m3[2:4], *in_e5m2[2::2]], equals=[False, 1024, math.inf])
    lab.stage("scales")
    x = 1e-6 * torch.randn(4096, device=device)
    unscaled = [zeros(there_and_back(x, dtype)) for dtype in DTYPES.values()]
    lab.claim("unscaled", unscaled, equals=[1, 1], answers=len(x) * unscaled[0])
    backs = [there_and_back(x, dtype, scale_of(x, dtype)) for dtype in DTYPES.values()]
    lab.claim("scaled", [*map(zeros, backs), *(error(back, x) for back in backs)], equals=[0, 0, 0.026, 0.052], tolerance=0.002)
    x = torch.randn(4096, device=device).sign() * 10 ** (-decades * torch.rand(4096, device=device))
    spread = [zeros(there_and_back(x, dtype, scale_of(x, dtype))) for dtype in DTYPES.values()]
    lab.claim("spread", spread[0], at_least=0.2)
    lab.claim("backward", spread[1], equals=0)
    x = torch.randn(64, 512, device=device)
    x[0] *= outlier
    of_tensor = there_and_back(x, e4m3, scale_of(x, e4m3))[1:]
    of_rows = there_and_back(x, e4m3, scale_of(x, e4m3, dim=1, keepdim=True))[1:]
    lost = {"a scale": zeros(of_tensor), "a scale for each row": zeros(of_rows)}
    lab.bars("0 in e4m3, of the rows that are not larger", lost)
    lab.claim("outlier", zeros(of_tensor), at_least=1 / 3)
    lab.claim("per-row", 100 * error(of_rows, x[1:]), equals=2.6, tolerance=0.2, unit="%")
    lab.stage("sums and products")
    ones = torch.ones(16, device=device).to(e4m3)
    raised = [lab.raises(torch.add, ones, ones).partition(":")[0], lab.raises(torch.sum, ones).partition(":")[0]]
    lab.claim("no-sum", raised, equals=["NotImplementedError"] * 2)
    x = torch.full((16, 4096), 0.001, device=device)
    refusal = lab.raises(product, x, e4m3)  # of an older GPU
    result = math.nan if refusal else product(x, e4m3)[0, 0].item()
    lab.claim("wide", result, equals=0.004096, tolerance=1e-8, lacks=refusal and f"products of eight bits: {refusal[:200]}")
