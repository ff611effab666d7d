"""bfloat16 reaches as far as float32 and counts to 256; float16 counts to 2048 and ends at 65504.

A floating-point number has a sign, bits that say which power of two it lies above, and bits that cut the way to the next power
into equal steps. Exponent bits buy range, mantissa bits buy digits: float32 has 8 and 23, float16 5 and 10, bfloat16 8 and 7.
Between 1 and 2 there are 2^mantissa steps, and one step is the `eps` of `torch.finfo`. Above every power of two the steps are
twice as long as below it, and where they are 2, counting stops: 2048 + 1 is 2048 in float16, 256 + 1 is 256 in bfloat16.
Counters, positions and long sums need more than 16 bits.

Bits are counted here, and not looked up. A view as whole numbers shows the pattern of a number. As many patterns lie between
those of 1 and 2 as there are mantissas, and inf is the pattern with all exponent bits set. All other patterns with that
exponent are nan: float16 wastes 2046 of 65,536, bfloat16 254.

The table of the source mixes two kinds of minima. The smallest float16 is 5.96e-8, a subnormal number with 1 bit left, and
6.10e-5 is the smallest with all its bits. For float32 and bfloat16 the table has that one, 1.18e-38, but they go down to
1.4e-45 and 9.2e-41. The source also says that float32 to bfloat16 never overflows. It does at the end: the largest
float32 is rounded up, past the largest bfloat16.
## Predict
In bfloat16, how far from 1 is the next larger number?
## Look for
- [bits] float32 has 8 bits of exponent and 23 of mantissa, float16 5 and 10, bfloat16 8 and 7
- [eps] the step above 1 is 2^-23 in float32, 2^-10 in float16 and 2^-7 in bfloat16, the eps of torch.finfo
- [largest] the largest numbers are 3.40282e38, 65504 and 3.38953e38, the max of torch.finfo
- [normal] the smallest numbers with all their bits are 1.17549e-38, 6.10352e-5 and 1.17549e-38, the tiny of torch.finfo
- [smallest] the smallest numbers above 0, found by halving 1, are 1.4013e-45, 5.96046e-8 and 9.18355e-41
- [counting] the first powers of two to which 1 adds nothing are 16777216, 2048 and 256
- [patterns] of its 65,536 patterns float16 has 2046 for nan, and bfloat16 254
- [rounding] from 1 to 2 a conversion from float32 is off by 2^-11 at most in float16, and by 2^-8 in bfloat16
- [seventy] 70000 is inf in float16 and 70144 in bfloat16
- [overflow] the largest float32 is inf in bfloat16, and the largest that is not is above 3.39617e38
## Try next
`--cut`: for bfloat16 the last 16 bits of a float32 are dropped and not rounded. The largest float32 no longer overflows, 70000
is 69632, and a conversion is off by up to a whole step, not half of one. refutes: rounding, seventy, overflow
## Source
- "Training tricks" (in Chinese, after https://github.com/owenliang/torch-thins), section "Automatic mixed precision": its
  table of dtypes.
- "Faster and Memory-Efficient PyTorch models using AMP and Tensor Cores", section on Tensor Cores,
  https://towardsdatascience.com/faster-and-memory-efficient-pytorch-models-using-amp-50fd3c8dd7fe: the bits of float32 and
  float16.
- Ours: the count of patterns, both kinds of minima, the steps and the overflow.
"""

import math

import torch

from tuilab import Lab

DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
WHOLE = {2: torch.int16, 4: torch.int32}  # of as many bytes


def pattern(x):
    return x.view(WHOLE[x.dtype.itemsize]).item()


def number(bits, dtype):
    return torch.tensor(bits, dtype=WHOLE[dtype.itemsize]).view(dtype)


def bits_of(one):
    mantissa = (pattern(2 * one) - pattern(one)).bit_length() - 1
    return [(pattern(one * math.inf) >> mantissa).bit_length(), mantissa]  # of the exponent, and of it


