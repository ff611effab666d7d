"""Workers pay when items are slow; loading time over training time says how many.

With `num_workers=0` the training loop loads every item itself while the GPU waits. Workers are processes that load whole
batches ahead of the loop, each in its turn, so one slow batch holds up all behind it. They cost start-up time (not raced) and
the transfer of each batch between processes: for items in memory that is all you get. Loading a batch takes `batch * item_ms`,
training on it (here a sleep) `train_ms`: the quotient is the number of workers that keeps the loop busy; more are idle. Until
the first batch is there everybody waits, here for a third of the epoch. The rule of the source, 4 per GPU, knows neither. torch
warns above one worker a core: wrong for items that wait (disk, network). The last chart has epochs beside busy programs.
## Predict
Each of 8 batches loads for 10 ms and trains for 2.5 ms. Without workers, how many times as long does an epoch take as with 4?
## Look for
- [processes] n workers are n other processes that load, and 0 workers are none
- [order] with any number of workers every item arrives once and in order
- [in-turn] the batches go round: of n workers each loads every n-th batch
- [slow-items] slow items: without workers an epoch takes at least twice as long, on paper 3.3 times
- [items-in-memory] items in memory: with workers an epoch takes at least twice as long
## Try next
`--item-ms 0`: there is nothing to hide, and workers lose: the claim about slow items is REFUTED.
`--batch 16`: the epoch is one batch, one worker loads it, the others look on, and nothing is gained; refutes: processes
`--work compute`: every item needs a core; with fewer cores than workers the gain shrinks to the number of cores or less.
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 1,
https://www.toymoban.com/news/detail-808122.html: more than 0 workers, and 4 per GPU. Ours: the rest.
"""

import os
import time
import warnings
from collections import namedtuple
from typing import Literal

import torch
from torch.utils.data import DataLoader

from tuilab import Lab

Batch = namedtuple("Batch", "items worker began ended asked got trained")  # the process, and times


class Items:  # a dataset whose items say who loaded them, and when
    def __init__(self, count, item_ms, work):
        self.count, self.item_s, self.work = count, item_ms / 1e3, work

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        began, used = time.monotonic(), time.thread_time()  # the first is one clock for all processes
        time.sleep(self.item_s if self.work == "wait" else 0)
        while self.work == "compute" and time.thread_time() - used < self.item_s:
            pass
        return index, os.getpid(), began, time.monotonic()


def collate(items):  # a tensor (batch,), and of whom it comes
    numbers, pids, began, ended = zip(*items, strict=True)
    return torch.tensor(numbers), pids[0], began[0], ended[-1]


def train(loader, train_ms):
    asked = time.monotonic()
    for items, worker, began, ended in loader:
        got = time.monotonic()
        time.sleep(train_ms / 1e3)  # the GPU works
        yield Batch(items.tolist(), worker, began, ended, asked, got, time.monotonic())
        asked = time.monotonic()


def show(lab, epoch, arm):  # where the lane of the loop is empty, it waits
    lanes, epoch = {os.getpid(): "loop"}, epoch[:30]  # of a long one, as many batches as one can tell apart
    for batch in epoch:
        lane = lanes.setdefault(batch.worker, f"worker {len(lanes)}")
        lab.span(lane, batch.began, batch.ended, "loads", arm=arm)
    for batch in epoch:
        lab.span("loop", batch.got, batch.trained, "trains", arm=arm)


def run(
    lab: Lab,
    items: int = 16,  # items in an epoch, 1..10000
    batch: int = 2,  # items in a batch, 1..1000
    workers: int = 4,  # worker processes at most, 1..64
    item_ms: float = 5.0,  # what loading an item takes, 0..1000 (quick 2.5)
    train_ms: float = 2.5,  # what training on a batch takes, 0..1000 (quick 1.25)
    work: Literal["wait", "compute"] = "wait",  # an item waits (disk, network) or needs a core (decoding)
) -> None:
    warnings.filterwarnings("ignore", "This DataLoader will create")  # more workers than cores, on purpose

    def loader(item_ms, workers):
        options = {"persistent_workers": True, "multiprocessing_context": "fork"} if workers else {}
        return DataLoader(Items(items, item_ms, work), batch, num_workers=workers, collate_fn=collate, **options)

    @lab.once
    def exact():
        lab.axes("wait_ms", x="batch", y="the loop waits for a batch")
        lab.axes("batches_ready", x="batch", y="batches that are ready by then")
        lab.axes("epoch_ms", x="busy programs beside it", y="an epoch")
        epochs, cores = {}, len(os.sched_getaffinity(0))
        for count in sorted({0, min(2, workers), workers}):
            lab.stage(f"epochs with {count} workers")
            _ = [*train(loading := loader(item_ms, count), 0)]  # workers start
            for busy in (cores, 0):
                with lab.neighbours(busy):
                    epoch = epochs[count] = [*train(loading, train_ms)]
                lab.log(busy, arm=f"{count} workers", epoch_ms=(epoch[-1].trained - epoch[0].asked) * 1e3)
            for step, one in enumerate(epoch):
                ready = sum(other.ended <= one.got for other in epoch[step + 1 :])
                lab.log(step, arm=f"{count} workers", wait_ms=(one.got - one.asked) * 1e3, batches_ready=ready)
            show(lab, epoch, arm=f"{count} workers")
        others = [len({one.worker for one in epoch} - {os.getpid()}) for epoch in epochs.values()]
        lab.claim("processes", others, equals=[*epochs])
        lab.claim("order", all([item for made in epoch for item in made.items] == [*range(items)] for epoch in epochs.values()))
        lab.claim("in-turn", all(len({one.worker for one in epoch[k::n]}) < 2 for n, epoch in epochs.items() for k in range(n)))

    lab.stage("without workers against with them: slow items, and items in memory")
    cores = 2 if work == "compute" else 0  # to wait takes none
    lab.claim_ratio("slow-items", "alone/helped", at_least=2, answers=True, cores=cores)
    lab.claim_ratio("items-in-memory", "sent/at_hand", at_least=2)
    alone, helped, at_hand, sent = (loader(ms, count) for ms in (item_ms, 0) for count in (0, workers))
    given = {"alone": (alone, train_ms), "helped": (helped, train_ms), "sent": (sent, 0), "at_hand": (at_hand, 0)}
    lab.race(**{arm: lambda epoch=epoch: [*train(*epoch)] for arm, epoch in given.items()}, seconds=0.2)
