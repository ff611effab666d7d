"""Copy with non_blocking=True from pinned memory, on a second stream to overlap.

A training loop copies each batch to the GPU before it computes. You want the next batch to arrive
while the GPU computes on the last one.

A GPU executes the operations of a stream one after another. The CPU only queues them. But
`.to(device)` blocks the CPU until the copy is done, and everything queued before it. With
`non_blocking=True` and pinned memory, the CPU continues at once. The copy is still in the same
stream, behind the last batch. So the GPU copies and computes in turn, and only the CPU gains time.
If the copy is in a second stream, the GPU copies and computes at the same time.

The source says that `model(data)` is the first point where the CPU waits. It is not: the model is
queued as well. The CPU waits where it needs a number, as in `.item()`. In the other direction the
flag is a trap. `x.to("cpu", non_blocking=True)` returns a tensor whose numbers have not arrived
yet. From pageable memory the flag changes nothing for the CPU: the driver has to read it first.

Claims that begin with "model" are about a simulation: streams are threads that sleep. Claims that
begin with "GPU" are measured on a GPU.

In practice: pass `pin_memory=True` to the DataLoader, and copy with
`batch.to(device, non_blocking=True)`. If a profiler shows that the GPU waits for copies, copy the
next batch in a `torch.cuda.Stream()`, and call `torch.cuda.current_stream().wait_stream(stream)`
before you use it. Call `torch.cuda.synchronize()` before you read a tensor that was copied to the
CPU in this way.
## Predict
A batch takes 3 ms to copy and 3 ms to compute on. How many times as long do 6 batches take in one
stream as in two?
## Look for
- [no-op] on a CPU, .to("cpu", non_blocking=True) calls 0 operators and returns the tensor itself
- [in-turn] model: in 1 stream, 0 computations overlap with a copy
- [beside] model: with a second stream for copies, at least 1 computation overlaps with a copy
- [streams] model: 6 batches take at least 1.4 times as long in 1 stream as in 2, and 1.71 times by
  arithmetic
- [gpu-streams] GPU: in 1 stream no matrix product overlaps with a copy, and in 2 streams some do
- [sync-point] GPU: behind queued work, a matrix product and a copy of pinned memory return at
  once, and .item() and a copy of pageable memory wait
- [stale] GPU: a 1 that is copied to the CPU with non_blocking=True reads 0 at first, and 1 after a
  synchronize
## Try next
`--streams 1`: the second arm has one stream as well. refutes: beside
`--copy-ms 0.5`: there is little to hide. The claim about the time of the model is REFUTED.
## Source
- "28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 24,
  https://www.toymoban.com/news/detail-808122.html: copy with non_blocking from pinned memory.
- "A guide on good usage of non_blocking and pin_memory() in PyTorch",
  https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html: streams, and stale numbers.
- Ours: all claims.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import torch

from tuilab import Lab

BATCHES = 6
COMPUTE_MS = 3.0  # of the model
SIZE = 4096  # rows and columns on a GPU: 64 MiB to copy, and 137 GFLOP to compute


class Span(NamedTuple):
    lane: str  # copies or computes
    began: float  # s
    ended: float


def sleep_on(lane, ms, spans, after=None):
    """Sleep in place of a copy or a computation, and note when."""
    if after is not None:
        after.result()  # the computation waits for its batch
    began = time.monotonic()
    time.sleep(ms / 1e3)
    spans.append(Span(lane, began, time.monotonic()))


def simulate(streams, copy_ms):
    """Return the spans of an epoch whose streams are threads."""
    spans = []
    with ThreadPoolExecutor(1) as main, ThreadPoolExecutor(1) as second:
        copier = main if streams == 1 else second
        for _ in range(BATCHES):
            copied = copier.submit(sleep_on, "copies", copy_ms, spans)
            main.submit(sleep_on, "computes", COMPUTE_MS, spans, copied)
    return spans


def record_event(stream):
    event = torch.Event(stream.device, enable_timing=True)
    stream.record_event(event)
    return event


def run_on_gpu(streams, pinned, weight, target):
    """Return the spans of an epoch on a GPU."""
    main = torch.accelerator.current_stream(weight.device)
    copier = main if streams == 1 else torch.Stream(weight.device)
    batches = [torch.empty_like(weight) for _ in range(BATCHES)]  # no memory is used twice
    start = record_event(main)
    marks = []
    for batch in batches:
        with copier:
            began = record_event(copier)
            batch.copy_(pinned, non_blocking=True)
            marks.append(("copies", began, record_event(copier)))
        main.wait_stream(copier)
        began = record_event(main)
        torch.mm(batch, weight, out=target)
        marks.append(("computes", began, record_event(main)))
    torch.accelerator.synchronize(weight.device)

    spans = []
    for lane, began, ended in marks:
        began_s = start.elapsed_time(began) / 1e3
        ended_s = start.elapsed_time(ended) / 1e3
        spans.append(Span(lane, began_s, ended_s))
    return spans


def count_overlaps(spans):
    """Return how many computations run at the same time as a copy."""
    copies = [span for span in spans if span.lane == "copies"]
    overlaps = 0
    for span in spans:
        if span.lane == "computes" and overlaps_any(span, copies):
            overlaps += 1
    return overlaps


def overlaps_any(span, copies):
    for copy in copies:
        began = max(span.began, copy.began)
        ended = min(span.ended, copy.ended)
        if ended - began > 1e-5:
            return True
    return False


def is_busy_after(call, weight, target):
    """Call while the GPU is busy, and return whether it still is when the call returns."""
    for _ in range(30):
        torch.mm(weight, weight, out=target)  # 4 TFLOP in all
    queued = record_event(torch.accelerator.current_stream(weight.device))
    call()
    return not queued.query()


def find_waits(weight, target, pinned):
    """Return for four calls whether the GPU is still busy when they return."""
    pageable = torch.rand(SIZE, SIZE)
    calls = [
        partial(torch.mm, weight, weight, out=target),
        partial(target.copy_, pinned, non_blocking=True),
        target[0, 0].item,
        partial(target.copy_, pageable, non_blocking=True),
    ]
    return [is_busy_after(call, weight, target) for call in calls]


def read_early_and_late(weight, target):
    """Return a number that is copied to the CPU, before and after it arrives."""
    one = torch.ones(1, device=weight.device)
    host = torch.zeros(1).pin_memory()
    reads = []

    def copy_and_read():
        host.copy_(one, non_blocking=True)
        reads.append(host.item())

    is_busy_after(copy_and_read, weight, target)
    torch.accelerator.synchronize(weight.device)
    reads.append(host.item())
    return reads


def show(lab, arm, spans):
    for number, span in enumerate(spans):
        lab.span(span.lane, span.began, span.ended, arm=arm)
        lab.log(number + 1, arm=arm, ended_ms=1e3 * (span.ended - spans[0].began))


def claim_gpu(lab, device):
    lab.stage("streams of a GPU")
    weight = torch.rand(SIZE, SIZE, device=device)
    target = torch.empty_like(weight)
    pinned = torch.rand(SIZE, SIZE).pin_memory()
    run_on_gpu(2, pinned, weight, target)  # the first calls load kernels
    has_overlaps = []
    for streams in (1, 2):
        spans = run_on_gpu(streams, pinned, weight, target)
        show(lab, f"GPU: {streams} streams", spans)
        has_overlaps.append(count_overlaps(spans) > 0)
    lab.claim("gpu-streams", has_overlaps, equals=[False, True])
    is_busy = find_waits(weight, target, pinned)
    lab.claim("sync-point", is_busy, equals=[True, True, False, False])
    lab.claim("stale", read_early_and_late(weight, target), equals=[0, 1])


def run(
    lab: Lab,
    copy_ms: float = 3.0,  # model: time to copy a batch, ms; computing takes 3 ms, 0..100
    streams: int = 2,  # of the second arm of the model, 1..2
) -> None:
    device = lab.device()
    one_stream = partial(simulate, 1, copy_ms)
    two_streams = partial(simulate, streams, copy_ms)

    @lab.once
    def exact():
        lab.axes("ended_ms", x="copy or computation", y="ended after, ms")
        x = torch.ones(1000)
        counted = lab.count(partial(x.to, "cpu", non_blocking=True))
        lab.claim("no-op", [counted.operators, counted.value is x], equals=[0, True])

        lab.stage("streams of the model")
        overlaps = []
        for arm, run_epoch in (
            ("model: one stream", one_stream),
            ("model: two streams", two_streams),
        ):
            spans = run_epoch()
            show(lab, arm, spans)
            overlaps.append(count_overlaps(spans))
        lab.claim("in-turn", overlaps[0], equals=0)
        lab.claim("beside", overlaps[1], at_least=1)

        if device.type == "cuda":
            claim_gpu(lab, device)
        else:
            for key in ("gpu-streams", "sync-point", "stale"):
                lab.claim(key, lacks="a CUDA device")

    lab.stage("one stream against two")
    lab.claim_ratio("streams", "one/two", at_least=1.4, answers=True)
    lab.race(one=one_stream, two=two_streams, seconds=0.5, device=torch.device("cpu"))