def above(x):
    """The next larger number."""
    return number(pattern(x) + 1, x.dtype)


def first(holds, x, factor):
    """The first of x, x * factor, ... for which it holds."""
    while not holds(x):
        x = x * factor
    return x


def to(dtype, x, cut):  # x float32
    if cut and dtype is torch.bfloat16:
        x = (x.view(torch.int32) & -(2**16)).view(torch.float32)
    return x.to(dtype).double()


def run(
    lab: Lab,
    cut: bool = False,  # drop the last bits for bfloat16 instead of rounding
) -> None:
    device = lab.device()
    lab.axes("relative", x="number", y="step to the next larger number / number", log="xy")
    ones = {name: torch.ones((), dtype=dtype) for name, dtype in DTYPES.items()}
    for power in lab.sweep(range(-149, 128), "powers of two"):
        for name, one in ones.items():
            if 0 < (x := one * 2.0**power) < math.inf:
                lab.log(2.0**power, arm=name, relative=above(x).double() / x.double() - 1)
    lab.stage("counting bits and patterns")
    bits = {name: bits_of(one) for name, one in ones.items()}
    lab.claim("bits", [*bits.values()], equals=[[8, 23], [5, 10], [8, 7]])
    found = {"eps": [], "max": [], "tiny": [], "smallest": [], "counts to": []}
    for name, one in ones.items():
        found["eps"].append((above(one) - one).item())
        found["max"].append(number(pattern(one * math.inf) - 1, one.dtype).item())  # the last pattern before inf
        found["tiny"].append(number(1 << bits[name][1], one.dtype).item())  # the first exponent that is not 0
        found["smallest"].append(first(lambda x: x / 2 == 0, one.to(device), 0.5).item())
        found["counts to"].append(first(lambda x: x + 1 == x, one.to(device), 2).item())
    rows = zip(DTYPES, *map(found.get, ("eps", "max", "smallest", "counts to")), strict=True)
    lab.table("what the bits buy", [*rows], head=("dtype", "eps", "max", "smallest", "counts to"))
    lab.claim("eps", found["eps"], equals=[torch.finfo(dtype).eps for dtype in DTYPES.values()], answers=found["eps"][2])
    for key, name in (("largest", "max"), ("normal", "tiny")):
        lab.claim(key, found[name], equals=[getattr(torch.finfo(dtype), name) for dtype in DTYPES.values()])
    lab.claim("smallest", found["smallest"], equals=[2**-149, 2**-24, 2**-133])
    lab.claim("counting", found["counts to"], equals=[2**24, 2**11, 2**8])
    every = torch.arange(2**16).to(torch.int16)  # all patterns of 16 bits
    lab.claim("patterns", [every.view(dtype).isnan().sum().item() for dtype in [*DTYPES.values()][1:]], equals=[2046, 254])
    lab.stage("converting float32")
    x = 1 + torch.arange(2**16, device=device) / 2**16  # float32, from 1 to 2
    errors = [(to(dtype, x, cut) - x.double()).abs().max().item() for dtype in (torch.float16, torch.bfloat16)]
    lab.claim("rounding", errors, equals=[2**-11, 2**-8])
    seventy = torch.tensor(70_000.0, device=device)
    lab.claim(
        "seventy", [to(dtype, seventy, cut).item() for dtype in (torch.float16, torch.bfloat16)], equals=[math.inf, 70_144]
    )
    largest = to(torch.bfloat16, torch.tensor(torch.finfo(torch.float32).max, device=device), cut).item()
    inf = pattern(torch.tensor(math.inf))
    end = lab.limit(lambda bits: to(torch.bfloat16, number(bits, torch.float32), cut).isfinite(), pattern(ones["float32"]), inf)
    lab.claim("overflow", [largest, number(int(end), torch.float32).item()], equals=[math.inf, 2.0**128 * (1 - 2**-9 - 2**-24)])
