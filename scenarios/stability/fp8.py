"""Give each FP8 tensor a scale, and each row its own if the rows differ in size.

Eight-bit numbers halve the bytes of bfloat16, but each of the two formats lacks something. The
format e4m3 has 4 bits of exponent and 3 of mantissa. It ends at 448, and has 8 numbers from 1 up
to 2. The format e5m2 has 5 and 2 bits. It ends at 57344, with 4 numbers from 1 up to 2. So each
tensor is multiplied by a scale before the conversion. The scale moves its largest element to the
largest number of the format. The result of a matrix product is divided by both scales.

A scale moves a tensor, but does not make it narrower. A row that is far larger than the others
takes the range from them, and a scale for each row gives it back. From its largest number down to
0, e4m3 has 5.7 decades and e5m2 has 9.9. Gradients that span eight decades lose their small
values in e4m3 only. So e4m3 is for the forward pass, and e5m2 for gradients.

To gain range, e4m3 has no inf. A value that is too large becomes 448, and so does inf. A check
for inf finds no overflow there. Until the spring of 2026 the conversion gave nan. With a scale
nothing is too large.

FP8 operators only store and multiply. How a matrix product adds depends on the device. A CPU adds
in float32. The FP8 Tensor Cores of Hopper and Ada keep about 14 bits of a running sum. So
kernels move the sum to float32 after a number of products, often 128. `use_fast_accum=True`
leaves that out, which is faster and less exact. Equal products do not show the loss, but products
of mixed sizes do. On Blackwell users measured 25 bits. The lesson imitates both kinds of sums by
hand, and measures them on a GPU. There it also compares the time with bfloat16, in products of
8192 x 8192 matrices that fill the GPU.

In practice: take a library that keeps the scales (torchao, Transformer Engine). Use e4m3 for the
forward pass and e5m2 for gradients. Leave `use_fast_accum` off for the products of backward.
## Predict
4096 gradients, normal numbers times 1e-6, are converted to e4m3 without a scale. How many become 0?
## Look for
- [e4m3] the 256 patterns of e4m3 are 254 numbers up to 448 and 2 nan, and there is no inf
- [e5m2] the 256 patterns of e5m2 are 248 numbers up to 57344, 6 nan, inf and -inf
- [counting] 17 is 16 in e4m3, and 9 is 8 in e5m2
- [too-large] in e4m3 neither 1000 nor inf is inf, in e5m2 1000 is 1024 and 100,000 is inf
- [unscaled] of 4096 normal numbers times 1e-6 all are 0 in both formats
- [scaled] with the scale of the tensor none is 0, and they are off by 2.6 % in e4m3 and 5.2 % in
  e5m2
- [spread] of 4096 numbers over 8 decades a fifth or more are 0 in e4m3, with the scale of the
  tensor
- [backward] of 4096 numbers over 8 decades none is 0 in e5m2, with the scale of the tensor
- [outlier] one row of 64 that is 100,000 times larger makes a third or more of the others 0 in e4m3
- [per-row] with a scale for each row, the rows that are not larger are off by 2.6 %
- [no-sum] torch.add of two e4m3 tensors and torch.sum of one tensor raise NotImplementedError
- [wide] 4096 products of 0.001 and 0.001, from e4m3 tensors and their scales, add up to 0.004096
- [mixed] on a CPU sums of 4096 products of mixed sizes are off by 1e-6 or less
- [few-bits] if 14 bits are kept after each 32 products, sums of 4096 products of mixed sizes are
  off by 0.1 % or more
- [promoted] without a move to float32 after each 128 products, sums of 14 bits are at least 10
  times as wrong as with it
- [gpu-fast] on a Hopper or Ada GPU with use_fast_accum=True, sums of 4096 products of mixed sizes
  are off by 0.01 % or more
- [gpu-promoted] on a Hopper or Ada GPU sums with use_fast_accum=True are at least twice as wrong as
  sums without it
- [gpu-time] on a GPU a product of 8192 x 8192 matrices takes at least 1.4 times as long in bfloat16
  as in e4m3 with use_fast_accum=True
## Try next
`--decades 2`: the numbers are closer together, and e4m3 has room for them. refutes: spread
`--outlier 1`: rows of one size need no scales of their own. refutes: outlier
`--kept 24`: the running sum keeps all bits of float32, so it loses nothing that a move to float32
could save. refutes: few-bits, promoted
## Source
Ours. The two formats are those of "FP8 Formats for Deep Learning",
https://arxiv.org/abs/2209.05433. An overflow is 448 since
https://github.com/pytorch/pytorch/pull/178817. The 14 bits of Hopper and the 128 products:
https://github.com/deepseek-ai/DeepGEMM/issues/37 and
https://github.com/triton-lang/triton/issues/2300. The 25 bits of Blackwell:
https://github.com/deepseek-ai/DeepGEMM/issues/176.
"""

import math
from functools import partial

import torch
import torch.nn.functional as F

from tuilab import Lab

