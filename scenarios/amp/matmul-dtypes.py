"""16 bits multiply many times faster where the box has units for them, and many times slower where a CPU has none.

A V100 multiplies matrices at 125 TFLOP/s in float16 and at 15.7 in float32, says the source. It is not because the numbers are
short, but because a unit takes them: Tensor Cores on a GPU, AMX or AVX512-BF16 on a CPU. Such a unit multiplies 16-bit numbers
and adds in float32. On a CPU without one torch goes through float16 in a plain loop, which converts each number first.

So ask before you choose: this lesson asks torch for the units and skips the claims about those that are not there.

What it costs in digits is easily told. The factors are rounded, and the result is; the sums are made in float32. So the error
does not grow with the length of the sum, and how far it is off is a matter of bits: bfloat16 has 3 less. Short numbers also
halve what memory must deliver. 125 TFLOP/s from 0.9 TB/s are 139 operations for a byte, and a product of n x n has n / 3 in 16
bits: under n = 417 those units wait for memory.

The 7.9 of the V100 is a figure of data-centre cards. A GeForce such as the 4090 adds float16 products in float32 at half the
rate (165 against 83 TFLOP/s), so the claim is refuted there by the design of the card. CUDA 13 does not run on a V100 any more.
In practice: train in bfloat16 on a GPU from Ampere on. Use float16, with a GradScaler, only on older cards.
## Predict
bfloat16 and float16 both have 16 bits. How many times the error of float16 does a product of random matrices have in bfloat16?
## Look for
- [bfloat16] of random numbers of both signs a product in bfloat16 is off by 0.0027 to 0.0031 of its size
- [eight] that is 7.5 to 8.5 times the error of float16
- [rounded] factors and result rounded, and all else in float64, are off by 0.95 to 1.2 times as much
- [flat] the errors of n = 32 and of n = 256 are within a tenth of each other, in both 16-bit dtypes
- [tensor-cores] on a GPU a product takes float32 at least 7.9 times as long as float16: 125 / 15.7
- [cpu-units] on a CPU with AVX512-BF16 or AMX float32 takes at least 1.5 times as long as bfloat16
- [no-units] on an x86 CPU without units for float16 it takes at least 10 times as long as float32
- [float64] on a CPU float64 takes at least 1.5 times as long as float32
## Try next
`--signs positive`: the roundings of the factors cancel in a sum that does not. The rounding of the result is left.
refutes: bfloat16
`--size 2048 --device cuda`: too small for a large GPU, and less is gained.
## Source
"Faster and Memory-Efficient PyTorch models using AMP and Tensor Cores", section on Tensor Cores,
https://towardsdatascience.com/faster-and-memory-efficient-pytorch-models-using-amp-50fd3c8dd7fe: 125 against 15.7 TFLOP/s,
multiplied in 16 bits and added in 32. Ours: the rest.
"""

import platform
from functools import partial
from statistics import median
from typing import Literal

import torch

from tuilab import Lab

DTYPES = {name: getattr(torch, name) for name in ("float64", "float32", "bfloat16", "float16")}
HALVES = ("bfloat16", "float16")


def asked(owner, *names):
    """Whether torch says yes to one of these questions; what a version does not know is a no."""
    return any(getattr(owner, name, bool)() for name in names)


def error(product, exact):
    return ((product.double() - exact).norm() / exact.norm()).item()


def run(
    lab: Lab,
    size: int = 0,  # n of the products that race; 0 is 192 on a CPU and 8192 on a GPU, 0..32768
    signs: Literal["both", "positive"] = "both",  # of the random numbers whose errors are measured
) -> None:
    device = lab.device()
    on_gpu = device.type == "cuda"

    @lab.once
    def exact():
        lab.axes("error", x="n", y="error / norm of the product", log="xy")
        errors = {}
        for n in lab.sweep([32, 64, 128, 256], "sizes"):
            a, b = (torch.randn(n, n, dtype=torch.float64).to(device) for _ in range(2))
            a, b = (a, b) if signs == "both" else (a.abs(), b.abs())
            right = a @ b
            for name, dtype in DTYPES.items():
                if name != "float64":
                    errors[name, n] = error(a.to(dtype) @ b.to(dtype), right)
                    lab.log(n, arm=name, error=errors[name, n])
        lab.claim("bfloat16", errors["bfloat16", 256], between=(0.0027, 0.0031))
        lab.claim("eight", errors["bfloat16", 256] / errors["float16", 256], between=(7.5, 8.5), answers=True)
        by_hand = [
            error((a.to(DTYPES[name]).double() @ b.to(DTYPES[name]).double()).to(DTYPES[name]), right) for name in HALVES
        ]
        ratios = [alike / errors[name, 256] for alike, name in zip(by_hand, HALVES, strict=True)]
        lab.claim("rounded", ratios, between=(0.95, 1.2))
        lab.claim("flat", [errors[name, 256] / errors[name, 32] for name in HALVES], between=(0.9, 1.1))
        moved = {name: 3 * a.to(dtype).nbytes for name, dtype in DTYPES.items()}  # both factors and the result
        work = {name: lab.count(torch.mm, a, b).flops / nbytes for name, nbytes in moved.items()}
        rows = [(name, errors.get((name, 256), 0.0), work[name]) for name in DTYPES]
        lab.table("a product of 256 x 256", rows, head=("dtype", "error", "operations for a byte"))

    lab.stage("asking for units")
    has_bfloat16 = asked(torch.cpu, "_is_avx512_bf16_supported", "_is_amx_tile_supported")
    has_float16 = asked(torch.ops.mkldnn, "_is_mkldnn_fp16_supported")  # what torch itself asks before it multiplies
    is_plain = not has_float16 and platform.machine() in ("x86_64", "AMD64")  # of others the question says nothing
    cpu, gpu = ("--device cpu", lab.lacks_units(torch.float16)) if on_gpu else ("", "a CUDA device")
    found = [("AVX512-BF16 or AMX", has_bfloat16), ("float16 on the CPU", has_float16), ("a CUDA device", on_gpu)]
    lab.table("units for 16 bits", found, head=("unit", "is there"))

    lab.stage("timing products")
    lab.claim_ratio("tensor-cores", "float32/float16", at_least=7.9, lacks=gpu)
    lab.claim_ratio("cpu-units", "float32/bfloat16", at_least=1.5, lacks=cpu or ("" if has_bfloat16 else "AVX512-BF16 or AMX"))
    lab.claim_ratio("no-units", "float16/float32", at_least=10, lacks=cpu or ("" if is_plain else "an x86 CPU without them"))
    lab.claim_ratio("float64", "float64/float32", at_least=1.5, lacks=cpu)
    n = size or (8192 if on_gpu else 192)
    with lab.precision("ieee"):
        raced = ["float32", *(name for name in HALVES if not lab.lacks_units(DTYPES[name]))] if on_gpu else DTYPES
        square = {name: torch.randn(n, n).to(device, DTYPES[name]) for name in raced}
        race = lab.race(**{name: partial(torch.mm, x, x) for name, x in square.items()}, seconds=0.5)
    lab.bars(f"rate of a product, n = {n}, GFLOP/s", {name: 2 * n**3 / median(race.step_s[name]) / 1e9 for name in square})
