"""A tensor that is made elsewhere and moved costs a second operator, host memory and a copy.

`torch.rand(n).to(device)` draws on the CPU, into memory of the host, and then copies every byte; the CPU waits for it, as the
memory is not pinned. `torch.rand(n, device=device)` is one operator of that device, and the host holds nothing. This is true of
zeros, masks and whole models: `with torch.device(device):` makes the parameters where they will live. Inside a module take the
device of what comes in: `torch.zeros_like(x)`, `x.new_zeros(n)`, `device=x.device`. What is in a Python list or in a file is on
the host anyway, and must travel: once, as a buffer of the module.

"meta" is a device that every box has, and its tensors have no memory. So what is born on the way there is born on the host. A
dtype is chosen in the same way, as an argument or with a copy later: this is an analogue, as it is the same device.
One thing changes with the device: each has a generator of its own, so the same seed gives other random numbers.
## Predict
In forward a causal mask is made: torch.ones(512, 512).tril().to(device). How many MiB of tensors does that make on the host?
## Look for
- [operators] moved, rand is two operators, a draw and a copy; made there it is one
- [host] of 1,000,000 numbers 4,000,000 bytes are born on the host when they are moved, and none when they are made there
- [like] rand_like, zeros_like and new_zeros make theirs beside x, in one operator, without a byte on the host
- [mask] a causal mask of 512 rows that is made in forward and moved has 2 * 4 * 512² bytes born on the host
- [model] a model that is moved has each parameter and buffer born on the host and copied; made there it has neither
- [forgotten] a vector of the CPU, added to one of another device, raises a RuntimeError; a single number in a tensor does not
- [dtype] the analogue: rand(n).to(float64) makes 12 bytes for each number, rand(n, dtype=float64) 8
- [digits] moved to float64, all numbers are multiples of 2^-24, as in float32; made in float64 some are not
- [draws] moved numbers are drawn from the generator of the CPU; what is made elsewhere leaves it as it was
- [gpu-stream] on a GPU the same seed gives other numbers than on the CPU
- [gpu-time] on a GPU 16,000,000 numbers that are moved take at least 10 times as long
## Try next
`--second moved`: the second arm moves its tensors as well. refutes: operators, host, dtype, digits, draws, gpu-stream
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 21,
https://www.toymoban.com/news/detail-808122.html, which names no numbers. Ours: the counts, the digits, the generators, and the
bound of 10.
"""

from functools import partial
from typing import Literal

import torch
from torch import nn

from tuilab import Lab

N, ROWS, MIB = 1_000_000, 512, 1 << 20


def moved(size, **where):  # device= or dtype=
    return torch.rand(size).to(**where)


def made(size, **where):
    return torch.rand(size, **where)


def moved_mask(x):  # x (ROWS, ...)
    return torch.ones(len(x), len(x)).tril().to(x.device)  # (ROWS, ROWS)


def made_mask(x):
    return torch.ones(len(x), len(x), device=x.device).tril()


def build():
    return nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.Linear(64, 8))


def made_model(device):
    with torch.device(device):
        return build()


def is_drawn(make):  # from the generator of the CPU
    before = torch.get_rng_state()
    make(8, device="meta")
    return not torch.equal(torch.get_rng_state(), before)


def seeded(make, **where):
    torch.manual_seed(0)  # the generators of all devices
    return make(N, **where).cpu()


def run(lab: Lab, second: Literal["made", "moved"] = "made") -> None:  # how the second arm gets its tensors there
    device = lab.device()
    lacks = "" if device.type == "cuda" else "a CUDA device"
    makes = {"moved": moved, "second": made if second == "made" else moved}
    lab.axes("host_bytes", x="numbers", y="bytes born on the host")
    for size in lab.sweep(range(0, N + 1, N // 10), "on the way to another device"):
        counted = {arm: lab.count(partial(make, size, device="meta")) for arm, make in makes.items()}
        for arm, found in counted.items():
            lab.log(size, arm=arm, host_bytes=found.born_bytes)
    lab.claim("operators", [found.operators for found in counted.values()], equals=[2, 1])
    lab.claim("host", [found.born_bytes for found in counted.values()], equals=[4 * N, 0], unit="B")
    lab.claim("draws", [is_drawn(make) for make in makes.values()], equals=[True, False])

    lab.stage("in a module")
    x = torch.zeros(ROWS, device="meta")
    likes = [lab.count(like) for like in (lambda: torch.rand_like(x), lambda: torch.zeros_like(x), lambda: x.new_zeros(8))]
    lab.claim("like", [[found.operators, found.born_bytes] for found in likes], equals=[[1, 0]] * 3)
    masks = [lab.count(mask, x).born_bytes for mask in (moved_mask, made_mask)]
    lab.claim("mask", masks, equals=[2 * 4 * ROWS**2, 0], unit="B", answers=masks[0] / MIB)
    models = [lab.count(lambda: build().to("meta")), lab.count(made_model, "meta")]
    state = build().state_dict().values()
    rows = [[found.calls["aten._to_copy"], found.born_bytes] for found in models]
    lab.claim("model", rows, equals=[[len(state), sum(tensor.nbytes for tensor in state)], [0, 0]])
    lab.table(
        "a model on its way", [["moved", *rows[0]], ["made there", *rows[1]]], head=("model", "copies", "bytes on the host")
    )
    mixed = [lab.raises(torch.add, x, other).partition(":")[0] for other in (torch.zeros(ROWS), torch.tensor(2.0))]
    lab.claim("forgotten", mixed, equals=["RuntimeError", ""])

    lab.stage("the analogue: another dtype")
    counted = [lab.count(partial(make, N, dtype=torch.float64)) for make in makes.values()]
    lab.claim("dtype", [found.born_bytes / N for found in counted], equals=[12, 8])
    digits = [seeded(make, dtype=torch.float64) * 2**24 for make in makes.values()]
    lab.claim("digits", [torch.equal(scaled, scaled.floor()) for scaled in digits], equals=[True, False])

    lab.stage("a GPU")
    streams = [] if lacks else [torch.equal(seeded(make, device=device), seeded(made)) for make in makes.values()]
    lab.claim("gpu-stream", streams, equals=[True, False], lacks=lacks)
    lab.claim_ratio("gpu-time", "moved/made", at_least=10, lacks=lacks)
    if not lacks:
        lab.race(moved=partial(moved, 16 * N, device=device), made=partial(made, 16 * N, device=device), seconds=0.5)
