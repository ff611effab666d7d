"""Pinned memory saves a copy that you never see.

A GPU fetches by itself (DMA) only what lies in pages that the system promised not to move: pinned memory. For a tensor in
ordinary, pageable memory the driver first copies every byte into a pinned buffer. Without a GPU the detour can still be
walked: direct or through a buffer. Twice the copies are twice the time only while both go to memory. On a GPU the gain depends
on driver and bus; if it reads the CPU's memory as its own (NVLink-C2C), expect less. Pinning is a copy too and takes pages
from everyone else: let the DataLoader do it ahead of time. Its workers cannot, as they have no GPU: they put batches into
shared memory, and a thread of the loop's own process pins them, if it finds them (pin-custom). To copy takes a core as well,
DMA takes none: the second chart has all copies beside a busy program on each core. Nothing is claimed about it.
## Predict
A tensor of 64 MB is copied by way of a buffer as large as itself: how many times as long does it take as a direct copy?
## Look for
- [shared] a batch from a worker lies in shared memory, one from the loop's own process does not
- [loader-pins] the DataLoader pins every batch where there is a GPU, and warns where there is none
- [grid] with workers and without, a batch comes pinned if that was asked for, and not otherwise
- [staged] a staged copy takes at least 1.8 times as long as a direct one
- [pageable] a pageable tensor takes a GPU at least twice as long as a pinned one
## Try next
`--no-pin`: no batch is pinned, nobody warns; refutes: loader-pins
`--mb 1`: the buffer stays in the cache, as a driver's does that copies piece by piece, and the detour may cost less.
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 2,
https://www.toymoban.com/news/detail-808122.html: about 2x, and workers times pinning. Ours: the rest.
"""

import os
import timeit
from functools import partial
from statistics import median

import torch
from torch.utils.data import DataLoader

from tuilab import Lab


def staged(source, buffer, target):  # every byte twice
    return target.copy_(buffer.copy_(source))


def direct(source, buffer, target):
    return target.copy_(source)


def gb_per_s(copy, size, of=min):
    return size / 1e9 / of(timeit.repeat(copy, repeat=7, number=1))  # a copy to a GPU is waited for


def load(**how):
    return list(DataLoader([torch.zeros(3)] * 8, batch_size=2, **how))


def run(
    lab: Lab,
    mb: int = 64,  # size of the tensor in MB, 1..1000 (quick 16)
    pin: bool = True,  # pin_memory of the DataLoader
) -> None:
    device = lab.device()
    on_gpu = device.type == "cuda"
    lacks = "" if on_gpu else "a CUDA device"
    source = torch.arange(mb * 125_000).view(torch.uint8)  # mb MB

    def afresh(way, source=source):
        return partial(way, source, torch.zeros_like(source), torch.zeros_like(source))  # buffer and target of its own

    def fetch(source):
        return partial(torch.empty_like(source, device=device).copy_, source)

    def copies(part):
        host = {way.__name__: afresh(way, part) for way in (staged, direct)}
        return host | ({"pageable to GPU": fetch(part), "pinned to GPU": fetch(part.pin_memory())} if on_gpu else {})

    @lab.once
    def exact():
        lab.stage("speed by size")
        lab.axes("gb_per_s", x="bytes copied", y="speed, GB/s", log="x")
        for power in range(16, len(source).bit_length()):
            part = source[: 2**power]
            for arm, copy in copies(part).items():
                lab.log(len(part), arm=arm, gb_per_s=gb_per_s(copy, len(part)))
        lab.stage("speed beside busy programs")
        lab.axes("busy_gb_per_s", x="busy programs", y="speed, GB/s")
        for others in (0, len(os.sched_getaffinity(0))):
            with lab.neighbours(others):
                for arm, copy in copies(source).items():
                    lab.log(others, arm=arm, busy_gb_per_s=gb_per_s(copy, len(source), of=median))
        lab.stage("the DataLoader")
        lab.claim("shared", [load(num_workers=n)[0].is_shared() for n in (0, 1)], equals=[False, True])
        is_free = on_gpu or not torch.accelerator.is_available()  # to pin takes memory of the GPU, too
        batches = []
        warned = lab.warns(lambda: batches.extend(load(pin_memory=pin and is_free)))
        said = [warning for warning in warned if "pin_memory" in warning]
        lab.text("\n".join(said) or "nothing", title="what torch said")
        got = [sum(on_gpu and batch.is_pinned() for batch in batches), len(said)]
        want = [len(batches), 0] if on_gpu else [0, 1]
        lab.claim("loader-pins", got, equals=want, lacks="" if is_free else "leave to use the GPU")
        ways = [(workers, asked) for workers in (0, 2) for asked in (False, True) if on_gpu]
        grid = [load(num_workers=workers, pin_memory=asked)[0].is_pinned() for workers, asked in ways]
        lab.claim("grid", grid, equals=[False, True] * 2, lacks=lacks)

    lab.stage("time")
    lab.claim_ratio("staged", "staged/direct", at_least=1.8, answers=True)
    arms = {"staged": lambda: afresh(staged), "direct": lambda: afresh(direct)}  # of the host alone: no GPU is asked
    lab.race(**arms, factories=True, same=torch.equal, seconds=0.5, device=torch.device("cpu"))
    lab.claim_ratio("pageable", "pageable/pinned", at_least=2, lacks=lacks)
    if on_gpu:
        lab.race(pageable=lambda: fetch(source), pinned=lambda: fetch(source.pin_memory()), factories=True, same=torch.equal)
