"""Set gradients to None: zeros cost memory and operators, and move layers that took no part.

`backward()` adds to `.grad`. A zero that stands there takes one operator for each parameter to write it, and one to add to it.
Where `.grad` is None, backward hands over the gradient that it has just computed. And between steps None is no memory: when
activations are at their most, there are no gradients yet, so the peak is not the sum of both.
The tip is the default by now: `zero_grad()` of optimizers and modules sets None. What it does not tell: the two mean different
things. A zero says "the gradient is zero", so momentum, weight decay and Adam go on with that parameter. None says "took no
part", and the optimizer passes it over. So a layer that some batches do not use moves under the one, and not under the other.
## Predict
A layer is used in the first of six steps alone, and then its gradients are zeros. How many of these five optimizers still
move it: SGD, SGD with momentum, SGD with weight decay, Adam, AdamW?
## Look for
- [default] zero_grad() of an optimizer and of a module leaves None
- [writes] a step that begins with zeros calls zero_ once for each parameter; one that begins with None never
- [adds] backward onto zeros calls add_ once for each parameter; backward onto None never
- [same] three steps give bitwise the same weights both ways
- [released] zeros release no byte; None releases as many as the parameters have
- [peak] the peak of a later step is lower by the bytes of the parameters
- [zeros-move] with zeros a layer out of use moves under SGD with momentum, SGD with decay, Adam and AdamW, not under plain SGD
- [none-stands] with None it stands under all five
- [buckets] in DDP each gradient has memory of its own beside its bucket; with gradient_as_bucket_view=True it lies in that
- [norm] under None a log of its gradient's norm raises an AttributeError, under zeros it raises nothing
## Try next
`--clear zeros`: both arms write zeros. refutes: writes, adds, released, peak, none-stands, norm
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 5,
https://www.toymoban.com/news/detail-808122.html: `param.grad = None`, in a loop over parameters. Ours: the bytes, and the
layer out of use.
"""

from functools import partial
from typing import Literal

import torch
from torch import nn

from tuilab import Lab

SGD = partial(torch.optim.SGD, lr=0.1, foreach=False)
OPTIMIZERS = {"SGD": SGD, "SGD, momentum": partial(SGD, momentum=0.9), "SGD, decay": partial(SGD, weight_decay=0.1)}
OPTIMIZERS |= {"Adam": partial(torch.optim.Adam, lr=0.1), "AdamW": partial(torch.optim.AdamW, lr=0.1)}
CLEAR = {"zeros": lambda optimizer: optimizer.zero_grad(set_to_none=False), "none": lambda optimizer: optimizer.zero_grad()}


def backward(net, x):
    net(x).square().mean().backward()


def step(net, optimizer, x, clear):
    clear(optimizer)
    backward(net, x)
    optimizer.step()


def out_of_use(make, clear):
    """How far a layer moves after the first of six steps, the only one that uses it; and its gradient by then."""
    torch.manual_seed(0)
    used, other = nn.Linear(4, 1), nn.Linear(4, 1)
    optimizer = make([*used.parameters(), *other.parameters()])
    x = torch.ones(3, 4)
    step(lambda x: used(x) + other(x), optimizer, x, clear)
    before = other.weight.detach().clone()
    for _ in range(5):
        step(used, optimizer, x, clear)
    return (other.weight - before).abs().max().item(), other.weight.grad


def run(
    lab: Lab,
    layers: int = 40,  # Linears, 2..1000 (quick 10)
    clear: Literal["none", "zeros"] = "none",  # what the second arm does
) -> None:
    device = lab.device()
    x = torch.randn(128, 128, device=device)
    arms = {"zeros": CLEAR["zeros"], f"second: {clear}": CLEAR[clear]}

    lab.axes("live_bytes", x="births and deaths of tensors", y="bytes that live")
    weights, released, peaks, steps, onto, left, own = ([] for _ in range(7))
    for arm, clearing in arms.items():
        lab.stage(f"three steps, {arm}")
        torch.manual_seed(1)
        net = nn.Sequential(*[nn.Linear(128, 128) for _ in range(layers)]).to(device)
        optimizer = SGD(net.parameters())
        with lab.memory("steps", arm=arm, model=net, timeline=True) as memory:
            step(net, optimizer, x, clearing)
            full = memory.live_bytes
            clearing(optimizer)
            released.append(full - memory.live_bytes)
            memory.reset_peak()
            step(net, optimizer, x, clearing)
            peaks.append(memory.peak_bytes)
        steps.append(lab.count(step, net, optimizer, x, clearing).calls)
        weights.append(torch.cat([weight.detach().flatten() for weight in net.parameters()]))
        clearing(optimizer)
        onto.append(lab.count(backward, net, x).calls)
    number, nbytes = len([*net.parameters()]), sum(weight.nbytes for weight in net.parameters())
    lab.claim("writes", [calls["aten.zero_"] for calls in steps], equals=[number, 0])
    lab.claim("adds", [calls["aten.add_"] for calls in onto], equals=[number, 0])
    lab.claim("released", released, equals=[0, nbytes], unit="B")
    lab.claim("peak", peaks[0] - peaks[1], equals=nbytes, unit="B")
    lab.claim("same", torch.equal(*weights))
    for owner in (optimizer, net):
        backward(net, x)
        owner.zero_grad()
        left += [weight.grad for weight in net.parameters()]
    lab.claim("default", left == [None] * 2 * number)
    with lab.group():
        for is_view in (False, True):
            backward(nn.parallel.DistributedDataParallel(net, gradient_as_bucket_view=is_view), x)
            gradients = [weight.grad for weight in net.parameters()]
            own.append(sum(one.nbytes for one in gradients if one.untyped_storage().nbytes() == one.nbytes))
    lab.claim("buckets", own, equals=[nbytes, 0], unit="B")
    lab.stage("a layer out of use")
    found = {name: [out_of_use(make, arm) for arm in arms.values()] for name, make in OPTIMIZERS.items()}
    moved = {name: [far for far, _ in arm] for name, arm in found.items()}
    lab.table("how far a layer out of use moves in five steps", [(name, *far) for name, far in moved.items()], head=("", *arms))
    zeros, second = ([name for name, far in moved.items() if far[arm] > 0] for arm in (0, 1))
    lab.claim("zeros-move", zeros, equals=["SGD, momentum", "SGD, decay", "Adam", "AdamW"], answers=len(zeros))
    lab.claim("none-stands", second, equals=[])
    norms = [lab.raises(lambda gradient=gradient: gradient.norm()).partition(":")[0] for _, gradient in found["SGD"]]
    lab.claim("norm", norms, equals=["", "AttributeError"])
