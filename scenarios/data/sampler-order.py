"""Give the loader its own generator, so that its order depends on nothing else.

You set a seed and expect the same order of items in every run. Then you change the number of
workers, or add a layer to the model. Is the order still the same?

A sampler yields indices, and a batch sampler yields lists of indices. Both run in the main process.
A worker gets such a list and loads its items. `shuffle=True` is a RandomSampler. At the start of an
epoch it draws the whole order from the generator of torch, before any item is loaded. So workers do
not change the first order.

Items may draw random numbers as well, as augmentation does. Each worker has generators of its own
of torch, numpy and `random`, and its number is part of their seeds. With 0 workers the items draw
from the generators of the main process. The first order is drawn before that, and the second
afterwards. So the second order is another one. One more layer, initialised before the epoch, also
changes the first order. A generator that only the loader uses shuffles in the same way whatever
else is drawn.

A DistributedSampler has no generator. It shuffles by its seed plus the epoch, and `set_epoch` sets
the epoch. Without this call it repeats one order in every epoch.

In practice: pass `generator=torch.Generator().manual_seed(seed)` to the DataLoader. Call
`sampler.set_epoch(epoch)` before each epoch if the sampler is a DistributedSampler. Keep the number
of workers if the augmentation has to repeat as well.
## Predict
Each item calls torch.rand. 0, 2 and 4 workers load two shuffled epochs, each from the same seed.
How many different orders does the second epoch have?
## Look for
- [one-order] in the first epoch, 0, 2 and 4 workers give 1 order
- [main] the main process draws every index of a custom sampler, and 4 other processes load the
  items
- [second] in the second epoch 2 and 4 workers give the same order, and 0 workers another one
- [own] with a generator for the loader alone, 0, 2 and 4 workers give 1 order in each of two epochs
- [drawn] 0, 2 and 4 workers make the items draw 3 different sequences of numbers, and the same
  number of workers repeats its sequence
- [numpy] with 4 workers, 32 items draw 32 different numbers from numpy
- [set-epoch] three epochs of a DistributedSampler have 1 order without set_epoch, and 3 with it
- [lists] a plain list of lists is a batch sampler, and each inner list arrives as a batch
- [refused] with a batch_sampler, each of batch_size, shuffle, sampler and drop_last raises a
  ValueError
## Try next
`--draw none`: items draw nothing, and 0 workers give the same second order as the others.
refutes: second, drawn
`--draw numpy`: items draw from another generator, and the order is drawn from torch.
refutes: second
## Source
- EffectivePyTorch, chapter "Building efficient custom data loaders",
  https://github.com/vahidk/EffectivePyTorch: a Sampler forms batches.
- "28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 1,
  https://www.toymoban.com/news/detail-808122.html: shuffling happens in the main process.
- Ours: the second epoch, and the numbers that items draw.
"""

import os
import warnings
from functools import partial
from typing import Literal, NamedTuple

import numpy
import torch
from torch.utils.data import DataLoader, Dataset, DistributedSampler

from tuilab import Lab

ITEMS = 32
WORKERS = (0, 2, 4)
LISTS = [[3, 1, 4], [1], [5, 9, 2, 6]]


class Epoch(NamedTuple):
    order: tuple  # the indices as they arrive
    drawn: tuple  # a random number of each item


class Items(Dataset):
    """Items that draw a random number, and say which process loads them."""

    def __init__(self, draw):
        self.draw = draw

    def __len__(self):
        return ITEMS

    def __getitem__(self, index):
        return index, draw_number(self.draw), os.getpid()


def draw_number(draw):
    if draw == "torch":
        return torch.rand(()).item()
    if draw == "numpy":
        return numpy.random.rand()
    return 0.0


def make_loader(workers, draw="none", **options):
    context = "fork" if workers > 0 else None
    return DataLoader(
        Items(draw),
        num_workers=workers,
        collate_fn=list,  # a batch is a list of items
        multiprocessing_context=context,
        **options,
    )


def read_epoch(loader):
    items = []
    for batch in loader:
        items += batch
    order = tuple(index for index, _, _ in items)
    drawn = tuple(number for _, number, _ in items)
    return Epoch(order, drawn)


