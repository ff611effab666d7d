"""Share out batches, not items, if an IterableDataset has workers and drop_last.

`drop_last=True` keeps all batches the same size. You expect to lose at most one incomplete batch in
each epoch. With an IterableDataset and 4 workers you can lose more than a third of the items.

A map-style dataset is read by index. The main process makes the batches, and at most the last batch
is incomplete. A stream has no indices. Each worker has a copy, takes its share of the items, and
makes its own batches. So each worker ends with an incomplete batch, and `drop_last=True` drops them
all. A share that is smaller than a batch gives nothing, without an error.

The lost items are the end of each share. Without shuffling they are the same in every epoch, and
training never sees them. Without `drop_last` nothing is lost, but each worker may end with a small
batch, and BatchNorm and the learning rate have to cope with it. `len(loader)` counts as if a single
process made the batches. Fewer or more batches may arrive. So a learning rate schedule with this
length ends too late or too early.

In practice: let the dataset yield whole batches, share those out in `__iter__`, and pass
`batch_size=None` to the DataLoader. Otherwise make the share of every worker a multiple of the
batch size. Count the batches of an epoch before you give a length to a scheduler.
## Predict
A stream of 64 items is shared out to 4 workers, with drop_last and batches of 10. How many items do
not arrive in any of 4 epochs?
## Look for
- [stream] from a stream of 64 items, batches of 10 with drop_last keep 60 items with 0 workers, 60
  with 2 and 40 with 4
- [map] from a map-style dataset, 0, 2 and 4 workers keep all items but those of the last
  incomplete batch
- [never] in four epochs with 4 workers, 24 items of the stream never arrive; of a shuffled
  map-style dataset 0
- [nothing] with batches of 20 and drop_last, the 4 workers give 0 batches
- [small] without drop_last all 64 items arrive, and 1, 2 and 4 batches are small with 0, 2 and 4
  workers
- [length] for 4 workers len(loader) is 6 with drop_last and 7 without, and 4 and 8 batches arrive
- [batches] if batches are shared out, 0, 2 and 4 workers keep all items but those of the last
  incomplete batch
## Try next
`--items 80`: the shares are 80, 40 and 20 items, which are whole batches of 10 and of 20.
refutes: stream, never, nothing, small, length
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 1,
https://www.toymoban.com/news/detail-808122.html: drop_last drops the last batch of each copy.
Ours: how many items are lost, which they are, and the remedy.
"""

import warnings
from itertools import islice

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from tuilab import Lab

WORKERS = (0, 2, 4)
BATCH = 10
EPOCHS = 4


def share_out(values):
    """Yield every value in the main process, and every n-th in each of n workers."""
    worker = get_worker_info()  # None in the main process
    if worker is None:
        yield from values
    else:
        yield from islice(values, worker.id, None, worker.num_workers)


class Stream(IterableDataset):
    """Shares out items."""

    def __init__(self, items):
        self.items = items

    def __len__(self):
        return self.items

    def __iter__(self):
        yield from share_out(range(self.items))


class BatchStream(IterableDataset):
    """Shares out whole batches."""

    def __init__(self, items):
        self.items = items

    def __iter__(self):
        yield from share_out(self.make_batches())

    def make_batches(self):
        for first in range(0, self.items - BATCH + 1, BATCH):
            yield list(range(first, first + BATCH))


def make_loader(dataset, workers, batch=BATCH, **options):
    context = "fork" if workers > 0 else None
    return DataLoader(
        dataset,
        batch,
        num_workers=workers,
        collate_fn=list,  # a batch is a list of numbers
        multiprocessing_context=context,
        **options,
    )


def count_items(loader):
    """Return the number of items of each batch."""
    return [len(batch) for batch in loader]


def count_small(sizes):
    small = 0
    for size in sizes:
        if size < BATCH:
            small += 1
    return small


def mark_arrivals(loader, items):
    """Return which items arrive in which epoch."""
    arrived = torch.zeros(EPOCHS, items)
    for epoch in range(EPOCHS):
        for batch in loader:
            arrived[epoch, batch] = 1
    return arrived


def count_missing(lab, name, arrived):
    """Draw the arrivals, and return how many items arrive in no epoch."""
    lab.image(f"{name}: epochs x items", arrived.repeat_interleave(2, 0))
    return arrived.shape[1] - int(arrived.any(0).sum())


def run(
    lab: Lab,
    items: int = 64,  # items of an epoch, 20..1000
) -> None:
    warnings.filterwarnings("ignore", "This DataLoader will create")  # more workers than cores
    lab.axes("kept", x="workers", y="items that arrive in an epoch")
    kept = {"stream": [], "map-style": [], "stream of batches": []}
    for workers in lab.sweep(WORKERS, "workers"):
        loaders = {
            "stream": make_loader(Stream(items), workers, drop_last=True),
            "map-style": make_loader(range(items), workers, drop_last=True),
            "stream of batches": make_loader(BatchStream(items), workers, batch=None),
        }
        for arm, loader in loaders.items():
            count = sum(count_items(loader))
            kept[arm].append(count)
            lab.log(workers, arm=arm, kept=count)
    whole_batches = items // BATCH * BATCH
    lab.claim("stream", kept["stream"], equals=[60, 60, 40])
    lab.claim("map", kept["map-style"], equals=[whole_batches] * 3)
    lab.claim("batches", kept["stream of batches"], equals=[whole_batches] * 3)

    lab.stage("four epochs")
    streaming = make_loader(Stream(items), 4, drop_last=True, persistent_workers=True)
    of_stream = count_missing(lab, "stream", mark_arrivals(streaming, items))
    del streaming  # and its workers
    shuffling = make_loader(range(items), 0, drop_last=True, shuffle=True)
    of_map = count_missing(lab, "map-style", mark_arrivals(shuffling, items))
    lab.claim("never", [of_stream, of_map], equals=[24, 0], answers=of_stream)

    lab.stage("large batches, and batches without drop_last")
    large = make_loader(Stream(items), 4, batch=20, drop_last=True)
    lab.claim("nothing", len(count_items(large)), equals=0)
    sizes = {workers: count_items(make_loader(Stream(items), workers)) for workers in WORKERS}
    rows = [[workers, str(counts)] for workers, counts in sizes.items()]
    lab.table("items of each batch, without drop_last", rows, head=("workers", "batches"))
    small = [count_small(counts) for counts in sizes.values()]
    arrived = [sum(counts) for counts in sizes.values()]
    lab.claim("small", [small, arrived], equals=[[1, 2, 4], [64] * 3])

    lengths = []
    for is_dropped in (True, False):
        lengths.append(len(make_loader(Stream(items), 4, drop_last=is_dropped)))
    batches = [kept["stream"][2] // BATCH, len(sizes[4])]
    lab.claim("length", [*lengths, *batches], equals=[6, 7, 4, 8])
