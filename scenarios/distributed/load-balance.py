"""Fill batches up to a budget of tokens, so that ranks do not wait for each other.

A batch is as long as its longest sequence. The others are padded to that length, with tokens that
are computed for nothing. A step is as long as its slowest rank, because backward waits for all
ranks in its all-reduce. Sequences of different lengths therefore cost twice: padding, and waiting.

The source recommends batches of similar length, or sorted data. Sorted batches have little padding,
but the batches of a step may differ in length. There are two ways out. Run neighbours in length in
the same step, or give each batch as many sequences as fit into a budget of tokens. With a budget,
any two batches are nearly the same work, and nearly the same memory. In both cases shuffle batches,
not sequences.

One rank may then have one batch more than another. It waits in its last all-reduce for nobody,
until the time-out. The context manager `Join` answers for ranks that have no batch left. It divides
by the number of all ranks, so the last gradients are smaller.

The chart and the claims about padding and waiting are a model: the work of a batch is its number of
tokens, padding included. A race tests the model with batches of equal tokens and different lengths.
On a GPU its batches have 128 times as many sequences. The model holds for lengths up to some
hundreds. For long sequences attention grows with the square of the length, so count `length ** 2`
as well.

In practice: write a batch sampler that sorts by length, cuts batches at `max_tokens`, and shuffles
the batches. Give each rank the same number of batches by dropping the rest, or train under
`with Join([ddp_model]):`.
## Predict
Random sequences in batches of 8: 2 ranks wait for 16 % of the time. With sorted sequences and
batches in random order, for how many percent of the time do they wait?
## Look for
- [padding] in batches of random sequences, at least 50 % of the tokens are padding
- [sorted] in batches of sorted sequences, at most 10 % of the tokens are padding
- [longer] with sorted batches in random order, ranks wait for at least 10 percentage points more of
  the time than with random sequences
- [neighbours] with neighbours in length in the same step, ranks wait for at most 10 % of the time
- [budget] with batches of a budget of tokens, dealt at random, ranks wait for at most 10 % of the
  time
- [largest] the largest batch of a budget of tokens has at most 50 % of the tokens of the largest
  batch of random sequences
- [epoch] an epoch takes at most 50 % of the time of random sequences with a budget of tokens
- [model] a transformer layer takes at most 1.5 times as long for 2 sequences of 256 tokens as for
  8 sequences of 64 tokens
- [raises] with 3 batches for one rank and 2 for the other, the third backward raises a RuntimeError
- [join] in Join the ranks make 3 and 2 steps, and end with the same weights
- [half] in Join the third gradient is half of the gradient that its rank computes
## Try next
`--spread 0`: all lengths are the same. refutes: padding, longer, largest, epoch
`--tokens 8192`: there are few batches, and the last is short. refutes: budget, largest, epoch
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 28,
https://www.toymoban.com/news/detail-808122.html: similar lengths in a batch, constant tokens, or
sorted data. It does not say that sorting alone makes ranks wait longer. Ours: padding and waiting
apart, the budget, and Join.
"""

import random
from contextlib import nullcontext
from datetime import timedelta
from functools import partial

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel

from tuilab import Lab

SEQUENCES = 512
LONGEST = 512
RANKS = 2
GPU_SCALE = 128  # times as many sequences fill a GPU


class Epoch:
    """The modelled times of an epoch, in padded tokens."""

    def __init__(self, lengths, batches):
        self.tokens = sum(lengths)
        self.steps = split(batches, RANKS)  # a step is a batch for each rank
        self.largest = max(padded_tokens(batch) for batch in batches)
        self.elapsed = 0
        self.computed = 0

    def add(self, step):
        sizes = [padded_tokens(batch) for batch in step]
        self.elapsed += max(sizes)
        self.computed += sum(sizes)

    @property
    def padding_percent(self):
        return 100 * (1 - self.tokens / self.computed)

    @property
    def waiting_percent(self):
        return 100 * (1 - self.computed / self.elapsed / RANKS)


def draw_length(spread):
    length = round(random.lognormvariate(4.3, spread))
    return min(LONGEST, max(1, length))


def padded_tokens(batch):  # a batch is a list of lengths
    return len(batch) * max(batch)


def split(items, size):
    parts = []
    for start in range(0, len(items), size):
        parts.append(items[start : start + size])
    return parts


def split_by_budget(sorted_lengths, tokens):
    batches = [[]]
    for length in sorted_lengths:
        if padded_tokens([*batches[-1], length]) > tokens:
            batches.append([])
        batches[-1].append(length)
    return batches


def shuffled(batches):
    return random.sample(batches, len(batches))


