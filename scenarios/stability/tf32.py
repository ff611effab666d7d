"""Allow TF32 for training, and turn it off for references and small differences.

Tensor Cores do not multiply float32. With TF32 each factor keeps only 10 of its 23 mantissa bits,
as many as float16 has, and all 8 exponent bits. The products are added in float32. So the range
stays, but digits are lost. The lesson does the rounding by hand, so a CPU shows the loss. The
input and the output are float32 in both cases, so only the error against float64 reveals TF32.

A factor can be rounded to 10 bits, or the other 13 bits can be cut off. Libraries may round
before the product. Tensor Cores ignore the last bits of factors that nobody has rounded. The
first error is 2.6 times smaller, and both are about a thousand times larger than in float32.

By default PyTorch allows TF32 in convolutions, and not in matrix products. So a convolution on a
GPU differs from the CPU in the fourth digit. An "FP32 baseline" of a convolutional net is in fact
a TF32 baseline.

PyTorch has two sets of switches. The old ones are `torch.backends.cudnn.allow_tf32`,
`torch.backends.cuda.matmul.allow_tf32` and `torch.set_float32_matmul_precision("high")`. Since 2.9
there are new ones, whose values are "tf32", "ieee" and "none":
`torch.backends.cuda.matmul.fp32_precision`, `torch.backends.cudnn.conv.fp32_precision` and
`torch.backends.cudnn.rnn.fp32_precision`. If the value is "none", the operation takes the value
of `torch.backends.fp32_precision`.

Do not mix the two sets. If a new switch disagrees with the old one, reading the old one raises a
RuntimeError. `torch.compile` reads it on a GPU, so a mix can fail far from its cause. An old
switch also sets the new switch, so a script with the old set alone is safe.

Noisy gradients tolerate TF32. Differences of large numbers do not. The squared distance
|a|² + |b|² - 2ab of two near points is a difference of products, and their errors are larger
than the distance. Subtract the points first. If you need the product itself, split each factor
into the part that TF32 keeps and the rest. Three products of halves are as exact as float32.

In practice: use the new switches alone, in one place at the start of the script. Set both
`torch.backends.cuda.matmul.fp32_precision` and `torch.backends.cudnn.conv.fp32_precision`: to
"tf32" for training, and to "ieee" for a comparison with a CPU.
## Predict
Which is the first whole number that TF32 does not have?
## Look for
- [whole] TF32 has the whole numbers up to 2048, and 2049 is 2050
- [range] in TF32 1e38 and 1e-38 are off by 0.1 % or less
- [product] in TF32 a product of 256 x 1024 by 1024 x 256 random numbers is off by 2.9e-4
- [cut-off] if the last bits are cut off and not rounded, the product is off by 7.7e-4
- [float32] in float32 the product is off by 1e-6 or less
- [bfloat16] in bfloat16 the product is 8 to 12 times as wrong as in TF32
- [distance] as a difference of products in TF32, 256 squared distances of 0.64 between points of
  size 80 are off by half or more
- [distance-f32] in float32 these distances are off by 1 % or less
- [split] a product of matrices as three products of halves in TF32 is off by 1e-6 or less
- [default] by default PyTorch allows TF32 in convolutions, and not in matrix products
- [inherits] a product whose own switch is "none" takes the value of torch.backends.fp32_precision,
  and its own "ieee" has priority
- [mixed] after the new switch allowed TF32 in products, reading the old switch for products raises
  a RuntimeError
- [together] after the old switch for products was set, the new one agrees: "tf32" for True, and
  not "tf32" for False
- [gpu-default] on a GPU with the default switches the product is off by 1e-5 or less
- [gpu-conv] on a GPU with the default switches a convolution is off by 1e-4 to 1e-3
- [gpu] on a GPU that is allowed TF32 in products the product is off by 1e-4 to 1e-3
## Try next
`--bits 7`: the mantissa of bfloat16. 257 is lost, and the product is as wrong as in bfloat16. Two
halves of 7 bits hold 16 bits with their leading ones, and float32 has 24. refutes: whole, range,
product, cut-off, bfloat16, split
`--bits 13`: three bits more leave an eighth of the error. refutes: whole, product, cut-off,
bfloat16, distance
## Source
Ours, after the notes on CUDA in PyTorch's manual, "TensorFloat-32 (TF32) on Ampere (and later)
devices", https://docs.pytorch.org/docs/stable/notes/cuda.html.
"""

