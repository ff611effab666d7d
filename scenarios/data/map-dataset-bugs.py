"""Read the index in a Dataset, and look for its errors with num_workers=0.

A Dataset for a folder of images is ten lines of code. The class in the source has six bugs in these
lines. Four raise an error when the class is first used. Two do not. If a pattern such as
*.jpg is in the place of the folder, it matches nothing: the list and the epoch are empty. And a
dataset that uses `random.choice` instead of the index draws with replacement. Then an epoch shows
each of n items with a chance of 1 - (1 - 1/n)^n, and no sampler can change this.

If an item raises an error in a worker, the worker sends it to the main process as text. The loader
makes an error of the same class from it, with the traceback of the worker as its message. Some
classes need more than a message. Their error becomes a RuntimeError, and `except` for the class
does not catch it. The frames stay in the worker. So a debugger that starts after the error shows
the loader and not the item.

A StopIteration in an item, for example from `next()`, raises nothing at all. It ends the epoch as
if there were no more items.

In practice: use `self.paths[index]`, and raise an error in `__init__` if the list of paths is
empty. Load one batch with `num_workers=0` before you train, and again whenever a worker fails.
Write `next(reader, None)` in an item, and check for None.
## Predict
A dataset of 1000 items returns random.choice of its items. How many different items does an epoch
show?
## Look for
- [choice] an epoch shows 60 to 66 % of the items if random.choice draws each item
- [index] an epoch shows 100 % of the items if each is read by its index
- [bugs] no self, no pattern and no index raise a TypeError, __item__ a NotImplementedError, and
  paths without self a NameError
- [glob] for a folder with a * there are 0 files and 0 batches, and with shuffle=True a ValueError
- [collate] an item that is None is a TypeError, and items of different sizes are a RuntimeError
- [message] from a worker, the message of an error is a traceback with the function of the item;
  without workers it is one line
- [frames] without workers, the error has a frame of the function of the item; from a worker it has
  none
- [class] from a worker, a KeyError stays a KeyError, and a JSONDecodeError becomes a RuntimeError
- [stop] if the ninth of 1000 items raises a StopIteration, 8 items arrive, and there is no error
## Try next
`--by index`: the first dataset returns the item of the index, and shows all items. refutes: choice
## Source
- EffectivePyTorch, chapter "Building efficient custom data loaders",
  https://github.com/vahidk/EffectivePyTorch: the class. Its method is `__item__` in a translation.
- "28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 1,
  https://www.toymoban.com/news/detail-808122.html: errors are easier to read with 0 workers.
- Ours: which items an epoch shows, and what becomes of an error.
"""

import glob
import json
import os
import random
import tempfile
import traceback
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Literal

import torch
from torch.utils.data import DataLoader, Dataset

from tuilab import Lab

ITEMS = 1000
EPOCHS = 5


class Files(Dataset):
    """The paths of a folder. Each bug is a subclass."""

    def __init__(self, path, pattern):
        self.paths = glob.glob(os.path.join(path, pattern))

    def __len__(self):
        return len(self.paths)


class ByIndex(Files):
    def __getitem__(self, index):
        return self.paths[index]


class ByChoice(Files):
    def __getitem__(self, index):
        return random.choice(self.paths)


class InitWithoutSelf(Files):
    def __init__(path, pattern):
        os.path.join(path, pattern)


class GetitemWithoutIndex(Files):
    def __getitem__(self):
        return random.choice(self.paths)


class ItemMethod(Files):
    def __item__(self, index):
        return self.paths[index]


class PathsWithoutSelf(Files):
    def __getitem__(self, index):
        return random.choice(paths)  # noqa: F821


class OneReader(Files):
    """Takes each item from a reader that has only 8 of them."""

    def __init__(self, path, pattern):
        super().__init__(path, pattern)
        self.reader = iter(range(8))

    def __getitem__(self, index):
        return next(self.reader)


class Failing(Dataset):
    """A dataset whose items call a function that raises an error."""

    def __init__(self, read):
        self.read = read

    def __len__(self):
        return 1

    def __getitem__(self, index):
        return self.read()


def load(dataset_class, *arguments):
    return list(DataLoader(dataset_class(*arguments)))


def read_epoch(dataset):
    """Return how often each path was shown."""
    counts = Counter()
    for paths in DataLoader(dataset, 100, shuffle=True):
        counts.update(paths)
    return counts


