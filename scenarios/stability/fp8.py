"""Eight bits hold a tensor only together with its scale.

Eight-bit numbers halve the bytes of bfloat16, but one format has little range and the other few digits. e4m3
has 4 bits of exponent and 3 of mantissa: it ends at 448, and there are 8 numbers from 1 up to 2. e5m2 has 5
and 2: it ends at 57344, with 4 numbers from 1 up to 2. e4m3 has no inf, to gain range. A gradient of 1e-6 is
0 in both formats. So each tensor is multiplied by a scale before the conversion. The scale moves its largest
element to the largest number. A product of matrices is divided by both scales.

A scale moves a tensor, but does not make it narrower. A row that is far larger than the others takes the
range from them, and a scale for each row gives it back. From its largest number down to 0, e4m3 has 5.7
decades and e5m2 has 9.9. Gradients that span eight decades lose their small values in e4m3 only. So e4m3 is
for the forward pass, and e5m2 for gradients.

In e4m3 a value that is too large becomes 448, and so does inf. A check for inf finds no overflow there. Until
the spring of 2026 PyTorch made nan of it. With a scale nothing is too large.

Neither format adds: they store and multiply. How a product of matrices adds depends on the device. On a CPU
it adds in float32. The FP8 Tensor Cores of Hopper and Ada keep about 14 bits of a running sum, and move it to
float32 only after a number of products. `use_fast_accum=True` leaves that out, which is faster and less
exact. Equal products do not show it, products of mixed sizes do. The loss is imitated here by hand. On a GPU
the table has what the GPU itself does, without a verdict.

In practice: take a library that keeps the scales (torchao, Transformer Engine), use e4m3 for the forward pass
and e5m2 for gradients, and leave `use_fast_accum` off for gradients.
## Predict
4096 gradients, normal numbers times 1e-6, are converted to e4m3 without a scale. How many become 0?
## Look for
- [e4m3] the 256 patterns of e4m3 are 254 numbers up to 448 and 2 nan, and there is no inf
- [e5m2] the 256 patterns of e5m2 are 248 numbers up to 57344, 6 nan, inf and -inf
- [counting] 17 is 16 in e4m3, and 9 is 8 in e5m2
- [too-large] in e4m3 neither 1000 nor inf is inf, in e5m2 1000 is 1024 and 100,000 is inf
- [unscaled] of 4096 normal numbers times 1e-6 all are 0 in both formats
- [scaled] with the scale of the tensor none is 0, and they are off by 2.6 % in e4m3 and 5.2 % in e5m2
- [spread] of 4096 numbers over 8 decades a fifth or more are 0 in e4m3, with the scale of the tensor
- [backward] of the same numbers none is 0 in e5m2
- [outlier] one row of 64 that is 100,000 times larger makes a third of the others 0 in e4m3, or more
- [per-row] with a scale for each row the other rows are off by 2.6 % again
- [no-sum] neither the sum of two e4m3 tensors nor that of one is implemented
- [wide] 4096 products of 0.001 and 0.001, from e4m3 tensors and their scales, add up to 0.004096
- [mixed] on a CPU sums of 4096 products of mixed sizes are those of float64 to 1e-6
- [few-bits] if 14 bits of the sum are kept after each 32 products, these sums are off by 0.1 % or more
## Try next
`--decades 2`: the numbers are closer together, and e4m3 has room for them. refutes: spread
`--outlier 1`: rows of one size need no scales of their own. refutes: outlier
`--kept 24`: the running sum keeps all bits of float32. refutes: few-bits
## Source
Ours. The two formats are those of "FP8 Formats for Deep Learning", https://arxiv.org/abs/2209.05433. An overflow is 448 since
https://github.com/pytorch/pytorch/pull/178817. The 14 bits of Hopper: https://github.com/deepseek-ai/DeepGEMM/issues/37 and
https://github.com/triton-lang/triton/issues/2300.
"""

import math

import torch
import torch.nn.functional as F

from tuilab import Lab

DTYPES = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}
GROUP = 32  # products that are added before bits of the sum are dropped


def there_and_back(x, dtype, scale=1.0):
    return (x * scale).to(dtype).float() / scale


def scale_of(x, dtype, **of):
    return torch.finfo(dtype).max / x.abs().amax(**of)  # moves the largest element to the largest number


def error(result, exact):
    return ((result - exact).norm() / exact.norm()).item()


def zeros(back):
    return (back == 0).float().mean().item()


def product(x, dtype, fast=False):  # (n, k) -> (n, n)
    scale = scale_of(x, dtype)
    kept = (x * scale).to(dtype)
    whole = F.ScalingType.TensorWise
    back = 1 / scale
    return F.scaled_mm(kept, kept.t(), back, whole, back, whole, output_dtype=torch.float32, use_fast_accum=fast)


