"""Register every layer: a Python list of layers is not trained, saved or moved.

You write `self.layers = [nn.Linear(8, 8), nn.Linear(8, 1)]`. The net runs, the loss falls a little,
and nothing warns you. But `parameters()` reads a register. Assigning to an attribute of a module
puts two kinds of values into it: an `nn.Parameter`, and a module with a register of its own.
Everything else is an ordinary attribute. `nn.Sequential`, `nn.ModuleList` and `nn.ParameterList`
are modules.

Everything depends on the register. The optimizer gets `parameters()`, so it never moves weights
that are missing there. The gradients of the missing weights still arrive, and as `zero_grad()`
does not know the weights, the gradients accumulate. `state_dict()` does not save them, so a
restored model has other random weights. `.to()` does not convert or move them. Only that gives an
error at last.

The source says that parameters are tensors with `requires_grad`. That is true, but it is not
enough: `requires_grad` registers nothing. Call a module as a function, `net(x)`. `net.forward(x)`
computes the same but runs no hooks, and profilers and wrappers use hooks.

In practice: put layers into `nn.ModuleList` or `nn.Sequential`, and wrap your own weights in
`nn.Parameter`. Call `self.register_buffer` for tensors that are saved and moved but not trained.
Print `[name for name, _ in net.named_parameters()]` once, and look for missing layers.
## Predict
A net has a Linear, a Python list with another Linear, and a tensor with requires_grad=True.
How many of its five tensors does the optimizer move?
## Look for
- [sequential] Sequential(Linear(64, 32), Linear(32, 10)) has the 2410 parameters of both layers
- [names] of five tensors only first.weight and first.bias are registered, not the two of the layer
  in a list and not the tensor with requires_grad
- [gradients] after backward all five tensors have a gradient
- [moved] training moves the two registered tensors, and leaves the other three bit for bit the same
- [pile] after zero_grad and a second backward, the gradient of the unregistered tensor is 2 times
  as large
- [saved] state_dict has 2 entries
- [moved-away] after .to(device, float64) the net raises a RuntimeError for a float64 input
- [hooks] net(x) runs a forward hook 1 time, and net.forward(x) 0 times
## Try next
`--layers ModuleList`: the list is a module, so its layer is registered. refutes: names, moved,
saved, moved-away
`--scale Parameter`: the tensor is a Parameter, so it is registered. refutes: names, moved, pile,
saved
## Source
EffectivePyTorch, chapter "Encapsulate your model with Modules",
https://github.com/vahidk/EffectivePyTorch: submodules and the Sequential. Ours: layers that are not
registered, and what happens to them.
"""

from typing import Literal

import torch
from torch import nn

from tuilab import Lab

LISTS = {"list": list, "ModuleList": nn.ModuleList}
NAMES = ["first.weight", "first.bias", "rest.0.weight", "rest.0.bias", "scale"]


class Net(nn.Module):
    """Two layers and a factor, of which the second layer and the factor may be unregistered."""

    def __init__(self, layers, scale):
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.rest = LISTS[layers]([nn.Linear(8, 1)])
        if scale == "Parameter":
            self.scale = nn.Parameter(torch.tensor(1.0))
        else:
            self.scale = torch.tensor(1.0, requires_grad=True)

    def forward(self, x):  # (rows, 8) -> (rows, 1)
        hidden = self.first(x).tanh()
        return self.scale * self.rest[0](hidden)

    def weights(self):
        """Return all tensors of the net, registered or not, in the order of NAMES."""
        second = self.rest[0]
        return [self.first.weight, self.first.bias, second.weight, second.bias, self.scale]


def train(lab, net, x, y, steps):
    lab.axes("loss", x="step of the optimizer", log="y")
    lab.axes("tensor", x="step of the optimizer", y="the factor that starts at 1")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in lab.steps(steps, "training"):
        loss = (net(x) - y).square().mean()
        net.zero_grad()
        loss.backward()
        optimizer.step()
        lab.log(step, loss=loss.detach(), tensor=net.scale.detach())


def growth_of_gradient(net, x):
    """Return how many times larger the gradient of the factor is after a second backward."""
    net.scale.grad = None
    gradients = []
    for _ in range(2):
        net.zero_grad()
        net(x).sum().backward()
        gradients.append(net.scale.grad.item())
    return gradients[1] / gradients[0]


def count_hook_runs(module, call, x):
    runs = []
    handle = module.register_forward_hook(lambda *_: runs.append(1))
    call(x)
    handle.remove()
    return len(runs)


def run(
    lab: Lab,
    layers: Literal["list", "ModuleList"] = "list",  # what holds the second layer
    scale: Literal["tensor", "Parameter"] = "tensor",  # what the factor is
    steps: int = 200,  # of the optimizer, 1..10000
) -> None:
    device = lab.device()
    deep = nn.Sequential(nn.Linear(64, 32), nn.Linear(32, 10))
    count = sum(weight.numel() for weight in deep.parameters())
    lab.claim("sequential", count, equals=2410)

    net = Net(layers, scale)
    registered = dict(net.named_parameters())
    names = [name for name in NAMES if name in registered]
    lab.claim("names", names, equals=["first.weight", "first.bias"])

    x = torch.randn(64, 8)
    before = [weight.detach().clone() for weight in net.weights()]
    train(lab, net, x, x.sum(1, keepdim=True), steps)

    lab.stage("after training")
    have_gradient, have_moved, rows = [], [], []
    for name, weight, start in zip(NAMES, net.weights(), before, strict=True):
        have_gradient.append(weight.grad is not None)
        have_moved.append(not torch.equal(weight, start))
        rows.append((name, name in names, have_gradient[-1], have_moved[-1]))
    head = ("tensor", "is registered", "has a gradient", "has moved")
    lab.table("the five tensors of the net", rows, head=head)
    lab.claim("gradients", have_gradient, equals=[True] * 5)
    expected = [True, True, False, False, False]
    lab.claim("moved", have_moved, equals=expected, answers=sum(have_moved))
    lab.claim("pile", growth_of_gradient(net, x), equals=2, tolerance=1e-5)
    lab.claim("saved", len(net.state_dict()), equals=2)

    hook_runs = [count_hook_runs(net, net, x), count_hook_runs(net, net.forward, x)]
    lab.claim("hooks", hook_runs, equals=[1, 0])
    net.to(device, torch.float64)
    error = lab.raises(net, x.to(device, torch.float64))
    lab.claim("moved-away", error.partition(":")[0], equals="RuntimeError")
