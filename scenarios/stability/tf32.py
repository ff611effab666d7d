"""TF32 is float32 with the digits of float16: a product keeps three, a difference of products none.

Tensor Cores do not multiply float32. With TF32 each factor keeps only 10 of its 23 mantissa bits, as many
as float16 has, and all 8 exponent bits. The products are added in float32. So the range stays, but digits
are lost. A product of matrices is wrong by 3e-4 if the factors are rounded, and by 8e-4 if the bits are cut
off. In float32 it is wrong by 3e-7. The input and the output are float32 in both cases, so only the error
against float64 reveals TF32.

By default PyTorch allows TF32 in convolutions, and not in products of matrices. So a convolution on a GPU
differs from the CPU in the fourth digit, and an "FP32 baseline" of a convolutional net is one in TF32.

PyTorch has two sets of switches. The old ones are `torch.backends.cudnn.allow_tf32`,
`torch.backends.cuda.matmul.allow_tf32` and `torch.set_float32_matmul_precision("high")`. Since 2.9 there
are new ones, whose values are "tf32", "ieee" and "none": `torch.backends.cuda.matmul.fp32_precision`,
`torch.backends.cudnn.conv.fp32_precision` and `torch.backends.cudnn.rnn.fp32_precision`.
`torch.backends.fp32_precision` is the one for all: products with "none" take its value. Do not mix the two
sets. If a new switch says otherwise than the old one, reading the old one raises a RuntimeError.
`torch.compile` reads it on a GPU, so a mix can fail far from its cause. Setting the old switches is safe,
because they set the new ones as well.

Noisy gradients tolerate TF32. Differences of large numbers do not. The squared distance |a|² + |b|² - 2ab
of two near points is the difference of three products, and their errors are larger than the distance.
Subtract first, or split each factor into the part that TF32 keeps and the rest: three products of these
halves are as exact as float32. The rounding is done by hand here, so a CPU shows it.

In practice: use the new switches alone, in one place at the start of the script. Set both of
`torch.backends.cuda.matmul.fp32_precision` and `torch.backends.cudnn.conv.fp32_precision`, to "tf32" for
training and to "ieee" for a comparison with a CPU.
## Predict
Which is the first whole number that TF32 does not have?
## Look for
- [whole] TF32 has the whole numbers up to 2048, and 2049 is 2050
- [range] 1e38 and 1e-38 are off by 0.1 % or less
- [product] a product of 256 x 1024 by 1024 x 256 random numbers is off by 2.9e-4
- [cut-off] if the last bits are cut off and not rounded, the product is off by 7.7e-4
- [float32] in float32 the product is off by 1e-6 or less
- [bfloat16] in bfloat16 the product is 8 to 12 times as wrong as in TF32
- [distance] 256 squared distances of 0.64 between points of size 80, a difference of products, are off by half or more
- [distance-f32] in float32 these distances are off by 1 % or less
- [split] three products of halves are off by 1e-6 or less
- [default] by default PyTorch allows TF32 in convolutions, and not in products of matrices
- [inherits] a product whose own switch is "none" takes the value of torch.backends.fp32_precision, and its own "ieee" wins
- [mixed] after a new switch allowed TF32 in products, reading the old switch for products raises a RuntimeError
- [together] after the old switch for products was set, the new one agrees: "tf32" for True, and not "tf32" for False
- [gpu] on a GPU that is allowed TF32 the product is off by 1e-4 to 1e-3
## Try next
`--bits 7`: the mantissa of bfloat16. 257 is lost, and the product is as wrong as in bfloat16. Two halves of
7 bits are 16 bits, too few for float32. refutes: whole, range, product, cut-off, bfloat16, split
`--bits 13`: three bits more, an eighth of the error. refutes: whole, product, cut-off, bfloat16, distance
## Source
Ours, after the notes on CUDA in PyTorch's manual, "TensorFloat-32 (TF32) on Ampere (and later) devices",
https://docs.pytorch.org/docs/stable/notes/cuda.html.
"""

import contextlib
import math

import torch

from tuilab import Lab

PRODUCTS = torch.backends.cuda.matmul
CONVOLUTIONS = torch.backends.cudnn.conv
RECURRENT = torch.backends.cudnn.rnn


