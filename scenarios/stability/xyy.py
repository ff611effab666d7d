"""Keep intermediate results in the range of the dtype, or x * y / y is not x.

On paper y cancels. In a computer y is rounded first. If y is too small, it becomes 0, and 0 / 0 is
nan. If y is too large, it becomes inf, and inf / inf is nan. No exception is raised, and the nan
spreads from there. The two limits depend on the dtype: float32 and bfloat16 have the same 8 bits
of exponent, and float16 has 5. The price that bfloat16 pays for its range is digits.

Digits are lost before the lower limit. Subnormal numbers have a fixed step instead of a fixed
number of digits. So the result loses one digit in each decade until it is nan. That is the
dangerous part, because the result is finite.

The product can overflow although y is in range: then the result is inf. The source calls 1.4e-45
the smallest positive float32. That is a subnormal number. The smallest number with all its digits
is `torch.finfo(torch.float32).tiny`, 1.2e-38. If a CPU is set to treat subnormal numbers as zero,
nothing is below it.

The chart shows the digits that survive for each power of ten y. The length of a line is the range,
and its height is the precision.

In practice: bring values to a size near 1 before you multiply or divide them: normalise inputs,
and subtract logarithms instead of dividing tiny probabilities. Add an eps to a divisor only if it
is above `torch.finfo(dtype).tiny`: in float16 1e-8 is 0. Search for the first bad value with
`torch.isfinite`.
## Predict
How many decades below 1 is the smallest power of ten y for which x * y / y is finite in float16?
## Look for
- [source] in float32 1e-50 becomes 0 and 1e39 becomes inf, and x * y / y is nan for both
- [range] halved and doubled, a float32 reaches 1.4013e-45 and 3.40282e38
- [f32] in float32 x * y / y is finite for the powers of ten y from 1e-45 to 1e38, and else nan
- [bf16] in bfloat16 x * y / y is finite for the powers of ten y from 1e-40 to 1e38, and else nan
- [f16] in float16 x * y / y is finite for the powers of ten y from 1e-7 to 1e4, and else nan
- [product] 1.5 * y / y is inf for y = 3e38 in float32, and 2 * y / y for y = 4e4 in float16
- [digits] for y from 1e-4 to 1e4 x keeps 6.9 digits in float32, 2.1 in bfloat16 and 3.0 in float16
- [last-decade] in the last decade before the lower limit the result is finite, and off by 19.9 % or
  more in each dtype
- [eps] an eps of 1e-8 is 0 in float16, and larger than 0 in float32 and bfloat16
## Try next
`--flush --device cpu`: the CPU treats subnormal numbers as zero, as some inference servers do for
speed. Then float32 and bfloat16 end at 1e-37, with all their digits. A CPU computes float16 in
float32, where its subnormal numbers are ordinary numbers, so it still loses digits. For a GPU torch
has no such switch. refutes: range, f32, bf16, last-decade
## Source
EffectivePyTorch, chapter "Numerical stability in PyTorch",
https://github.com/vahidk/EffectivePyTorch. Ours: the other dtypes, the digits, the overflow of the
product and the subnormal numbers.
"""

import math

import torch

from tuilab import Lab

DTYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}
DECADES = range(-50, 41)


def there_and_back(x, y):
    return x * y / y  # x, on paper


def worst_error(back, x):
    """Return the largest relative error; nan if any element is nan."""
    errors = (back.double() - x.double()) / x.double()
    return errors.abs().max()


def kind_of(back):
    if back.isfinite().all():
        return "finite"
    if back.isnan().all():
        return "nan"
    return "both"


def smallest_and_largest(device):
    """Find both ends of float32 by halving, and by adding ever smaller parts."""
    one = torch.ones((), device=device)
    small = one
    while small / 2 > 0:
        small = small / 2
    large = one
    while (large * 2).isfinite():
        large = large * 2
    part = large / 2
    while large + part != large:
        if (large + part).isfinite():
            large = large + part
        part = part / 2
    return [small.item(), large.item()]


