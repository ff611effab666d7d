"""Run the longest batch first, or let the segments of the allocator expand.

The allocator of torch asks the driver of the GPU for large pieces of memory, called segments. It
cuts blocks from a segment for tensors. Freed blocks stay reserved for later tensors, and free
blocks are merged only inside of their segment. If batches grow longer step by step, each batch
needs blocks that are a little larger than all free blocks. So torch asks for new segments, which
takes time, and the old segments stay reserved but are too small. By default, torch returns unused
segments only when the driver has no memory left.

There are two remedies. The first remedy is to run a random batch of the greatest length first,
forward and backward. Its blocks are large enough for all later batches. Do not call
`optimizer.step()`, and set the gradients to None. Like any batch, this batch draws random numbers
and updates the statistics of a batch norm.

The second remedy is `PYTORCH_ALLOC_CONF=expandable_segments:True`, which torch reads when the
process starts. The segments for small blocks then become one range of addresses, and those for
large blocks another range. If no block fits, torch adds memory at the end of the range. So free
blocks next to each other can always be merged.

Without a GPU the lesson uses a model of the allocator. It records the requests of a Transformer on
the device "meta", and replays them by the rules in the source code of torch:

- Sizes are rounded up to 512 bytes. Blocks of up to 1 MiB come from segments of 2 MiB, larger
  blocks from segments of 20 MiB. A request of 10 MiB or more gets a segment of its own size,
  rounded up to 2 MiB.
- A request gets the smallest free block that fits. The rest of the block is split off, for large
  blocks only if it is larger than 1 MiB.
- An expandable range grows by pieces of 2 MiB for small blocks and 20 MiB for large blocks.

The model has one stream, no workspaces of libraries, and returns nothing to the driver. On a GPU
the lesson also trains, and checks the counters of the real allocator.

In practice: if the lengths of batches vary, set `PYTORCH_ALLOC_CONF=expandable_segments:True`, or
run the longest batch before the first step. Compare `torch.cuda.max_memory_reserved()` with
`torch.cuda.max_memory_allocated()` to see whether the remedy helps.
## Predict
A Transformer of 2 layers, with width 512, gets batches of 32 sequences. Their lengths are 32, 64
and so on to 512. How many segments does the allocator ask the driver for after the first batch?
## Look for
- [rising] if batches grow longer, the modelled allocator reserves at least twice the peak of the
  memory in use
- [segments] if batches grow longer, the modelled allocator asks for at least 20 segments after the
  first batch
- [longest] for batches that grow longer, after the longest batch, the modelled allocator reserves
  at most 1.3 times the peak in use
- [none] after a batch of the greatest length, the modelled allocator asks for at most 1 more
  segment, for growing, shrinking and random lengths
- [random] batches in random order reserve at least 1.1 times as much memory as the same batches
  after the longest batch
- [order] batches that grow longer reserve at least 1.8 times as much memory as batches that get
  shorter
- [expandable] with expandable segments the modelled allocator reserves at most 1.2 times the peak
  in use, for growing and for shrinking lengths
- [expandable-saves] batches that grow longer reserve at least twice as much memory with ordinary
  segments as with expandable segments
- [peak] the peak of the memory in use is the same to 1 % for all orders of the batches and both
  kinds of segments
- [gpu] on a GPU, batches that grow longer ask for more segments and reserve more memory than the
  same batches after the longest batch
- [gpu-expandable] on a GPU, batches that grow longer reserve at least 1.5 times as much memory with
  ordinary as with expandable segments
## Try next
`--first 128`: the first batch is not the longest. refutes: longest, none, random
`--fixed`: the arms with expandable segments get ordinary segments.
refutes: expandable, expandable-saves, gpu-expandable
## Source
- "28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 23,
  https://www.toymoban.com/news/detail-808122.html: the longest batch first.
- "Optimizing memory usage with PYTORCH_ALLOC_CONF" in PyTorch's notes on CUDA,
  https://docs.pytorch.org/docs/stable/notes/cuda.html: expandable segments.
- Ours: the model, its counts and the orders.
"""

import random
import weakref

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tuilab import Lab

MIB = 1024 * 1024
WIDTH = 512
BATCH = 32
OPTION = "expandable_segments:"  # of PYTORCH_ALLOC_CONF
COUNTERS = ("segment.all.allocated", "reserved_bytes.all.peak", "allocated_bytes.all.peak")


def round_up(size, grain):
    return (size + grain - 1) // grain * grain


class Block:
    """A piece of a segment."""

    def __init__(self, size, is_first):
        self.size = size
        self.is_first = is_first  # of its segment
        self.is_free = True


