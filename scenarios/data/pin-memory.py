"""Pass pin_memory=True if you train on a GPU: it saves a copy that you never see.

A GPU fetches data by itself (DMA), without the CPU. But it can do so only from pinned memory: pages
that the operating system does not move or swap out. Tensors are usually in pageable memory. Then
the driver first copies each byte into a pinned buffer of its own. The source says that pinned
memory is about twice as fast.

On a CPU the lesson imitates this detour. With a buffer as large as the tensor, every byte goes to
memory twice. A driver copies piece by piece through a small buffer, which stays in the cache of the
CPU. So the detour costs less than a second copy. On a GPU the gain also depends on the bus. A GPU
that reads the memory of the CPU as its own (NVLink-C2C, as in a GH200) gains little. The second
chart repeats the copies while a busy program uses each core: a copy by the CPU needs a core, and
DMA does not.

Pinning is a copy as well, and no other program can use pinned pages. The DataLoader pins batches
ahead of time. Its workers do not pin, because pinning needs CUDA, which a forked process cannot
use. A worker puts each batch into shared memory, and a thread of the training process pins the
batch. The thread finds tensors in containers, but not in every class (lesson pin-custom). With 0
workers there is no such thread, and training waits for the pinning. The source has a figure with
times for workers and pinning together. The lesson measures these times again if there is a GPU.

In practice: pass `DataLoader(..., num_workers=4, pin_memory=True)` and copy with `batch.to(device,
non_blocking=True)` if you train on a GPU. Pass `pin_memory=False` without a GPU. Pin a tensor by
hand only if you copy it to the GPU many times.
## Predict
A driver copies 64 MB through a buffer of 1 MiB, piece by piece. How many times as long as a direct
copy does this copy take?
## Look for
- [shared] a batch from a worker is in shared memory, and a batch from the training process is not
- [loader-pins] with pin_memory=True the DataLoader pins all 4 batches if there is a GPU, and pins
  none and warns once if there is none
- [grid] with 0 or 2 workers, pin_memory=True pins batches if there is a GPU, and gives a warning if
  not; pin_memory=False does neither
- [thread] on a GPU, the training process has 1 thread that pins batches with 2 workers, and 0 such
  threads with 0 workers
- [staged] on a CPU a copy through a buffer as large as the tensor takes at least 1.8 times as long
  as a direct copy
- [pieces] on a CPU a copy through a buffer of 1 MiB, piece by piece, takes at most 1.8 times as
  long as a direct copy
- [pageable] a copy to a GPU takes at least twice as long from pageable memory as from pinned memory
- [figure] on a GPU, an epoch with pageable memory and 0 workers takes at least 1.5 times as long as
  with pinned memory and 4 workers
## Try next
`--no-pin`: no batch is pinned, and torch does not warn. refutes: loader-pins
`--mb 1`: the large buffer also stays in the cache, and the detour may cost less. The claim [staged]
may be REFUTED.
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 2,
https://www.toymoban.com/news/detail-808122.html: pinned memory is about twice as fast. A figure
there has times by workers and pinning. Ours: the size of the buffer, who pins, and the warnings.
"""

import os
import threading
import timeit
import warnings
from functools import partial
from statistics import median

import torch
from torch.utils.data import DataLoader, Dataset

from tuilab import Lab

PIECE = 1 << 20  # bytes of a driver's buffer
REPEATS = 7  # of a copy in a chart


class Images(Dataset):
    """Images that are drawn when they are read, which takes a core about a millisecond."""

    def __len__(self):
        return 128

    def __getitem__(self, index):
        return torch.rand(3, 224, 224)


def copy_directly(source, buffer, target):
    return target.copy_(source)


def copy_staged(source, buffer, target):
    buffer.copy_(source)
    return target.copy_(buffer)


def copy_in_pieces(source, buffer, target):
    for begin in range(0, len(source), PIECE):
        part = source[begin : begin + PIECE]
        piece = buffer[: len(part)]
        piece.copy_(part)
        target[begin : begin + PIECE].copy_(piece)
    return target


def make_copy(copy, source):
    """Return a copy on the CPU that has a buffer and a target of its own."""
    return partial(copy, source, torch.zeros_like(source), torch.zeros_like(source))


def make_copy_to(device, source):
    target = torch.empty_like(source, device=device)
    return partial(target.copy_, source)  # it returns when the GPU has the data


def make_copies(source, device):
    copies = {
        "direct": make_copy(copy_directly, source),
        "staged": make_copy(copy_staged, source),
        "in pieces": make_copy(copy_in_pieces, source),
    }
    if device.type == "cuda":
        copies["pageable to GPU"] = make_copy_to(device, source)
        copies["pinned to GPU"] = make_copy_to(device, source.pin_memory())
    return copies


def log_speed_by_size(lab, source, device):
    lab.axes("gb_per_s", x="bytes copied", y="speed, GB/s", log="x")
    for power in range(16, len(source).bit_length()):
        part = source[: 2**power]
        for arm, copy in make_copies(part, device).items():
            seconds = min(timeit.repeat(copy, repeat=REPEATS, number=1))
            lab.log(len(part), arm=arm, gb_per_s=len(part) / 1e9 / seconds)


def log_speed_on_busy_cores(lab, source, device):
    lab.axes("busy_gb_per_s", x="busy programs", y="speed, GB/s")
    cores = len(os.sched_getaffinity(0))
    for programs in (0, cores):
        with lab.neighbours(programs):
            for arm, copy in make_copies(source, device).items():
                seconds = median(timeit.repeat(copy, repeat=REPEATS, number=1))
                lab.log(programs, arm=arm, busy_gb_per_s=len(source) / 1e9 / seconds)


