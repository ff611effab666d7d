"""Create tensors where they are used, with device=, instead of moving them.

Training code creates tensors all the time: noise, zeros, masks, whole models. If the code writes
`torch.rand(n).to(device)`, the CPU draws the numbers into host memory, and then every byte is
copied. `torch.rand(n, device=device)` draws on the device itself, and the host holds nothing.

The copy also blocks the CPU, because memory that is not pinned cannot be copied in the background.
So a mask that is created in `forward` and moved stops the queue of the GPU in every step. A model
that is moved exists on the host first. With one process for each GPU, the host holds as many models
as it has GPUs.

The lesson moves tensors to "meta". This device is part of every torch, and its tensors have no
memory, so all bytes that are counted are bytes of the host. The chart shows the host memory while a
model is built: it grows tensor by tensor, and shrinks as each tensor is moved.

Data in a Python list or in a file is on the host anyway and must be copied. A constant should be
copied once, as a buffer of the module (`register_buffer`). And the results change: each device has
its own random generator, so the same seed gives other numbers.

In practice: pass `device=x.device`, or use `torch.zeros_like(x)` and `x.new_zeros(n)` inside a
module. Build a model under `with torch.device("cuda"):`. If you load all weights from a checkpoint,
build it under `torch.device("meta")` and call `load_state_dict(weights, assign=True)`.
## Predict
forward creates a causal mask: torch.ones(512, 512).tril().to(device). How many MiB of new tensors
does this make on the host?
## Look for
- [operators] a moved rand calls 2 operators, a draw and a copy; a rand with device= calls 1
- [host] for 1,000,000 float32 numbers, a moved rand allocates 4,000,000 bytes on the host, and a
  rand with device= 0
- [like] rand_like, zeros_like and new_zeros each call 1 operator and allocate 0 bytes on the host
- [mask] a moved causal mask of n rows allocates 8n² bytes on the host, and a mask with device= 0
- [model] a moved model allocates and copies each parameter and buffer on the host; a model that is
  built under torch.device makes 0 copies and 0 bytes there
- [checkpoint] a model that is built on meta and loaded with assign=True has no tensor left on meta
- [forgotten] adding a CPU vector to a vector of another device raises a RuntimeError; adding a CPU
  tensor with a single number does not
- [draws] a moved rand advances the random generator of the CPU, and a rand with device= does not
- [gpu-stream] on a GPU the same seed gives other numbers than on the CPU
- [gpu-time] on a GPU, 16,000,000 random numbers take at least 10 times as long moved as with
  device=
## Try next
`--second moved`: the second way moves its tensors as well. refutes: operators, host, mask, model,
draws, gpu-stream
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 21,
https://www.toymoban.com/news/detail-808122.html, which names no numbers. Ours: the counts, the
generators, and the bound of 10.
"""

from functools import partial
from typing import Literal

import torch
from torch import nn

from tuilab import Lab

NUMBERS = 1_000_000
GPU_NUMBERS = 16_000_000
ROWS = 512
MIB = 1 << 20


def moved_rand(size, device):
    return torch.rand(size).to(device)


def made_rand(size, device):
    return torch.rand(size, device=device)


def moved_mask(x):  # (rows,) -> (rows, rows)
    return torch.ones(len(x), len(x)).tril().to(x.device)


def made_mask(x):
    return torch.ones(len(x), len(x), device=x.device).tril()


def build_model():
    return nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.Linear(64, 8))


def moved_model(device):
    return build_model().to(device)


def made_model(device):
    with torch.device(device):
        return build_model()


def zeros_of_a_module(x):
    return x.new_zeros(8)


def advances_cpu_generator(rand):
    before = torch.get_rng_state()
    rand(8, "meta")
    return not torch.equal(torch.get_rng_state(), before)


def rand_with_seed(rand, device):
    torch.manual_seed(0)  # seeds the generators of all devices
    return rand(NUMBERS, device).cpu()


