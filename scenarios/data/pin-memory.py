"""Pinned memory saves a copy that you never see.

A GPU fetches by itself (DMA) only what lies in pages that the system promised not to move: pinned memory. For a tensor in
ordinary, pageable memory the driver first copies every byte into a pinned buffer. Without a GPU the detour can still be walked:
direct or through a buffer. Twice the copies are twice the time only while both go to memory; the second is cheap if the buffer
fits the cache. On a GPU the gain depends on driver and bus; if it reads the CPU's memory as its own (NVLink-C2C), expect less
than is claimed. Pinning is a copy too and takes pages from everybody: let the DataLoader do it ahead of time.
## Predict
How many times longer does a copy take that goes through a buffer as large as itself?
## Look for
- [bytes-moved] the staged copy moves every byte twice, the direct one once
- [loader-pins] the DataLoader pins every batch where there is a GPU, and warns where there is none
- [staged] a staged copy takes at least 1.8 times as long as a direct one
- [pageable] a pageable tensor takes a GPU at least twice as long as a pinned one
## Try next
`--buffer-kb 1000`: the buffer stays in the cache, as a driver's may: the staged copy is WEAKER than 1.8.
`--no-pin`: no batch is pinned, nobody warns; refutes: loader-pins
## Source
Tip 2 of "28 PyTorch best practices" after the official Performance Tuning Guide: about 2x. The rest is ours.
"""

import timeit
import warnings
from functools import partial
from typing import Literal

import torch
from torch.utils.data import DataLoader

from tuilab import Lab


def staged(pieces):
    for source, buffer, target in pieces:
        target.copy_(buffer.copy_(source))
    return target


def direct(pieces):
    for source, _, target in pieces:
        target.copy_(source)
    return target


def cut(source, buffer_bytes):
    """Cut a tensor into pieces no larger than the buffer, each with the buffer and a place to go to."""
    target, buffer = torch.zeros_like(source), torch.zeros_like(source[:buffer_bytes])
    pieces = zip(source.split(len(buffer)), target.split(len(buffer)), strict=True)
    return [(source, buffer[: len(source)], target) for source, target in pieces]


def gb_per_s(copy, size):
    return size / 1e9 / min(timeit.repeat(copy, repeat=7, number=1))  # a copy to a GPU is waited for


class Batch:  # one's own: the DataLoader knows how to pin it only because it has the method
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
    device = lab.device(device)
    torch.set_num_threads(1)
    source = torch.arange(mb * 125_000).view(torch.uint8)  # mb MB
    buffer_bytes = 1000 * buffer_kb or len(source)

    def afresh(way, source=source):
        return partial(way, cut(source, buffer_bytes))  # to a place of its own, through a buffer of its own

    def fetch(source):
        return partial(torch.empty_like(source, device=device).copy_, source)

    @lab.once
    def exact():
        lab.stage("speed by size, from 2^16 bytes on")
        lab.axes("gb_per_s", x="bytes copied", y="speed, GB/s", log="x")
        for power in range(16, len(source).bit_length()):
            part = source[: 2**power]
            for way in (staged, direct):
                lab.log(len(part), arm=way.__name__, gb_per_s=gb_per_s(afresh(way, part), len(part)))
            if device.type == "cuda":
                lab.log(len(part), arm="pageable to GPU", gb_per_s=gb_per_s(fetch(part), len(part)))
                lab.log(len(part), arm="pinned to GPU", gb_per_s=gb_per_s(fetch(part.pin_memory()), len(part)))
        lab.stage("copies, counted")
        pieces = cut(source, buffer_bytes)
        with lab.memory("staged") as of_detour:
            staged(pieces)
        with lab.memory("direct") as of_straight:
            direct(pieces)
        lab.claim("bytes-moved", [memory.operators / len(pieces) for memory in (of_detour, of_straight)], equals=[2, 1])
        lab.stage("the DataLoader")
        is_free = device.type == "cuda" or not torch.accelerator.is_available()  # to pin takes memory of the GPU, too
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            batches = list(DataLoader([torch.zeros(3)] * 8, batch_size=2, pin_memory=pin and is_free, collate_fn=Batch))
        said = [str(warning.message) for warning in caught if "pin_memory" in str(warning.message)]
        lab.text("\n".join(said) or "nothing", title="what torch said")
        want = [len(batches), 0] if device.type == "cuda" else [0, 1]
        lab.claim("loader-pins", [Batch.pinned, len(said)], equals=want, lacks="" if is_free else "leave to use the GPU")

    lab.stage("time")
    lab.claim_ratio("staged", "staged/direct", at_least=1.8)
    arms = {"staged": lambda: afresh(staged), "direct": lambda: afresh(direct)}  # of the host alone: no GPU is asked
    lab.race(**arms, factories=True, same=torch.equal, seconds=0.5, device=torch.device("cpu"))
    lacks = "" if device.type == "cuda" else "a CUDA device"
    lab.claim_ratio("pageable", "pageable/pinned", at_least=2, lacks=lacks, advises="DATALOADER_PIN_MEMORY=1")
    if device.type == "cuda":
        lab.race(pageable=lambda: fetch(source), pinned=lambda: fetch(source.pin_memory()), factories=True, same=torch.equal)
