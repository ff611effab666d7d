"""Ask torch for 16-bit units before you choose a dtype, and compare with TF32.

A V100 multiplies matrices at 125 TFLOP/s in float16 and at 15.7 in float32. (CUDA 13 no longer
supports it.) Short numbers alone do not explain that. A special unit does the work: Tensor Cores
on a GPU, AMX or AVX512-BF16 on a CPU. It multiplies 16-bit numbers and adds in float32. A CPU
without such a unit converts each number first and is many times slower. So this lesson asks torch
for the units, and skips the claims about missing units.

How much a GPU gains depends on the card and on the baseline. IEEE float32 uses no Tensor Cores.
TF32 does: it cuts float32 to 10 mantissa bits and has half the rate of float16. The A100 and H100
have 15 times the rate of IEEE float32 in float16, but only 2 times that of TF32. Cards such as
A10, L4 and L40S have 4 times the rate of IEEE float32, so they do not reach the V100's factor. A
GeForce adds float16 products in float32 at half rate. A 2080 Ti still gains 4 times. Since Ampere
a GeForce has twice as many float32 units, and 2 times is left (a 4090: 165 against 83 TFLOP/s).

The price is digits. Both factors are rounded, and so is the result, but the sums are made in
float32. So the error does not grow with the length of the sum, and depends on the mantissa bits.
A GPU may split a long sum and add the parts in 16 bits. The switch
`torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction` is on by default.

Short numbers also halve the traffic. 125 TFLOP/s from 0.9 TB/s are 139 operations for each byte.
A product of n x n in 16 bits has n / 3, so below n = 417 the units wait for memory.

In practice: train in bfloat16 on Ampere and later, and in float16 with a GradScaler on older
cards. Let the rest of the products use TF32:
`torch.backends.cuda.matmul.fp32_precision = "tf32"`. On a CPU use 16 bits only if
`torch.cpu.get_capabilities()` shows `amx_bf16` or `avx512_bf16`.
## Predict
bfloat16 and float16 both have 16 bits. How many times the error of float16 does a product of random
matrices have in bfloat16?
## Look for
- [bfloat16] a bfloat16 product of random numbers of both signs is off by 0.0027 to 0.0031 of its
  size
- [eight] a bfloat16 product has 7.5 to 8.5 times the error of a float16 product
- [rounded] if only factors and result are rounded to 16 bits, and the rest is float64, the error is
  0.95 to 1.2 times as large
- [flat] in both 16-bit dtypes the error for n = 256 is 0.9 to 1.1 times the error for n = 32
- [tensor-cores] on a data-centre GPU a product in IEEE float32 takes at least 7.9 times as long as
  in float16 (125 / 15.7)
- [three] on a data-centre or workstation GPU a product in IEEE float32 takes at least 3 times as
  long as in float16
- [geforce] on a GeForce a product in IEEE float32 takes at least 1.5 times as long as in float16
- [tf32] on a GPU with TF32 a product in TF32 takes at least 1.5 times as long as in float16
- [cpu-units] on an x86 CPU with AVX512-BF16 or AMX a float32 product takes at least 1.5 times as
  long as a bfloat16 product
- [no-units] on an x86 CPU without units for float16 a float16 product takes at least 10 times as
  long as a float32 product
- [float64] on a CPU a float64 product takes at least 1.5 times as long as a float32 product
## Try next
`--signs positive`: in a sum of positive numbers the roundings of the factors cancel, and mainly
the rounding of the result is left. refutes: bfloat16
`--size 2048 --device cuda`: too small for a large GPU, so the factors are smaller.
## Source
- "Faster and Memory-Efficient PyTorch models using AMP and Tensor Cores", section on Tensor Cores,
  https://towardsdatascience.com/faster-and-memory-efficient-pytorch-models-using-amp-50fd3c8dd7fe:
  125 against 15.7 TFLOP/s, multiplied in 16 bits and added in 32.
- "28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 22,
  https://www.toymoban.com/news/detail-808122.html: 3 to 8 times on a V100 and a 2080 Ti.
- Ours: the errors, TF32, GeForce and the CPU.
"""

import platform
from functools import partial
from statistics import median
from typing import Literal

import torch

from tuilab import Lab

HALVES = {"bfloat16": torch.bfloat16, "float16": torch.float16}
DTYPES = {"float64": torch.float64, "float32": torch.float32, **HALVES}


def relative_error(product, exact):
    return ((product.double() - exact).norm() / exact.norm()).item()


def draw(n, signs, device):
    a = torch.randn(n, n, dtype=torch.float64).to(device)
    b = torch.randn(n, n, dtype=torch.float64).to(device)
    if signs == "positive":
        return a.abs(), b.abs()
    return a, b


def multiply_rounded(a, b, dtype):
    """Multiply in float64, and round the factors and the result as a 16-bit product does."""
    product = a.to(dtype).double() @ b.to(dtype).double()
    return product.to(dtype)


