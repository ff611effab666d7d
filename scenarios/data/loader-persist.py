"""Pass persistent_workers=True if epochs are short, and share what changes.

At the start of every epoch a training loop may wait for seconds before the first batch arrives.
The reason is that `for batch in loader` makes an iterator, and the iterator starts the workers.
Each worker gets a copy of the dataset. The end of the epoch ends the workers.

Everything that an item stores in the dataset, such as a cache or an open file, is in the copy and
ends with the worker. With `persistent_workers=True` the first iterator is the only one. Its workers
wait for the next epoch, and their caches stay. But they also keep their old copy of the dataset. If
the training loop sets `dataset.epoch` between epochs, the workers never see it. Batches go to the
workers in turn. So in a shuffled epoch a worker gets other items than before, and its cache helps
less.

`worker_init_fn` is called when a worker starts, and never in the main process. With 0 workers, its
work is missing. The loader also hands out work ahead of time: `prefetch_factor` batches for each
worker, 2 by default. It adds a batch for each batch that training takes.

In practice: pass `persistent_workers=True` if an epoch is shorter than a minute or workers start
slowly. Keep a value that changes in a `torch.tensor(...).share_memory_()` in the dataset, or pass
it to the sampler. Do not call `next(iter(loader))` in a training loop: it starts all workers.
## Predict
Three epochs with 2 workers and no other option: how many worker processes start?
## Look for
- [started] in three epochs with 2 workers, 6 processes start; of persistent workers 2
- [left] after three epochs 0 workers are left; of persistent workers 2
- [stale] the training loop sets the epoch to 0, 1, 2; new workers see 0, 1, 2, and persistent
  workers 0, 0, 0
- [shared] a tensor in shared memory brings 0, 1, 2 to new and to persistent workers
- [cache] in three epochs of 16 items new workers read 48 items, and persistent workers with a cache
  16
- [look] next(iter(loader)) starts 2 processes, and 0 are left when its iterator is deleted
- [init] worker_init_fn is called once in each process with the number of the worker; with 0 workers
  never
- [refused] with 0 workers, prefetch_factor and persistent_workers each raise a ValueError
- [ahead] when the first batch arrives, 1 + prefetch_factor * workers batches are handed out
## Try next
`--shuffle`: a worker gets items that only the other worker has read, so persistent workers read
more than 16 items. refutes: cache
`--workers 1`: a single process at a time. The batches that are handed out follow the formula.
refutes: started, left, look
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 1,
https://www.toymoban.com/news/detail-808122.html: each iterator starts its workers again. Its list
of arguments is from an older torch, with prefetch_factor=2 as the default. With 0 workers, this
value is an error today. Ours: what ends with a worker, and all counts.
"""

import time
from functools import partial
from multiprocessing import active_children
from typing import NamedTuple

import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info

from tuilab import Lab

ITEMS = 16
BATCH = 2
EPOCHS = 3


class Item(NamedTuple):
    """What the copy of the dataset knew when a worker loaded the item."""

    epoch: int
    shared_epoch: int
    is_read: bool  # it was not in the cache
    starts: tuple  # a pair for each call of worker_init_fn: the worker, and the time
    loaded: float


class CachingDataset(Dataset):
    """A dataset with a cache."""

    def __init__(self):
        self.epoch = 0
        self.shared_epoch = torch.zeros((), dtype=torch.int64).share_memory_()
        self.cache = set()
        self.starts = ()

    def __len__(self):
        return ITEMS

    def __getitem__(self, index):
        is_read = index not in self.cache
        self.cache.add(index)
        shared_epoch = int(self.shared_epoch)
        return Item(self.epoch, shared_epoch, is_read, self.starts, time.monotonic())


def note_start(worker):
    """Note the number of the worker in its copy of the dataset, as a worker_init_fn."""
    start = (worker, time.monotonic())  # one clock for all processes
    get_worker_info().dataset.starts += (start,)


def make_loader(workers, **options):
    context = "fork" if workers > 0 else None
    return DataLoader(
        CachingDataset(),
        BATCH,
        num_workers=workers,
        collate_fn=list,  # a batch is a list of items
        worker_init_fn=note_start,
        multiprocessing_context=context,
        **options,
    )