E4M3 = torch.float8_e4m3fn
E5M2 = torch.float8_e5m2
GROUP = 32  # products that are added before bits of the sum are dropped
PROMOTED = 128  # products that are added before the sum is moved to float32
GPU_ROWS = 2048  # of the sums that a GPU adds
GPU_SIZE = 8192  # of the products that a GPU times


def scale_of(x, dtype, **dims):
    """Return the scale that moves the largest element to the largest number of the dtype."""
    return torch.finfo(dtype).max / x.abs().amax(**dims)


def convert_and_back(x, dtype, scale=1.0):
    return (x * scale).to(dtype).float() / scale


def relative_error(result, exact):
    return ((result - exact).norm() / exact.norm()).item()


def share_of_zeros(x):
    return (x == 0).float().mean().item()


def count_patterns(dtype):
    """Return how many patterns are finite, nan and inf, and the largest number."""
    patterns = torch.arange(256, dtype=torch.uint8).view(dtype).float()
    is_finite = patterns.isfinite()
    return [
        is_finite.sum().item(),
        patterns.isnan().sum().item(),
        patterns.isinf().sum().item(),
        patterns[is_finite].max().item(),
    ]


def scaled_product(a, b, a_scale, b_scale, fast=False, output=torch.float32):  # (n, k), (m, k)
    """Return a @ b.T of two FP8 matrices, divided by their scales."""
    whole = F.ScalingType.TensorWise
    return F.scaled_mm(
        a,
        b.t(),
        1 / a_scale,
        whole,
        1 / b_scale,
        whole,
        output_dtype=output,
        use_fast_accum=fast,
    )


def product_with_itself(x, fast=False):  # (n, k) -> (n, n)
    scale = scale_of(x, E4M3)
    x8 = (x * scale).to(E4M3)
    return scaled_product(x8, x8, scale, scale, fast)


def exact_product(x):  # (n, k) -> (n, n), float64
    """Multiply the same eight-bit numbers in float64."""
    scale = scale_of(x, E4M3)
    x8 = (x * scale).to(E4M3).float().double()
    return x8 @ x8.t() / scale.double().square()


def keep_bits(total, bits):
    """Cut off all but so many bits of float32, which has 24 with its leading 1."""
    dropped = 24 - bits
    return (total.view(torch.int32) & -(1 << dropped)).view(torch.float32)


def product_of_few_bits(x, bits, promote_after):  # (n, k) -> (n, n)
    """Keep few bits of the sum after each group, and move it to float32 now and then."""
    scale = scale_of(x, E4M3)
    x8 = (x * scale).to(E4M3).float()
    total = x.new_zeros(len(x), len(x))  # float32
    running = torch.zeros_like(total)  # of few bits
    added = 0
    for part in x8.split(GROUP, dim=1):  # (n, 32)
        running = keep_bits(running + part @ part.t(), bits)
        added += GROUP
        if added % promote_after == 0:
            total = total + running
            running = torch.zeros_like(total)
    return (total + running) / scale.square()


def rows_of_mixed_sizes(rows):  # (rows, 4096), on a CPU
    return torch.randn(rows, 4096) * 10 ** (-2 * torch.rand(rows, 4096))


def lacks_short_sums(device):
    """Return what is missing for a test of running sums of few bits."""
    if device.type != "cuda" or torch.version.hip:
        return "a CUDA device"
    capability = torch.get_device_module(device).get_device_capability(device)
    if capability not in [(8, 9), (9, 0)]:
        return "a GPU of the generation Ada or Hopper"
    return ""


def show_formats(lab, device):
    lab.axes("error", x="number", y="largest relative error", log="xy")
    dtypes = {"e4m3": E4M3, "e5m2": E5M2, "bfloat16": torch.bfloat16}
    for power in lab.sweep(range(-20, 19), "powers of two"):
        x = 2.0**power * torch.linspace(1, 1.999, 101, device=device)
        for name, dtype in dtypes.items():
            errors = (convert_and_back(x, dtype) - x) / x
            lab.log(2.0**power, arm=name, error=errors.abs().max())

    lab.stage("the formats")
    lab.claim("e4m3", count_patterns(E4M3), equals=[254, 2, 0, 448])
    lab.claim("e5m2", count_patterns(E5M2), equals=[248, 6, 2, 57_344])
    few = torch.tensor([17.0, 9.0, 1000.0, math.inf, 100_000.0], device=device)
    in_e4m3 = convert_and_back(few, E4M3).tolist()
    in_e5m2 = convert_and_back(few, E5M2).tolist()
    lab.claim("counting", [in_e4m3[0], in_e5m2[1]], equals=[16, 8])
    has_inf = math.inf in in_e4m3[2:4]
    lab.claim("too-large", [has_inf, in_e5m2[2], in_e5m2[4]], equals=[False, 1024, math.inf])


