"""A batch of your own class stays unpinned, unless the class can pin itself.

With `pin_memory=True` the DataLoader copies each batch into pinned memory, from which a GPU fetches while the loop goes on. It
does not know your classes. It looks into dicts, lists, tuples and named tuples, calls `pin_memory()` of anything that has such
a method, tensors included, and hands on all else as it is: an object with tensors in it, without the method, comes as it was,
and nobody says so. A dataclass is such an object. Three lines mend it:

    def pin_memory(self):
        self.data = self.data.pin_memory()
        return self

The loader uses what the method returns; without the `return` your batch is None. Here a stand-in takes the place of the tensor,
to see on any box whether the loader finds it; with a GPU a tensor tells.
## Predict
Of a dict, a list, a tuple, a named tuple, a class with pin_memory() and a dataclass: in how many does the loader find a tensor?
## Look for
- [found] the loader finds what to pin in a dict, a list, a tuple, a named tuple and a class with pin_memory()
- [not-found] it does not find what a dataclass holds
- [returned] the batch is what pin_memory() returns: None, if it returns nothing
- [with-method] with a GPU a batch of the class with pin_memory() comes pinned
- [without-method] with a GPU a batch of the dataclass comes unpinned
## Try next
`--method`: the dataclass gets the method, and the loader finds what is in it. refutes: not-found, without-method
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 2,
https://www.toymoban.com/news/detail-808122.html: a batch of a custom type needs the method, or comes unpinned. Ours: the other
containers, the dataclass and the forgotten return.
"""

from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data import DataLoader
from torch.utils.data._utils.pin_memory import pin_memory

from tuilab import Lab

Named = namedtuple("Named", "data")


class StandIn:  # for a tensor: notes that it was to be pinned
    is_found = False

    def pin_memory(self):
        self.is_found = True
        return self


@dataclass
class Plain:
    data: Any


class Pinning(Plain):
    def pin_memory(self):
        self.data = self.data.pin_memory()
        return self


class Forgetful(Plain):
    def pin_memory(self):
        self.data = self.data.pin_memory()


def is_found(wrap):
    tensor = StandIn()
    pin_memory(wrap(tensor))  # what the DataLoader calls with each batch
    return tensor.is_found


def is_pinned(wrap):
    loader = DataLoader([torch.zeros(3)] * 4, batch_size=2, pin_memory=True, collate_fn=lambda items: wrap(torch.stack(items)))
    return all(batch.data.is_pinned() for batch in loader)


def run(
    lab: Lab,
    method: bool = False,  # give the dataclass the method
) -> None:
    on_gpu = lab.device().type == "cuda"
    lacks = "" if on_gpu else "a CUDA device"
    plain = Pinning if method else Plain

    lab.stage("where the loader looks")
    places = {"dict": lambda data: {"x": data}, "list": lambda data: [data], "tuple": lambda data: (data,)}
    places |= {"named tuple": Named, "class with pin_memory()": Pinning, "dataclass": plain}
    found = {name: is_found(wrap) for name, wrap in places.items()}
    lab.axes("found", x="place in the table", y="1: the loader finds a tensor")
    for place, is_there in enumerate(found.values(), 1):
        lab.log(place, found=int(is_there))
    lab.table("where the loader looks", [*found.items()], head=("a tensor in", "is found"))
    lab.claim("found", [found[name] for name in places if name != "dataclass"], equals=[True] * 5, answers=sum(found.values()))
    lab.claim("not-found", found["dataclass"], equals=False)
    lab.claim("returned", pin_memory(Forgetful(StandIn())) is None)

    lab.stage("what a GPU gets")
    lab.claim("with-method", is_pinned(Pinning) if on_gpu else None, equals=True, lacks=lacks)
    lab.claim("without-method", is_pinned(plain) if on_gpu else None, equals=False, lacks=lacks)