def train_twice(workers, draw, has_generator=False):
    """Return two epochs that begin with one seed."""
    torch.manual_seed(0)
    numpy.random.seed(0)
    generator = None
    if has_generator:
        generator = torch.Generator().manual_seed(0)
    loader = make_loader(workers, draw, batch_size=4, shuffle=True, generator=generator)
    return [read_epoch(loader), read_epoch(loader)]


def count_orders(runs, epoch):
    orders = {epochs[epoch].order for epochs in runs.values()}
    return len(orders)


def draw_orders(lab, runs):
    """Draw each order as a band, and show how it begins."""
    for epoch in (0, 1):
        bands = []
        for epochs in runs.values():
            bands += [epochs[epoch].order] * 4
        lab.image(f"epoch {epoch + 1}: 0, 2, 4 workers", bands)
    rows = []
    for workers, epochs in runs.items():
        begins = [" ".join(map(str, epoch.order[:6])) for epoch in epochs]
        rows.append([workers, *begins])
    lab.table("the first six items", rows, head=("workers", "epoch 1", "epoch 2"))


def yield_and_note(pids):
    """Yield indices as a sampler does, and note which process draws them."""
    for index in range(ITEMS):
        pids.append(os.getpid())
        yield index


def find_processes():
    """Return the processes that draw indices, and those that load items."""
    drawing = []
    loading = set()
    for batch in make_loader(4, sampler=yield_and_note(drawing)):
        for _, _, pid in batch:
            loading.add(pid)
    return set(drawing), loading


def count_orders_of_rank(has_set_epoch):
    """Return how many different orders a DistributedSampler has in three epochs."""
    sampler = DistributedSampler(range(ITEMS), num_replicas=2, rank=0)
    orders = set()
    for epoch in range(3):
        if has_set_epoch:
            sampler.set_epoch(epoch)
        orders.add(tuple(sampler))
    return len(orders)


def read_lists(workers):
    """Return the indices of each batch of a batch sampler that is a list."""
    batches = []
    for batch in make_loader(workers, batch_sampler=LISTS):
        batches.append([index for index, _, _ in batch])
    return batches


def list_refusals(lab):
    """Return the errors of the options that a batch sampler replaces."""
    options = {"batch_size": 2, "shuffle": True, "sampler": [0], "drop_last": True}
    errors = []
    for name, value in options.items():
        make = partial(make_loader, 0, batch_sampler=LISTS, **{name: value})
        errors.append(lab.raises(make).partition(":")[0])
    return errors


def run(
    lab: Lab,
    draw: Literal["torch", "numpy", "none"] = "torch",  # how items draw a random number
) -> None:
    warnings.filterwarnings("ignore", "This DataLoader will create")  # more workers than cores
    shared = {}  # all draw from the generator of torch
    own = {}  # the loader has a generator of its own
    for workers in lab.sweep(WORKERS, "workers"):
        shared[workers] = train_twice(workers, draw)
        own[workers] = train_twice(workers, draw, has_generator=True)
    draw_orders(lab, shared)

    lab.claim("one-order", count_orders(shared, 0), equals=1)
    second = [epochs[1].order for epochs in shared.values()]
    are_equal = [second[0] == second[1], second[1] == second[2]]
    lab.claim("second", are_equal, equals=[False, True], answers=count_orders(shared, 1))
    lab.claim("own", [count_orders(own, epoch) for epoch in (0, 1)], equals=[1, 1])

    lab.stage("the numbers that items draw")
    drawn = [epochs[0].drawn for epochs in shared.values()]
    repeated = []
    for workers in WORKERS:
        repeated.append(train_twice(workers, draw)[0].drawn)
    lab.claim("drawn", [len(set(drawn)), repeated == drawn], equals=[3, True])
    first_epoch = train_twice(4, "numpy")[0]
    lab.claim("numpy", len(set(first_epoch.drawn)), equals=ITEMS)

    lab.stage("which process draws, and which load")
    drawing, loading = find_processes()
    is_main = drawing == {os.getpid()}
    lab.claim("main", [is_main, len(loading - drawing)], equals=[True, 4])

    lab.stage("other samplers")
    orders = [count_orders_of_rank(has_set_epoch) for has_set_epoch in (False, True)]
    lab.claim("set-epoch", orders, equals=[1, 3])
    lab.claim("lists", [read_lists(workers) for workers in (0, 2)], equals=[LISTS, LISTS])
    lab.claim("refused", list_refusals(lab), equals=["ValueError"] * 4)