def measure_errors(lab, device, signs):
    lab.axes("error", x="n", y="error / norm of the product", log="xy")
    errors = {}
    for n in lab.sweep([32, 64, 128, 256], "sizes"):
        a, b = draw(n, signs, device)  # (n, n), (n, n)
        exact = a @ b
        for name in ("float32", *HALVES):
            dtype = DTYPES[name]
            with lab.precision("ieee"):
                product = a.to(dtype) @ b.to(dtype)
            errors[name, n] = relative_error(product, exact)
            lab.log(n, arm=name, error=errors[name, n])
    lab.claim("bfloat16", errors["bfloat16", 256], between=(0.0027, 0.0031))
    ratio = errors["bfloat16", 256] / errors["float16", 256]
    lab.claim("eight", ratio, between=(7.5, 8.5), answers=True)

    rounded = []
    growth = []
    for name, dtype in HALVES.items():
        by_rounding = relative_error(multiply_rounded(a, b, dtype), exact)
        rounded.append(by_rounding / errors[name, 256])
        growth.append(errors[name, 256] / errors[name, 32])
    lab.claim("rounded", rounded, between=(0.95, 1.2))
    lab.claim("flat", growth, between=(0.9, 1.1))

    operations = lab.count(torch.mm, a, b).flops
    rows = []
    for name, dtype in DTYPES.items():
        moved_bytes = 3 * a.to(dtype).nbytes  # both factors and the result
        rows.append((name, errors.get((name, 256), 0.0), operations / moved_bytes))
    head = ("dtype", "error", "operations for each byte")
    lab.table("a product of 256 x 256", rows, head=head)


def has_cpu_float16():
    """Ask what torch itself asks before it multiplies float16 on a CPU."""
    question = getattr(torch.ops.mkldnn, "_is_mkldnn_fp16_supported", None)
    return question is not None and question()


def find_lacks_on_cpu(lab):
    """Return, for each claim about time, what this CPU lacks for it."""
    lacks = dict.fromkeys(("tensor-cores", "three", "geforce", "tf32"), "a CUDA device")
    is_x86 = platform.machine() in ("x86_64", "AMD64")
    if not is_x86:
        lacks["cpu-units"] = "an x86 CPU"
        lacks["no-units"] = "an x86 CPU"
        return lacks
    lacks["cpu-units"] = lab.lacks_units(torch.bfloat16)
    if has_cpu_float16():
        lacks["no-units"] = "a CPU without units for float16"
    rows = [
        ("AVX512-BF16 or AMX", not lacks["cpu-units"]),
        ("float16", has_cpu_float16()),
    ]
    lab.table("units for 16 bits", rows, head=("unit", "is there"))
    return lacks


def find_lacks_on_gpu(lab, device):
    """Return, for each claim about time, what this GPU lacks for it."""
    lacks = dict.fromkeys(("cpu-units", "no-units", "float64"), "--device cpu")
    name = torch.get_device_module(device).get_device_name(device)
    lacks_float16 = lab.lacks_units(torch.float16)
    lacks["tensor-cores"] = lacks_float16
    lacks["three"] = lacks_float16
    lacks["geforce"] = lacks_float16
    lacks["tf32"] = lacks_float16 or lab.lacks_units(torch.float32)
    if "GeForce" in name:
        lacks["tensor-cores"] = "a data-centre GPU"
        lacks["three"] = "a data-centre or workstation GPU"
    else:
        lacks["geforce"] = "a GeForce"
    rows = []
    for dtype in ("float16", "bfloat16", "float32"):
        unit = "TF32" if dtype == "float32" else dtype
        rows.append((unit, not lab.lacks_units(DTYPES[dtype])))
    lab.table(f"Tensor Cores of {name}", rows, head=("dtype", "is there"))
    return lacks


def find_arms(lab, on_gpu):
    """Return the dtypes that race: on a GPU float32 and those with units, on a CPU all."""
    if not on_gpu:
        return list(DTYPES)
    arms = ["float32"]
    if not lab.lacks_units(torch.float32):
        arms.append("tf32")
    for name, dtype in HALVES.items():
        if not lab.lacks_units(dtype):
            arms.append(name)
    return arms


def claim_ratios(lab, lacks):
    def claim(key, ratio, bound):
        lab.claim_ratio(key, ratio, at_least=bound, lacks=lacks.get(key, ""))

    claim("tensor-cores", "float32/float16", 7.9)
    claim("three", "float32/float16", 3)
    claim("geforce", "float32/float16", 1.5)
    claim("tf32", "tf32/float16", 1.5)
    claim("cpu-units", "float32/bfloat16", 1.5)
    claim("no-units", "float16/float32", 10)
    claim("float64", "float64/float32", 1.5)


def multiply(lab, x, precision):
    with lab.precision(precision):
        return torch.mm(x, x)


def race_products(lab, arms, n, device):
    lab.stage("timing products")
    functions = {}
    for arm in arms:
        dtype = torch.float32 if arm == "tf32" else DTYPES[arm]
        precision = "tf32" if arm == "tf32" else "ieee"
        x = torch.randn(n, n).to(device, dtype)
        functions[arm] = partial(multiply, lab, x, precision)
    race = lab.race(**functions, seconds=0.5)
    rates = {}
    for arm in arms:
        rates[arm] = 2 * n**3 / median(race.step_s[arm]) / 1e9
    lab.bars(f"rate of a product, n = {n}, GFLOP/s", rates)


def run(
    lab: Lab,
    size: int = 0,  # n of the products that race; 0 is 192 on a CPU and 8192 on a GPU, 0..32768
    signs: Literal["both", "positive"] = "both",  # of the numbers whose errors are measured
) -> None:
    device = lab.device()
    on_gpu = device.type == "cuda"
    n = size or (8192 if on_gpu else 192)

    @lab.once
    def exact():
        measure_errors(lab, device, signs)

    lab.stage("asking for units")
    lacks = find_lacks_on_gpu(lab, device) if on_gpu else find_lacks_on_cpu(lab)
    claim_ratios(lab, lacks)
    arms = find_arms(lab, on_gpu)
    if len(arms) > 1:  # an old GPU has no units at all
        race_products(lab, arms, n, device)
