"""Call gc.freeze() before the loop, and collect at fixed steps if ranks must wait.

Python frees most objects as soon as nothing refers to them. Its garbage collector is only for
cycles: objects that refer to each other. A full collection looks for cycles among all containers of
the process: lists, dicts and other objects that refer to objects. The program stops meanwhile.
`import torch` alone leaves more than 100,000 containers, and a data set that is a list of small
lists adds more. So a full collection takes tens of milliseconds or even seconds, which is as long
as many steps.

With a single process, the pauses seldom matter. A plain training step makes no cycles and keeps no
new containers, so hundreds of steps pass without a full collection. If a loop keeps Python objects,
such as logs in lists, caches or samples, collections start more often. With many ranks the pauses
come at different steps. Each pause stops all ranks, because they wait for each other in the next
all-reduce.

`gc.freeze()` moves all objects that exist at this moment to a place that no collection searches.
Later collections are short. But cycles that are already garbage at this moment are never freed, so
call `gc.collect()` first. `gc.disable()` stops automatic collections. It is safe only if no step
makes cycles. If a step makes a cycle, the tensors in the cycle stay alive, on a GPU as well. A
common cycle is an exception that is kept in a variable: the traceback refers to the frame, and the
frame to the exception. The collector counts objects and not bytes. So a few cycles with large
tensors start no collection, even if the collector is enabled.

`gc.collect(1)` searches only the objects that were made since the last `gc.collect(1)`. It is
short, and enough for the cycles of the last steps. Objects that are in use at this moment become
old, and later only a full collection can free their cycles. The chart shows how long a full
collection takes with more and more objects. Tuples of numbers cost nothing: the first collection
sees that they refer to no container, and later collections leave them out. The counts hold for the
generations and thresholds of Python 3.11.

In practice: call `gc.collect()` and then `gc.freeze()` when the model and the data set are loaded.
With several ranks, add `gc.disable()`, and let every rank call `gc.collect(1)` at the same steps,
for example every 50 steps. Keep samples in arrays or in tuples of numbers instead of lists. If
memory grows, look for cycles first: `gc.collect()` returns the number of unreachable objects that
it has found.
## Predict
Python's collector is on. How many full collections does it start in 400 steps of a plain training
loop that keeps nothing?
## Look for
- [plain] in 400 steps of a plain training loop that keeps no objects, Python starts 0 full
  collections
- [kept] in 400 training steps that keep 300 new lists each, Python starts at least 100 collections
  of any generation
- [no-garbage] after 200 steps of a plain training loop with gc.disable() a full collection finds 0
  unreachable objects
- [cycles] if each of 20 steps makes a cycle with a tensor, 20 tensors stay alive after
  gc.disable(), and gc.collect() frees them all
- [bytes] if each of 20 steps makes a cycle with a tensor of 1 MiB, all 20 tensors stay alive, even
  with the collector enabled
- [by-hand] if each step makes a cycle with a tensor, gc.collect(1) after every 5th step leaves at
  most 5 tensors alive at any time
- [old] if a cycle was in use during one gc.collect(1) and is garbage later, a second gc.collect(1)
  does not free the cycle, and gc.collect() does
- [exception] if a function keeps a caught exception in a variable, the function's tensors stay
  alive until a collection
- [tuples] after a first collection, the next collection searches all of 300,000 lists of numbers,
  and 0 of 300,000 tuples of numbers
- [frozen-count] with 300,000 lists in the process, collections right after gc.freeze() search at
  most 100 objects, and more than 300,000 are frozen
- [frozen-garbage] if a cycle is garbage before gc.freeze(), gc.collect() frees it only after
  gc.unfreeze()
- [frozen-time] with 300,000 lists in the process, a full collection takes at least 100 times as
  long without gc.freeze() as after it
- [young-time] with 300,000 lists in the process, a full collection takes at least 100 times as long
  as gc.collect(0)
## Try next
`--clear`: each step breaks its own cycle, so there is nothing to collect. refutes: cycles, bytes,
by-hand
## Source
- "enable gc control scheduling to help avoid stragglers",
  https://github.com/pytorch/torchtitan/pull/148: gains 1.5 % with 512 GPUs.
- Python documentation, gc, https://docs.python.org/3/library/gc.html: freeze, and when a collection
  starts. Ours: the counts and the cycles.
"""