def exact_product(x, dtype):  # (n, k) -> (n, n), float64
    """Multiply the same eight-bit numbers in float64."""
    kept = there_and_back(x.double(), dtype, scale_of(x, dtype).double()).double()
    return kept @ kept.t()


def product_of_few_bits(x, dtype, bits):  # (n, k) -> (n, n)
    """Add groups of products in float32, and keep so many bits of the sum after each group."""
    dropped = 24 - bits  # float32 has 23 bits, and a leading 1
    kept = there_and_back(x, dtype, scale_of(x, dtype))
    total = x.new_zeros(len(x), len(x))
    for part in kept.split(GROUP, dim=1):  # (n, 32)
        total = total + part @ part.t()
        total = (total.view(torch.int32) & -(1 << dropped)).view(torch.float32)
    return total


def census(dtype):
    """Return how many patterns are finite, nan and inf, and the largest number."""
    every = torch.arange(256, dtype=torch.uint8).view(dtype).float()
    finite = every.isfinite()
    counts = [finite.sum().item(), every.isnan().sum().item(), every.isinf().sum().item()]
    return [*counts, every[finite].max().item()]


def run(
    lab: Lab,
    decades: float = 8.0,  # over which gradients are spread
    outlier: float = 100_000.0,  # how much larger one row is
    kept: int = 14,  # bits of a running sum, 2..24
) -> None:
    device = lab.device()
    lab.axes("error", x="number", y="largest relative error", log="xy")
    for power in lab.sweep(range(-20, 19), "powers of two"):
        for name, dtype in {**DTYPES, "bfloat16": torch.bfloat16}.items():
            x = 2.0**power * torch.linspace(1, 1.999, 101, device=device)
            lab.log(2.0**power, arm=name, error=((there_and_back(x, dtype) - x) / x).abs().max())

    lab.stage("the formats")
    e4m3 = DTYPES["e4m3"]
    e5m2 = DTYPES["e5m2"]
    lab.claim("e4m3", census(e4m3), equals=[254, 2, 0, 448])
    lab.claim("e5m2", census(e5m2), equals=[248, 6, 2, 57_344])
    few = torch.tensor([17.0, 9.0, 1000.0, math.inf, 100_000.0], device=device)
    in_e4m3 = there_and_back(few, e4m3).tolist()
    in_e5m2 = there_and_back(few, e5m2).tolist()
    lab.claim("counting", [in_e4m3[0], in_e5m2[1]], equals=[16, 8])
    has_inf = math.inf in in_e4m3[2:4]
    lab.claim("too-large", [has_inf, in_e5m2[2], in_e5m2[4]], equals=[False, 1024, math.inf])

    lab.stage("scales")
    x = 1e-6 * torch.randn(4096, device=device)
    unscaled = [zeros(there_and_back(x, dtype)) for dtype in DTYPES.values()]
    lab.claim("unscaled", unscaled, equals=[1, 1], answers=len(x) * unscaled[0])
    backs = [there_and_back(x, dtype, scale_of(x, dtype)) for dtype in DTYPES.values()]
    scaled = [zeros(backs[0]), zeros(backs[1]), error(backs[0], x), error(backs[1], x)]
    lab.claim("scaled", scaled, equals=[0, 0, 0.026, 0.052], tolerance=0.002)

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
    refused = [lab.raises(torch.add, ones, ones), lab.raises(torch.sum, ones)]
    raised = [text.partition(":")[0] for text in refused]
    lab.claim("no-sum", raised, equals=["NotImplementedError"] * 2)
    x = torch.full((16, 4096), 0.001, device=device)
    refusal = lab.raises(product, x, e4m3)  # of an older GPU
    result = math.nan if refusal else product(x, e4m3)[0, 0].item()
    lacks = f"products of eight bits: {refusal[:200]}" if refusal else ""
    lab.claim("wide", result, equals=0.004096, tolerance=1e-8, lacks=lacks)

    mixed = torch.randn(16, 4096) * 10 ** (-2 * torch.rand(16, 4096))
    exact = exact_product(mixed, e4m3)
    on_cpu = error(product(mixed, e4m3).double(), exact)
    by_hand = error(product_of_few_bits(mixed, e4m3, kept).double(), exact)
    lab.claim("mixed", on_cpu, at_most=1e-6)
    lab.claim("few-bits", 100 * by_hand, at_least=0.1, unit="%")
    rows = [("a CPU", on_cpu), (f"{kept} bits kept, by hand", by_hand)]
    if device.type == "cuda" and not refusal:
        there = mixed.to(device)
        for fast, name in ((False, "this GPU"), (True, "this GPU, use_fast_accum=True")):
            on_gpu = product(there, e4m3, fast).cpu().double()
            rows.append((name, error(on_gpu, exact)))
    lab.table("error of sums of 4096 products", rows, head=("added by", "relative error"))
