"""Take loading time over training time as the number of loader workers.

With `num_workers=0` the training process loads every batch itself, and the GPU waits meanwhile.
Workers are separate processes, not threads as the first source says. Workers load whole batches
ahead of time, so that loading and training overlap. How many workers does a GPU need? The second
source says: four.

Workers are not free. Each worker takes time to start, which is not measured here. Every batch has
to be sent to the training process. If the items are in memory already, there is no loading to
overlap, and the transfer makes the epoch slower.

Loading a batch takes `batch * item_ms`, and training on it takes `train_ms`, which is a sleep here.
Loading time divided by training time is the number of workers that keeps training busy. The rule of
four workers uses neither time. So four workers are too many if training takes longer than loading,
and too few if loading takes 16 times as long as training.

Two limits remain. Batches arrive in order, so one slow batch delays all batches after it.
`in_order=False` removes this limit, but the order is then not reproducible. And training cannot
start before the first batch arrives, which takes a third of the epoch here. If you ask for more
workers than cores, torch warns. You can ignore this warning if items wait for a disk or a network,
but not if items compute. The last chart repeats the epochs while other programs keep the cores
busy. An epoch can then take longer, because each batch needs a core when it is sent.

In practice: measure the time `load_s` to load one batch and the time `step_s` of one training step.
Pass `num_workers=math.ceil(load_s / step_s)`. If items decode or augment, pass at most one worker
for each core. Use `num_workers=0` if the items are in memory.
## Predict
Each of 8 batches takes 10 ms to load and 2.5 ms to train on. How many times as long does an epoch
take without workers as with 4 workers?
## Look for
- [processes] n workers load the items in n separate processes; with 0 workers the training process
  loads them
- [order] with 0, 2 and 4 workers, every item arrives once and in order
- [in-turn] workers take batches in turn: with n workers, each loads every n-th batch
- [slow-items] if loading takes 4 times as long as training, an epoch without workers takes at least
  twice as long as with 4, by arithmetic 3.3
- [items-in-memory] if items are in memory and training takes no time, 4 workers take at least twice
  as long as 0 workers
- [rule-many] if training takes twice as long as loading, an epoch with 1 worker takes at most 1.2
  times as long as with 4 workers
- [rule-few] if loading takes 16 times as long as training, an epoch with 4 workers takes at least
  twice as long as training on loaded batches
## Try next
`--item-ms 0`: there is no loading time to hide, and workers only cost time. The claim [slow-items]
is REFUTED.
`--batch 16`: the epoch is one batch. One worker loads it, and the others have nothing to do.
refutes: processes
`--work compute`: every item needs a core. If there are fewer cores than workers, the gain is at
most the number of cores.
## Source
- EffectivePyTorch, chapter "Building efficient custom data loaders",
  https://github.com/vahidk/EffectivePyTorch: 8 workers, and tune the number.
- "28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 1,
  https://www.toymoban.com/news/detail-808122.html: more than 0 workers, and 4 for each GPU.
- Ours: the quotient, the order, and the races of the rule of four.
"""

import os
import time
import warnings
from functools import partial
from typing import Literal, NamedTuple

import torch
from torch.utils.data import DataLoader, Dataset

from tuilab import Lab

RULE = 4  # workers for each GPU, as the source says
SHOWN_BATCHES = 30  # as many as the picture of an epoch has room for


class LoadedBatch(NamedTuple):
    """A batch: its items, the process that loaded it, and times of one clock of the machine."""

    items: list
    worker: int
    load_began: float
    load_ended: float
    asked: float  # training asked for the batch
    arrived: float
    trained: float


class Items(Dataset):
    """A dataset whose items say which process loaded them, and when."""

    def __init__(self, count, item_ms, work):
        self.count = count
        self.item_s = item_ms / 1e3
        self.work = work

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        began = time.monotonic()  # one clock for all processes
        if self.work == "compute":
            use_core(self.item_s)
        elif self.item_s > 0:
            time.sleep(self.item_s)
        return index, os.getpid(), began, time.monotonic()


def use_core(seconds):
    """Compute until this thread has used a core for so many seconds."""
    used = time.thread_time()
    while time.thread_time() - used < seconds:
        pass


def collate(items):
    numbers, pids, began, ended = zip(*items, strict=True)
    return torch.tensor(numbers), pids[0], began[0], ended[-1]  # (batch,), and three numbers


def make_loader(dataset, batch, workers):
    options = {}
    if workers > 0:
        options = {"persistent_workers": True, "multiprocessing_context": "fork"}
    return DataLoader(dataset, batch, num_workers=workers, collate_fn=collate, **options)


def train(loader, train_ms):
    """Return the batches of one epoch."""
    batches = []
    asked = time.monotonic()
    for items, worker, began, ended in loader:
        arrived = time.monotonic()
        if train_ms > 0:
            time.sleep(train_ms / 1e3)  # the GPU works
        trained = time.monotonic()
        batch = LoadedBatch(items.tolist(), worker, began, ended, asked, arrived, trained)
        batches.append(batch)
        asked = time.monotonic()
    return batches


