"""With an IterableDataset drop_last drops the last batch of every worker: 4 workers keep 40 of 64 items.

A map-style dataset is read by index. The main process makes the batches, and one of them at most is incomplete. A stream has no
indices: each worker has a copy, takes its share of the items and makes batches of them by itself. So each worker ends with an
incomplete batch of its own, and `drop_last=True` drops them all. A share smaller than a batch gives nothing, without an error.

What is lost is the end of each share, and without shuffling that is the same in every epoch: training never sees these items.
Without `drop_last` nothing is lost, but each worker may end with a small batch, and BatchNorm and the learning rate have to
bear them. `len(loader)` counts as if one process made the batches. Fewer may come, and more: a schedule of the learning rate
that is as long as `len` ends too late or too early.

The cure is to share out batches and not items: the dataset yields whole batches, and the loader gets `batch_size=None`.
## Predict
A stream of 64 items is shared out to 4 workers, in batches of 10 with drop_last. How many items arrive in none of 4 epochs?
## Look for
- [stream] of 64 items in a stream, 0, 2 and 4 workers keep 60, 60 and 40
- [map] of a map-style dataset each of them keeps all but the last incomplete batch
- [never] with 4 workers 24 items never arrive in four epochs; shuffled by index, all do
- [nothing] with batches of 20 the 4 workers give no batch
- [small] without drop_last all 64 arrive, and 1, 2 and 4 batches are small
- [length] for 4 workers len(loader) is 6 with drop_last and 7 without; 4 and 8 batches come
- [batches] where batches are shared out, every number of workers keeps all but the last incomplete one
## Try next
`--items 80`: a share is 80, 40 or 20 items, in batches of 10 or 20: nothing is left over.
refutes: stream, never, nothing, small, length
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 1,
https://www.toymoban.com/news/detail-808122.html: drop_last drops the last batch of each copy. Ours: how many items that is,
which they are, and the cure.
"""

import warnings
from itertools import islice

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from tuilab import Lab

WORKERS, BATCH = (0, 2, 4), 10


class Stream(IterableDataset):
    """Numbers, or whole batches of them; of n workers each takes every n-th."""

    def __init__(self, items, is_of_batches=False):
        self.items, self.is_of_batches = items, is_of_batches

    def __len__(self):
        return self.items

    def __iter__(self):
        worker = get_worker_info()  # None in the main process
        number, workers = (worker.id, worker.num_workers) if worker else (0, 1)
        full = range(0, self.items - BATCH + 1, BATCH)
        every = ([*range(first, first + BATCH)] for first in full) if self.is_of_batches else range(self.items)
        yield from islice(every, number, None, workers)


def make_loader(data, workers, batch=BATCH, **options):
    options["multiprocessing_context"] = "fork" if workers else None
    return DataLoader(data, batch, num_workers=workers, collate_fn=list, **options)  # a batch is a list of numbers


def count(loader):  # the items of each batch
    return [len(batch) for batch in loader]


def see(loader, items):  # (4 epochs, items): what arrived
    seen = torch.zeros(4, items)
    for epoch in seen:
        for batch in loader:
            epoch[batch] = 1
    return seen


def run(
    lab: Lab,
    items: int = 64,  # items of an epoch, 20..1000
) -> None:
    warnings.filterwarnings("ignore", "This DataLoader will create")  # more workers than cores, on purpose
    lab.axes("kept", x="workers", y="items that arrive in an epoch")
    kept = {"stream": [], "map-style": [], "stream of batches": []}
    for workers in lab.sweep(WORKERS, "workers"):
        loaders = {
            "stream": make_loader(Stream(items), workers, drop_last=True),
            "map-style": make_loader(range(items), workers, drop_last=True),
            "stream of batches": make_loader(Stream(items, is_of_batches=True), workers, batch=None),
        }
        for arm, loader in loaders.items():
            kept[arm].append(sum(count(loader)))
            lab.log(workers, arm=arm, kept=kept[arm][-1])
    lab.claim("stream", kept["stream"], equals=[60, 60, 40])
    lab.claim("map", kept["map-style"], equals=[items // BATCH * BATCH] * 3)
    lab.claim("batches", kept["stream of batches"], equals=[items // BATCH * BATCH] * 3)

    lab.stage("four epochs")
    persistent = make_loader(Stream(items), 4, drop_last=True, persistent_workers=True)
    seen = {"stream": see(persistent, items)}
    del persistent  # and its workers
    seen["map-style"] = see(make_loader(range(items), 0, drop_last=True, shuffle=True), items)
    for name, arrived in seen.items():
        lab.image(f"{name}: epochs x items", arrived.repeat_interleave(2, 0))
    never = [items - int(arrived.any(0).sum()) for arrived in seen.values()]
    lab.claim("never", never, equals=[24, 0], answers=never[0])

    lab.stage("without drop_last, and large batches")
    lab.claim("nothing", len(count(make_loader(Stream(items), 4, batch=20, drop_last=True))), equals=0)
    found = [count(make_loader(Stream(items), workers)) for workers in WORKERS]
    small = [sum(size < BATCH for size in sizes) for sizes in found]
    lab.table(
        "items of each batch, without drop_last", [*zip(WORKERS, map(str, found), strict=True)], head=("workers", "batches")
    )
    lab.claim("small", [small, [sum(sizes) for sizes in found]], equals=[[1, 2, 4], [64] * 3])
    told = [len(make_loader(Stream(items), 4, drop_last=is_dropped)) for is_dropped in (True, False)]
    lab.claim("length", [*told, kept["stream"][2] // BATCH, len(found[2])], equals=[6, 7, 4, 8])
