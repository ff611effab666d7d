"""Choose bfloat16 for range, float16 for digits, and float32 to count and to add.

A floating-point number has a sign, an exponent and a mantissa. The exponent names the power of
two below the number. The mantissa divides the way to the next power of two into equal steps.
Exponent bits give range, mantissa bits give digits: float32 has 8 and 23, float16 has 5 and 10,
and bfloat16 has 8 and 7. If there are m mantissa bits, there are 2^m steps from 1 to 2, and one
step is the `eps` of `torch.finfo`.

Above each power of two the steps are twice as long as below it. When a step is 2, counting
stops: x + 1 is rounded back to x. Counters, positions and long sums need more than 16 bits.

The lesson counts the bits and does not look them up. A view as whole numbers shows the pattern of
a number. The patterns of 1 and of 2 are as far apart as there are mantissas. The pattern of inf
has all exponent bits set. All larger patterns with this exponent are nan.

The table of the source mixes two kinds of minima. The smallest float16 is 5.96e-8, a subnormal
number with 1 bit left, and 6.10e-5 is the smallest with all its bits. For float32 and bfloat16
the table has the second kind, 1.18e-38, but they reach down to 1.4e-45 and 9.2e-41. The source
also says that the conversion from float32 to bfloat16 never overflows. But near the largest
float32 it does: the number is rounded up, past the largest bfloat16.

In practice: use bfloat16 for activations and matrix products on GPUs that have it (Ampere and
later). Use float16 with a GradScaler on older GPUs. Keep counters, positions, losses that you add
up, and weights in float32 or in whole numbers. Read the limits of a dtype from `torch.finfo`.
## Predict
In bfloat16, how far from 1 is the next larger number?
## Look for
- [bits] float32 has 8 bits of exponent and 23 of mantissa, float16 5 and 10, bfloat16 8 and 7
- [eps] the step above 1 is 2^-23 in float32, 2^-10 in float16 and 2^-7 in bfloat16, the eps of
  torch.finfo
- [largest] the largest numbers of float32, float16 and bfloat16 are 3.40282e38, 65504 and
  3.38953e38, the max of torch.finfo
- [normal] the smallest float32, float16 and bfloat16 with all their bits are 1.17549e-38,
  6.10352e-5 and 1.17549e-38, the tiny of torch.finfo
- [smallest] the smallest float32, float16 and bfloat16 above 0, found by halving 1, are
  1.4013e-45, 5.96046e-8 and 9.18355e-41
- [counting] the first powers of two to which 1 adds nothing are 16777216 in float32, 2048 in
  float16 and 256 in bfloat16
- [patterns] of its 65,536 patterns float16 has 2046 for nan, and bfloat16 has 254
- [rounding] from 1 to 2 a conversion from float32 is off by 2^-11 at most in float16, and by 2^-8
  in bfloat16
- [seventy] 70000 is inf in float16 and 70144 in bfloat16
- [overflow] the largest float32 is inf in bfloat16, and each float32 up to 3.39617e38 stays finite
## Try next
`--cut`: for bfloat16 the last 16 bits of a float32 are dropped and not rounded. The largest float32
no longer overflows, and 70000 is 69632. A conversion is off by up to a whole step instead of half
a step. refutes: rounding, seventy, overflow
## Source
- "Training tricks" (in Chinese, after https://github.com/owenliang/torch-thins), section "Automatic
  mixed precision": its table of dtypes, with two kinds of minima, and the conversion that never
  overflows.
- "Faster and Memory-Efficient PyTorch models using AMP and Tensor Cores", section on Tensor Cores,
  https://towardsdatascience.com/faster-and-memory-efficient-pytorch-models-using-amp-50fd3c8dd7fe:
  the bits of float32 and float16.
- Ours: the count of patterns, both kinds of minima, the steps and the overflow.
"""

import math

import torch

from tuilab import Lab

DTYPES = {
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
}
WHOLE = {2: torch.int16, 4: torch.int32}  # the dtype of whole numbers of so many bytes


def pattern(x):
    return x.view(WHOLE[x.dtype.itemsize]).item()


def number(bits, dtype):
    return torch.tensor(bits, dtype=WHOLE[dtype.itemsize]).view(dtype)


def next_larger(x):
    return number(pattern(x) + 1, x.dtype)


def largest_number(dtype):
    inf = torch.tensor(math.inf, dtype=dtype)
    return number(pattern(inf) - 1, dtype)


