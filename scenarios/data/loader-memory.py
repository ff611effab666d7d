"""Keep the records of a dataset in an array or a tensor: workers copy a list.

Your dataset is a list of file names. With more workers, the memory of the machine fills up during
the first epoch, though the workers only read the list.

A forked worker shares the memory of the training process. A page of 4096 bytes is copied when the
worker or the training process writes to it. To read a Python object is to write: its reference
count goes up and down, and the count is part of the object. So a worker copies the page of each
object that it reads, with all other objects on the page. A page holds 51 names of files. In a
shuffled epoch, a page is still shared after a hundredth of the records with a probability of
0.99 ** 51. In the end each worker has copied all names, whatever its share of the records is.

An array or a tensor is one object with one reference count for all records. `gc.freeze()` does not
help: it stops the garbage collector from writing to objects, and reference counts still change.

The RSS in `top` does not show the copies. It counts a page in each process that has it, shared or
not. Private bytes show them; they are in /proc/PID/smaps_rollup. A worker of a forkserver, the
default from Python 3.14 on, or a spawned worker shares nothing. It gets the dataset as a pickle, a
list and an array alike. Only a tensor arrives in shared memory.

In practice: store names and labels with `numpy.array(names, dtype=bytes)` or in one tensor, and
decode a name in `__getitem__`. If your workers do not fork, take a tensor. Watch `Private_Dirty` of
the workers in /proc/PID/smaps_rollup, and not RSS.
## Predict
A forked worker has read a hundredth of the records of a list, in random order. How many percent of
the list has it copied?
## Look for
- [shared] before the first record is read, each form of the records costs a worker at most 0.1
  times the bytes of the names
- [hundredth] after 1 % of the records of a list, a worker has copied at least 0.25 of the bytes
  that it copies in the epoch
- [list] at the end of an epoch, each of two workers has copied at least as many bytes as all names
  of the list have
- [rss] in the same epoch the RSS of a worker grows by at most 0.1 times the bytes of the names
- [freeze] after gc.freeze() each worker still copies at least as many bytes as all names have
- [array] an array of the same names costs each worker at most 0.1 times the bytes of the names
- [tensor] a tensor of the same names costs each worker at most 0.1 times the bytes of the names
## Try next
`--start forkserver`: list and array are copied before the first record is read, and the tensor is
not. refutes: shared, array
`--order sequential`: a worker copies page after page, and only those of its own batches.
refutes: hundredth, list, freeze
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 1,
https://www.toymoban.com/news/detail-808122.html: with workers the memory grows a lot. The cause was
found in https://github.com/pytorch/pytorch/issues/13246. Ours: the hundredth, RSS, gc.freeze and
the forkserver.
"""

import gc
import multiprocessing
import os
import re
import sys
from typing import Literal, NamedTuple

import numpy
import torch
from torch.utils.data import DataLoader, Dataset

from tuilab import Lab

ROLLUP = "/proc/self/smaps_rollup"
WORKERS = 2
STEPS = 100  # batches of an epoch


class Memory(NamedTuple):
    private_bytes: int
    rss_bytes: int


def read_memory():
    """Return the memory of this process."""
    sizes = {}
    with open(ROLLUP) as rollup:
        for name, kib in re.findall(r"(\w+): +(\d+) kB", rollup.read()):
            sizes[name] = 1024 * int(kib)
    return Memory(sizes["Private_Clean"] + sizes["Private_Dirty"], sizes["Rss"])


class Records(Dataset):
    """A dataset that reads its names, and returns the memory of its process."""

    def __init__(self, names, count):
        self.names = names
        self.count = count
        self.before = None  # memory before the first record is read
        self.batches = 0

    def __len__(self):
        return self.count

    def __getitems__(self, indices):  # torch asks a dataset with this method for a whole batch
        if self.before is None:
            self.before = read_memory()  # each worker has a dataset of its own
        if self.names is not None:
            for index in indices:
                self.names[index]
        self.batches += 1
        after = None
        if self.batches <= 5 or self.batches % 5 == 0:  # reading the memory is slow
            after = read_memory()
        return os.getpid(), self.before, after