import gc
import time
import weakref
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import nn

from tuilab import Lab

LISTS = 300_000
CYCLES = 20  # steps that make one cycle each
OFTEN = 5  # steps from one collection by hand to the next
TENSOR_NUMBERS = 1 << 18  # 1 MiB in float32


class Node:
    """An object that can refer to itself and to a tensor."""


class CollectionCounter:
    """Counts the collections of each generation that start in a `with` block."""

    def __enter__(self):
        self.counts = [0, 0, 0]
        gc.callbacks.append(self.note)
        return self

    def __exit__(self, *error):
        gc.callbacks.remove(self.note)

    def note(self, phase, info):
        if phase == "start":
            self.counts[info["generation"]] += 1


@contextmanager
def collector(is_on):
    """Start with a full collection, and restore the state of the collector afterwards."""
    was_on = gc.isenabled()
    thresholds = gc.get_threshold()
    gc.collect()
    gc.set_threshold(700, 10, 10)  # the default of Python 3.11
    if is_on:
        gc.enable()
    else:
        gc.disable()
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        if was_on:
            gc.enable()
        else:
            gc.disable()


class Training:
    def __init__(self, device):
        self.net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8)).to(device)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.x = torch.randn(16, 64, device=device)
        self.labels = torch.randint(8, (16,), device=device)
        self.step()  # the first step loads modules

    def step(self):
        loss = F.cross_entropy(self.net(self.x), self.labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


def make_cycle(device, is_cleared=False):
    """Make a cycle with a tensor, and return a weak reference to the tensor."""
    node = Node()
    node.itself = node
    node.tensor = torch.zeros(TENSOR_NUMBERS, device=device)
    reference = weakref.ref(node.tensor)
    if is_cleared:
        node.itself = None
    return reference


def count_alive(references):
    alive = 0
    for reference in references:
        if reference() is not None:
            alive += 1
    return alive


def count_alive_after_cycles(training, device, is_cleared):
    references = []
    for _ in range(CYCLES):
        training.step()
        references.append(make_cycle(device, is_cleared))
    before = count_alive(references)
    gc.collect()
    return before, count_alive(references)


def count_most_alive(training, device, is_cleared):
    """Return how many tensors are alive at most if young objects are collected by hand."""
    references = []
    most = 0
    for number in range(1, CYCLES + 1):
        training.step()
        references.append(make_cycle(device, is_cleared))
        most = max(most, count_alive(references))
        if number % OFTEN == 0:
            gc.collect(1)
    return most


def keep_exception(device, references):
    tensor = torch.zeros(8, device=device)
    references.append(weakref.ref(tensor))
    try:
        tensor.view(3)
    except RuntimeError as error:
        kept = error  # its traceback refers to this frame, and the frame to it
        return str(kept)


def claim_collections(lab, training):
    lab.stage("collections of a training loop")
    with collector(is_on=True), CollectionCounter() as counter:
        for _ in range(400):
            training.step()
    plain = counter.counts
    lab.claim("plain", plain[2], equals=0, unit="collections", answers=True)

    kept = []
    with collector(is_on=True), CollectionCounter() as counter:
        for _ in range(400):
            training.step()
            kept.append([[number] for number in range(300)])
    lab.claim("kept", sum(counter.counts), at_least=100)
    rows = [("keeps nothing", *plain), ("keeps 300 lists a step", *counter.counts)]
    head = ("400 steps", "generation 0", "generation 1", "full")
    lab.table("collections that Python starts", rows, head=head)

    with collector(is_on=False):
        for _ in range(200):
            training.step()
        lab.claim("no-garbage", gc.collect(), equals=0)


def claim_cycles(lab, training, device, is_cleared):
    lab.stage("cycles")
    with collector(is_on=False):
        alive = count_alive_after_cycles(training, device, is_cleared)
        lab.claim("cycles", alive, equals=[CYCLES, 0])
    with collector(is_on=True):
        alive, _ = count_alive_after_cycles(training, device, is_cleared)
        lab.claim("bytes", alive, equals=CYCLES)
    with collector(is_on=False):
        lab.claim("by-hand", count_most_alive(training, device, is_cleared), equals=OFTEN)

        node = Node()
        node.itself = node
        reference = weakref.ref(node)
        gc.collect(1)  # the node is in use, and is old from now on
        del node
        gc.collect(1)
        is_alive = reference() is not None
        gc.collect()
        lab.claim("old", [is_alive, reference() is not None], equals=[True, False])

        references = []
        keep_exception(device, references)
        is_alive = count_alive(references)
        gc.collect()
        lab.claim("exception", [is_alive, count_alive(references)], equals=[1, 0])


def claim_freeze(lab, device):
    lab.stage("freeze")
    lists = [[number] for number in range(LISTS)]
    with collector(is_on=False):
        reference = make_cycle(device)
        gc.freeze()
        searched = len(gc.get_objects())
        frozen = gc.get_freeze_count()
        gc.collect()
        is_alive = reference() is not None
        gc.unfreeze()
        gc.collect()
        lab.claim("frozen-garbage", [is_alive, reference() is not None], equals=[True, False])
    lab.claim("frozen-count", [searched <= 100, frozen > len(lists)], equals=[True, True])


def measure_pause_ms():
    began = time.perf_counter()
    gc.collect()
    return 1e3 * (time.perf_counter() - began)


def make_list(number):
    return [number]


def make_tuple(number):
    return (number,)


def claim_tuples(lab):
    lab.axes("pause_ms", x="objects that the process keeps", y="one full collection")
    searched = []
    for kind, make in {"lists": make_list, "tuples": make_tuple}.items():
        kept = []
        for count in lab.sweep(range(0, LISTS + 1, LISTS // 6), f"more and more {kind}"):
            while len(kept) < count:
                kept.append(make(len(kept)))
            gc.collect()
            lab.log(count, arm=kind, pause_ms=measure_pause_ms())
        searched.append(sum(gc.is_tracked(item) for item in kept))
    lab.claim("tuples", searched, equals=[LISTS, 0])


def make_young_lists():
    return [[number] for number in range(500)]


def collect_all():
    gc.unfreeze()  # the race has frozen all objects; this moves them to the oldest generation
    young = make_young_lists()
    gc.collect()
    gc.freeze()
    young.clear()


def collect_young():
    gc.unfreeze()
    young = make_young_lists()
    gc.collect(0)
    gc.freeze()
    young.clear()


def collect_unfrozen():
    young = make_young_lists()
    gc.collect()
    young.clear()


def run(
    lab: Lab,
    clear: bool = False,  # clear each cycle in its step
) -> None:
    device = lab.device()

    @lab.once
    def exact():
        training = Training(device)
        gc.collect()
        gc.freeze()  # everything that is loaded so far; claim_freeze unfreezes it
        claim_tuples(lab)
        claim_collections(lab, training)
        claim_cycles(lab, training, device, clear)
        claim_freeze(lab, device)

    lab.stage("timing")
    lists = [[number] for number in range(LISTS)]
    lab.claim_ratio("frozen-time", "full/frozen", at_least=100)
    lab.claim_ratio("young-time", "full/young", at_least=100)
    lab.race(
        full=collect_all,
        young=collect_young,
        frozen=collect_unfrozen,
        device=torch.device("cpu"),
        seconds=0.2,
    )
    del lists
