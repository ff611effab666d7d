"""Run the longest batch first: lengths that grow make the allocator reserve four times what it needs.

torch asks the driver for a segment, cuts blocks from it, and keeps what is freed for the next tensor that fits. A longer batch
needs blocks that are a little larger than all that are free. So new segments are asked for, which takes time, and the old ones
stay, reserved and too small. Run a random batch of the greatest length first, forward and backward, without a step, and set its
gradients to None: all that follows is cut from its blocks. As any batch, it draws random numbers and moves a BatchNorm.

Without a GPU this is a model, not the allocator: tensors of steps of a Transformer, on the device "meta", are placed by the
rules that torch's source states. Blocks of 512 bytes; up to 1 MiB in segments of 2 MiB, larger ones in 20 MiB and more; the
smallest that fits, split and merged. It has one stream, and no workspaces of libraries. On a GPU its own counts stand beside.
## Predict
A Transformer of 2 layers gets batches of length 32, 64 and so on to 512. How many segments are asked for after the first batch?
## Look for
- [rising] growing lengths make the model reserve at least twice the peak of what is in use
- [segments] they ask for at least 20 segments after the first batch
- [longest] with the longest batch first it reserves at most 1.3 times the peak
- [none] after the longest batch at most 1 segment is asked for, whether the others grow, shrink or come in random order
- [random] lengths in random order reserve at least 1.1 times as much as with the longest first
- [peak] the peak of what is in use is the same to 1 % in all orders, with the longest first and without
- [gpu] on a GPU growing lengths ask for more segments, and reserve more, than with the longest first
## Try next
`--first 128`: what runs first is not the longest. refutes: longest, none, random
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 23,
https://www.toymoban.com/news/detail-808122.html. Ours: the model, its counts and the orders.
"""

import random
import weakref

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from tuilab import Lab

MIB, WIDTH = 1 << 20, 512


class Block:
    def __init__(self, size, is_first=False):  # of its segment
        self.size, self.is_first, self.is_free = size, is_first, True


class Model(TorchDispatchMode):  # of torch's caching allocator
    def __init__(self):
        super().__init__()
        self.live, self.pools = weakref.WeakSet(), ([], [])  # blocks for small and for large tensors, by address
        self.segments = self.reserved = self.used = self.peak = 0

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        result = operator(*args, **(kwargs or {}))
        tensors = result if isinstance(result, tuple | list) else [result]
        for storage in [tensor.untyped_storage() for tensor in tensors if isinstance(tensor, torch.Tensor)]:
            if storage.nbytes() and storage not in self.live:
                self.live.add(storage)
                weakref.finalize(storage, self.free, *self.allocate(-(-storage.nbytes() // 512) * 512))
        return result

    def allocate(self, size):
        blocks, least_rest = self.pools[size > MIB], MIB if size > MIB else 0
        if not (fitting := [block for block in blocks if block.is_free and block.size >= size]):
            whole = 2 * MIB if size <= MIB else 20 * MIB if size < 10 * MIB else -(-size // (2 * MIB)) * 2 * MIB
            blocks += (fitting := [Block(whole, is_first=True)])
            self.segments, self.reserved = self.segments + 1, self.reserved + whole
        block = min(fitting, key=lambda block: block.size)
        if block.size - size > least_rest:
            blocks.insert(blocks.index(block) + 1, Block(block.size - size))
            block.size = size
        block.is_free, self.used = False, self.used + block.size
        self.peak = max(self.peak, self.used)
        return block, blocks

    def free(self, block, blocks):
        block.is_free, self.used, at = True, self.used - block.size, blocks.index(block)
        for left in (at, at - 1):  # it is merged with what follows, and with what is before
            pair = blocks[max(left, 0) : left + 2]
            if len(pair) == 2 and pair[0].is_free and pair[1].is_free and not pair[1].is_first:
                pair[0].size += blocks.pop(left + 1).size


def train(lab, arm, device, lengths, seen):
    net = nn.TransformerEncoder(nn.TransformerEncoderLayer(WIDTH, 8, dropout=0.0, batch_first=True, device=device), 2)
    counts = []
    for length in lengths:
        net(torch.zeros(32, length, WIDTH, device=device)).square().mean().backward()
        net.zero_grad()
        counts.append(seen())
        lab.log(len(counts), arm=arm, reserved_bytes=counts[-1][1])
    return [counts[-1][0] - counts[0][0], *counts[-1][1:]]


def on_gpu(lab, arm, lengths):  # in a process of its own, with segments of a fixed size
    gpu, names = lab.device(), ("segment.all.allocated", "reserved_bytes.all.peak", "allocated_bytes.all.peak")
    return train(lab, arm, gpu, lengths, lambda: [torch.get_device_module(gpu).memory_stats(gpu)[name] for name in names])


def run(lab: Lab, first: int = 512) -> None:  # length of the batch that runs first, 1..512
    device = lab.device()
    lacks = "" if device.type == "cuda" else "a CUDA device"
    rising = [*range(64, 513, 64)] if lab.is_quick else [*range(32, 513, 32)]
    arms, counts = {}, {}
    for order, lengths in {"rising": rising, "random": random.sample(rising, len(rising))}.items():
        arms |= {order: lengths, f"{order}, longest first": [first, *lengths]}
    arms["falling"] = rising[::-1]
    lab.axes("reserved_bytes", x="batches", y="reserved in the model" if lacks else "reserved")
    for arm in lab.sweep(arms, "in the model"):
        with Model() as model:
            counts[arm] = train(lab, arm, "meta", arms[arm], lambda: [model.segments, model.reserved, model.peak])
    asked, reserved, peaks = ({arm: count[number] for arm, count in counts.items()} for number in range(3))
    lab.bars("reserved in the model", reserved, unit="B")
    lab.claim("rising", reserved["rising"] / peaks["rising"], at_least=2)
    lab.claim("longest", reserved["rising, longest first"] / peaks["rising"], at_most=1.3)
    lab.claim("segments", asked["rising"], at_least=20, answers=True)
    lab.claim("none", [asked[arm] for arm in arms if arm not in ("rising", "random")], at_most=1)
    lab.claim("random", reserved["random"] / reserved["random, longest first"], at_least=1.1)
    lab.claim("peak", max(peaks.values()) / min(peaks.values()), at_most=1.01)
    env = {"PYTORCH_ALLOC_CONF": "expandable_segments:False"}
    real = [] if lacks else [lab.arm(arm, on_gpu, f"GPU, {arm}", arms[arm], env=env)() for arm in [*arms][:2]]
    more, few = real or ([2, 2], [1, 1])
    lab.claim("gpu", [more[0] > few[0], more[1] > few[1]], equals=[True, True], lacks=lacks)