def train_with_busy_cores(lab, loader, train_ms, arm):
    """Train an epoch while other programs use all cores, and one while they do not."""
    cores = len(os.sched_getaffinity(0))
    train(loader, 0)  # start the workers
    for programs in (cores, 0):
        with lab.neighbours(programs):
            epoch = train(loader, train_ms)
        epoch_ms = 1e3 * (epoch[-1].trained - epoch[0].asked)
        lab.log(programs, arm=arm, epoch_ms=epoch_ms)
    return epoch


def log_waits(lab, epoch, arm):
    for step, batch in enumerate(epoch):
        ready = 0
        for later in epoch[step + 1 :]:
            if later.load_ended <= batch.arrived:
                ready += 1
        wait_ms = 1e3 * (batch.arrived - batch.asked)
        lab.log(step, arm=arm, wait_ms=wait_ms, batches_ready=ready)


def draw_lanes(lab, epoch, arm):
    """Draw who loads and trains when. Training waits where its lane is empty."""
    lanes = {os.getpid(): "training"}
    for batch in epoch[:SHOWN_BATCHES]:
        lane = lanes.setdefault(batch.worker, f"worker {len(lanes)}")
        lab.span(lane, batch.load_began, batch.load_ended, "loads", arm=arm)
    for batch in epoch[:SHOWN_BATCHES]:
        lab.span("training", batch.arrived, batch.trained, "trains", arm=arm)


def count_processes(epoch):
    """Return how many processes other than this one loaded a batch."""
    processes = {batch.worker for batch in epoch}
    return len(processes - {os.getpid()})


def is_in_order(epoch, items):
    arrived = []
    for batch in epoch:
        arrived += batch.items
    return arrived == list(range(items))


def is_in_turn(epoch, workers):
    for first in range(workers):
        processes = {batch.worker for batch in epoch[first::workers]}
        if len(processes) > 1:
            return False
    return True


def run(
    lab: Lab,
    items: int = 16,  # items in an epoch, 1..10000
    batch: int = 2,  # items in a batch, 1..1000
    workers: int = 4,  # worker processes at most, 1..64
    item_ms: float = 5.0,  # time to load an item, 0..1000 (quick 2.5)
    train_ms: float = 2.5,  # time to train on a batch, 0..1000 (quick 1.25)
    work: Literal["wait", "compute"] = "wait",  # an item waits (disk, network) or needs a core
) -> None:
    warnings.filterwarnings("ignore", "This DataLoader will create")  # more workers than cores
    slow_items = Items(items, item_ms, work)
    items_in_memory = Items(items, 0, work)

    @lab.once
    def exact():
        lab.axes("wait_ms", x="batch", y="training waits for a batch")
        lab.axes("batches_ready", x="batch", y="batches that are ready when it arrives")
        lab.axes("epoch_ms", x="busy programs", y="time of an epoch")
        epochs = {}
        for count in sorted({0, min(2, workers), workers}):
            arm = f"{count} workers"
            lab.stage(f"epochs with {arm}")
            loader = make_loader(slow_items, batch, count)
            epochs[count] = train_with_busy_cores(lab, loader, train_ms, arm)
            log_waits(lab, epochs[count], arm)
            draw_lanes(lab, epochs[count], arm)
        processes = [count_processes(epoch) for epoch in epochs.values()]
        lab.claim("processes", processes, equals=list(epochs))
        lab.claim("order", all(is_in_order(epoch, items) for epoch in epochs.values()))
        lab.claim("in-turn", all(is_in_turn(epoch, count) for count, epoch in epochs.items()))

    lab.stage("0 workers against all: slow items, and items in memory")
    cores = 2 if work == "compute" else 1  # items that wait leave a core to send the batches
    lab.claim_ratio("slow-items", "alone/helped", at_least=2, answers=True, cores=cores)
    lab.claim_ratio("items-in-memory", "sent/at_hand", at_least=2, cores=1)
    lab.race(
        alone=partial(train, make_loader(slow_items, batch, 0), train_ms),
        helped=partial(train, make_loader(slow_items, batch, workers), train_ms),
        sent=partial(train, make_loader(items_in_memory, batch, workers), 0),
        at_hand=partial(train, make_loader(items_in_memory, batch, 0), 0),
        seconds=0.2,
    )

    lab.stage("the rule of four workers")
    fast_loading = Items(12, 1.0, "wait")  # 6 batches, 2 ms each
    slow_loading = Items(16, 8.0, "wait")  # 8 batches, 16 ms each
    loaded = Items(16, 0, "wait")  # 8 batches, in memory
    lab.claim_ratio("rule-many", "one/four", at_most=1.2, cores=1)
    lab.claim_ratio("rule-few", "rule/trained", at_least=2, cores=1)
    lab.race(
        one=partial(train, make_loader(fast_loading, 2, 1), 4.0),
        four=partial(train, make_loader(fast_loading, 2, RULE), 4.0),
        rule=partial(train, make_loader(slow_loading, 2, RULE), 1.0),
        trained=partial(train, make_loader(loaded, 2, 0), 1.0),
        seconds=0.2,
    )
