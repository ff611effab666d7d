"""Sort by length to pad less, and give the ranks of a step equal work to wait less: the first alone makes them wait longer.

A batch is as long as its longest sequence; the others are padded up to it, with tokens that are computed for nothing. A step is
as long as its slowest rank: backward waits for all in its all-reduce. So the source advises sequences of similar length.

In sorted batches little is padded. But the batches differ: one of the longest sequences beside one of the shortest makes a rank
wait longer than before. Let neighbours in length run in the same step. Or give each batch as many sequences as fit a budget of
tokens: any two are nearly the same work then, and of memory. Shuffle the batches, not the sequences.

Then one rank may have a batch more than the other, and waits in its last all-reduce for nobody, until the time-out. `Join`
answers for ranks that have no batch left. It divides by the number of all ranks, so the last gradients are smaller. Work is
told in padded tokens: a model of time, which leaves out that attention is quadratic.
## Predict
Random sequences in batches of 8: 2 ranks wait for 16 % of the time. Sorted ones, batches in random order: for how many percent?
## Look for
- [padding] in batches of random sequences at least half of the tokens are padding
- [sorted] in batches of sorted ones it is 10 % at most
- [longer] but the ranks wait for a larger part of the time, by 0.1 of it or more
- [neighbours] with neighbours in the same step they wait for 10 % at most
- [budget] with batches of a budget of tokens it is 10 % at most, although they go to the ranks at random
- [largest] the largest batch has less than half of the tokens of the largest one of random sequences
- [epoch] an epoch takes less than half as long
- [raises] with 3 batches for one rank, and 2 for the other, the third backward raises a RuntimeError, a time-out
- [join] in Join the ranks make 3 and 2 steps, and end with the same weights
- [half] the third gradient is half of what the rank computes
## Try next
`--spread 0`: all lengths are the same. refutes: padding, longer, largest, epoch
`--tokens 8192`: few batches, and one of them is what fell short of the budget. refutes: budget, largest, epoch
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 28,
https://www.toymoban.com/news/detail-808122.html: sequences of similar length in a batch. Ours: padding and waiting apart, the
budget, and Join.
"""

import random
from contextlib import nullcontext
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel

from tuilab import Lab


def work(batch):  # padded tokens; a batch is a list of lengths
    return len(batch) * max(batch)


def of_size(items, size):
    return [items[i : i + size] for i in range(0, len(items), size)]


def of_budget(lengths, tokens):  # of sorted lengths
    batches = [[]]
    for length in lengths:
        if work([*batches[-1], length]) > tokens:
            batches.append([])
        batches[-1].append(length)
    return batches


def train(lab, net, answer_for):
    gradients = []

    def epoch():  # 3 batches for rank 0, 2 for rank 1
        with answer_for:
            for step in range(3 - dist.get_rank()):
                net.zero_grad()
                net(torch.full((1, 4), step + 1.0)).sum().backward()  # of itself the gradient is step + 1
                gradients.append(net.module.weight.grad[0, 0].item())
                net.module.weight.data -= net.module.weight.grad

    return lab.raises(epoch), gradients, net.module.weight.tolist()


def train_both(lab, patience_s):
    group = dist.new_group(timeout=timedelta(seconds=patience_s))
    nets = [DistributedDataParallel(nn.Linear(4, 1, bias=False), process_group=group) for _ in range(2)]
    return train(lab, nets[0], Join(nets[:1])), train(lab, nets[1], nullcontext())


def run(
    lab: Lab,
    batch: int = 8,  # sequences of a batch, 1..64
    spread: float = 0.7,  # of the logarithms of lengths, 0..1
    tokens: int = 1024,  # the budget of a batch, 512..8192
    patience_s: float = 3.0,  # how long a rank waits for the other, 1..60 (quick 2)
) -> None:
    lengths = [min(512, max(1, round(random.lognormvariate(4.3, spread)))) for _ in range(512)]
    alike, budget = of_size(sorted(lengths), batch), of_budget(sorted(lengths), tokens)
    mixed, budget = [random.sample(batches, len(batches)) for batches in (alike, budget)]
    dealt = {"random": of_size(lengths, batch), "sorted": mixed, "neighbours": alike, "budget": budget}
    plans = {plan: of_size(batches, 2) for plan, batches in dealt.items()}  # a step is a batch for each rank
    lab.axes("waited_percent", x="step", y="part of the time so far that ranks waited")
    padded, waits, long, largest = found = {}, {}, {}, {}
    for plan, steps in lab.sweep(plans.items(), "plans"):
        took = used = 0
        for number, step in enumerate(steps, 1):
            for rank, given in enumerate(step):
                lab.span(f"rank {rank}", took, took + work(given), "computes", arm=plan, unit="tokens")
            took, used = took + max(map(work, step)), used + sum(map(work, step))
            lab.log(number, arm=plan, waited_percent=100 - 50 * used / took)
        padded[plan], waits[plan], long[plan] = 1 - sum(lengths) / used, 1 - used / took / 2, took
        largest[plan] = max(work(given) for given in dealt[plan])
    rows = [(plan, *(values[plan] for values in found)) for plan in plans]
    lab.table("an epoch", rows, head=("plan", "padding", "waiting", "tokens long", "largest batch"))
    lab.claim("padding", padded["random"], at_least=0.5)
    lab.claim("sorted", 100 * padded["sorted"], at_most=10, unit="%")
    lab.claim("longer", waits["sorted"] - waits["random"], at_least=0.1, answers=100 * waits["sorted"])
    lab.claim("neighbours", 100 * waits["neighbours"], at_most=10, unit="%")
    lab.claim("budget", 100 * waits["budget"], at_most=10, unit="%")
    lab.claim("largest", largest["budget"] / largest["random"], at_most=0.5)
    lab.claim("epoch", long["budget"] / long["random"], at_most=0.5)
    lab.stage("3 batches for one rank, 2 for the other")
    (joined, left), (joined_too, _) = lab.ranks(2, train_both, patience_s)
    lab.claim("raises", [left[0].split(":")[0], len(left[1])], equals=["RuntimeError", 2])
    lab.claim("join", [len(joined[1]), len(joined_too[1]), joined[2] == joined_too[2]], equals=[3, 2, True])
    lab.claim("half", joined[1], equals=[1, 2, 3 / 2])