def catch_error(read, workers):
    """Return the error of an item, and the names of the functions that a debugger shows."""
    context = "fork" if workers > 0 else None
    loader = DataLoader(Failing(read), num_workers=workers, multiprocessing_context=context)
    try:
        list(loader)
    except Exception as error:
        frames = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
        traceback.clear_frames(error.__traceback__)  # they keep the loader and its worker alive
        return error, frames


def read_missing_key():
    return {}["label"]


def parse_bad_json():
    return json.loads("no")


def name_of(error_text):
    return error_text.partition(":")[0]


def log_epochs(lab, dataset, arm):
    """Log the share of items that was shown, and return it and the counts of the first epoch."""
    shown = Counter()
    for epoch in range(1, EPOCHS + 1):
        counts = read_epoch(dataset)
        shown += counts
        lab.log(epoch, arm=arm, shown=len(shown) / ITEMS)
        if epoch == 1:
            first_counts = counts
    return len(first_counts) / ITEMS, first_counts


def draw_counts(lab, counts):
    """Show how many items an epoch shows how often."""
    times = Counter(counts.values())
    times[0] = ITEMS - len(counts)
    bars = {f"{number} times": times[number] for number in sorted(times)}
    lab.bars("items by how often random.choice shows them in an epoch", bars)


def claim_bugs(lab, folder):
    path_and_pattern = (folder, "*.jpg")
    starred = os.path.join(folder, "*.jpg")
    errors = {
        "__init__ without self": lab.raises(load, InitWithoutSelf, starred),
        "called without pattern": lab.raises(load, ByIndex, starred),
        "__getitem__ without index": lab.raises(load, GetitemWithoutIndex, *path_and_pattern),
        "__item__": lab.raises(load, ItemMethod, *path_and_pattern),
        "paths without self": lab.raises(load, PathsWithoutSelf, *path_and_pattern),
    }
    lab.table("a class with one bug", list(errors.items()), head=("bug", "raises"))
    expected = ["TypeError", "TypeError", "TypeError", "NotImplementedError", "NameError"]
    lab.claim("bugs", [name_of(error) for error in errors.values()], equals=expected)

    empty = ByIndex(starred, "*.jpg")
    error = lab.raises(partial(DataLoader, empty, shuffle=True))
    batches = list(DataLoader(empty))
    lab.claim("glob", [len(empty), len(batches), name_of(error)], equals=[0, 0, "ValueError"])
    lab.claim("stop", len(load(OneReader, *path_and_pattern)), equals=8)


def claim_errors(lab):
    no_item = DataLoader([None], 2)
    two_sizes = DataLoader([torch.zeros(3), torch.zeros(4)], 2)
    errors = [name_of(lab.raises(list, loader)) for loader in (no_item, two_sizes)]
    lab.claim("collate", errors, equals=["TypeError", "RuntimeError"])

    here, frames_here = catch_error(parse_bad_json, 0)
    sent, frames_sent = catch_error(parse_bad_json, 1)
    is_traceback = ["\n" in str(here), "in parse_bad_json" in str(sent)]
    lab.claim("message", is_traceback, equals=[False, True])
    has_frame = ["parse_bad_json" in frames for frames in (frames_here, frames_sent)]
    lab.claim("frames", has_frame, equals=[True, False])
    sent_key_error, _ = catch_error(read_missing_key, 1)
    classes = [type(error).__name__ for error in (sent_key_error, sent)]
    lab.claim("class", classes, equals=["KeyError", "RuntimeError"])


def run(
    lab: Lab,
    by: Literal["choice", "index"] = "choice",  # how the first dataset finds its item
) -> None:
    lab.axes("shown", x="epoch", y="share of the items that was shown so far")
    with tempfile.TemporaryDirectory() as folder:
        for number in range(ITEMS):
            Path(folder, f"{number}.jpg").touch()
        first_class = ByChoice if by == "choice" else ByIndex
        lab.stage("epochs")
        share, counts = log_epochs(lab, first_class(folder, "*.jpg"), "random.choice")
        share_by_index, _ = log_epochs(lab, ByIndex(folder, "*.jpg"), "by index")
        draw_counts(lab, counts)
        lab.claim("choice", share, equals=0.63, tolerance=0.03, answers=ITEMS * share)
        lab.claim("index", share_by_index, equals=1)

        lab.stage("bugs")
        claim_bugs(lab, folder)
    lab.stage("errors of items")
    claim_errors(lab)
