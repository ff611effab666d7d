"""Float16 rows begin on 16 bytes if sizes are multiples of 8; padding 1023 to one adds 0.3 % of work, and classes need a mask.

Tensor Cores are fed 16 bytes at a time: 8 float16 numbers, 4 of float32, 16 of int8. If the rows of a matrix have a multiple
of 8, all of them begin at such a place; of rows of 1023 numbers one in eight does. Old libraries fell back to the ordinary
units, which are 3 to 8 times slower. Since cuBLAS 11 such sizes run on Tensor Cores as well, copied in smaller pieces. So on a
GPU of today expect 1.5 to 3 times, and WEAKER THAN CLAIMED for the source's 3. A CPU repacks its blocks anyway.

Zeros appended to the inner dimension change nothing. Appended to an outer one they are results of their own, which a softmax
counts as classes: a vocabulary that was padded needs a bias of -inf there, or the loss is that of more classes.

"16 bits take half the memory, so double the batch" holds for what grows with the batch. Weights, gradients and both moments of
Adam stay in float32, 16 bytes for each parameter, and autocast adds a copy of 2.
## Predict
A float16 matrix has 1024 rows of 1023 numbers. How many of its rows begin at a multiple of 16 bytes?
## Look for
- [aligned] of 1024 float16 rows all begin on 16 bytes with 1024 or 1032 numbers a row, 128 with 1023 or 1025
- [zeros] a product of whole numbers, padded from 127 to 128 on all sides and cut back, is equal to the last bit
- [classes] 127 classes padded to 128 by zeros have a loss that is larger by 0.005 or more
- [masked] with a bias of -inf on the padding, loss and gradient are right to 1e-6, and the gradient of the padding is 0
- [batch] twice the batch with autocast keeps the bytes of one in float32, and 2 for each weight behind the first layer
- [tensor-cores] on a GPU a float16 product of size n - 1 takes at least 3 times as long as one of n
- [cpu] on a CPU a float32 product of size n - 1 takes at most 1.5 times as long
## Try next
`--multiple 1`: nothing is padded. refutes: classes
`--multiple 64`: 128 bytes, which the largest GPUs like best. From 1025 to 1088 a fifth is added, as the chart shows.
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 22,
https://www.toymoban.com/news/detail-808122.html: multiples of 8, half the memory, twice the batch. Ours: where rows begin,
what padding costs and breaks, and which bytes are not halved.
"""

from functools import partial
from statistics import median

import torch
import torch.nn.functional as F
from torch import nn

from tuilab import Lab


def pad(x, multiple):  # (rows, columns), zeros at the end of both
    rows, columns = (-size % multiple for size in x.shape)
    return F.pad(x, (0, columns, 0, rows))


def rows_aligned(width, device):
    """How many of 1024 float16 rows begin on 16 bytes."""
    return sum(row.data_ptr() % 16 == 0 for row in torch.empty(1024, width, dtype=torch.float16, device=device))


def added(lab, n, multiple):
    """How many times the operations of a product of n x n the padded one has; on meta nothing is computed."""
    a = torch.empty(n, n, device="meta")
    return lab.count(torch.mm, pad(a, multiple), pad(a, multiple)).flops / lab.count(torch.mm, a, a).flops


def loss_of(hidden, classes, labels, bias=None):  # (rows, 64), (classes, 64), (rows,)
    """The loss, and the gradient of the classes."""
    classes = classes.requires_grad_()
    loss = F.cross_entropy(F.linear(hidden, classes, bias), labels)
    return loss.item(), torch.autograd.grad(loss, classes)[0]


def kept(lab, net, x, is_amp):
    """Bytes that wait for backward."""
    with torch.autocast(x.device.type, torch.bfloat16, enabled=is_amp):
        return lab.count(net, x).saved_bytes


def run(
    lab: Lab,
    size: int = 0,  # n of the products that race; 0 is 256 on a CPU and 8192 on a GPU, 0..32768
    multiple: int = 8,  # to which sizes are padded, 1..64
) -> None:
    device = lab.device()
    on_gpu = device.type == "cuda"
    n = size or (8192 if on_gpu else 256)

    @lab.once
    def exact():
        lab.axes("added_percent", x="size n", y="operations added by padding", log="xy")
        for odd in lab.sweep([*range(17, 64, 4), *range(65, 256, 12), *range(257, 1026, 48)], "sizes"):
            lab.log(odd, added_percent=100 * (added(lab, odd, multiple) - 1))
        aligned = {width: rows_aligned(width, device) for width in (1023, 1024, 1025, 1032)}
        lab.bars("of 1024 rows begin on 16 bytes", {f"{width} float16": rows for width, rows in aligned.items()})
        lab.claim("aligned", [*aligned.values()], equals=[128, 1024, 128, 1024], answers=aligned[1023])

        lab.stage("what padding changes")
        a, b = (torch.randint(-8, 9, (127, 127)).float().to(device) for _ in range(2))
        lab.claim("zeros", torch.equal((pad(a, multiple) @ pad(b, multiple))[:127, :127], a @ b))
        hidden, labels = torch.randn(64, 64).to(device), torch.randint(127, (64,)).to(device)
        classes = (0.05 * torch.randn(127, 64)).to(device)
        right, gradient = loss_of(hidden, classes, labels)
        padded = pad(classes.detach(), multiple)
        lab.claim("classes", loss_of(hidden, padded, labels)[0] - right, at_least=0.005)
        bias = torch.where(torch.arange(len(padded)) < 127, 0.0, -torch.inf).to(device)
        loss, found = loss_of(hidden, padded, labels, bias)
        apart = max(abs(loss - right), (found[:127] - gradient).abs().max().item())
        lab.claim("masked", [apart <= 1e-6, (found[127:] == 0).all().item()], equals=[True, True])

        lab.stage("what 16 bits halve")
        x = torch.randn(512, 256).to(device)
        net = nn.Sequential(*(layer for _ in range(4) for layer in (nn.Linear(256, 256), nn.ReLU()))).to(device)
        more = kept(lab, net, torch.cat([x, x]), is_amp=True) - kept(lab, net, x, is_amp=False)
        lab.claim("batch", more, equals=2 * 3 * 256 * 256, unit="B")

    lab.stage("timing products")
    gpu = lab.lacks_units(torch.float16) if on_gpu else "a CUDA device"
    lab.claim_ratio("tensor-cores", "below/even", at_least=3, lacks=gpu)
    lab.claim_ratio("cpu", "below/even", at_most=1.5, lacks="--device cpu" if on_gpu else "")
    sides, dtype = {"below": n - 1, "even": n, "above": n + 1, "eight": n + 8}, torch.float16 if on_gpu else torch.float32
    squares = {arm: torch.randn(side, side).to(device, dtype) for arm, side in sides.items()}
    race = lab.race(**{arm: partial(torch.mm, x, x) for arm, x in squares.items()}, seconds=0.5)
    rates = {f"n = {side}": 2 * side**3 / median(race.step_s[arm]) / 1e9 for arm, side in sides.items()}
    lab.bars(f"rate of a product in {str(dtype).removeprefix('torch.')}, GFLOP/s", rates)
