"""Shuffling happens in the main process: 0, 2 and 4 workers give one order, unless items draw numbers, too.

A sampler yields indices, a batch sampler makes lists of them, and both run in the main process. A worker gets such a list and
loads its items. `shuffle=True` is a RandomSampler. At the start of an epoch it draws the whole order from torch's generator,
before any item is loaded. So the number of workers does not matter.

It matters to the random numbers that items draw, as augmentation does. Each worker has generators of its own, of torch, numpy
and `random`, and its number is in their seeds. With 0 workers the items draw from the generators of the main process. The first
order is drawn by then, the second is not, and comes out otherwise. So does the first after one more layer was initialised. A
generator that the loader has to itself, `generator=`, shuffles alike whatever else is drawn.

A DistributedSampler keeps no generator: it shuffles by its seed plus the epoch that `set_epoch` tells it. Without the call it
has one order in every epoch.
## Predict
Items call torch.rand. With one seed 0, 2 and 4 workers load two shuffled epochs: how many orders does the second have?
## Look for
- [one-order] in the first epoch 0, 2 and 4 workers give 1 order
- [main] every index of a sampler of our own is drawn in the main process, and 4 workers load
- [second] in the second epoch 2 and 4 workers give one order, and 0 workers, whose items drew from its generator, another
- [own] with a generator for the loader alone they give 1 order in each epoch
- [drawn] what the items draw differs with the number of workers, and repeats with the same number
- [numpy] of 4 workers none repeats what another one draws from numpy: 32 items have 32 numbers
- [set-epoch] three epochs of a DistributedSampler have 1 order without set_epoch, and 3 with it
- [lists] a batch sampler may be a plain list of lists, and each comes as one batch
- [refused] with it batch_size, shuffle, sampler and drop_last raise a ValueError
## Try next
`--draw none`: items draw nothing, and 0 workers give the second order of all others, too. refutes: second, drawn
`--draw numpy`: items draw from another generator than the one that shuffles. refutes: second
## Source
- EffectivePyTorch, chapter "Building efficient custom data loaders", https://github.com/vahidk/EffectivePyTorch: a Sampler
  forms batches.
- "28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 1,
  https://www.toymoban.com/news/detail-808122.html: shuffling happens in the main process.
- Ours: the second epoch, and what items draw.
"""

import os
import warnings
from functools import partial
from typing import Literal

import numpy
import torch
from torch.utils.data import DataLoader, DistributedSampler

from tuilab import Lab

ITEMS, WORKERS = 32, (0, 2, 4)
DRAWS = {"torch": lambda: torch.rand(()).item(), "numpy": numpy.random.rand, "none": lambda: 0.0}


class Items:
    def __init__(self, draw):
        self.draw = draw

    def __len__(self):
        return ITEMS

    def __getitem__(self, index):
        return index, DRAWS[self.draw](), os.getpid()


def make_loader(workers, draw="none", **options):
    options["multiprocessing_context"] = "fork" if workers else None
    return DataLoader(Items(draw), num_workers=workers, collate_fn=list, **options)  # a batch is a list of items


def two_epochs(workers, draw, is_own=False):  # each of them: the indices, what the items drew, and the processes
    torch.manual_seed(0)
    numpy.random.seed(0)
    generator = torch.Generator().manual_seed(0) if is_own else None
    loader = make_loader(workers, draw, batch_size=4, shuffle=True, generator=generator)
    return [list(zip(*(item for batch in loader for item in batch), strict=True)) for _ in range(2)]


def noting(pids):  # a sampler is anything that yields indices
    for index in range(ITEMS):
        pids.append(os.getpid())
        yield index


def three_orders(is_told):
    sampler = DistributedSampler(range(ITEMS), num_replicas=2, rank=0)
    for epoch in range(3):
        if is_told:
            sampler.set_epoch(epoch)
        yield tuple(sampler)


def run(
    lab: Lab,
    draw: Literal["torch", "numpy", "none"] = "torch",  # where items draw a random number
) -> None:
    warnings.filterwarnings("ignore", "This DataLoader will create")  # more workers than cores, on purpose
    shared, own = {}, {}
    for workers in lab.sweep(WORKERS, "workers"):
        shared[workers], own[workers] = two_epochs(workers, draw), two_epochs(workers, draw, is_own=True)
    for epoch in range(2):
        rows = [found[epoch][0] for found in shared.values() for _ in range(4)]  # each order as a band
        lab.image(f"epoch {epoch + 1}: 0, 2, 4 workers", rows)
    begun = [(n, *(" ".join(map(str, order[:6])) for order, _, _ in found)) for n, found in shared.items()]
    lab.table("the first six items", begun, head=("workers", "epoch 1", "epoch 2"))
    none, two, four = shared.values()
    lab.claim("one-order", len({found[0][0] for found in (none, two, four)}), equals=1)
    orders = len({found[1][0] for found in (none, two, four)})
    lab.claim("second", [none[1][0] == two[1][0], two[1][0] == four[1][0]], equals=[False, True], answers=orders)
    lab.claim("own", [len({found[epoch][0] for found in own.values()}) for epoch in range(2)], equals=[1, 1])
    drawn, again = ([found[0][1] for found in epochs] for epochs in (shared.values(), [two_epochs(n, draw) for n in WORKERS]))
    lab.claim("drawn", [len(set(drawn)), again == drawn], equals=[3, True])

    lab.stage("who draws, and who loads")
    pids = []
    loading = {pid for batch in make_loader(4, sampler=noting(pids)) for _, _, pid in batch}
    lab.claim("main", [set(pids) == {os.getpid()}, len(loading - set(pids))], equals=[True, 4])
    lab.claim("numpy", len(set(two_epochs(4, "numpy")[0][1])), equals=ITEMS)
    lab.stage("other samplers")
    lab.claim("set-epoch", [len({*three_orders(False)}), len({*three_orders(True)})], equals=[1, 3])
    lists = [[3, 1, 4], [1], [5, 9, 2, 6]]
    found = [[[index for index, *_ in batch] for batch in make_loader(n, batch_sampler=lists)] for n in (0, 2)]
    lab.claim("lists", found, equals=[lists, lists])
    given = {"batch_size": 2, "shuffle": True, "sampler": [0], "drop_last": True}
    refused = [lab.raises(partial(make_loader, 0, batch_sampler=lists, **{name: value})) for name, value in given.items()]
    lab.claim("refused", [text.split(":")[0] for text in refused], equals=["ValueError"] * 4)
