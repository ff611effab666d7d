"""Small batches with one step give the gradient of the large one, but not behind a BatchNorm.

`backward()` adds to the `.grad` of each parameter. Not zeroing between micro-batches therefore adds up their gradients, and the
graph of each dies with its backward. So the peak is that of one micro-batch, and a step sees them all. The same is a bug in
a loop that only forgets to zero: its third step follows the sum of three gradients.
A loss that is a mean must be divided by the number of micro-batches, or the gradient is that many times too large. Where sizes
differ, a mean of means is another number: weigh each by its rows. BatchNorm normalises by the rows that it sees, so with
smaller batches the net is another one.
The prose of the source forwards several times and calls backward once. That gives the same gradient, and keeps all graphs
until then: next to nothing is saved. Its loop steps at every k-th batch; what is left at the end of an epoch stays in `.grad`.
## Predict
16 micro-batches go forward, then one backward. Data and weights aside: what share of the whole batch's peak, from 0 to 1?
## Look for
- [equal] the gradient of 16 micro-batches is that of the whole batch to 1e-6
- [forgotten] without the division it is bitwise 1, 2, 4, 8 and 16 times as large
- [batch-norm] with BatchNorm 16 micro-batches give a gradient that is off by 10 % or more
- [uneven] batches of 1000 and 24 rows that count alike give one that is off by 30 % or more
- [weighed] weighed by their rows they give the right one to 1e-6
- [peak] data and weights not counted, 16 micro-batches have at most an eighth of the peak
- [late] with one backward at the end they have at least three quarters of it
- [third] a loop that forgets to zero has after three equal batches bitwise three times the gradient
- [leaves] a weight has no grad_fn, and its .grad can be read; an output has one, and reading its .grad warns
- [steps] as in the source 10 batches make 2 steps, and .grad holds bitwise the gradient of the last 2
## Try next
`--norm batch`: every net has BatchNorm. Weighing by rows is no help. refutes: equal, weighed
`--norm layer`: LayerNorm looks at one row alone, and all is as without.
`--every 5`: all 10 batches reach a step, and 2 steps are made. refutes: steps
## Source
- "28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 10,
  https://www.toymoban.com/news/detail-808122.html.
- "Training tricks" (in Chinese, after https://github.com/owenliang/torch-thins), section "Gradient accumulation".
- Ours: the distances, the bytes, and what is lost at the end.
"""

from typing import Literal

import torch
from torch import nn

from tuilab import Lab

ROWS, WIDTH = 1024, 64
NORMS = {"none": nn.Identity, "layer": nn.LayerNorm, "batch": nn.BatchNorm1d}


def build_net(norm, device):
    torch.manual_seed(0)
    hidden = [layer for _ in range(2) for layer in (nn.Linear(WIDTH, WIDTH), NORMS[norm](WIDTH), nn.GELU())]
    return nn.Sequential(*hidden, nn.Linear(WIDTH, 8)).to(device)


def accumulate(net, batches, shares, at_end=False):
    losses = (share * (net(x) - y).square().mean() for (x, y), share in zip(batches, shares, strict=True))
    for loss in [sum(losses)] if at_end else losses:  # at the end: the prose of the source
        loss.backward()  # its graph is gone before the next one is made


def gradient(net, batches, shares):
    net.zero_grad()
    accumulate(net, batches, shares)
    return torch.cat([weight.grad.flatten() for weight in net.parameters()])


def distance(found, right):
    return ((found - right).norm() / right.norm()).item()


def epoch(net, batches, every):  # the loop of the source
    optimizer, steps = torch.optim.SGD(net.parameters(), lr=0.1), 0
    optimizer.zero_grad()
    for number, batch in enumerate(batches, 1):
        accumulate(net, [batch], [1 / every])
        if number % every == 0:
            optimizer.step()
            optimizer.zero_grad()
            steps += 1
    return steps


def run(
    lab: Lab,
    norm: Literal["none", "layer", "batch"] = "none",  # behind the first Linears
    every: int = 4,  # batches for a step in the loop of the source, 1..10
) -> None:
    device = lab.device()
    x, y = torch.randn(ROWS, WIDTH, device=device), torch.randn(ROWS, 8, device=device)
    net, other = build_net(norm, device), build_net("batch", device)
    right, right_of_other = gradient(net, [(x, y)], [1]), gradient(other, [(x, y)], [1])

    lab.axes("distance", x="micro-batches", y="distance from the gradient of the whole batch, relative", log="xy")
    lab.axes("peak_bytes", x="micro-batches", y="peak", log="x")
    times, peaks = [], {}
    for number in lab.sweep([1, 2, 4, 8, 16], "micro-batches"):
        batches = [*zip(x.chunk(number), y.chunk(number), strict=True)]
        shares = [1 / number] * number
        divided, summed = gradient(net, batches, shares), gradient(net, batches, [1] * number)
        far = {"divided": distance(divided, right), "not divided": distance(summed, right)}
        far["BatchNorm"] = distance(gradient(other, batches, shares), right_of_other)
        times.append(torch.equal(summed, number * divided))
        for arm in far:
            lab.log(number, arm=arm, distance=max(far[arm], 1e-8))  # a distance of 0 has no logarithm
        for arm, at_end in {"divided": False, "one backward": True}.items():
            net.zero_grad()
            peaks[arm, number] = lab.count(accumulate, net, batches, shares, at_end).peak_bytes
            lab.log(number, arm=arm, peak_bytes=peaks[arm, number])
    lab.claim("equal", far["divided"], at_most=1e-6)
    lab.claim("forgotten", times, equals=[True] * 5)
    lab.claim("batch-norm", far["BatchNorm"], at_least=0.1)
    lab.claim("peak", peaks["divided", 16] / peaks["divided", 1], at_most=1 / 8)
    lab.claim("late", peaks["one backward", 16] / peaks["one backward", 1], at_least=3 / 4, answers=True)
    lab.stage("other batches")
    uneven = [(x[:1000], y[:1000]), (x[1000:], y[1000:])]
    lab.claim("uneven", distance(gradient(net, uneven, [1 / 2, 1 / 2]), right), at_least=0.3)
    lab.claim("weighed", distance(gradient(net, uneven, [1000 / ROWS, 24 / ROWS]), right), at_most=1e-6)
    lab.claim("third", torch.equal(gradient(net, [(x, y)] * 3, [1] * 3), 3 * right))
    output = net(x)
    warned = [len(lab.warns(getattr, tensor, "grad")) for tensor in (net[0].weight, output)]
    lab.claim("leaves", [net[0].weight.grad_fn is None, output.grad_fn is None, *warned], equals=[True, False, 0, 1])
    batches = [*zip(x[:640].chunk(10), y[:640].chunk(10), strict=True)]
    steps, left = epoch(net, batches, every), net[0].weight.grad
    gradient(net, batches[8:], [1 / every] * 2)
    lab.claim("steps", [steps, left is not None and torch.equal(left, net[0].weight.grad)], equals=[2, True])