def show_epoch(lab, plan, epoch):
    """Add the steps of an epoch, and show which rank waits when."""
    for number, step in enumerate(epoch.steps, 1):
        start = epoch.elapsed
        for rank, batch in enumerate(step):
            end = start + padded_tokens(batch)
            lab.span(f"rank {rank}", start, end, "computes", arm=plan, unit="tokens")
        epoch.add(step)
        lab.log(number, arm=plan, waited_percent=epoch.waiting_percent)


def step_layer(layer, x):
    layer.zero_grad()
    layer(x).sum().backward()


def train(lab, net, context):
    """Train with 3 batches on rank 0 and 2 on rank 1; return error, gradients and weights."""
    weight = net.module.weight
    gradients = []

    def run_epoch():
        with context:
            for step in range(3 - dist.get_rank()):
                net.zero_grad()
                x = torch.full((1, 4), step + 1.0)
                net(x).sum().backward()  # the gradient of this rank alone is step + 1
                gradients.append(weight.grad[0, 0].item())
                weight.data -= weight.grad

    error = lab.raises(run_epoch)
    return error, gradients, weight.tolist()


def train_twice(lab, patience_s):
    """Train with Join and without it."""
    group = dist.new_group(timeout=timedelta(seconds=patience_s))
    nets = []
    for _ in range(2):
        net = nn.Linear(4, 1, bias=False)
        nets.append(DistributedDataParallel(net, process_group=group))
    joined = train(lab, nets[0], Join(nets[:1]))
    unjoined = train(lab, nets[1], nullcontext())
    return joined, unjoined


def run(
    lab: Lab,
    batch: int = 8,  # sequences of a batch, 1..64
    spread: float = 0.7,  # of the logarithms of lengths, 0..1
    tokens: int = 1024,  # the budget of a batch, 512..8192
    patience_s: float = 3.0,  # how long a rank waits for the other, 1..60 (quick 2)
) -> None:
    lab.stage("plans")
    lengths = [draw_length(spread) for _ in range(SEQUENCES)]
    neighbours = split(sorted(lengths), batch)
    by_budget = split_by_budget(sorted(lengths), tokens)
    plans = {
        "random": split(lengths, batch),
        "sorted": shuffled(neighbours),
        "neighbours": neighbours,
        "budget": shuffled(by_budget),
    }
    device = lab.device()
    lab.claim_ratio("model", "2 x 256/8 x 64", at_most=1.5)

    @lab.once
    def exact():
        lab.axes("waited_percent", x="step", y="part of the time so far that ranks waited")
        epochs = {}
        rows = []
        for plan, batches in lab.sweep(plans.items(), "plans"):
            epoch = Epoch(lengths, batches)
            show_epoch(lab, plan, epoch)
            epochs[plan] = epoch
            percents = [epoch.padding_percent, epoch.waiting_percent]
            rows.append((plan, *percents, epoch.elapsed, epoch.largest))
        head = ("plan", "% padding", "% waiting", "tokens long", "largest batch")
        lab.table("an epoch", rows, head=head)

        at_random = epochs["random"]
        in_order = epochs["sorted"]
        budget = epochs["budget"]
        lab.claim("padding", at_random.padding_percent, at_least=50, unit="%")
        lab.claim("sorted", in_order.padding_percent, at_most=10, unit="%")
        longer = in_order.waiting_percent - at_random.waiting_percent
        lab.claim("longer", longer, at_least=10, answers=in_order.waiting_percent)
        lab.claim("neighbours", epochs["neighbours"].waiting_percent, at_most=10, unit="%")
        lab.claim("budget", budget.waiting_percent, at_most=10, unit="%")
        lab.claim("largest", 100 * budget.largest / at_random.largest, at_most=50, unit="%")
        lab.claim("epoch", 100 * budget.elapsed / at_random.elapsed, at_most=50, unit="%")

        lab.stage("3 batches for one rank, 2 for the other")
        (joined, unjoined), (joined_too, _) = lab.ranks(RANKS, train_twice, patience_s)
        error, gradients, _ = unjoined
        lab.claim("raises", [error.partition(":")[0], len(gradients)], equals=["RuntimeError", 2])
        steps = [len(joined[1]), len(joined_too[1])]
        has_same_weights = joined[2] == joined_too[2]
        lab.claim("join", [*steps, has_same_weights], equals=[3, 2, True])
        lab.claim("half", joined[1], equals=[1, 2, 3 / 2])

    lab.stage("equal tokens, other lengths")
    scale = GPU_SCALE if device.type == "cuda" else 1
    layer = nn.TransformerEncoderLayer(256, 8, 1024, dropout=0.0, batch_first=True).to(device)
    few_long = torch.randn(2 * scale, 256, 256, device=device)  # (sequences, tokens, width)
    many_short = torch.randn(8 * scale, 64, 256, device=device)
    arms = {
        "2 x 256": partial(step_layer, layer, few_long),
        "8 x 64": partial(step_layer, layer, many_short),
    }
    lab.race(**arms, seconds=0.3)
