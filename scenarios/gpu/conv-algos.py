"""Set cudnn.benchmark for fixed shapes only: each new shape costs a search.

A library can compute a convolution in several ways: as one large matrix product of all patches
(im2col), by Winograd's scheme, or through an FFT. Each way has many variants.
Which variant is fastest depends on the shape, the dtype and the device. By default cuDNN chooses by
rules. With `torch.backends.cudnn.benchmark = True` it runs up to
`torch.backends.cudnn.benchmark_limit` variants (10 by default) when it meets a new shape, and keeps
the fastest one for that shape.

The search pays if the same shapes return. It costs if shapes change: images of many sizes, or
sequences of many lengths. The shape of the whole batch counts. Each convolution is searched in
forward, and again for both gradients in backward. torch keeps the choice for a shape, with the flag
or without. A flag that is set after the first call of a shape changes nothing for that shape.

The variants add in different orders, so their results agree only to about six digits. A search may
choose another variant in the next run, and then the last bits differ. Set
`torch.backends.cudnn.deterministic = True` as well if runs must repeat. On a CPU the flag does
nothing: oneDNN chooses by rules and generates code for each new shape, which also takes time. The
chart shows the calls of a loop in which the shape changes every 8 calls.

How much a fixed shape gains depends on cuDNN's rules. They are better than in 2020, so the gain is
often a few percent, and it is large for unusual kernels. The GPU claim about it uses seven
convolutions and float32 with TF32, which is torch's default for convolutions.

In practice: write `torch.backends.cudnn.benchmark = True` at the top of a training script whose
images have one size, and give the loader `drop_last=True`. Leave the flag off if sizes vary.
## Predict
A loader makes batches of 64 from 1000 images. The size of the images rotates through 4 sizes, batch
by batch. How many shapes does the first convolution see in an epoch?
## Look for
- [shapes] 1000 images in batches of 64 whose size rotates through n sizes give n + 1 shapes
- [agree] with kernels of 1 to 15, conv2d and im2col differ by at most 3e-6 from float64
- [bits] for a kernel of 3 x 3, im2col gives other bits than conv2d
- [off] torch.backends.cudnn.benchmark is False by default
- [first] a call with a new shape takes at least 2 times as long as a call with a shape that was
  used before
- [search] on a GPU a call with a new shape takes at least 2 times as long with cudnn.benchmark as
  without
- [tries] on a GPU the first call of a shape launches at least 2 times as many kernels with
  cudnn.benchmark as without
- [late] on a GPU, a shape that was called before cudnn.benchmark was set launches no more kernels
  after that
- [fixed] on a GPU a step of seven convolutions with fixed shapes takes at least 1.05 times as long
  without cudnn.benchmark as with it
## Try next
`--drop-last`: the last, smaller batch had a shape of its own. refutes: shapes
`--sizes 1`: images of one size. The last batch alone has another shape.
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 19,
https://www.toymoban.com/news/detail-808122.html: cudnn.benchmark makes fixed shapes faster, without
numbers. Ours: the count of shapes, the races, the order of flag and first call, and all bounds.
"""

import itertools
import random
import time
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

from tuilab import Lab

IMAGES = 1000
BATCH = 64
CHANNELS = 32  # of the small convolution
KERNELS = (1, 3, 5, 9, 15)
CALLS = 48  # of the loop in the chart
CALLS_OF_A_SHAPE = 8
WARM_UP_STEPS = 5
TIMED_STEPS = 50
FIXED_SHAPES = (  # of the GPU race: channels in, channels out, kernel, rows and columns
    (3, 64, 7, 112),
    (64, 64, 3, 56),
    (64, 256, 1, 56),
    (128, 128, 3, 28),
    (128, 128, 5, 28),
    (256, 256, 3, 14),
    (32, 32, 9, 64),
)


