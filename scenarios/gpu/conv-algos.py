"""One convolution, four algorithms: they agree to five digits, and a library chooses anew for every new shape.

A convolution can be one large product with a matrix of all patches (im2col), or a product of spectra (FFT). For 3 x 3 there is
that of Winograd, with 16 products for 4 results in the place of 36. A library has some of these and more. They differ in
products, in memory and in the order of their sums; so they agree, but not in the last bits. Which is fastest depends on shape,
dtype and device, so a library looks at the shape and chooses. The chart shows conv2d beside three that are written by hand.

`torch.backends.cudnn.benchmark = True` lets cuDNN try several at the first call of a shape, and keep the fastest. It pays where
shapes stay, and costs with each new one: another size of image, the last, smaller batch. It may choose otherwise in the next
run, and then the bits are others. Without it cuDNN goes by rules, and on a CPU oneDNN writes code for the shape: that is kept
as well, so a new shape costs in any case. On a CPU the switch does nothing.
## Predict
A small convolution, 3 x 3 with 16 channels, gets an input of a new shape. How many times as long does the call take as with
a shape that was there before?
## Look for
- [agree] with kernels of 1 to 15 all are off by at most 3e-6 from float64
- [bits] FFT and Winograd give other bits than conv2d
- [winograd] for 3 x 3 Winograd has at most 0.8 of the products of conv2d, those of its transforms included
- [fft] from 3 x 3 to 15 x 15 FFT has less than twice the products, and conv2d 25 times; transforms are not counted
- [first] a call with a new shape takes at least 3 times as long as one with a shape that was seen before
- [search] on a GPU a new shape takes at least twice as long with cudnn.benchmark as without
## Try next
`--image 8`: around a small image most of what FFT transforms is padding. refutes: fft
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 19,
https://www.toymoban.com/news/detail-808122.html: cudnn.benchmark, without numbers. Ours: the algorithms by hand, and the
bounds.
"""

import itertools
import math
import random
import timeit
from functools import cache, partial

import torch
import torch.nn.functional as F

from tuilab import Lab

KERNELS = 1, 3, 5, 9, 15
INTO = torch.tensor([[1.0, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]])  # Winograd's F(2 x 2, 3 x 3)
WEIGHT = torch.tensor([[1.0, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])
BACK = torch.tensor([[1.0, 1, 1, 0], [0, 1, -1, -1]])


def library(x, w):  # x (N, C, H, W), w (K, C, k, k)
    return F.conv2d(x, w, padding=w.shape[2] // 2)


def im2col(x, w):
    patches = F.unfold(x, w.shape[2:], padding=w.shape[2] // 2)  # (N, C * k * k, H * W)
    return (w.flatten(1) @ patches).view(len(x), len(w), *x.shape[2:])


def fft(x, w):
    k, (high, wide) = w.shape[2], x.shape[2:]
    size = high + k - 1, wide + k - 1
    spectra = torch.fft.rfft2(x, s=size), torch.fft.rfft2(w.flip(2, 3), s=size)
    y = torch.fft.irfft2(torch.einsum("nchw,kchw->nkhw", *spectra), s=size)
    return y[:, :, k // 2 : k // 2 + high, k // 2 : k // 2 + wide]


matrices = cache(lambda device: [matrix.to(device) for matrix in (INTO, WEIGHT, BACK)])  # moved once


def winograd(x, w):
    into, weight, back = matrices(x.device)
    tiles = into @ F.pad(x, [1] * 4).unfold(2, 4, 2).unfold(3, 4, 2) @ into.t()  # (N, C, H / 2, W / 2, 4, 4)
    y = back @ torch.einsum("nctuij,kcij->nktuij", tiles, weight @ w @ weight.t()) @ back.t()
    return y.transpose(3, 4).reshape(len(x), len(w), *x.shape[2:])


def ms(form, *args):  # a value that is read is waited for
    return 1e3 * min(timeit.repeat(lambda: form(*args)[0, 0, 0, 0].item(), repeat=3, number=1))


def call(shapes, pixels, w, is_searched):
    shape = next(shapes)
    torch.backends.cudnn.benchmark = is_searched
    y = library(pixels[: math.prod(shape)].view(shape), w)
    torch.backends.cudnn.benchmark = False
    return y


def run(lab: Lab, image: int = 32) -> None:  # rows and columns, 2..128
    device = lab.device()
    lacks = "" if device.type == "cuda" else "a CUDA device"

    @lab.once
    def exact():
        lab.axes("call_ms", x="rows and columns of the kernel", y="one call", log="y")
        x, found, off = torch.randn(4, 16, image, image, device=device), {}, []
        for kernel in lab.sweep(KERNELS, "kernels"):
            w = torch.randn(16, 16, kernel, kernel, device=device)
            exact = library(x.double(), w.double())
            for form in (library, im2col, fft, *[winograd] * (kernel == 3)):
                with lab.precision("ieee"):
                    found[form, kernel] = counted = lab.count(form, x, w)
                    lab.log(kernel, arm=form.__name__, call_ms=ms(form, x, w))
                off.append(((counted.value - exact).norm() / exact.norm()).item())
        lab.claim("agree", max(off), at_most=3e-6)
        same = [torch.equal(found[form, 3].value, found[library, 3].value) for form in (fft, winograd)]
        lab.claim("bits", same, equals=[False, False])
        lab.claim("winograd", found[winograd, 3].flops / found[library, 3].flops, at_most=0.8)
        lab.claim("fft", found[fft, 15].flops / found[fft, 3].flops, at_most=2)

    lab.stage("new shapes")
    shapes = [*itertools.product(range(1, 9), [16], range(4, 20), range(4, 20))]  # 2048, and oneDNN keeps 1024
    random.shuffle(shapes)
    new, pixels, w = itertools.cycle(shapes), torch.ones(8 * 16 * 400, device=device), torch.ones(16, 16, 3, 3, device=device)
    arms = {"new": lambda: partial(call, new, pixels, w, False), "searched": lambda: partial(call, new, pixels, w, True)}
    arms["seen"] = lambda: partial(call, itertools.cycle(shapes[:16]), pixels, w, False)
    lab.claim_ratio("first", "new/seen", at_least=3, answers=True)
    lab.claim_ratio("search", "searched/new", at_least=2, lacks=lacks)
    if lacks:
        del arms["searched"]
    lab.race(**arms, factories=True, seconds=0.3)
