"""Every epoch starts new workers; persistent_workers keeps them, and their old copy of the dataset with them.

`for batch in loader` makes an iterator, which starts the workers, each with a copy of the dataset as it is then, and the end of
the epoch ends them. What an item leaves in the dataset, a cache or an open file, is left in the copy and goes with the worker.
`persistent_workers=True` makes the first iterator the only one. Its workers wait for the next epoch and their caches stay warm.
What the loop sets in its own dataset between epochs, such as the number of the epoch, never reaches them.
Batches go to the workers in turn, so in a shuffled epoch a worker gets other items than before, for a cache of its own.
`worker_init_fn` is called in a worker as it starts, never in the main process: with 0 workers, what it sets up is missing. The
loop hands out work ahead: `prefetch_factor` batches for each worker, 2 by default, and one for each taken.
## Predict
Three epochs with 2 workers and no other option: how many worker processes are started?
## Look for
- [started] three epochs with 2 workers start 6 processes; persistent ones start 2
- [left] after three epochs no worker is left; of persistent ones both are
- [stale] the number of the epoch that the loop sets is 0, 1, 2 in new workers, and 0, 0, 0 in persistent ones
- [cache] 16 items are read 48 times by new workers; persistent ones remember them and read 16
- [look] one look at a batch starts 2 processes, and they end with its iterator
- [init] worker_init_fn is called once in each process, with the number of the worker; with 0 workers never
- [refused] with 0 workers prefetch_factor and persistent_workers raise a ValueError
- [ahead] when the first batch is there, 1 + prefetch_factor * workers are handed out
## Try next
`--shuffle`: a worker gets items that only the other one has read, so persistent ones read more than 16. refutes: cache
`--workers 1`: one process at a time. What is handed out ahead follows. refutes: started, left, look
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 1,
https://www.toymoban.com/news/detail-808122.html: each iterator starts its workers again. Its list of arguments is that of an
older torch, with prefetch_factor=2. Ours: what ends with a worker, and all counts.
"""

import time
from functools import partial
from multiprocessing import active_children
from types import SimpleNamespace

from torch.utils.data import DataLoader, get_worker_info

from tuilab import Lab

ITEMS, BATCH, EPOCHS = 16, 2, 3


class Noting:
    """A dataset with a cache, whose items tell what this copy of it knows."""

    def __init__(self):
        self.epoch, self.cache, self.started = 0, set(), ()  # the last: what worker_init_fn was told, and when

    def __len__(self):
        return ITEMS

    def __getitem__(self, index):
        is_read = index not in self.cache
        self.cache.add(index)
        return SimpleNamespace(epoch=self.epoch, is_read=is_read, started=self.started, loaded=time.monotonic())


def note(worker):  # the worker_init_fn
    get_worker_info().dataset.started += ((worker, time.monotonic()),)  # one clock for all processes


def make_loader(workers, **options):
    options |= {"worker_init_fn": note, "multiprocessing_context": "fork" if workers else None}
    return DataLoader(Noting(), BATCH, num_workers=workers, collate_fn=list, **options)  # a batch is a list of BATCH items


def train(lab, arm, loader):
    items = []
    for epoch in range(EPOCHS):
        loader.dataset.epoch, asked = epoch, time.monotonic()
        for step, batch in enumerate(loader):
            if step == 0:
                lab.log(epoch, arm=arm, first_batch_ms=1e3 * (time.monotonic() - asked))
            items += batch
    ended = {item.started[0]: item.loaded for item in items}  # of each process the time of its last item
    for number, (worker, began) in enumerate(sorted(ended, key=lambda start: start[1])):
        lab.span(f"process {number}", began, ended[worker, began], f"worker {worker}", arm=arm)
    return items


def count_ahead(workers, prefetch):
    drawn = []
    sampler = (drawn.append(index) or index for index in range(1000))
    next(iter(make_loader(workers, prefetch_factor=prefetch, sampler=sampler)))
    return len(drawn) // BATCH


def run(
    lab: Lab,
    workers: int = 2,  # worker processes, 1..8
    shuffle: bool = False,  # each epoch in another order
) -> None:
    lab.axes("first_batch_ms", x="epoch", y="the loop waits for its first batch")
    found, left = {}, []
    for arm, is_kept in {"new": False, "persistent": True}.items():
        lab.stage(f"three epochs, {arm} workers")
        loader = make_loader(workers, persistent_workers=is_kept, shuffle=shuffle)
        found[arm] = train(lab, arm, loader)
        left.append(len(active_children()))
        del loader  # and with it the workers that it kept
    started = [len({item.started for item in items}) for items in found.values()]
    lab.claim("started", started, equals=[6, 2], answers=started[0])
    lab.claim("left", left, equals=[0, 2])
    lab.claim("stale", [[item.epoch for item in items[::ITEMS]] for items in found.values()], equals=[[0, 1, 2], [0, 0, 0]])
    lab.claim("cache", [sum(item.is_read for item in items) for items in found.values()], equals=[48, 16])

    lab.stage("a look, and no workers")
    batches = iter(make_loader(workers))
    next(batches)
    during = len(active_children())
    del batches
    lab.claim("look", [during, len(active_children())], equals=[2, 0])
    found["none"] = [item for batch in make_loader(0) for item in batch]
    told = [sorted(worker for calls in {item.started for item in items} for worker, _ in calls) for items in found.values()]
    lab.claim("init", told, equals=[sorted([*range(workers)] * EPOCHS), [*range(workers)], []])
    refused = [lab.raises(partial(make_loader, 0, **{option: 2})) for option in ("prefetch_factor", "persistent_workers")]
    lab.claim("refused", [text.split(":")[0] for text in refused], equals=["ValueError"] * 2)

    lab.stage("what is handed out ahead")
    ahead = {f"factor {prefetch}": count_ahead(workers, prefetch) for prefetch in (1, 2, 4)}
    lab.bars("batches handed out, by prefetch_factor", ahead)
    lab.claim("ahead", [*ahead.values()], equals=[1 + prefetch * workers for prefetch in (1, 2, 4)])