def cut_off(x, bits):
    """Drop all but so many of the 23 mantissa bits of float32."""
    dropped = 23 - bits
    return (x.view(torch.int32) & -(1 << dropped)).view(torch.float32)


def cut(x, bits):
    """Round float32 to so many of its 23 mantissa bits."""
    dropped = 23 - bits
    half = 1 << dropped >> 1
    return cut_off((x.view(torch.int32) + half).view(torch.float32), bits)


def error(product, exact):
    return ((product.double() - exact).norm() / exact.norm()).item()


def distances(a, b, bits):  # (rows, columns) -> (rows,)
    """Return the squared distances of rows, as a difference of products."""
    return a.square().sum(1) + b.square().sum(1) - 2 * (cut(a, bits) * cut(b, bits)).sum(1)


def split_product(a, b, bits):
    """Return a product of matrices as three products of the halves of their numbers."""
    a_high = cut(a, bits)
    a_low = cut(a - a_high, bits)
    b_high = cut(b, bits)
    b_low = cut(b - b_high, bits)
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


def run(
    lab: Lab,
    bits: int = 10,  # of the mantissa that a factor keeps, 1..23
) -> None:
    device = lab.device()
    allowed = [CONVOLUTIONS.fp32_precision == "tf32", PRODUCTS.fp32_precision == "tf32"]
    lab.claim("default", allowed, equals=[True, False])

    lab.axes("error", x="bits of the mantissa that factors keep", y="relative error of the product", log="y")
    a = torch.randn(256, 1024, device=device)
    b = torch.randn(1024, 256, device=device)
    exact = a.double() @ b.double()
    with lab.precision("ieee"):
        for kept in lab.sweep(range(1, 24), "bits of the mantissa"):
            lab.log(kept, error=error(cut(a, kept) @ cut(b, kept), exact))
        errors = {
            "float32": error(a @ b, exact),
            "split TF32": error(split_product(a, b, bits), exact),
            "TF32": error(cut(a, bits) @ cut(b, bits), exact),
            "TF32, cut off": error(cut_off(a, bits) @ cut_off(b, bits), exact),
            "float16": error(a.half() @ b.half(), exact),
            "bfloat16": error(a.bfloat16() @ b.bfloat16(), exact),
        }
    lab.table("error of a product of matrices", [*errors.items()], head=("factors", "relative error"))
    lab.claim("product", errors["TF32"], equals=2.9e-4, tolerance=1e-5)
    lab.claim("cut-off", errors["TF32, cut off"], equals=7.7e-4, tolerance=2e-5)
    lab.claim("float32", errors["float32"], at_most=1e-6)
    lab.claim("bfloat16", errors["bfloat16"] / errors["TF32"], between=(8, 12))
    lab.claim("split", errors["split TF32"], at_most=1e-6)

    whole = torch.arange(2050.0, device=device)
    survives = cut(whole, bits) == whole
    lost = next(iter(whole[~survives].tolist()), math.nan)  # the first one
    kept_all = survives[:2049].all().item()
    lab.claim("whole", [kept_all, cut(whole, bits)[2049].item()], equals=[True, 2050], answers=lost)
    ends = torch.tensor([1e38, 1e-38], device=device)
    off = ((cut(ends, bits) - ends) / ends).abs().max()
    lab.claim("range", 100 * off, at_most=0.1, unit="%")

    lab.stage("distances of near points")
    points = 10 + torch.randn(256, 64, device=device)
    near = points + 0.1 * torch.randn(256, 64, device=device)
    truth = (points.double() - near.double()).square().sum(1)
    lab.claim("distance", error(distances(points, near, bits), truth), at_least=0.5)
    lab.claim("distance-f32", 100 * error(distances(points, near, 23), truth), at_most=1, unit="%")

    lab.stage("old and new switches")
    lab.claim("inherits", inherited_precision(), equals=["tf32", "ieee"])
    lab.claim("mixed", lab.raises(read_old_after_new).partition(":")[0], equals="RuntimeError")
    lab.claim("together", read_new_after_old(), equals=[True, False])

    is_on_gpu = device.type == "cuda"
    with lab.precision("tf32"):
        on_gpu = error(a @ b, exact) if is_on_gpu else math.nan
    lacks = lab.lacks_units(torch.float32) if is_on_gpu else "a CUDA device"
    lab.claim("gpu", on_gpu, between=(1e-4, 1e-3), lacks=lacks)
