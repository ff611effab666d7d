"""Give your batch class a pin_memory() that returns self, or it stays unpinned.

With `pin_memory=True` the DataLoader copies each batch into pinned memory, from which a GPU can
fetch while training continues. The loader does not know your own classes. If a batch is an object
of such a class, the loader passes it through unchanged and does not warn.

The loader pins tensors. It looks into dicts, lists, tuples and named tuples. It calls
`pin_memory()` of any other object that has such a method. It passes everything else through. A
dataclass is such an object, and so is a set. The search ends there: such an object hides all
tensors inside it, even if the object itself is in a dict. The method has to pin every tensor of its
object. The result of the method replaces the batch. Without `return self`, the batch is None.

Here a dummy replaces the tensor, to see on any machine whether the loader finds it. On a GPU, real
tensors are pinned.

In practice: return a dict or a named tuple from `collate_fn`. If you need a class of your own, add
this method, and check `batch.data.is_pinned()` once:

    def pin_memory(self):
        self.data = self.data.pin_memory()
        return self
## Predict
A batch has a tensor in a dict, a list, a tuple, a named tuple, a class with pin_memory() and a
dataclass. How many of the six tensors does the loader find?
## Look for
- [found] the loader finds a tensor in 5 places: in a dict, a list, a tuple, a named tuple, and a
  class with pin_memory()
- [not-found] the loader does not find a tensor in a dataclass
- [set] the loader finds no tensor in a set
- [nested] in a dict of labels and a dataclass of images, the loader finds the labels and does not
  find the images
- [source] the class of the source holds 2 tensors, and its pin_memory() pins both
- [returned] a batch is None if its pin_memory() returns nothing
- [with-method] on a GPU, a batch of the class with pin_memory() is pinned
- [without-method] on a GPU, a batch of the dataclass is not pinned
## Try next
`--method`: the dataclass gets the method, and the loader finds its tensor. refutes: not-found,
nested, without-method
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 2,
https://www.toymoban.com/news/detail-808122.html: a batch of a custom type needs the method, or it
stays unpinned. Ours: the other containers, nested batches, the dataclass and the forgotten return.
"""

from collections import namedtuple
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.utils.data import DataLoader
from torch.utils.data._utils.pin_memory import pin_memory

from tuilab import Lab

IMAGE_BYTES = 3 * 224 * 224 * 4  # in float32
LABEL_BYTES = 8

NamedBatch = namedtuple("NamedBatch", "data")


class StandIn:
    """Replaces a tensor, and notes whether the loader pins it."""

    def __init__(self, size=IMAGE_BYTES):
        self.size = size  # bytes of the tensor
        self.is_found = False

    def pin_memory(self):
        self.is_found = True
        return self


@dataclass(eq=False)  # objects of this class can be in a set
class PlainBatch:
    data: Any


class PinningBatch(PlainBatch):
    def pin_memory(self):
        self.data = self.data.pin_memory()
        return self


class ForgetfulBatch(PlainBatch):
    def pin_memory(self):
        self.data = self.data.pin_memory()  # it returns None


class PairBatch:
    """Holds inputs and targets, as the class of the source does."""

    def __init__(self, inputs, targets):
        self.inputs = inputs
        self.targets = targets

    def pin_memory(self):
        self.inputs = self.inputs.pin_memory()
        self.targets = self.targets.pin_memory()
        return self


def wrap_in_dict(data):
    return {"image": data}


def wrap_in_list(data):
    return [data]


def wrap_in_tuple(data):
    return (data,)


def wrap_in_set(data):
    return {data}


def is_found(wrap):
    tensor = StandIn()
    pin_memory(wrap(tensor))  # the DataLoader calls this function with each batch
    return tensor.is_found


def wrap_pair_in_dict(images, labels):
    return {"images": images, "labels": labels}


def hide_images(plain, images, labels):
    return {"images": plain(images), "labels": labels}


def hide_both(plain, images, labels):
    return {"images": plain(images), "labels": plain(labels)}


def search_batch(wrap, count=64):
    """Return which tensors of a batch the loader finds, and the bytes of the others."""
    images = StandIn(count * IMAGE_BYTES)
    labels = StandIn(count * LABEL_BYTES)
    pin_memory(wrap(images, labels))
    missed_bytes = 0
    for tensor in (images, labels):
        if not tensor.is_found:
            missed_bytes += tensor.size
    return [images.is_found, labels.is_found], missed_bytes


def log_missed_bytes(lab, batches):
    lab.axes("unpinned_bytes", x="images in a batch", y="bytes that stay unpinned")
    for count in lab.sweep([1, 32, 64, 128, 256], "batches of images and labels"):
        for arm, wrap in batches.items():
            _, missed_bytes = search_batch(wrap, count)
            lab.log(count, arm=arm, unpinned_bytes=missed_bytes)


def collate_into(batch_class):
    def collate(items):
        return batch_class(torch.stack(items))

    return collate


def is_pinned(batch_class):
    rows = [torch.zeros(3)] * 4
    collate = collate_into(batch_class)
    loader = DataLoader(rows, batch_size=2, pin_memory=True, collate_fn=collate)
    return all(batch.data.is_pinned() for batch in loader)


def run(
    lab: Lab,
    method: bool = False,  # give the dataclass the method
) -> None:
    on_gpu = lab.device().type == "cuda"
    lacks = "" if on_gpu else "a CUDA device"
    plain = PinningBatch if method else PlainBatch

    lab.stage("where the loader looks")
    places = {
        "dict": wrap_in_dict,
        "list": wrap_in_list,
        "tuple": wrap_in_tuple,
        "named tuple": NamedBatch,
        "class with pin_memory()": PinningBatch,
        "dataclass": plain,
    }
    found = {name: is_found(wrap) for name, wrap in places.items()}
    count = sum(found.values())
    is_set_found = is_found(wrap_in_set)
    rows = [*found.items(), ("set", is_set_found)]
    lab.table("where the loader looks", rows, head=("a tensor in", "is found"))
    is_dataclass_found = found.pop("dataclass")
    lab.claim("found", list(found.values()), equals=[True] * 5, answers=count)
    lab.claim("not-found", is_dataclass_found, equals=False)
    lab.claim("set", is_set_found, equals=False)
    lab.claim("returned", pin_memory(ForgetfulBatch(StandIn())) is None)

    batches = {
        "dict": wrap_pair_in_dict,
        "class of the source": PairBatch,
        "dict, images in a dataclass": partial(hide_images, plain),
        "dict, both in dataclasses": partial(hide_both, plain),
    }
    log_missed_bytes(lab, batches)
    found_in_pair, _ = search_batch(PairBatch)
    lab.claim("source", found_in_pair, equals=[True, True])
    found_in_dict, _ = search_batch(batches["dict, images in a dataclass"])
    lab.claim("nested", found_in_dict, equals=[False, True])

    lab.stage("what a GPU gets")
    lab.claim("with-method", is_pinned(PinningBatch) if on_gpu else None, equals=True, lacks=lacks)
    lab.claim("without-method", is_pinned(plain) if on_gpu else None, equals=False, lacks=lacks)
