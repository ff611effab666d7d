"""A Dataset returns the item of the index that it is given, and 0 workers show where it fails.

The class of the source for a folder of images has six bugs. Most raise an error when it is first used. Two do not. A path with
a * where a folder belongs matches nothing: the list is empty, and so is the epoch. And who takes `random.choice` instead of the
index draws with replacement. An epoch shows each item with a chance of 1 - (1 - 1/n)^n, and no sampler can change it.
What an item raises in a worker is sent to the main process as text. There the loader makes an error of the same class from it,
with the traceback of the worker as its message. A class that takes more than a message cannot be made so. It becomes a
RuntimeError, and `except` for the class does not catch it. The frames stay in the worker: a debugger that starts after the
error shows the loader, not the item. So look for errors with `num_workers=0`. One is never told: a StopIteration in an item,
of a `next()` for example, ends the epoch as if that were all.
## Predict
A dataset of 1000 items returns random.choice of them. How many different ones does an epoch show?
## Look for
- [choice] an epoch of items drawn by random.choice shows 60 to 66 % of them
- [index] an epoch of items by index shows all
- [bugs] a TypeError without self or pattern or index, a NotImplementedError for __item__, a NameError for paths
- [glob] for a folder with a * there are 0 files and 0 batches; with shuffle=True there is a ValueError
- [collate] an item that is None is a TypeError, and items of different sizes are a RuntimeError
- [message] from a worker the message is a traceback that names the item's function; without workers it is one line
- [frames] without workers the error has a frame of that function; from a worker it has none
- [class] from a worker a KeyError is a KeyError, and a JSONDecodeError is a RuntimeError
- [stop] the ninth of 1000 items raises a StopIteration: 8 arrive, and no error
## Try next
`--by index`: the first dataset returns what it is asked for, and shows all. refutes: choice
## Source
- EffectivePyTorch, chapter "Building efficient custom data loaders", https://github.com/vahidk/EffectivePyTorch; a translation
  of it has `__item__`.
- "28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 1,
  https://www.toymoban.com/news/detail-808122.html: errors are easier to read with 0 workers.
- Ours: what an epoch shows, and what becomes of an error.
"""

import glob
import json
import os
import random
import tempfile
import traceback
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Literal

import torch
from torch.utils.data import DataLoader, Dataset

from tuilab import Lab

ITEMS = 1000


class Files(Dataset):
    def __init__(self, path, pattern):
        self.paths = glob.glob(os.path.join(path, pattern))

    def __len__(self):
        return len(self.paths)


GET = {"choice": lambda self, index: random.choice(self.paths), "index": lambda self, index: self.paths[index]}


def make(given, function, method="__getitem__"):  # a dataset of files with this method
    return type("Buggy", (Files,), {method: function})(*given)


def load(*parts):
    return [*DataLoader(make(*parts))]


def caught(given, read, workers):  # an error of an item, and the functions that a debugger shows
    def broken_item(self, index):
        return read()

    try:
        [*DataLoader(make(given, broken_item), num_workers=workers, multiprocessing_context="fork" if workers else None)]
    except Exception as error:
        frames = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
        traceback.clear_frames(error.__traceback__)  # they hold the loader, and it holds its worker
        return error, frames


def run(
    lab: Lab,
    by: Literal["choice", "index"] = "choice",  # what the first dataset returns
) -> None:
    lab.axes("shown", x="epoch", y="share of the items that were shown")
    with tempfile.TemporaryDirectory() as folder:
        for number in range(ITEMS):
            Path(folder, f"{number}.jpg").touch()
        starred, files, shown = (os.path.join(folder, "*.jpg"),), (folder, "*.jpg"), {}
        for arm, way in {"random.choice": by, "by index": "index"}.items():
            data, seen = make(files, GET[way]), set()
            for epoch in range(1, 6):
                seen.update(chain.from_iterable(DataLoader(data, 100, shuffle=True)))
                shown[arm, epoch] = len(seen) / ITEMS
                lab.log(epoch, arm=arm, shown=shown[arm, epoch])
        lab.stage("bugs")
        bugs = {
            "__init__ without self": (starred, lambda path, pattern: os.path.join(path, pattern), "__init__"),
            "called without pattern": (starred, Files.__init__, "__init__"),
            "__getitem__ without index": (files, lambda self: random.choice(self.paths)),
            "__item__": (files, GET["index"], "__item__"),
            "paths without self": (files, lambda self, index: random.choice(paths)),  # noqa: F821
        }
        raised = {bug: lab.raises(load, *parts) for bug, parts in bugs.items()}
        nothing = make((*starred, "*.jpg"), GET["index"])
        reader = iter(range(8))
        stopped = load(files, lambda self, index: next(reader))
        missed, parsed = [[caught(files, read, n) for n in (0, 1)] for read in ({}.popitem, partial(json.loads, "no"))]
    lab.claim("choice", shown["random.choice", 1], equals=0.63, tolerance=0.03, answers=ITEMS * shown["random.choice", 1])
    lab.claim("index", shown["by index", 1], equals=1)
    lab.table("a class with one bug", [*raised.items()], head=("bug", "raises"))
    errors = ["TypeError", "TypeError", "TypeError", "NotImplementedError", "NameError"]
    lab.claim("bugs", [text.split(":")[0] for text in raised.values()], equals=errors)
    empty = [len(nothing), len([*DataLoader(nothing)]), lab.raises(lambda: DataLoader(nothing, shuffle=True))[:10]]
    lab.claim("glob", empty, equals=[0, 0, "ValueError"])
    refused = [lab.raises(list, DataLoader(items, 2)).split(":")[0] for items in ([None], [torch.zeros(3), torch.zeros(4)])]
    lab.claim("collate", refused, equals=["TypeError", "RuntimeError"])
    lab.claim("message", ["\n" in str(parsed[0][0]), "in broken_item" in str(parsed[1][0])], equals=[False, True])
    lab.claim("frames", ["broken_item" in frames for _, frames in parsed], equals=[True, False])
    lab.claim("class", [type(pair[1][0]).__name__ for pair in (missed, parsed)], equals=["KeyError", "RuntimeError"])
    lab.claim("stop", len(stopped), equals=8)