import contextlib
import math

import torch
import torch.nn.functional as F

from tuilab import Lab

PRODUCTS = torch.backends.cuda.matmul
CONVOLUTIONS = torch.backends.cudnn.conv
RECURRENT = torch.backends.cudnn.rnn


def cut_off(x, bits):
    """Drop all but so many of the 23 mantissa bits of float32."""
    dropped = 23 - bits
    return (x.view(torch.int32) & -(1 << dropped)).view(torch.float32)


def round_to(x, bits):
    """Round float32 to so many of its 23 mantissa bits."""
    dropped = 23 - bits
    half_step = 1 << dropped >> 1
    raised = (x.view(torch.int32) + half_step).view(torch.float32)
    return cut_off(raised, bits)


def relative_error(result, exact):
    return ((result.double() - exact).norm() / exact.norm()).item()


def squared_distances(a, b, bits):  # (rows, columns) -> (rows,)
    """Return the squared distances of rows, as a difference of products."""
    products = (round_to(a, bits) * round_to(b, bits)).sum(1)
    return a.square().sum(1) + b.square().sum(1) - 2 * products


def split_product(a, b, bits):
    """Return a product of matrices as three products of the halves of their numbers."""
    a_high = round_to(a, bits)
    a_low = round_to(a - a_high, bits)
    b_high = round_to(b, bits)
    b_low = round_to(b - b_high, bits)
    return a_high @ b_high + (a_high @ b_low + a_low @ b_high)


@contextlib.contextmanager
def switches_kept():
    """Give the switches back the values that they had before."""
    every = [torch.backends, PRODUCTS, CONVOLUTIONS, RECURRENT]
    before = [switch.fp32_precision for switch in every]
    try:
        yield
    finally:
        for switch, value in zip(every, before, strict=True):
            switch.fp32_precision = value


def inherited_precision():
    """Return the precision of products: first that of all backends, then one of their own."""
    with switches_kept():
        PRODUCTS.fp32_precision = "none"
        torch.backends.fp32_precision = "tf32"
        inherited = PRODUCTS.fp32_precision
        PRODUCTS.fp32_precision = "ieee"
        return [inherited, PRODUCTS.fp32_precision]


def read_old_after_new():
    """Allow TF32 by a new switch, and read the old switch."""
    with switches_kept():
        PRODUCTS.allow_tf32 = False  # the default
        PRODUCTS.fp32_precision = "tf32"
        return PRODUCTS.allow_tf32


def read_new_after_old():
    """Return whether the new switch allows TF32 after the old one was set to True, and to False."""
    with switches_kept():
        allowed = []
        for value in (True, False):
            PRODUCTS.allow_tf32 = value
            allowed.append(PRODUCTS.fp32_precision == "tf32")
        return allowed


def measure_products(lab, a, b, exact, bits):
    """Measure the errors of a product of matrices by the dtype of its factors."""
    lab.axes("error", x="bits of the mantissa", y="relative error of the product", log="y")
    with lab.precision("ieee"):
        for kept in lab.sweep(range(1, 24), "bits of the mantissa"):
            product = round_to(a, kept) @ round_to(b, kept)
            lab.log(kept, error=relative_error(product, exact))
        products = {
            "float32": a @ b,
            "split TF32": split_product(a, b, bits),
            "TF32": round_to(a, bits) @ round_to(b, bits),
            "TF32, cut off": cut_off(a, bits) @ cut_off(b, bits),
            "float16": a.half() @ b.half(),
            "bfloat16": a.bfloat16() @ b.bfloat16(),
        }
    errors = {}
    for name, product in products.items():
        errors[name] = relative_error(product, exact)
    lab.table("error of a product", [*errors.items()], head=("factors", "relative error"))
    lab.claim("product", errors["TF32"], equals=2.9e-4, tolerance=1e-5)
    lab.claim("cut-off", errors["TF32, cut off"], equals=7.7e-4, tolerance=2e-5)
    lab.claim("float32", errors["float32"], at_most=1e-6)
    lab.claim("bfloat16", errors["bfloat16"] / errors["TF32"], between=(8, 12))
    lab.claim("split", errors["split TF32"], at_most=1e-6)


