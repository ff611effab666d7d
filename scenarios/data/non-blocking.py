"""non_blocking frees the host, not the stream: a copy runs beside computation only in a stream of its own.

A GPU does in order what stands in a stream. The host only puts it there, but `.to(device)` waits for the copy, and for all that
stands before it. With `non_blocking=True`, from pinned memory, the host goes on at once. The copy still stands in the stream,
behind the last batch: the GPU copies and computes in turn. From a stream of its own it runs beside. The source lets the host
wait at `model(data)`. It waits where a number is needed, as in `.item()`. To the CPU the flag is a trap: the tensor is
there at once, its numbers are not. "Model" is a simulation: streams are threads that sleep. "GPU" is measured on one.
## Predict
To copy a batch takes 3 ms, to compute on it 3 ms. How many times as long do 6 batches take in turn as with a second stream?
## Look for
- [no-op] on a CPU .to("cpu", non_blocking=True) calls no operator and returns the tensor itself
- [in-turn] model: in one stream no copy runs beside a computation
- [beside] model: with a stream of their own copies run beside computations
- [streams] model: one stream takes at least 1.4 times as long as two, on paper 1.71 times
- [gpu-streams] GPU: in one stream no copy runs beside a product of matrices, in two some do
- [sync-point] GPU: while it is busy a product and a copy of pinned memory return, .item() and a copy of pageable memory do not
- [stale] GPU: a 1 that is copied to the CPU with non_blocking reads 0, and after a synchronize 1
## Try next
`--streams 1`: the second arm has one stream, too. refutes: beside
`--copy-ms 0.5`: there is little to hide: the claim about time is REFUTED.
## Source
- "28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 24,
  https://www.toymoban.com/news/detail-808122.html.
- "A guide on good usage of non_blocking and pin_memory() in PyTorch",
  https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html.
- Ours: all claims.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import torch

from tuilab import Lab

BATCHES, SIZE = 6, 4096  # the second: rows and columns on a GPU, 64 MiB to copy and 137 GFLOP to compute


def model(streams, copy_ms):
    spans = []

    def work(lane, ms, after=None):
        _ = after and after.result()
        began = time.monotonic()
        time.sleep(ms / 1e3)
        spans.append((lane, began, time.monotonic()))

    with ThreadPoolExecutor(1) as main, ThreadPoolExecutor(1) as side:
        for _ in range(BATCHES):
            copied = (main if streams == 1 else side).submit(work, "copies", copy_ms)
            main.submit(work, "computes", 3, copied)
    return spans


def real(streams, pinned, weight, target):
    main = torch.accelerator.current_stream(weight.device)
    side = main if streams == 1 else torch.Stream(weight.device)
    batches = [torch.empty_like(weight) for _ in range(BATCHES)]  # they stay: none is given out again while it is read
    event = partial(torch.Event, weight.device, enable_timing=True)
    start, marks = main.record_event(event()), []
    for x in batches:
        with side:
            marks.append(("copies", side.record_event(event()), x.copy_(pinned, non_blocking=True), side.record_event(event())))
        main.wait_stream(side)
        marks.append(("computes", main.record_event(event()), torch.mm(x, weight, out=target), main.record_event(event())))
    torch.accelerator.synchronize(weight.device)
    return [(lane, *(start.elapsed_time(end) / 1e3 for end in (began, ended))) for lane, began, _, ended in marks]


def beside(spans):
    copies, products = ([span[1:] for span in spans if span[0] == lane] for lane in ("copies", "computes"))
    return sum(any(min(end, ended) - max(start, began) > 1e-5 for start, end in copies) for began, ended in products)


def ask_gpu(weight):
    pinned, pageable, target = torch.rand(SIZE, SIZE).pin_memory(), torch.rand(SIZE, SIZE), torch.empty_like(weight)
    one, host, read = torch.ones(1).to(weight.device), torch.zeros(1).pin_memory(), []
    product = partial(torch.mm, weight, weight, out=target)

    def is_busy_after(call):
        _ = [product() for _ in range(30)]  # 4 TFLOP are queued
        queued = torch.accelerator.current_stream(weight.device).record_event()
        call()
        return not queued.query()

    real(2, pinned, weight, target)  # what is loaded with the first call is there for the next
    copies = [partial(target.copy_, source, non_blocking=True) for source in (pinned, pageable)]
    busy = [is_busy_after(call) for call in (product, copies[0], target[0, 0].item, copies[1])]
    is_busy_after(lambda: read.append(host.copy_(one, non_blocking=True).item()))
    epochs = {f"GPU: {streams} streams": real(streams, pinned, weight, target) for streams in (1, 2)}  # ends synchronised
    return epochs, busy, [*read, host.item()]


def run(
    lab: Lab,
    copy_ms: float = 3.0,  # model: to copy a batch takes as long, and to compute on it 3 ms, 0..100
    streams: int = 2,  # of the second arm of the model, 1..2
) -> None:
    one, two = [partial(model, number, copy_ms) for number in (1, streams)]

    @lab.once
    def exact():
        lab.axes("ended_ms", x="copy or computation", y="ended after, ms")
        device, of_gpu, busy, read = lab.device(), {}, [], None
        lacks = "" if device.type == "cuda" else "a CUDA device"
        if not lacks:
            of_gpu, busy, read = ask_gpu(torch.rand(SIZE, SIZE, device=device))
        epochs = {"model: one stream": one(), "model: two streams": two(), **of_gpu}
        for arm, spans in epochs.items():
            for number, (lane, began, ended) in enumerate(spans):
                lab.span(lane, began, ended, arm=arm)
                lab.log(number + 1, arm=arm, ended_ms=1e3 * (ended - spans[0][1]))
        x, overlaps = torch.ones(1000), [beside(spans) for spans in epochs.values()]
        counted = lab.count(partial(x.to, "cpu", non_blocking=True))
        lab.claim("no-op", [counted.operators, counted.value is x], equals=[0, True])
        lab.claim("in-turn", overlaps[0], equals=0)
        lab.claim("beside", overlaps[1], at_least=1)
        lab.claim("gpu-streams", [count > 0 for count in overlaps[2:]], equals=[False, True], lacks=lacks)
        lab.claim("sync-point", busy, equals=[True, True, False, False], lacks=lacks)
        lab.claim("stale", read, equals=[0, 1], lacks=lacks)

    lab.claim_ratio("streams", "one/two", at_least=1.4, answers=True)
    lab.race(one=one, two=two, seconds=0.5, device=torch.device("cpu"))
