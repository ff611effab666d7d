"""Set gradients to None, not to zero: zeros cost memory, and move unused layers.

`backward()` adds to `.grad`. Old advice is to set `.grad = None` in place of `zero_grad()`, because
zeros cost memory operations. For each parameter, one operator writes the zeros, and another
operator adds the gradient to them. If `.grad` is None, backward stores the gradient that it has
just computed, without a copy.

None also frees the memory between two steps. The activations reach their maximum at the end of the
forward. With None there are no gradients at that moment. With zeros both are in memory, and the
peak is their sum.

`zero_grad()` of optimizers and modules sets None by default since PyTorch 2.0, so the advice is
built in. But the two values have different meanings. A zero means that the gradient is zero. The
optimizer then still applies momentum, weight decay and the averages of Adam. None means that the
parameter took no part, and the optimizer skips it. So if some batches do not use a layer, zeros
still change its weights, and None leaves them as they are.

The gain in time depends on the batch. The gain is large if a batch is small compared with the
weights. With a large batch, the matrix products take so long that the gain disappears. So the
lesson times batches of 1 row.

In practice: call `optimizer.zero_grad()` without arguments, and remove `set_to_none=False` from old
code. Code that reads gradients must handle None, for example with `if weight.grad is not None`. DDP
copies the gradients into buckets; `gradient_as_bucket_view=True` avoids this second copy.
## Predict
A layer is used only in the first of six steps, and its gradients are zeros after that. There are
five optimizers: SGD, SGD with momentum, SGD with weight decay, Adam and AdamW. How many of the five
still change the weights of the layer?
## Look for
- [default] zero_grad() of an optimizer and of a module leave None in each parameter
- [writes] a step that begins with zeros calls zero_ once for each parameter, and a step that begins
  with None calls zero_ 0 times
- [adds] backward onto zeros calls add_ once for each parameter, and backward onto None calls add_ 0
  times
- [same] three steps with zeros and three steps with None give the same weights bit for bit
- [released] setting zeros releases 0 bytes, and setting None releases the bytes of all parameters
- [peak] the peak of the second step is lower with None than with zeros, by the bytes of all
  parameters
- [zeros-move] zeros still change an unused layer under SGD with momentum, SGD with weight decay,
  Adam and AdamW, and do not change it under plain SGD
- [none-stands] with None the weights of an unused layer do not change under SGD, with or without
  momentum or weight decay, Adam and AdamW
- [buckets] in DDP the gradients take as many bytes of their own as the parameters; with
  gradient_as_bucket_view=True, 0 bytes
- [norm] weight.grad.norm() of an unused layer raises an AttributeError with None, and no error with
  zeros
- [time] on a CPU zero_grad(), forward and backward take at least 1.1 times as long with zeros as
  with None, for weights of 1 MiB
- [gpu-time] on a GPU zero_grad(), forward and backward take at least 1.2 times as long with zeros
  as with None, for weights of 64 MiB
## Try next
`--clear zeros`: both arms write zeros, and take the same time. refutes: writes, adds, released,
peak, none-stands, norm
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 5,
https://www.toymoban.com/news/detail-808122.html: `param.grad = None` in a loop over the parameters
saves memory operations. Ours: the bytes, the bounds of the times, and the unused layer.
"""

from functools import partial
from typing import Literal, NamedTuple

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from tuilab import Lab

GPU_WIDTH = 4096  # weights of 64 MiB
OPTIMIZERS = {
    "SGD": partial(torch.optim.SGD, lr=0.1),
    "SGD, momentum": partial(torch.optim.SGD, lr=0.1, momentum=0.9),
    "SGD, decay": partial(torch.optim.SGD, lr=0.1, weight_decay=0.1),
    "Adam": partial(torch.optim.Adam, lr=0.1),
    "AdamW": partial(torch.optim.AdamW, lr=0.1),
}


def write_zeros(optimizer):
    optimizer.zero_grad(set_to_none=False)


def set_none(optimizer):
    optimizer.zero_grad()


CLEAR = {"zeros": write_zeros, "none": set_none}


class Costs(NamedTuple):
    """What one way to clear the gradients costs."""

    writes: int  # calls of zero_ in a step
    adds: int  # calls of add_ in a backward
    released_bytes: int
    peak_bytes: int
    weights: torch.Tensor  # after three steps, (all parameters,)


def build_net(layers, width, device):
    linears = []
    for _ in range(layers):
        linears.append(nn.Linear(width, width))
    return nn.Sequential(*linears).to(device)


def backward(net, x):  # (rows, width)
    net(x).square().mean().backward()


def step(net, optimizer, x, clear):
    clear(optimizer)
    backward(net, x)
    optimizer.step()