class Pool:
    """The segments for small or for large blocks, as a list of blocks by address."""

    def __init__(self, is_large, is_expandable):
        self.is_large = is_large
        self.is_expandable = is_expandable
        self.blocks = []
        self.segments = 0
        self.reserved = 0

    def allocate(self, size):
        block = self.find_smallest(size)
        if block is None:
            block = self.ask_driver(size)
        self.split(block, size)
        block.is_free = False
        return block

    def find_smallest(self, size):
        smallest = None
        for block in self.blocks:
            if block.is_free and block.size >= size:
                if smallest is None or block.size < smallest.size:
                    smallest = block
        return smallest

    def ask_driver(self, size):
        """Return a new segment, or the last block of the range after it has grown."""
        if not self.is_expandable or not self.blocks:
            block = Block(0, is_first=True)
            self.blocks.append(block)
        elif self.blocks[-1].is_free:
            block = self.blocks[-1]
        else:
            block = Block(0, is_first=False)
            self.blocks.append(block)
        grown = round_up(size - block.size, self.grain(size))
        block.size += grown
        self.reserved += grown
        self.segments += 1
        return block

    def grain(self, size):
        if not self.is_large:
            return 2 * MIB
        if self.is_expandable or size < 10 * MIB:
            return 20 * MIB
        return 2 * MIB

    def split(self, block, size):
        rest = block.size - size
        smallest_rest = MIB if self.is_large and not self.is_expandable else 0
        if rest > smallest_rest:
            index = self.blocks.index(block)
            self.blocks.insert(index + 1, Block(rest, is_first=False))
            block.size = size

    def free(self, block):
        block.is_free = True
        index = self.blocks.index(block)
        self.merge_with_next(index)
        if index > 0:
            self.merge_with_next(index - 1)

    def merge_with_next(self, index):
        if index + 1 == len(self.blocks):
            return
        block = self.blocks[index]
        following = self.blocks[index + 1]
        if block.is_free and following.is_free and not following.is_first:
            block.size += following.size
            del self.blocks[index + 1]


class AllocatorModel:
    """A model of torch's caching allocator."""

    def __init__(self, is_expandable):
        self.small = Pool(is_large=False, is_expandable=is_expandable)
        self.large = Pool(is_large=True, is_expandable=is_expandable)
        self.places = {}  # number of a tensor: its pool and block
        self.used = 0
        self.peak = 0

    @property
    def segments(self):
        return self.small.segments + self.large.segments

    @property
    def reserved(self):
        return self.small.reserved + self.large.reserved

    def replay(self, requests):
        for number, size in requests:
            if size > 0:
                self.allocate(number, size)
            else:
                self.free(number)

    def allocate(self, number, size):
        size = round_up(size, 512)
        pool = self.large if size > MIB else self.small
        block = pool.allocate(size)
        self.places[number] = (pool, block)
        self.used += block.size
        self.peak = max(self.peak, self.used)

    def free(self, number):
        pool, block = self.places.pop(number)
        self.used -= block.size
        pool.free(block)