def make_loader(workers, pin):
    rows = [torch.zeros(3)] * 8
    return DataLoader(rows, batch_size=2, num_workers=workers, pin_memory=pin)  # 4 batches


def is_shared(workers):
    batches = list(make_loader(workers, pin=False))
    return batches[0].is_shared()


def load_and_listen(lab, workers, pin):
    """Return how many batches are pinned, and what torch says about pinning."""
    batches = []
    loader = make_loader(workers, pin)
    messages = lab.warns(batches.extend, loader)
    pinned = 0
    for batch in batches:
        if batch.is_pinned():
            pinned += 1
    return pinned, [message for message in messages if "pin_memory" in message]


def count_pinning_threads(workers):
    batches = iter(make_loader(workers, pin=True))
    next(batches)
    threads = 0
    for thread in threading.enumerate():
        if "_pin_memory_loop" in thread.name:  # Python names a thread after its function
            threads += 1
    return threads


def claim_loader(lab, pin, on_gpu):
    """Claim who pins. Without a GPU nothing is pinned, and torch says so."""
    pinned, messages = load_and_listen(lab, 0, pin)
    lab.text("\n".join(messages) or "nothing", title="torch says about pin_memory")
    expected = [4, 0] if on_gpu else [0, 1]
    lab.claim("loader-pins", [pinned, len(messages)], equals=expected)

    rows = []
    for workers in (0, 2):
        for is_asked in (False, True):
            pinned, messages = load_and_listen(lab, workers, is_asked)
            rows.append([workers, is_asked, pinned == 4, len(messages)])
    head = ("workers", "pin_memory", "pinned", "warnings")
    lab.table("workers and pinning", rows, head=head)
    asked = [on_gpu, 0 if on_gpu else 1]  # pinned, and warnings
    grid = [row[2:] for row in rows]
    lab.claim("grid", grid, equals=[[False, 0], asked, [False, 0], asked])


def start_training(device, workers, pin):
    """Return a function that trains an epoch of 8 batches."""
    options = {}
    if workers > 0:
        options = {"persistent_workers": True, "multiprocessing_context": "fork"}
    loader = DataLoader(Images(), 16, num_workers=workers, pin_memory=pin, **options)
    weight = torch.rand(3 * 224 * 224, 64, device=device)

    def train():
        for images in loader:
            images = images.to(device, non_blocking=pin)  # (16, 3, 224, 224)
            output = images.flatten(1) @ weight  # (16, 64)
        return output

    return train


def run(
    lab: Lab,
    mb: int = 64,  # size of the tensor in MB, 1..1000 (quick 16)
    pin: bool = True,  # pin_memory of the DataLoader
) -> None:
    device = lab.device()
    on_gpu = device.type == "cuda"
    lacks = "" if on_gpu else "a CUDA device"
    warnings.filterwarnings("ignore", "This DataLoader will create")  # more workers than cores
    source = torch.arange(mb * 125_000).view(torch.uint8)  # mb MB

    @lab.once
    def exact():
        lab.stage("speed by size")
        log_speed_by_size(lab, source, device)
        lab.stage("speed while programs use all cores")
        log_speed_on_busy_cores(lab, source, device)

        lab.stage("the DataLoader")
        lab.claim("shared", [is_shared(workers) for workers in (0, 1)], equals=[False, True])
        if on_gpu or not torch.accelerator.is_available():
            claim_loader(lab, pin, on_gpu)
        else:  # pinning would take memory of the GPU that this run does not use
            lab.claim("loader-pins", lacks="leave to use the GPU")
            lab.claim("grid", lacks="leave to use the GPU")
        threads = None
        if on_gpu:
            threads = [count_pinning_threads(workers) for workers in (0, 2)]
        lab.claim("thread", threads, equals=[0, 1], lacks=lacks)

    lab.stage("the detour on the CPU")
    lab.claim_ratio("staged", "staged/direct", at_least=1.8)
    lab.claim_ratio("pieces", "pieces/direct", at_most=1.8, answers=True)
    lab.race(
        direct=lambda: make_copy(copy_directly, source),
        staged=lambda: make_copy(copy_staged, source),
        pieces=lambda: make_copy(copy_in_pieces, source),
        factories=True,
        same=torch.equal,
        seconds=0.5,
        device=torch.device("cpu"),  # no arm uses a GPU
    )

    lab.stage("copies to a GPU")
    lab.claim_ratio("pageable", "pageable/pinned", at_least=2, lacks=lacks)
    lab.race(
        pageable=lambda: make_copy_to(device, source),
        pinned=lambda: make_copy_to(device, source.pin_memory()),
        factories=True,
        same=torch.equal,
        lacks=lacks,
    )

    lab.stage("workers and pinning")
    lab.claim_ratio("figure", "neither/both", at_least=1.5, cores=4, lacks=lacks)
    race = lab.race(
        neither=lambda: start_training(device, workers=0, pin=False),
        pin_only=lambda: start_training(device, workers=0, pin=True),
        workers_only=lambda: start_training(device, workers=4, pin=False),
        both=lambda: start_training(device, workers=4, pin=True),
        factories=True,
        lacks=lacks,
    )
    if on_gpu:
        epoch_s = {arm: median(seconds) for arm, seconds in race.step_s.items()}
        lab.bars("time of an epoch", epoch_s, unit="s")
