"""A list of Python objects is copied into every worker that only reads it; an array or a tensor is shared.

A worker that is forked shares the memory of the loop's process. A page (4096 bytes) is copied when one of the two writes to it.
To read a Python object is to write: its reference count goes up and down, and it stands in the object. So a worker copies the
page of each object that it reads, with all its neighbours. A page has 51 names of files. Shuffled, it is still shared after one
record in a hundred was read with probability 0.99 ** 51, and soon none is. Each worker copies all, whatever its share of the
records is.

An array or a tensor is one object with one reference count for all records. `gc.freeze()` is no cure: it keeps the collector
of garbage off, and reference counts are not its affair.

RSS, the column of top, does not show the copies. It counts a page in each process that has it, shared or not. Private bytes
show them, those of /proc/PID/smaps_rollup. A worker of a forkserver, which is the default from Python 3.14 on, or a spawned
one shares nothing: the dataset goes to each as a pickle, list and array alike. Only a tensor goes over in shared memory.
## Predict
A forked worker has read one record in a hundred of a list, in random order. How many percent of the list has it copied?
## Look for
- [shared] before the first record is read no form costs a worker a tenth of what the names are
- [hundredth] after one record in a hundred a worker has copied a quarter of the list or more
- [list] at the end each of two workers has its own copy, of at least what all names are
- [rss] meanwhile the RSS of a worker grows by a tenth of that or less
- [freeze] after gc.freeze() the list is copied all the same
- [array] an array of the same names costs each worker at most a tenth of what they are
- [tensor] and so does a tensor
## Try next
`--start forkserver`: list and array are copied before the first record is read, the tensor is not. refutes: shared, array
`--order sequential`: a worker copies page after page, and only those of its own batches. refutes: hundredth, list, freeze
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 1,
https://www.toymoban.com/news/detail-808122.html: with workers the memory grows a lot. The cause was found in
https://github.com/pytorch/pytorch/issues/13246. Ours: the hundredth, RSS, gc.freeze and the forkserver.
"""

import gc
import multiprocessing
import os
import re
import sys
from typing import Literal

import numpy
import torch
from torch.utils.data import DataLoader

from tuilab import Lab

ROLLUP = "/proc/self/smaps_rollup"


def held():
    """Return the private bytes of this process, and its RSS."""
    with open(ROLLUP) as rollup:
        found = {name: 1024 * int(kib) for name, kib in re.findall(r"(\w+): +(\d+) kB", rollup.read())}
    return found["Private_Clean"] + found["Private_Dirty"], found["Rss"]


class Records:
    """A dataset that reads its names and tells what its process held at the start, and after some batches."""

    def __init__(self, names, count):
        self.names, self.count, self.before, self.batches = names, count, None, 0

    def __len__(self):
        return self.count

    def __getitems__(self, indices):  # torch asks a dataset with this method for a whole batch
        self.before = self.before or held()  # each worker has a dataset of its own
        for index in indices if self.names is not None else []:
            _ = self.names[index]
        self.batches += 1
        is_told = self.batches <= 5 or self.batches % 5 == 0  # to look takes longer than to read
        return os.getpid(), self.before, held() if is_told else None


def as_it_is(batch):
    return batch


def run(
    lab: Lab,
    records: int = 400_000,  # names of files, 10000..10000000 (quick 200000)
    order: Literal["shuffled", "sequential"] = "shuffled",  # in which they are read
    start: Literal["fork", "forkserver"] = "fork",  # how workers are started
) -> None:
    lab.needs(os.path.exists(ROLLUP), "smaps_rollup, of Linux 4.14 or newer")
    multiprocessing.set_forkserver_preload(["torch"])  # else each worker loads it again
    names = [f"train/{index:010}.jpg" for index in range(records)]
    size = sum(map(sys.getsizeof, names))
    array = numpy.array(names, dtype=bytes)  # (records,), of 20 bytes each
    tensor = torch.from_numpy(array.view(numpy.uint8).reshape(records, -1))  # (records, 20)

    lab.axes("private_bytes", x="% of the records are read", y="private bytes of a worker")
    copied, rss, ends = {}, {}, {}
    for arm, form in {"nothing": None, "array": array, "tensor": tensor, "list": names, "frozen list": names}.items():
        lab.stage(arm)
        if arm == "frozen list":
            gc.freeze()
        how = {"multiprocessing_context": start, "collate_fn": as_it_is, "shuffle": order == "shuffled", "num_workers": 2}
        courses = {}  # of each worker, what it holds at its start and after these batches
        for step, (worker, before, after) in enumerate(DataLoader(Records(form, records), records // 100, **how)):
            if after is None:
                continue
            ends[arm] = after[0]
            lab.log(step + 1, arm=arm, private_bytes=after[0])
            courses.setdefault(worker, [before]).append(after)
        if form is None:
            bare = [*courses.values()]  # of workers without any names
        pairs = [*zip(courses.values(), bare, strict=True)]
        copied[arm] = [[course[at][0] - without[at][0] for at in (0, 1, -1)] for course, without in pairs]
        rss[arm] = max(course[-1][1] - course[0][1] for course in courses.values())
    gc.unfreeze()
    lab.bars("private bytes of a worker at the end", {"the names themselves": size, **ends}, unit="B")
    lab.claim("shared", max(start for of_workers in copied.values() for start, _, _ in of_workers) / size, at_most=0.1)
    hundredth = min(first / end for _, first, end in copied["list"])
    lab.claim("hundredth", hundredth, at_least=0.25, answers=100 * hundredth)
    lab.claim("list", min(end for _, _, end in copied["list"]) / size, at_least=1)
    lab.claim("rss", rss["list"] / size, at_most=0.1)
    lab.claim("freeze", min(end for _, _, end in copied["frozen list"]) / size, at_least=1)
    lab.claim("array", max(end for _, _, end in copied["array"]) / size, at_most=0.1)
    lab.claim("tensor", max(end for _, _, end in copied["tensor"]) / size, at_most=0.1)
