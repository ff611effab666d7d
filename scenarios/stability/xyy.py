"""x * y / y is x only inside the range of the dtype.

On paper y cancels. In a computer y is rounded first: too small, it becomes 0, and 0 / 0 is nan; too large, it becomes inf,
and inf / inf is nan. No exception is raised and the nan spreads from there. Where the two cliffs are depends on the dtype:
float32 and bfloat16 have the same 8 bits of exponent, float16 has 5. bfloat16 pays for its range in digits.

The lower cliff has a slope in front of it: subnormal numbers keep a fixed step instead of a fixed number of digits, so the
result loses one digit a decade long before it is nan. That is the dangerous part, because it is finite.

Even a y inside the range can be too large: where only the product overflows, the result is inf. The source calls 1.4e-45 the
smallest positive float32. That is a subnormal number; `torch.finfo(...).tiny`, the smallest one with all its digits, is
1.2e-38, and a CPU told to flush subnormals has nothing below it.

The chart shows the digits that survive for each power of ten y: the length of a line is the range, its height the precision.
## Predict
How many decades below 1 is the smallest power of ten y for which x * y / y is finite in float16?
## Look for
- [source] in float32 1e-50 becomes 0 and 1e39 becomes inf, and x * y / y is nan for both
- [range] halved and doubled, a float32 reaches 1.4013e-45 and 3.40282e38
- [f32] of the powers of ten y from 1e-50 to 1e40 float32 has a finite x * y / y for 1e-45 to 1e38, and nan for the others
- [bf16] bfloat16 has a finite one for 1e-40 to 1e38, and nan for the others
- [f16] float16 has a finite one for 1e-7 to 1e4, and nan for the others
- [product] between the powers it can be inf: for x = 1.5, y = 3e38 in float32, for x = 2, y = 4e4 in float16
- [digits] away from the edges float32 keeps 6.9 digits, bfloat16 2.1 and float16 3.0
- [last-decade] in the last decade before the lower cliff the result is finite and off by a fifth or more
## Try next
`--flush --device cpu`: the CPU treats subnormal numbers as zero, as some inference servers do for speed. The slope is gone:
float32 and bfloat16 end at 1e-37, and the claims about 1.4013e-45, 1e-45, 1e-40 and the last decade are REFUTED. float16 is
computed in float32, where its subnormals are ordinary numbers, and keeps its slope. torch has no such switch for a GPU.
refutes: range, f32, bf16, last-decade
## Source
EffectivePyTorch, chapter "Numerical stability in PyTorch", https://github.com/vahidk/EffectivePyTorch. Ours: the other dtypes,
the digits, the overflow of the product and the slope of subnormals.
"""

import math

import torch

from tuilab import Lab

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
DECADES = range(-50, 41)


def there_and_back(x, y):
    return x * y / y  # x, on paper


def worst_error(back, x):
    """The largest relative error; nan if any element is nan."""
    return ((back.double() - x.double()) / x.double()).abs().max()


def smallest_and_largest(device):
    """Both ends of float32, found by halving and by adding ever smaller parts."""
    small = large = part = torch.ones((), device=device)
    while small / 2 > 0:
        small = small / 2
    while (large * 2).isfinite():
        large = part = large * 2
    while large + (part := part / 2) != large:
        large = large + part if (large + part).isfinite() else large
    return [small.item(), large.item()]


def extent(kinds):
    """The first and the last decade with finite results, how many decades have them, and how many have nothing but nan."""
    finite = [decade for decade, kind in zip(DECADES, kinds, strict=True) if kind == "finite"]
    return [finite[0], finite[-1], len(finite), kinds.count("nan")]


def run(
    lab: Lab,
    flush: bool = False,  # treat subnormal numbers as zero; on a CPU only
) -> None:
    device = lab.device()
    if flush:
        lab.needs(device.type == "cpu", "--device cpu: torch tells only a CPU to treat subnormal numbers as zero")
        lab.needs(torch.set_flush_denormal(True), "a CPU that can treat subnormal numbers as zero")

    lab.axes("digits", x="y", y="digits of x that survive", log="x")
    lab.axes("xyy", x="y", y="x * y / y of x = 1.5", log="x")
    lab.stage("multiplying and dividing by ever larger numbers")
    errors = {name: [] for name in DTYPES}
    digits = {name: [] for name in DTYPES}
    kinds = {name: [] for name in DTYPES}  # of all results of a decade
    for decade in DECADES:
        for name, dtype in DTYPES.items():
            x = torch.linspace(1, 2, 101).to(device, dtype)  # (101,): every decade of y meets all kinds of x
            y = torch.tensor(10.0**decade, dtype=dtype).to(device)  # 0 or inf where the dtype ends
            back = there_and_back(x, y)
            kinds[name].append("finite" if back.isfinite().all() else "nan" if back.isnan().all() else "both")
            error = worst_error(back, x)
            errors[name].append(error.item())
            digits[name].append(-error.clamp(min=torch.finfo(dtype).eps).log10().item())  # no more than the dtype has
            lab.log(10.0**decade, arm=name, digits=digits[name][-1], xyy=back[50].item())  # x[50] is 1.5
    bands = torch.tensor([digits[name] for name in DTYPES])  # (3, 91)
    lab.image("digits that survive, by dtype (float32, bfloat16, float16) and power of ten", bands.repeat_interleave(4, 0))

    far = torch.tensor([1e-50, 1e39], dtype=torch.float32).to(device)
    lab.claim("source", [*far.tolist(), *there_and_back(1, far).tolist()], equals=[0, math.inf, math.nan, math.nan])
    lab.claim("range", smallest_and_largest(device), equals=[2.0**-149, 2.0**128 - 2.0**104])
    found = {name: extent(kinds[name]) for name in DTYPES}
    lab.claim("f32", found["float32"], equals=[-45, 38, 84, 7])
    lab.claim("bf16", found["bfloat16"], equals=[-40, 38, 79, 12])
    lab.claim("f16", found["float16"], equals=[-7, 4, 12, 79], answers=-found["float16"][0])
    y32, y16 = torch.tensor(3e38, device=device), torch.tensor(4e4, dtype=torch.float16, device=device)
    lab.claim("product", [there_and_back(1.5, y32).item(), there_and_back(2, y16).item()], equals=[math.inf, math.inf])
    certain = [min(digits[name][DECADES.index(decade)] for decade in range(-4, 5)) for name in DTYPES]
    lab.claim("digits", certain, equals=[6.9, 2.1, 3.0], tolerance=0.05)
    lab.claim("last-decade", [errors[name][DECADES.index(found[name][0])] for name in DTYPES], at_least=0.199)
