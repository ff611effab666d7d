"""Pinned memory saves a copy that you never see.

A GPU fetches by itself (DMA) only what lies in pages that the system promised not to move: pinned memory. For a tensor in
ordinary, pageable memory the driver first copies every byte into a pinned staging buffer of its own. The source says
about 2x for skipping that. Without a GPU the detour can still be walked: the same copy, direct or through a buffer.
Twice the copies is twice the time only while both have to go to memory; through a buffer that fits the cache the second is
cheap. So on a GPU the gain depends on bus and driver, and there it is measured.

Pinning is itself a copy and takes pages from everybody: let the DataLoader do it ahead of time. It pins tensors, lists
and dicts; a batch class of your own only if that has a method `pin_memory`. Without a GPU it warns and pins nothing.

## Predict
How many times longer does a copy take that goes through a buffer as large as itself?
## Look for
- the staged copy moves every byte twice, the direct one once
- DataLoader(pin_memory=True) has each batch pinned where there is a GPU, and warns where there is none
- a staged copy takes at least 1.8 times as long as a direct one
- a GPU takes at least twice as long to fetch a pageable tensor as a pinned one
## Try next
`--buffer-kb 1000`: the buffer stays in the cache, as a driver's may: the staged copy is WEAKER than 1.8.
`--pin false`: no batch is pinned, nobody warns: the claim about the DataLoader is REFUTED.
## Source
Tip 2 of "28 PyTorch best practices" after the official Performance Tuning Guide: the two ways, and about 2x. The detour on
the CPU, the counts and the batch class are ours.
"""

import warnings
from time import perf_counter
from typing import Literal

import torch
from torch.utils.data import DataLoader

from tuilab import Lab


def staged(pieces):
    for source, buffer, target in pieces:
        buffer.copy_(source)
        target.copy_(buffer)
    return target


def direct(pieces):
    for source, _, target in pieces:
        target.copy_(source)
    return target


def cut(source, buffer_bytes):
    """Cut a tensor into pieces no larger than the buffer, each with the buffer and a place to go to."""
    target = torch.zeros_like(source)
    buffer = torch.zeros_like(source[:buffer_bytes])
    pieces = zip(source.split(len(buffer)), target.split(len(buffer)), strict=True)
    return [(source, buffer[: len(source)], target) for source, target in pieces]


def gb_per_s(copy, what, size):
    times = []
    for _ in range(7):
        began = perf_counter()
        copy(what)  # is back when all is copied, to a GPU too
        times.append(perf_counter() - began)
    return size / min(times) / 1e9


class Batch:
    """A batch class of one's own; DataLoader asks it to pin itself."""

    pinned = 0

    def __init__(self, items):
        self.data = torch.stack(items)

    def pin_memory(self):
        self.data = self.data.pin_memory()
        Batch.pinned += self.data.is_pinned()
        return self


def run(
    lab: Lab,
    mb: int = 64,  # size of the tensor in MB, 1..1000 (quick 16)
    buffer_kb: int = 0,  # size of the staging buffer in kB, 0 for that of the tensor, 0..1000000
    pin: bool = True,  # pin_memory of the DataLoader
    device: Literal["auto", "cpu", "cuda"] = "auto",  # what fetches the tensors
) -> None:
    device, has_gpu = lab.device(device), torch.accelerator.is_available()
    torch.set_num_threads(1)
    source = torch.randint(256, (mb * 1_000_000,), dtype=torch.uint8)
    buffer_bytes = buffer_kb * 1000 or len(source)

    lab.stage("speed by size, from 2^16 bytes on")
    for power in range(16, len(source).bit_length()):
        part = source[: 2**power]
        pieces = cut(part, buffer_bytes)
        lab.log(power, arm="staged", gb_per_s=gb_per_s(staged, pieces, len(part)))
        lab.log(power, arm="direct", gb_per_s=gb_per_s(direct, pieces, len(part)))
        if device.type == "cuda":
            fetch = torch.empty_like(part, device=device).copy_
            lab.log(power, arm="pageable to GPU", gb_per_s=gb_per_s(fetch, part, len(part)))
            lab.log(power, arm="pinned to GPU", gb_per_s=gb_per_s(fetch, part.pin_memory(), len(part)))

    lab.stage("copies, counted")
    ways = [cut(source, buffer_bytes) for _ in range(2)]
    with lab.memory("staged") as detour:
        staged(ways[0])
    with lab.memory("direct") as straight:
        direct(ways[1])
    copies = [detour.operators / len(ways[0]), straight.operators / len(ways[1])]
    lab.claim("the staged copy moves every byte twice, the direct one once", copies, equals=[2, 1])

    lab.stage("the DataLoader")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        batches = list(DataLoader([torch.zeros(3)] * 8, batch_size=2, pin_memory=pin, collate_fn=Batch))
    said = [str(warning.message) for warning in caught if "pin_memory" in str(warning.message)]
    lab.text("\n".join(said) or "nothing", title="what torch said")
    text = "DataLoader(pin_memory=True) has each batch pinned where there is a GPU, and warns where there is none"
    lab.claim(text, [Batch.pinned, len(said)], equals=[len(batches), 0] if has_gpu else [0, 1])

    lab.stage("time")
    lab.claim("a staged copy takes at least 1.8 times as long as a direct one", ratio="staged/direct", at_least=1.8)
    lab.race(staged=lambda: staged(ways[0]), direct=lambda: direct(ways[1]), same=torch.equal)
    if device.type != "cuda":
        lab.not_testable("a GPU takes at least twice as long to fetch a pageable tensor as a pinned one", needs="a CUDA device")
        return
    lab.claim(
        "a GPU takes at least twice as long to fetch a pageable tensor as a pinned one", ratio="pageable/pinned", at_least=2
    )
    pinned, targets = source.pin_memory(), [torch.empty_like(source, device=device) for _ in range(2)]
    lab.race(
        pageable=lambda: targets[0].copy_(source), pinned=lambda: targets[1].copy_(pinned), same=torch.equal, device=device
    )