def extent(kinds):
    """Return the first and the last finite decade, how many there are, and how many are nan."""
    finite = []
    for decade, kind in zip(DECADES, kinds, strict=True):
        if kind == "finite":
            finite.append(decade)
    return [finite[0], finite[-1], len(finite), kinds.count("nan")]


def measure_decades(lab, name, dtype, device):
    """Return, for each power of ten y, the kind of the results, their error and their digits."""
    x = torch.linspace(1, 2, 101).to(device, dtype)  # (101,): each y meets all kinds of x
    eps = torch.finfo(dtype).eps
    kinds = []
    errors = []
    digits = []
    for decade in DECADES:
        y = torch.tensor(10.0**decade, dtype=dtype).to(device)  # 0 or inf beyond the range
        back = there_and_back(x, y)
        error = worst_error(back, x)
        kept = -error.clamp(min=eps).log10().item()  # no more than the dtype has
        kinds.append(kind_of(back))
        errors.append(error.item())
        digits.append(kept)
        lab.log(10.0**decade, arm=name, digits=kept, xyy=back[50].item())  # x[50] is 1.5
    return kinds, errors, digits


def flush_subnormals(lab, device):
    is_cpu = device.type == "cpu"
    lab.needs(is_cpu, "--device cpu: torch has a switch for subnormal numbers only for a CPU")
    is_flushed = torch.set_flush_denormal(True)
    lab.needs(is_flushed, "a CPU that can treat subnormal numbers as zero")


def run(
    lab: Lab,
    flush: bool = False,  # treat subnormal numbers as zero; on a CPU only
) -> None:
    device = lab.device()
    if flush:
        flush_subnormals(lab, device)

    lab.axes("digits", x="y", y="digits of x that survive", log="x")
    lab.axes("xyy", x="y", y="x * y / y of x = 1.5", log="x")
    extents = {}
    bands = []  # digits by dtype and decade
    middle = []  # the fewest digits from 1e-4 to 1e4
    last_errors = []  # in the last decade before the lower limit
    for name in lab.sweep(DTYPES, "multiplying and dividing"):
        kinds, errors, digits = measure_decades(lab, name, DTYPES[name], device)
        extents[name] = extent(kinds)
        bands.append(digits)
        middle.append(min(digits[DECADES.index(-4) : DECADES.index(5)]))
        last_errors.append(errors[DECADES.index(extents[name][0])])
    image = torch.tensor(bands).repeat_interleave(4, 0)  # (12, 91)
    lab.image("digits that survive: float32, bfloat16, float16 by power of ten", image)

    lab.stage("the ends of the range")
    far = torch.tensor([1e-50, 1e39], dtype=torch.float32).to(device)
    values = [*far.tolist(), *there_and_back(1, far).tolist()]
    lab.claim("source", values, equals=[0, math.inf, math.nan, math.nan])
    lab.claim("range", smallest_and_largest(device), equals=[2.0**-149, 2.0**128 - 2.0**104])
    lab.claim("f32", extents["float32"], equals=[-45, 38, 84, 7])
    lab.claim("bf16", extents["bfloat16"], equals=[-40, 38, 79, 12])
    lab.claim("f16", extents["float16"], equals=[-7, 4, 12, 79], answers=-extents["float16"][0])
    large_32 = torch.tensor(3e38, device=device)
    large_16 = torch.tensor(4e4, dtype=torch.float16, device=device)
    products = [there_and_back(1.5, large_32).item(), there_and_back(2, large_16).item()]
    lab.claim("product", products, equals=[math.inf, math.inf])
    lab.claim("digits", middle, equals=[6.9, 2.1, 3.0], tolerance=0.05)
    lab.claim("last-decade", last_errors, at_least=0.199)
    tiny = []
    for dtype in DTYPES.values():
        tiny.append(torch.tensor(1e-8, device=device, dtype=dtype).item() > 0)
    lab.claim("eps", tiny, equals=[True, True, False])