class RequestRecorder(TorchDispatchMode):
    """Records a request (number, bytes) for each new tensor, and (number, 0) when it is freed."""

    def __init__(self):
        super().__init__()
        self.requests = []
        self.storages = weakref.WeakSet()  # those that are alive
        self.count = 0

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        result = operator(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                self.record(tensor.untyped_storage())
        return result

    def record(self, storage):
        if storage.nbytes() == 0 or storage in self.storages:  # empty, or a view
            return
        self.storages.add(storage)
        self.count += 1
        self.requests.append((self.count, storage.nbytes()))
        weakref.finalize(storage, self.record_free, self.count)

    def record_free(self, number):
        self.requests.append((number, 0))

    def take(self):
        """Return the requests since the last call."""
        requests = self.requests
        self.requests = []
        return requests


def build_net(device):
    layer = nn.TransformerEncoderLayer(WIDTH, 8, dropout=0.0, batch_first=True, device=device)
    return nn.TransformerEncoder(layer, 2)


def step(net, length, device):
    """Run forward and backward; no name holds a tensor after the expression that needs it."""
    net(torch.zeros(BATCH, length, WIDTH, device=device)).square().mean().backward()
    net.zero_grad()


def record_requests(lab, lengths):
    """Return the requests of the net, and of a step for each length."""
    requests = {}
    with RequestRecorder() as recorder:
        net = build_net("meta")
        of_net = recorder.take()
        for length in lab.sweep(lengths, "recording requests"):
            step(net, length, "meta")
            requests[length] = recorder.take()
    return of_net, requests


def replay_steps(lab, arm, is_expandable, of_net, of_steps):
    """Return the segments asked for after the first step, the reserved bytes and the peak."""
    model = AllocatorModel(is_expandable)
    model.replay(of_net)
    after_first = None
    for number, requests in enumerate(of_steps, 1):
        model.replay(requests)
        lab.log(number, arm=arm, reserved_bytes=model.reserved)
        if after_first is None:
            after_first = model.segments
    return model.segments - after_first, model.reserved, model.peak


def train_on_gpu(lab, arm, lengths):
    """Return the same counters of the real allocator; runs in a fresh process."""
    device = lab.device()
    module = torch.get_device_module(device)
    net = build_net(device)
    after_first = None
    for number, length in enumerate(lengths, 1):
        step(net, length, device)
        segments, reserved, peak = [module.memory_stats(device)[name] for name in COUNTERS]
        lab.log(number, arm=arm, reserved_bytes=reserved)
        if after_first is None:
            after_first = segments
    return [segments - after_first, reserved, peak]


def claim_model(lab, arms, of_net, of_lengths):
    asked = {}
    reserved = {}
    peaks = {}
    for arm in lab.sweep(arms, "replaying requests"):
        is_expandable, lengths = arms[arm]
        of_steps = [of_lengths[length] for length in lengths]
        counts = replay_steps(lab, arm, is_expandable, of_net, of_steps)
        asked[arm], reserved[arm], peaks[arm] = counts
    lab.bars("reserved in the model", reserved, unit="B")

    longest_first = reserved["rising, longest first"] / peaks["rising, longest first"]
    lab.claim("rising", reserved["rising"] / peaks["rising"], at_least=2)
    lab.claim("segments", asked["rising"], at_least=20, answers=True)
    lab.claim("longest", longest_first, at_most=1.3)
    later = [
        asked["rising, longest first"],
        asked["falling"],
        asked["random, longest first"],
    ]
    lab.claim("none", later, at_most=1)
    lab.claim("random", reserved["random"] / reserved["random, longest first"], at_least=1.1)
    lab.claim("order", reserved["rising"] / reserved["falling"], at_least=1.8)
    expandable = [
        reserved["rising, expandable"] / peaks["rising, expandable"],
        reserved["falling, expandable"] / peaks["falling, expandable"],
    ]
    lab.claim("expandable", expandable, at_most=1.2)
    saves = reserved["rising"] / reserved["rising, expandable"]
    lab.claim("expandable-saves", saves, at_least=2)
    lab.claim("peak", max(peaks.values()) / min(peaks.values()), at_most=1.01)


def claim_gpu(lab, arms):
    """Train in fresh processes, because torch reads the option when a process starts."""
    counts = {}
    for arm in ("rising", "rising, longest first", "rising, expandable"):
        is_expandable, lengths = arms[arm]
        env = {"PYTORCH_ALLOC_CONF": f"{OPTION}{is_expandable}"}
        train = lab.arm(arm, train_on_gpu, f"GPU, {arm}", lengths, env=env)
        counts[arm] = train()
    asked, reserved, _ = counts["rising"]
    asked_longest, reserved_longest, _ = counts["rising, longest first"]
    _, reserved_expandable, _ = counts["rising, expandable"]
    is_more = [asked > asked_longest, reserved > reserved_longest]
    lab.claim("gpu", is_more, equals=[True, True])
    lab.claim("gpu-expandable", reserved / reserved_expandable, at_least=1.5)
    if is_expandable:  # not with --fixed
        advise(lab, reserved, reserved_expandable)


def advise(lab, reserved, reserved_expandable):
    lab.advise(
        "PYTORCH_ALLOC_CONF",
        {f"{OPTION}False": reserved, f"{OPTION}True": reserved_expandable},
        default=f"{OPTION}False",
        about="memory reserved while batches grow",
        against="the time of a step was not measured",
        unit="B",
    )


def run(
    lab: Lab,
    first: int = 512,  # length of the batch that runs first, 1..512
    fixed: bool = False,  # ordinary segments in the arms that expand
) -> None:
    device = lab.device()
    is_gpu = device.type == "cuda"
    rising = list(range(32, 513, 32))
    if lab.is_quick:
        rising = list(range(64, 513, 64))
    falling = rising[::-1]
    shuffled = random.sample(rising, len(rising))
    expands = not fixed
    arms = {
        "rising": (False, rising),
        "rising, longest first": (False, [first, *rising]),
        "random": (False, shuffled),
        "random, longest first": (False, [first, *shuffled]),
        "falling": (False, falling),
        "rising, expandable": (expands, rising),
        "falling, expandable": (expands, falling),
    }
    lab.axes("reserved_bytes", x="batches", y="reserved memory")
    of_net, of_lengths = record_requests(lab, sorted({first, *rising}))
    claim_model(lab, arms, of_net, of_lengths)
    if is_gpu:
        claim_gpu(lab, arms)
    else:
        lab.claim("gpu", lacks="a CUDA device")
        lab.claim("gpu-expandable", lacks="a CUDA device")