def train(lab, arm, loader):
    """Return the items of three epochs."""
    items = []
    for epoch in range(EPOCHS):
        loader.dataset.epoch = epoch
        loader.dataset.shared_epoch.fill_(epoch)
        asked = time.monotonic()
        is_first = True
        for batch in loader:
            if is_first:
                first_batch_ms = 1e3 * (time.monotonic() - asked)
                lab.log(epoch, arm=arm, first_batch_ms=first_batch_ms)
                is_first = False
            items += batch
    return items


def draw_processes(lab, arm, items):
    """Draw from when to when each worker process lives."""
    ended = {}
    for item in items:
        ended[item.starts[0]] = item.loaded
    by_time = sorted(ended, key=lambda start: start[1])
    for number, start in enumerate(by_time):
        worker, began = start
        lab.span(f"process {number}", began, ended[start], f"worker {worker}", arm=arm)


def count_processes(items):
    return len({item.starts for item in items})


def list_calls(items):
    """Return the number of the worker of each call of worker_init_fn."""
    workers = []
    for starts in {item.starts for item in items}:
        for worker, _ in starts:
            workers.append(worker)
    return sorted(workers)


def first_items(items):
    """Return the first item of each epoch."""
    return items[::ITEMS]


class CountingSampler:
    """Yields indices, and counts them."""

    def __init__(self):
        self.count = 0

    def __iter__(self):
        for index in range(1000):
            self.count += 1
            yield index


def count_ahead(workers, prefetch):
    """Return how many batches are handed out when the first batch arrives."""
    sampler = CountingSampler()
    loader = make_loader(workers, prefetch_factor=prefetch, sampler=sampler)
    next(iter(loader))
    return sampler.count // BATCH


def count_while_looking(workers):
    """Return how many workers live during a look at a batch, and after it."""
    batches = iter(make_loader(workers))
    next(batches)
    during = len(active_children())
    del batches
    return [during, len(active_children())]


def load_all(loader):
    items = []
    for batch in loader:
        items += batch
    return items


def run(
    lab: Lab,
    workers: int = 2,  # worker processes, 1..8
    shuffle: bool = False,  # each epoch in another order
) -> None:
    lab.axes("first_batch_ms", x="epoch", y="training waits for its first batch")
    items = {}
    left = []
    for arm in ("new", "persistent"):
        lab.stage(f"three epochs, {arm} workers")
        loader = make_loader(workers, persistent_workers=arm == "persistent", shuffle=shuffle)
        items[arm] = train(lab, arm, loader)
        draw_processes(lab, arm, items[arm])
        left.append(len(active_children()))
        del loader  # and the workers that it keeps
    started = [count_processes(items[arm]) for arm in items]
    lab.claim("started", started, equals=[6, 2], answers=started[0])
    lab.claim("left", left, equals=[0, 2])
    epochs = []
    shared_epochs = []
    for arm in items:
        epochs.append([item.epoch for item in first_items(items[arm])])
        shared_epochs.append([item.shared_epoch for item in first_items(items[arm])])
    lab.claim("stale", epochs, equals=[[0, 1, 2], [0, 0, 0]])
    lab.claim("shared", shared_epochs, equals=[[0, 1, 2], [0, 1, 2]])
    reads = [sum(item.is_read for item in items[arm]) for arm in items]
    lab.claim("cache", reads, equals=[48, 16])

    lab.stage("a look, and no workers")
    lab.claim("look", count_while_looking(workers), equals=[2, 0])
    items["none"] = load_all(make_loader(0))
    numbers = list(range(workers))
    calls = [list_calls(items[arm]) for arm in items]
    lab.claim("init", calls, equals=[sorted(numbers * EPOCHS), numbers, []])
    names = []
    for option in ("prefetch_factor", "persistent_workers"):
        error = lab.raises(partial(make_loader, 0, **{option: 2}))
        names.append(error.partition(":")[0])
    lab.claim("refused", names, equals=["ValueError"] * 2)

    lab.stage("batches that are handed out ahead")
    factors = (1, 2, 4)
    ahead = [count_ahead(workers, prefetch) for prefetch in factors]
    bars = {f"factor {factors[i]}": ahead[i] for i in range(3)}
    lab.bars("batches handed out, by prefetch_factor", bars)
    lab.claim("ahead", ahead, equals=[1 + prefetch * workers for prefetch in factors])