def show_scales(lab, device, decades, outlier):
    lab.stage("scales")
    x = 1e-6 * torch.randn(4096, device=device)
    unscaled = [share_of_zeros(convert_and_back(x, dtype)) for dtype in (E4M3, E5M2)]
    lab.claim("unscaled", unscaled, equals=[1, 1], answers=len(x) * unscaled[0])
    zeros = []
    errors = []
    for dtype in (E4M3, E5M2):
        back = convert_and_back(x, dtype, scale_of(x, dtype))
        zeros.append(share_of_zeros(back))
        errors.append(relative_error(back, x))
    lab.claim("scaled", zeros + errors, equals=[0, 0, 0.026, 0.052], tolerance=0.002)

    sizes = 10 ** (-decades * torch.rand(4096, device=device))
    x = torch.randn(4096, device=device).sign() * sizes
    in_e4m3 = convert_and_back(x, E4M3, scale_of(x, E4M3))
    in_e5m2 = convert_and_back(x, E5M2, scale_of(x, E5M2))
    lab.claim("spread", share_of_zeros(in_e4m3), at_least=0.2)
    lab.claim("backward", share_of_zeros(in_e5m2), equals=0)

    x = torch.randn(64, 512, device=device)
    x[0] *= outlier
    row_scales = scale_of(x, E4M3, dim=1, keepdim=True)  # (64, 1)
    of_tensor = convert_and_back(x, E4M3, scale_of(x, E4M3))[1:]
    of_rows = convert_and_back(x, E4M3, row_scales)[1:]
    zeros = {
        "a scale": share_of_zeros(of_tensor),
        "a scale for each row": share_of_zeros(of_rows),
    }
    lab.bars("share of 0 in e4m3, in the rows that are not larger", zeros)
    lab.claim("outlier", zeros["a scale"], at_least=1 / 3)
    lab.claim("per-row", 100 * relative_error(of_rows, x[1:]), equals=2.6, tolerance=0.2, unit="%")


def show_sums(lab, device, kept):
    lab.stage("sums and products")
    ones = torch.ones(16, device=device).to(E4M3)
    refused = [lab.raises(torch.add, ones, ones), lab.raises(torch.sum, ones)]
    raised = [text.partition(":")[0] for text in refused]
    lab.claim("no-sum", raised, equals=["NotImplementedError"] * 2)
    equal = torch.full((16, 4096), 0.001, device=device)
    refusal = lab.raises(product_with_itself, equal)  # by an older GPU
    lacks = f"products of eight bits: {refusal[:200]}" if refusal else ""
    total = math.nan if refusal else product_with_itself(equal)[0, 0].item()
    lab.claim("wide", total, equals=0.004096, tolerance=1e-8, lacks=lacks)

    mixed = rows_of_mixed_sizes(16)
    exact = exact_product(mixed)
    errors = {"a CPU": relative_error(product_with_itself(mixed).double(), exact)}
    few_bits = product_of_few_bits(mixed, kept, promote_after=4096)
    promoted = product_of_few_bits(mixed, kept, promote_after=PROMOTED)
    few_bits_error = relative_error(few_bits.double(), exact)
    promoted_error = relative_error(promoted.double(), exact)
    errors[f"{kept} bits kept, by hand"] = few_bits_error
    errors[f"{kept} bits kept, float32 after {PROMOTED}"] = promoted_error
    lab.claim("mixed", errors["a CPU"], at_most=1e-6)
    lab.claim("few-bits", 100 * few_bits_error, at_least=0.1, unit="%")
    lab.claim("promoted", few_bits_error / promoted_error, at_least=10)

    fast_error = math.nan
    slow_error = math.nan
    if device.type == "cuda" and not refusal:
        x = rows_of_mixed_sizes(GPU_ROWS).to(device)
        exact = exact_product(x)
        fast_error = relative_error(product_with_itself(x, fast=True).double(), exact)
        slow_error = relative_error(product_with_itself(x).double(), exact)
        errors["this GPU, use_fast_accum=True"] = fast_error
        errors["this GPU"] = slow_error
    lab.table("sums of 4096 products", [*errors.items()], head=("added by", "relative error"))
    lacks = lacks_short_sums(device) or lacks
    lab.claim("gpu-fast", 100 * fast_error, at_least=0.01, unit="%", lacks=lacks)
    lab.claim("gpu-promoted", fast_error / slow_error, at_least=2, lacks=lacks)


def run(
    lab: Lab,
    decades: float = 8.0,  # over which gradients are spread
    outlier: float = 100_000.0,  # how much larger one row is
    kept: int = 14,  # bits of a running sum, 2..24
) -> None:
    device = lab.device()

    @lab.once
    def exact():
        show_formats(lab, device)
        show_scales(lab, device, decades, outlier)
        show_sums(lab, device, kept)

    lacks = lab.lacks_units(E4M3) if device.type == "cuda" else "a CUDA device"
    lab.claim_ratio("gpu-time", "bfloat16/e4m3_fast", at_least=1.4, lacks=lacks)
    if lacks:
        return
    lab.stage("timing products")
    x = torch.randn(GPU_SIZE, GPU_SIZE, device=device)
    x16 = x.bfloat16()
    scale = scale_of(x, E4M3)
    x8 = (x * scale).to(E4M3)
    product = partial(scaled_product, x8, x8, scale, scale, output=torch.bfloat16)
    lab.race(
        bfloat16=lambda: x16 @ x16.t(),
        e4m3=product,
        e4m3_fast=partial(product, fast=True),
    )