def load_into_meta_model():
    """Return how many tensors of the model are still on meta."""
    model = made_model("meta")
    model.load_state_dict(build_model().state_dict(), assign=True)
    return sum(tensor.is_meta for tensor in model.state_dict().values())


def run(
    lab: Lab,
    second: Literal["made", "moved"] = "made",  # how the second arm gets its tensors there
) -> None:
    device = lab.device()
    lacks = "" if device.type == "cuda" else "a CUDA device"
    ways = {"rand": moved_rand, "mask": moved_mask, "model": moved_model}
    if second == "made":
        ways = {"rand": made_rand, "mask": made_mask, "model": made_model}

    lab.stage("a model on its way to another device")
    lab.axes("live_bytes", x="change of the host memory", y="bytes of tensors on the host")
    rows = []
    counts = []
    for arm, build in {"moved": moved_model, second: ways["model"]}.items():
        with lab.memory("model", arm=arm, timeline=True) as memory:
            build("meta")
        copies = memory.calls["aten._to_copy"]
        counts.append([copies, memory.born_bytes])
        rows.append((arm, copies, memory.born_bytes))
    lab.table("a model on its way", rows, head=("model", "copies", "bytes on the host"))
    state = build_model().state_dict().values()
    state_bytes = sum(tensor.nbytes for tensor in state)
    lab.claim("model", [counts[0], counts[-1]], equals=[[len(state), state_bytes], [0, 0]])
    lab.claim("checkpoint", load_into_meta_model(), equals=0)

    lab.stage("tensors")
    x = torch.zeros(ROWS, device="meta")
    first_rand = lab.count(moved_rand, NUMBERS, "meta")
    second_rand = lab.count(ways["rand"], NUMBERS, "meta")
    lab.claim("operators", [first_rand.operators, second_rand.operators], equals=[2, 1])
    rand_bytes = [first_rand.born_bytes, second_rand.born_bytes]
    lab.claim("host", rand_bytes, equals=[4 * NUMBERS, 0], unit="B")

    mask_bytes = [lab.count(moved_mask, x).born_bytes, lab.count(ways["mask"], x).born_bytes]
    lab.claim("mask", mask_bytes, equals=[8 * ROWS**2, 0], unit="B", answers=mask_bytes[0] / MIB)
    host_bytes = {
        "rand: moved": rand_bytes[0],
        f"rand: {second}": rand_bytes[1],
        "mask: moved": mask_bytes[0],
        f"mask: {second}": mask_bytes[1],
    }
    lab.bars("allocated on the host", host_bytes, unit="B")

    likes = []
    for create in (torch.rand_like, torch.zeros_like, zeros_of_a_module):
        counted = lab.count(create, x)
        likes.append([counted.operators, counted.born_bytes])
    lab.claim("like", likes, equals=[[1, 0]] * 3)

    vector_error = lab.raises(torch.add, x, torch.zeros(ROWS))
    number_error = lab.raises(torch.add, x, torch.tensor(2.0))
    errors = [vector_error.partition(":")[0], number_error]
    lab.claim("forgotten", errors, equals=["RuntimeError", ""])

    lab.stage("random generators")
    advanced = [advances_cpu_generator(moved_rand), advances_cpu_generator(ways["rand"])]
    lab.claim("draws", advanced, equals=[True, False])
    lab.claim_ratio("gpu-time", "moved/made", at_least=10, lacks=lacks)
    if lacks:
        lab.claim("gpu-stream", lacks=lacks)
        return
    cpu_numbers = rand_with_seed(made_rand, "cpu")
    are_same = []
    for rand in (moved_rand, ways["rand"]):
        are_same.append(torch.equal(rand_with_seed(rand, device), cpu_numbers))
    lab.claim("gpu-stream", are_same, equals=[True, False])

    lab.stage("timing")
    moved = partial(moved_rand, GPU_NUMBERS, device)
    made = partial(made_rand, GPU_NUMBERS, device)
    lab.race(moved=moved, made=made, seconds=0.5)