def count_bits(dtype):
    """Return the bits of the exponent and of the mantissa."""
    one = torch.ones((), dtype=dtype)
    between = pattern(2 * one) - pattern(one)  # as many as there are mantissas
    mantissa = between.bit_length() - 1
    exponent = (pattern(one * math.inf) >> mantissa).bit_length()
    return [exponent, mantissa]


def smallest_by_halving(x):
    while x / 2 > 0:
        x = x / 2
    return x.item()


def power_where_counting_stops(x):
    while x + 1 != x:
        x = x * 2
    return x.item()


def convert(dtype, x, cut):  # x float32
    if cut and dtype is torch.bfloat16:
        x = (x.view(torch.int32) & -(2**16)).view(torch.float32)
    return x.to(dtype).double()


def show_steps(lab):
    """Log the step to the next number, for all powers of two that a dtype has."""
    lab.axes("relative", x="number", y="step to the next larger number / number", log="xy")
    for power in lab.sweep(range(-149, 128), "powers of two"):
        for name, dtype in DTYPES.items():
            x = torch.tensor(2.0**power, dtype=dtype)
            if 0 < x < math.inf:
                step = next_larger(x).double() / x.double() - 1
                lab.log(2.0**power, arm=name, relative=step)


def count_formats(lab, device):
    lab.stage("counting bits and patterns")
    bits = []
    steps = []
    largest = []
    normal = []
    smallest = []
    stops = []
    rows = []
    for name, dtype in DTYPES.items():
        one = torch.ones((), dtype=dtype)
        exponent, mantissa = count_bits(dtype)
        bits.append([exponent, mantissa])
        steps.append((next_larger(one) - one).item())
        largest.append(largest_number(dtype).item())
        normal.append(number(1 << mantissa, dtype).item())  # the first exponent that is not 0
        smallest.append(smallest_by_halving(one.to(device)))
        stops.append(power_where_counting_stops(one.to(device)))
        rows.append((name, steps[-1], largest[-1], smallest[-1], stops[-1]))
    head = ("dtype", "step above 1", "largest", "smallest", "counts to")
    lab.table("what the bits give", rows, head=head)

    limits = [torch.finfo(dtype) for dtype in DTYPES.values()]
    lab.claim("bits", bits, equals=[[8, 23], [5, 10], [8, 7]])
    lab.claim("eps", steps, equals=[limit.eps for limit in limits], answers=steps[2])
    lab.claim("largest", largest, equals=[limit.max for limit in limits])
    lab.claim("normal", normal, equals=[limit.tiny for limit in limits])
    lab.claim("smallest", smallest, equals=[2**-149, 2**-24, 2**-133])
    lab.claim("counting", stops, equals=[2**24, 2**11, 2**8])

    patterns = torch.arange(2**16).to(torch.int16)  # all patterns of 16 bits
    nans = []
    for name in ("float16", "bfloat16"):
        nans.append(patterns.view(DTYPES[name]).isnan().sum().item())
    lab.claim("patterns", nans, equals=[2046, 254])


def convert_numbers(lab, device, cut):
    lab.stage("converting float32")
    x = 1 + torch.arange(2**16, device=device) / 2**16  # float32, from 1 to 2
    seventy = torch.tensor(70_000.0, device=device)
    errors = []
    converted = []
    for dtype in (torch.float16, torch.bfloat16):
        errors.append((convert(dtype, x, cut) - x.double()).abs().max().item())
        converted.append(convert(dtype, seventy, cut).item())
    lab.claim("rounding", errors, equals=[2**-11, 2**-8])
    lab.claim("seventy", converted, equals=[math.inf, 70_144])

    def is_finite(bits):
        return convert(torch.bfloat16, number(bits, torch.float32), cut).isfinite()

    largest = largest_number(torch.float32).to(device)
    overflowed = convert(torch.bfloat16, largest, cut).item()
    one_bits = pattern(torch.tensor(1.0))
    inf_bits = pattern(torch.tensor(math.inf))
    last_bits = int(lab.limit(is_finite, one_bits, inf_bits))
    last_finite = number(last_bits, torch.float32).item()
    right = 2.0**128 * (1 - 2**-9 - 2**-24)  # 3.396177e38
    lab.claim("overflow", [overflowed, last_finite], equals=[math.inf, right])


def run(
    lab: Lab,
    cut: bool = False,  # drop the last bits for bfloat16 instead of rounding
) -> None:
    device = lab.device()
    show_steps(lab)
    count_formats(lab, device)
    convert_numbers(lab, device, cut)
