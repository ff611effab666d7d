"""Expandable segments reserve what is needed, where growing lengths leave holes that nothing fits.

By default torch asks the driver for one segment after another. Blocks are cut from a segment and merged in it, never across
two: what a short batch frees is too small for a longer one, and twenty free pieces in twenty segments make no large one. With
`expandable_segments:True` a pool is one range of addresses, and pages of memory are mapped at its end when it needs more: 2 MiB
each for small tensors, 20 MiB for large ones. All that is free side by side is one block. The allocator reads the option when
the process starts: `PYTORCH_ALLOC_CONF=expandable_segments:True`.
Without a GPU this is a model, as in prealloc: steps of a Transformer on the device "meta", placed by the rules that torch's
source states. It has one stream, and gives nothing back. On a GPU two processes train, and their own counts are claimed.
## Predict
The length of batches grows from 32 to 512 in 16 steps. How many times as much do segments reserve as if they expand?
## Look for
- [segments] in the model growing lengths make segments reserve at least twice as much as if they expand
- [expandable] if they expand, at most 1.2 times the peak is reserved, for growing lengths and for shrinking ones
- [order] segments reserve at least 1.8 times as much for growing lengths as for shrinking ones
- [peak] the peak of what is in use is the same to 1 % in all four
- [gpu] on a GPU growing lengths reserve at least 1.5 times as much in segments as if they expand
## Try next
`--fixed`: the arms that expand have segments as well. refutes: segments, expandable, gpu
## Source
Today's practice, after the notes on CUDA in PyTorch's manual, "Optimizing memory usage with PYTORCH_ALLOC_CONF",
https://docs.pytorch.org/docs/stable/notes/cuda.html. Ours: the model and its counts.
"""

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
    def __init__(self, is_expandable):
        super().__init__()
        self.live, self.pools = weakref.WeakSet(), ([], [])  # blocks for small and for large tensors, by address
        self.is_expandable, self.reserved, self.used, self.peak = is_expandable, 0, 0, 0

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        result = operator(*args, **(kwargs or {}))
        tensors = result if isinstance(result, tuple | list) else [result]
        for storage in [tensor.untyped_storage() for tensor in tensors if isinstance(tensor, torch.Tensor)]:
            if storage.nbytes() and storage not in self.live:
                self.live.add(storage)
                weakref.finalize(storage, self.free, *self.allocate(-(-storage.nbytes() // 512) * 512))
        return result

    def allocate(self, size):
        blocks = self.pools[size > MIB]
        fitting = [block for block in blocks if block.is_free and block.size >= size]
        if not fitting:
            is_first = not (self.is_expandable and blocks)
            if is_first or not blocks[-1].is_free:
                blocks.append(Block(0, is_first))
            fitting = blocks[-1:]
            grain = 20 * MIB if size > MIB and (self.is_expandable or size < 10 * MIB) else 2 * MIB
            more = -(-(size - fitting[0].size) // grain) * grain
            fitting[0].size, self.reserved = fitting[0].size + more, self.reserved + more
        block = min(fitting, key=lambda block: block.size)
        if block.size - size > (MIB if size > MIB and not self.is_expandable else 0):
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


def train(lab, arm, device, lengths, reserved):
    net = nn.TransformerEncoder(nn.TransformerEncoderLayer(WIDTH, 8, dropout=0.0, batch_first=True, device=device), 2)
    for step, length in enumerate(lengths, 1):
        net(torch.zeros(32, length, WIDTH, device=device)).square().mean().backward()
        net.zero_grad()
        lab.log(step, arm=arm, reserved_bytes=reserved())
    return reserved()


def on_gpu(lab, arm, lengths):  # in a process of its own
    device = lab.device()
    return train(lab, arm, device, lengths, lambda: torch.get_device_module(device).max_memory_reserved(device))


def run(lab: Lab, fixed: bool = False) -> None:  # segments in all arms
    lacks = "" if lab.device().type == "cuda" else "a CUDA device"
    growing = [*range(64, 513, 64)] if lab.is_quick else [*range(32, 513, 32)]
    arms = {"segments": (False, growing), "expandable": (not fixed, growing)}
    arms |= {"segments, shrinking": (False, growing[::-1]), "expandable, shrinking": (not fixed, growing[::-1])}
    lab.axes("reserved_bytes", x="batches", y="reserved in the model" if lacks else "reserved")
    reserved, peaks = {}, {}
    for arm in lab.sweep(arms, "in the model"):
        with Model(arms[arm][0]) as model:
            reserved[arm] = train(lab, arm, "meta", arms[arm][1], lambda: model.reserved)
        peaks[arm] = model.peak
    lab.bars("reserved in the model", reserved, unit="B")
    peak = max(peaks.values())
    lab.claim("segments", reserved["segments"] / reserved["expandable"], at_least=2, answers=True)
    lab.claim("expandable", [reserved[arm] / peak for arm in arms if "expandable" in arm], at_most=1.2)
    lab.claim("order", reserved["segments"] / reserved["segments, shrinking"], at_least=1.8)
    lab.claim("peak", peak / min(peaks.values()), at_most=1.01)
    real, (no, yes) = {}, (f"expandable_segments:{is_on}" for is_on in (False, not fixed))
    for arm, option in [] if lacks else [("segments", no), ("expandable", yes)]:
        real[option] = lab.arm(arm, on_gpu, f"GPU, {arm}", growing, env={"PYTORCH_ALLOC_CONF": option})()
    lab.claim("gpu", real[no] / real[yes] if real else None, at_least=1.5, lacks=lacks)
    if len(real) > 1:
        about, against = "memory reserved while batches grow", "the time of a step was not measured"
        lab.advise("PYTORCH_ALLOC_CONF", real, default=no, about=about, against=against, unit="B")
