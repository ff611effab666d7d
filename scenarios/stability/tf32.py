"""TF32 is float32 with the digits of float16: a product keeps three, a difference of products none.

A Tensor Core does not multiply float32. TF32 rounds both factors to the 10 mantissa bits of float16, keeps the 8 exponent bits
of float32, multiplies, and adds in float32. The range stays, digits go: a product of matrices is off by 3e-4, not by 3e-7.

PyTorch allows it in convolutions of its own accord, and in products of matrices only when told:
`torch.set_float32_matmul_precision("high")`. What goes in and what comes out is float32 all the same, and the error against
float64 is the one thing that tells. So convolutions on a GPU differ from the CPU in the fourth digit, and an FP32 baseline of a
convolutional net is one in TF32.

Noisy gradients do not mind; differences of large numbers do. The squared distance |a|² + |b|² - 2ab of two near points is the
difference of three products, and their errors are larger than the distance. Subtract first, or split each factor into what
TF32 keeps and the rest: three products of the halves have the error of float32.

The rounding is done by hand here, so a CPU shows it.
## Predict
Which is the first whole number that TF32 does not have?
## Look for
- [whole] TF32 has the whole numbers up to 2048, and 2049 is 2050
- [range] 1e38 and 1e-38 are off by 0.1 % or less
- [product] a product of 256 x 1024 by 1024 x 256 random numbers is off by 2.9e-4
- [float32] in float32 it is off by 1e-6 or less
- [bfloat16] in bfloat16 it is 8 to 12 times as wrong as in TF32
- [distance] 256 squared distances of 0.64 between points of size 80, a difference of products, are off by half or more
- [distance-f32] in float32 they are off by 1 % or less
- [split] three products of halves are off by 1e-6 or less
- [default] of itself PyTorch allows TF32 in convolutions, and not in products of matrices
- [gpu] on a GPU that is allowed TF32 the product is off by 1e-4 to 1e-3
## Try next
`--bits 7`: the mantissa of bfloat16. 257 is lost, and the product is as wrong as that of bfloat16. Two halves of 7 bits are 16
bits, too few for float32. refutes: whole, range, product, bfloat16, split
`--bits 13`: three bits more, an eighth of the error. refutes: whole, product, bfloat16, distance
## Source
Ours, after the notes on CUDA in PyTorch's manual, "TensorFloat-32 (TF32) on Ampere (and later) devices",
https://docs.pytorch.org/docs/stable/notes/cuda.html.
"""

import math

import torch

from tuilab import Lab


def cut(x, bits):
    """Float32, rounded to so many of its 23 mantissa bits."""
    dropped = 23 - bits
    half = 1 << dropped >> 1
    return ((x.view(torch.int32) + half) & -(1 << dropped)).view(torch.float32)


def error(product, exact):
    return ((product.double() - exact).norm() / exact.norm()).item()


def distances(a, b, bits):  # (rows, columns)
    """Squared distances of rows, as a difference of products."""
    return a.square().sum(1) + b.square().sum(1) - 2 * (cut(a, bits) * cut(b, bits)).sum(1)


def run(
    lab: Lab,
    bits: int = 10,  # of the mantissa that a factor keeps, 1..23
) -> None:
    device = lab.device()
    lab.axes("error", x="bits of the mantissa that factors keep", y="relative error of the product", log="y")
    a, b = torch.randn(256, 1024, device=device), torch.randn(1024, 256, device=device)
    exact = a.double() @ b.double()
    with lab.precision("ieee"):
        for kept in lab.sweep(range(1, 24), "bits of the mantissa"):
            lab.log(kept, error=error(cut(a, kept) @ cut(b, kept), exact))
        high, low = [[cut(x, bits), cut(x - cut(x, bits), bits)] for x in (a, b)]
        errors = {
            "float32": error(a @ b, exact),
            "split TF32": error(high[0] @ low[0] + (high[0] @ low[1] + high[1] @ low[0]), exact),
            "TF32": error(cut(a, bits) @ cut(b, bits), exact),
            "float16": error(a.half() @ b.half(), exact),
            "bfloat16": error(a.bfloat16() @ b.bfloat16(), exact),
        }
    lab.table("error of a product of matrices", [*errors.items()], head=("factors", "relative error"))
    whole = torch.arange(2050.0, device=device)
    survives = cut(whole, bits) == whole
    lost = next(iter(whole[~survives].tolist()), math.nan)  # the first
    lab.claim("whole", [survives[:2049].all().item(), cut(whole, bits)[2049].item()], equals=[True, 2050], answers=lost)
    ends = torch.tensor([1e38, 1e-38], device=device)
    lab.claim("range", 100 * ((cut(ends, bits) - ends) / ends).abs().max(), at_most=0.1, unit="%")
    lab.claim("product", errors["TF32"], equals=2.9e-4, tolerance=1e-5)
    lab.claim("float32", errors["float32"], at_most=1e-6)
    lab.claim("bfloat16", errors["bfloat16"] / errors["TF32"], between=(8, 12))
    lab.claim("split", errors["split TF32"], at_most=1e-6)

    lab.stage("distances of near points")
    points = 10 + torch.randn(256, 64, device=device)
    near = points + 0.1 * torch.randn(256, 64, device=device)
    truth = (points.double() - near.double()).square().sum(1)
    lab.claim("distance", error(distances(points, near, bits), truth), at_least=0.5)
    lab.claim("distance-f32", 100 * error(distances(points, near, 23), truth), at_most=1, unit="%")
    allowed = [torch.backends.cudnn.allow_tf32, torch.get_float32_matmul_precision()]
    lab.claim("default", allowed, equals=[True, "highest"])
    with lab.precision("tf32"):
        found = error(a @ b, exact) if device.type == "cuda" else math.nan
    lab.claim("gpu", found, between=(1e-4, 1e-3), lacks="" if device.type == "cuda" else "a CUDA device")