def find_lost_numbers(lab, device, bits):
    """Find the first whole number that is lost, and test both ends of the range."""
    whole = torch.arange(2050.0, device=device)
    rounded = round_to(whole, bits)
    lost = whole[rounded != whole].tolist()
    first_lost = lost[0] if lost else math.nan
    are_small_kept = torch.equal(rounded[:2049], whole[:2049])
    lab.claim(
        "whole", [are_small_kept, rounded[2049].item()], equals=[True, 2050], answers=first_lost
    )
    ends = torch.tensor([1e38, 1e-38], device=device)
    errors = (round_to(ends, bits) - ends) / ends
    lab.claim("range", 100 * errors.abs().max(), at_most=0.1, unit="%")


def measure_distances(lab, device, bits):
    lab.stage("distances of near points")
    points = 10 + torch.randn(256, 64, device=device)
    near = points + 0.1 * torch.randn(256, 64, device=device)
    exact = (points.double() - near.double()).square().sum(1)
    short = squared_distances(points, near, bits)
    full = squared_distances(points, near, 23)
    lab.claim("distance", relative_error(short, exact), at_least=0.5)
    lab.claim("distance-f32", 100 * relative_error(full, exact), at_most=1, unit="%")


def measure_gpu(lab, device, a, b, exact):
    """Measure on a GPU a product and a convolution by default, and a product in TF32."""
    lacks = "a CUDA device"
    if device.type == "cuda":
        lacks = lab.lacks_units(torch.float32)
    if lacks:
        lab.claim("gpu-default", lacks=lacks)
        lab.claim("gpu-conv", lacks=lacks)
        lab.claim("gpu", lacks=lacks)
        return
    by_default = relative_error(a @ b, exact)
    images = torch.randn(16, 128, 28, 28, device=device)
    kernels = torch.randn(128, 128, 3, 3, device=device)
    exact_images = F.conv2d(images.double(), kernels.double())  # (16, 128, 26, 26)
    convolved = relative_error(F.conv2d(images, kernels), exact_images)
    with lab.precision("tf32"):
        in_tf32 = relative_error(a @ b, exact)
    rows = [
        ("product, by default", by_default),
        ("convolution, by default", convolved),
        ("product, TF32 allowed", in_tf32),
    ]
    lab.table("error on this GPU", rows, head=("operation", "relative error"))
    lab.claim("gpu-default", by_default, at_most=1e-5)
    lab.claim("gpu-conv", convolved, between=(1e-4, 1e-3))
    lab.claim("gpu", in_tf32, between=(1e-4, 1e-3))


def run(
    lab: Lab,
    bits: int = 10,  # mantissa bits that each factor keeps, 1..23
) -> None:
    device = lab.device()
    allowed = [CONVOLUTIONS.fp32_precision == "tf32", PRODUCTS.fp32_precision == "tf32"]
    lab.claim("default", allowed, equals=[True, False])

    a = torch.randn(256, 1024, device=device)
    b = torch.randn(1024, 256, device=device)
    exact = a.double() @ b.double()
    measure_products(lab, a, b, exact, bits)
    find_lost_numbers(lab, device, bits)
    measure_distances(lab, device, bits)

    lab.stage("old and new switches")
    lab.claim("inherits", inherited_precision(), equals=["tf32", "ieee"])
    lab.claim("mixed", lab.raises(read_old_after_new).partition(":")[0], equals="RuntimeError")
    lab.claim("together", read_new_after_old(), equals=[True, False])
    lab.stage("the device's own TF32")
    measure_gpu(lab, device, a, b, exact)