def library(x, w):  # x (N, C, H, W), w (K, C, k, k) -> (N, K, H, W)
    return F.conv2d(x, w, padding=w.shape[2] // 2)


def im2col(x, w):
    patches = F.unfold(x, w.shape[2:], padding=w.shape[2] // 2)  # (N, C * k * k, H * W)
    return (w.flatten(1) @ patches).view(len(x), len(w), *x.shape[2:])


def relative_error(y, exact):
    return ((y - exact).norm() / exact.norm()).item()


def shapes_of_an_epoch(sizes, drop_last):
    """Return the different shapes of the batches, with an image size that rotates."""
    loader = DataLoader(range(IMAGES), batch_size=BATCH, drop_last=drop_last)
    shapes = set()
    for number, indices in enumerate(loader):
        size = 32 * (1 + number % sizes)
        shapes.add((len(indices), 3, size, size))
    return shapes


def convolve_ones(pixels, w, shape, is_searched):
    """Convolve an input of this shape, with cudnn.benchmark on or off. `pixels` has its memory."""
    batch, channels, high, wide = shape
    x = pixels[: batch * channels * high * wide].view(shape)
    torch.backends.cudnn.benchmark = is_searched
    y = library(x, w)
    torch.backends.cudnn.benchmark = False
    return y


def convolve_next(pixels, w, shapes, is_searched):
    return convolve_ones(pixels, w, next(shapes), is_searched)


def draw_shapes(batches):
    """Return small shapes in random order, more than the 1024 whose code oneDNN keeps."""
    shapes = list(itertools.product(batches, [CHANNELS], range(2, 13), range(2, 13)))
    random.shuffle(shapes)
    return shapes


def time_call_us(call, *args):
    start = time.perf_counter()
    call(*args)[0, 0, 0, 0].item()  # reading a value waits for the device
    return 1e6 * (time.perf_counter() - start)


def log_calls(lab, pixels, w, shapes, arm, is_searched):
    """Log the time of each call of a loop in which the shape changes every 8 calls."""
    for number in range(CALLS):
        shape = shapes[number // CALLS_OF_A_SHAPE]
        call_us = time_call_us(convolve_ones, pixels, w, shape, is_searched)
        lab.log(number, arm=arm, call_us=call_us)


def count_launches(call, *args):
    with torch.profiler.profile() as profile:
        call(*args)
        torch.accelerator.synchronize()
    return sum(event.count for event in profile.key_averages() if "Launch" in event.key)


def build_convolutions(device):
    """Return pairs of a convolution and its input."""
    pairs = []
    for channels, channels_out, kernel, size in FIXED_SHAPES:
        layer = nn.Conv2d(channels, channels_out, kernel, padding=kernel // 2, bias=False)
        x = torch.randn(BATCH, channels, size, size, device=device, requires_grad=True)
        pairs.append((layer.to(device), x))
    return pairs


def step_convolutions(pairs):
    for layer, x in pairs:
        layer(x).sum().backward()


def time_fixed_shapes(lab, is_searched):
    """Return the seconds of a step. A new process has no plans from the other arm."""
    device = lab.device()
    torch.backends.cudnn.benchmark = is_searched
    pairs = build_convolutions(device)
    for _ in range(WARM_UP_STEPS):
        step_convolutions(pairs)
    torch.accelerator.synchronize()
    start = time.perf_counter()
    for _ in range(TIMED_STEPS):
        step_convolutions(pairs)
    torch.accelerator.synchronize()
    return (time.perf_counter() - start) / TIMED_STEPS


def run(
    lab: Lab,
    sizes: int = 4,  # of images, one after another from batch to batch, 1..16
    drop_last: bool = False,  # the loader leaves out the last, smaller batch
) -> None:
    device = lab.device()
    lacks = "" if device.type == "cuda" else "a CUDA device"
    shapes = draw_shapes(range(1, 17))  # 1936 of them
    pixels = torch.ones(32 * CHANNELS * 12 * 12, device=device)
    w = torch.ones(CHANNELS, CHANNELS, 3, 3, device=device)

    @lab.once
    def exact():
        lab.claim("off", torch.backends.cudnn.benchmark, equals=False)
        epoch = shapes_of_an_epoch(sizes, drop_last)
        lab.claim("shapes", len(epoch), equals=sizes + 1, answers=True)

        lab.axes("call_us", x="call; the shape changes every 8 calls", y="time", log="y")
        lab.stage("a loop with changing shapes")
        convolve_ones(pixels, w, shapes[-1], False)  # the first call also loads the library
        log_calls(lab, pixels, w, shapes[:6], "by rules", is_searched=False)
        if not lacks:
            log_calls(lab, pixels, w, shapes[6:12], "cudnn.benchmark", is_searched=True)

        errors = []
        rows = []
        x = torch.randn(4, 16, 32, 32, device=device)
        for kernel in lab.sweep(KERNELS, "kernels"):
            weight = torch.randn(16, 16, kernel, kernel, device=device)
            with lab.precision("ieee"):
                y = library(x, weight)
                y_im2col = im2col(x, weight)
            y_exact = library(x.double(), weight.double())
            row = [relative_error(y, y_exact), relative_error(y_im2col, y_exact)]
            errors += row
            rows.append([kernel, *row])
            if kernel == 3:
                lab.claim("bits", not torch.equal(y, y_im2col))
        lab.table("relative error", rows, head=("kernel", "conv2d", "im2col"))
        lab.claim("agree", max(errors), at_most=3e-6)

        if lacks:
            lab.claim("tries", lacks=lacks)
            lab.claim("late", lacks=lacks)
            return
        first, other = shapes[12], shapes[13]
        by_rules = count_launches(convolve_ones, pixels, w, first, False)
        late = count_launches(convolve_ones, pixels, w, first, True)
        searched = count_launches(convolve_ones, pixels, w, other, True)
        blind = "" if by_rules else "a profiler that sees launches"
        lab.claim("tries", searched / max(by_rules, 1), at_least=2, lacks=blind)
        lab.claim("late", late - by_rules, at_most=0, lacks=blind)

    lab.stage("new shapes")
    seen = itertools.cycle(shapes[-16:])
    new = itertools.cycle(shapes[14:-16])
    arms = {
        "new": lambda: partial(convolve_next, pixels, w, new, False),
        "seen": lambda: partial(convolve_next, pixels, w, seen, False),
    }
    lab.claim_ratio("first", "new/seen", at_least=2)
    lab.claim_ratio("search", "searched/new", at_least=2, lacks=lacks)
    lab.claim_ratio("fixed", "rules/benchmark", at_least=1.05, lacks=lacks)
    if not lacks:
        unsearched = itertools.cycle(draw_shapes(range(17, 33)))  # torch would keep shared choices
        arms["searched"] = lambda: partial(convolve_next, pixels, w, unsearched, True)
    lab.race(**arms, factories=True, seconds=0.3)
    if lacks:
        return

    lab.stage("fixed shapes")
    lab.race(
        rules=lab.arm("rules", time_fixed_shapes, False),
        benchmark=lab.arm("benchmark", time_fixed_shapes, True),
    )