def keep(batch):
    return batch


def read_epoch(lab, arm, names, count, start, is_shuffled):
    """Return the memory of each worker: at its start, and after some of its batches."""
    loader = DataLoader(
        Records(names, count),
        count // STEPS,
        shuffle=is_shuffled,
        num_workers=WORKERS,
        collate_fn=keep,
        multiprocessing_context=start,
    )
    courses = {}
    for step, (worker, before, after) in enumerate(loader):
        if after is None:
            continue
        lab.log(step + 1, arm=arm, private_bytes=after.private_bytes)
        if worker not in courses:
            courses[worker] = [before]
        courses[worker].append(after)
    return list(courses.values())


def subtract(courses, bare_courses, place):
    """Return how many private bytes each worker has more than a worker without names."""
    extra = []
    for course, bare in zip(courses, bare_courses, strict=True):
        extra.append(course[place].private_bytes - bare[place].private_bytes)
    return extra


def largest_growth(courses):
    """Return by how many bytes the RSS of a worker grows at most."""
    return max(course[-1].rss_bytes - course[0].rss_bytes for course in courses)


def run(
    lab: Lab,
    records: int = 400_000,  # names of files, 10000..10000000 (quick 200000)
    order: Literal["shuffled", "sequential"] = "shuffled",  # order in which records are read
    start: Literal["fork", "forkserver"] = "fork",  # how workers start
) -> None:
    lab.needs(os.path.exists(ROLLUP), "smaps_rollup, of Linux 4.14 or newer")
    multiprocessing.set_forkserver_preload(["torch"])  # otherwise each worker loads it again
    names = [f"train/{index:010}.jpg" for index in range(records)]
    names_bytes = sum(sys.getsizeof(name) for name in names)
    array = numpy.array(names, dtype=bytes)  # (records,), of 20 bytes each
    tensor = torch.from_numpy(array.view(numpy.uint8).reshape(records, -1))  # (records, 20)
    forms = {
        "nothing": None,
        "array": array,
        "tensor": tensor,
        "list": names,
        "frozen list": names,
    }

    lab.axes("private_bytes", x="% of the records are read", y="private bytes of a worker")
    courses = {}
    for arm, form in forms.items():
        lab.stage(arm)
        if arm == "frozen list":
            gc.freeze()
        courses[arm] = read_epoch(lab, arm, form, records, start, order == "shuffled")
    gc.unfreeze()
    bars = {"the names themselves": names_bytes}
    for arm in forms:
        bars[arm] = courses[arm][-1][-1].private_bytes
    lab.bars("private bytes of a worker at the end", bars, unit="B")

    at_start = {}
    after_one = {}
    at_end = {}
    for arm in forms:
        at_start[arm] = subtract(courses[arm], courses["nothing"], 0)
        after_one[arm] = subtract(courses[arm], courses["nothing"], 1)
        at_end[arm] = subtract(courses[arm], courses["nothing"], -1)
    largest_start = max(max(extra) for extra in at_start.values())
    lab.claim("shared", largest_start / names_bytes, at_most=0.1)
    shares = []
    for first, last in zip(after_one["list"], at_end["list"], strict=True):
        shares.append(first / last)
    lab.claim("hundredth", min(shares), at_least=0.25, answers=100 * min(shares))
    lab.claim("list", min(at_end["list"]) / names_bytes, at_least=1)
    lab.claim("rss", largest_growth(courses["list"]) / names_bytes, at_most=0.1)
    lab.claim("freeze", min(at_end["frozen list"]) / names_bytes, at_least=1)
    lab.claim("array", max(at_end["array"]) / names_bytes, at_most=0.1)
    lab.claim("tensor", max(at_end["tensor"]) / names_bytes, at_most=0.1)
