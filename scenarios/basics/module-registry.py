"""A list of layers is no part of a module: its weights compute, get gradients, and never learn.

`parameters()` walks a register. There stands what was assigned to an attribute of the module and is a Parameter, or a module
with a register of its own. A plain tensor is neither, even if it requires a gradient. Nor is a Python list, whatever lies in
it. `nn.Sequential`, `nn.ModuleList` and `nn.ParameterList` are modules, and are walked. (A tensor that is to be saved and
moved but not trained is a buffer: `register_buffer`.)

Everything goes by that register. The optimizer gets `parameters()`, so what is missing there stays as it was drawn. Nothing
warns: its gradients arrive, and as `zero_grad()` does not know of them either, they pile up. `state_dict()` does not save it,
so a restored model draws it anew. `.to()` does not move it, neither to another dtype nor to a GPU, and that at last is an
error.

Call a module as a function, `net(x)`. `net.forward(x)` computes the same, but runs no hooks: profilers and wrappers that hang
on them are passed by.
## Predict
A net has a Linear, a list with another and a tensor with requires_grad: how many of the five tensors does its optimizer move?
## Look for
- [sequential] Sequential(Linear(64, 32), Linear(32, 10)) has 2410 parameters, those of both layers
- [names] only first.weight and first.bias are registered, not the layer in the list and not the tensor
- [gradients] after backward all five have a gradient
- [moved] the optimizer moves the first layer, and leaves the layer in the list and the tensor bit for bit as they were
- [pile] zero_grad leaves their gradients: the second backward doubles that of the tensor
- [saved] state_dict has 2 entries
- [moved-away] after .to(device, float64) the net refuses its input, as the layer in the list is float32 still
- [hooks] net(x) runs a forward hook once, net.forward(x) does not
## Try next
`--layers ModuleList`: the list that is a module. refutes: names, moved, saved, moved-away
`--scale Parameter`: the tensor that is registered. refutes: names, moved, pile, saved
## Source
EffectivePyTorch, chapter "Encapsulate your model with Modules", https://github.com/vahidk/EffectivePyTorch: submodules and the
Sequential. Ours: what is not found, and what that does.
"""

from typing import Literal

import torch
from torch import nn

from tuilab import Lab

LISTS = {"list": list, "ModuleList": nn.ModuleList}
NAMES = ["first.weight", "first.bias", "rest.0.weight", "rest.0.bias", "scale"]


class Net(nn.Module):
    def __init__(self, layers, scale):
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.rest = LISTS[layers]([nn.Linear(8, 1)])
        one = torch.tensor(1.0, requires_grad=True)
        self.scale = nn.Parameter(one) if scale == "Parameter" else one

    def forward(self, x):  # (rows, 8) -> (rows, 1)
        return self.scale * self.rest[0](self.first(x).tanh())

    def weights(self):
        """All that computes, registered or not, in the order of NAMES."""
        return [self.first.weight, self.first.bias, self.rest[0].weight, self.rest[0].bias, self.scale]


def train(lab, net, x, y, steps):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in lab.steps(steps, "training"):
        loss = (net(x) - y).square().mean()
        net.zero_grad()
        loss.backward()
        optimizer.step()
        lab.log(step, loss=loss.detach(), tensor=net.scale.detach())


def growth_of_gradient(net, x):
    """How many times larger the gradient of the tensor is after a second backward, with zero_grad before it."""
    net.scale.grad = None
    seen = []
    for _ in range(2):
        net.zero_grad()
        net(x).sum().backward()
        seen.append(net.scale.grad.item())
    return seen[1] / seen[0]


def hooks_run(module, call, x):
    ran = []
    handle = module.register_forward_hook(lambda *_: ran.append(1))
    call(x)
    handle.remove()
    return len(ran)


def run(
    lab: Lab,
    layers: Literal["list", "ModuleList"] = "list",  # what holds the second layer
    scale: Literal["tensor", "Parameter"] = "tensor",  # what the factor is
    steps: int = 200,  # of the optimizer, 1..10000
) -> None:
    device = lab.device()
    lab.axes("loss", x="step of the optimizer", log="y")
    lab.axes("tensor", x="step of the optimizer", y="the factor that starts at 1")
    deep = nn.Sequential(nn.Linear(64, 32), nn.Linear(32, 10))
    lab.claim("sequential", sum(weight.numel() for weight in deep.parameters()), equals=2410)

    net = Net(layers, scale)
    names = [name for name in NAMES if name in dict(net.named_parameters())]
    lab.claim("names", names, equals=NAMES[:2])
    x = torch.randn(64, 8)
    before = [weight.detach().clone() for weight in net.weights()]
    train(lab, net, x, x.sum(1, keepdim=True), steps)

    lab.stage("what has become of it")
    has_gradient = [weight.grad is not None for weight in net.weights()]
    has_moved = [not torch.equal(*pair) for pair in zip(net.weights(), before, strict=True)]
    rows = [*zip(NAMES, [name in names for name in NAMES], has_gradient, has_moved, strict=True)]
    lab.table("the five tensors of the net", rows, head=("tensor", "is registered", "has a gradient", "has moved"))
    lab.claim("gradients", has_gradient, equals=[True] * 5)
    lab.claim("moved", has_moved, equals=[True] * 2 + [False] * 3, answers=sum(has_moved))
    lab.claim("pile", growth_of_gradient(net, x), equals=2, tolerance=1e-5)
    lab.claim("saved", len(net.state_dict()), equals=2)
    lab.claim("hooks", [hooks_run(net, call, x) for call in (net, net.forward)], equals=[1, 0])
    net.to(device, torch.float64)
    lab.claim("moved-away", lab.raises(net, x.to(device, torch.float64)).partition(":")[0], equals="RuntimeError")