def measure_costs(lab, arm, clear, layers, x):
    lab.stage(f"three steps, {arm}")
    torch.manual_seed(1)
    net = build_net(layers, x.shape[1], x.device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with lab.memory("steps", arm=arm, model=net, timeline=True) as memory:
        step(net, optimizer, x, clear)
        before = memory.live_bytes
        clear(optimizer)
        released_bytes = before - memory.live_bytes
        memory.reset_peak()
        step(net, optimizer, x, clear)
        peak_bytes = memory.peak_bytes
    writes = lab.count(step, net, optimizer, x, clear).calls["aten.zero_"]
    weights = nn.utils.parameters_to_vector(net.parameters()).detach()
    clear(optimizer)
    adds = lab.count(backward, net, x).calls["aten.add_"]
    return Costs(writes, adds, released_bytes, peak_bytes, weights)


def claim_costs(lab, arms, layers, x):
    lab.axes("live_bytes", x="allocations and releases", y="bytes alive")
    zeros, second = [measure_costs(lab, arm, clear, layers, x) for arm, clear in arms.items()]
    net = build_net(layers, x.shape[1], x.device)
    count = len(list(net.parameters()))
    nbytes = count_bytes(net.parameters())
    lab.claim("writes", [zeros.writes, second.writes], equals=[count, 0])
    lab.claim("adds", [zeros.adds, second.adds], equals=[count, 0])
    released_bytes = [zeros.released_bytes, second.released_bytes]
    lab.claim("released", released_bytes, equals=[0, nbytes], unit="B")
    lab.claim("peak", zeros.peak_bytes - second.peak_bytes, equals=nbytes, unit="B")
    lab.claim("same", torch.equal(zeros.weights, second.weights))

    left = []
    for owner in (torch.optim.SGD(net.parameters()), net):
        backward(net, x)
        owner.zero_grad()
        left += [weight.grad for weight in net.parameters()]
    lab.claim("default", left == 2 * count * [None])


def count_bytes(tensors):
    return sum(tensor.nbytes for tensor in tensors)


def count_own_bytes(gradients):
    """Return the bytes of the gradients that share their memory with no bucket."""
    own = []
    for gradient in gradients:
        if gradient.untyped_storage().nbytes() == gradient.nbytes:
            own.append(gradient)
    return count_bytes(own)


def claim_buckets(lab, layers, x):
    net = build_net(layers, x.shape[1], x.device)
    own_bytes = []
    with lab.group():
        for is_view in (False, True):
            backward(DistributedDataParallel(net, gradient_as_bucket_view=is_view), x)
            gradients = [weight.grad for weight in net.parameters()]
            own_bytes.append(count_own_bytes(gradients))
    lab.claim("buckets", own_bytes, equals=[count_bytes(net.parameters()), 0], unit="B")


def train_without_layer(make_optimizer, clear):
    """Use a layer in the first of six steps only.

    Return how far it moves in the other five, and its gradient at the end.
    """
    torch.manual_seed(0)
    used = nn.Linear(4, 1)
    unused = nn.Linear(4, 1)
    optimizer = make_optimizer([*used.parameters(), *unused.parameters()])
    x = torch.ones(3, 4)
    step(lambda x: used(x) + unused(x), optimizer, x, clear)
    before = unused.weight.detach().clone()
    for _ in range(5):
        step(used, optimizer, x, clear)
    distance = (unused.weight - before).abs().max().item()
    return distance, unused.weight.grad


def norm_of(gradient):
    return gradient.norm()


def claim_unused_layer(lab, arms):
    lab.stage("an unused layer")
    rows = []
    moved_by_zeros = []
    moved_by_second = []
    for name, make_optimizer in OPTIMIZERS.items():
        distances = []
        errors = []
        for clear in arms.values():
            distance, gradient = train_without_layer(make_optimizer, clear)
            distances.append(distance)
            errors.append(lab.raises(norm_of, gradient).partition(":")[0])
        rows.append((name, *distances))
        if distances[0] > 0:
            moved_by_zeros.append(name)
        if distances[1] > 0:
            moved_by_second.append(name)
    lab.table("how far an unused layer moves in five steps", rows, head=("", *arms))
    movers = ["SGD, momentum", "SGD, decay", "Adam", "AdamW"]
    lab.claim("zeros-move", moved_by_zeros, equals=movers, answers=len(moved_by_zeros))
    lab.claim("none-stands", moved_by_second, equals=[])
    lab.claim("norm", errors, equals=["", "AttributeError"])


def start_backward(clear, layers, width, device):
    """Return a function that clears the gradients of a new net and computes new ones."""
    torch.manual_seed(0)
    net = build_net(layers, width, device)
    optimizer = torch.optim.SGD(net.parameters())
    x = torch.randn(1, width, device=device)

    def clear_and_backward():
        clear(optimizer)
        backward(net, x)

    return clear_and_backward


def race_backwards(lab, clear, device):
    lab.stage("timing")
    is_cpu = device.type == "cpu"
    needs_cpu = "" if is_cpu else "--device cpu"
    needs_gpu = "a CUDA device" if is_cpu else ""
    layers, width = 8, 512  # a weight has 1 MiB
    if not is_cpu:
        layers, width = 4, GPU_WIDTH
    lab.claim_ratio("time", "zeros/second", at_least=1.1, lacks=needs_cpu)
    lab.claim_ratio("gpu-time", "zeros/second", at_least=1.2, lacks=needs_gpu)
    lab.race(
        zeros=lambda: start_backward(write_zeros, layers, width, device),
        second=lambda: start_backward(CLEAR[clear], layers, width, device),
        factories=True,
        seconds=0.3,
    )


def run(
    lab: Lab,
    layers: int = 40,  # Linears, 2..1000 (quick 10)
    clear: Literal["none", "zeros"] = "none",  # of the second arm
) -> None:
    device = lab.device()
    arms = {"zeros": write_zeros, f"second: {clear}": CLEAR[clear]}

    @lab.once
    def exact():
        x = torch.randn(128, 128, device=device)
        claim_costs(lab, arms, layers, x)
        claim_buckets(lab, layers, x)
        claim_unused_layer(lab, arms)

    race_backwards(lab, clear, device)
