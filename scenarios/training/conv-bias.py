"""A convolution right before a batch norm needs no bias: the norm subtracts it. In evaluation, one that was just set stays.

A batch norm subtracts the mean of its channel. A bias adds the same number to the whole channel, so it is in the mean and goes
with it: output and gradients of the weights are the same with and without, and the bias gets a gradient of 0, up to rounding.
It holds for 1d, 2d, 3d and for depthwise convolutions. `bias=False` saves the parameters.
In evaluation the norm subtracts the running mean, which follows slowly: a tenth of the way each step. A bias that was just set,
as by loading weights without their statistics, stands in the result until the mean has come after it.

It takes a norm over the batch, directly behind. With a ReLU between, the bias decides what is cut away, and is no longer the
same everywhere. A group norm takes the mean of several channels, whose biases differ. There the bias is learned.
torchvision does without already, says the source. Its ResNets do; its VGGs with a norm keep every bias. In the source's
snippet BatchNorm2d is called without a number of features, and one stands after a Linear. Both raise.
## Predict
A 2d convolution with 584 parameters stands before a batch norm. For how many is the gradient 0, up to rounding?
## Look for
- [same] in training the largest difference of the outputs with and without is at most 1e-11, in all four kinds
- [weights] the gradients of the weights differ by at most 1e-10
- [bias] the gradients of the bias are at most 1e-10
- [weight-norm] the gradients of the weights have norms of at least 50
- [one-update] in evaluation, after one batch, the outputs are at least 1 apart
- [absorbed] after 300 batches they are at most 1e-10 apart
- [parameters] without the bias 8 of the 2d convolution's 584 parameters are gone
- [relu] with a ReLU between, the gradient of the bias has a norm of at least 1
- [group-norm] with a group norm it has a norm of at least 1, too
- [no-features] BatchNorm2d() raises a TypeError
- [torchvision] none of the 53 convolutions in torchvision's resnet50 has a bias, and all 13 in its vgg16_bn have
- [linear] BatchNorm2d after a Linear raises a ValueError
## Try next
`--momentum 0.01`: the running mean takes ten times as long, and 300 batches are not enough. refutes: absorbed
`--dtype float32`: the same, with larger roundings. refutes: same, weights, bias, absorbed
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 4,
https://www.toymoban.com/news/detail-808122.html. Ours: evaluation, the kinds, the exceptions.
"""

from importlib import import_module
from typing import Literal

import torch
from torch import nn

from tuilab import Lab

CONVOLUTIONS = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
NORMS = {1: nn.BatchNorm1d, 2: nn.BatchNorm2d, 3: nn.BatchNorm3d}
KINDS = {"1d": (1, 1), "3d": (3, 1), "depthwise": (2, 8), "2d": (2, 1)}  # dimensions, groups


def build_pair(kind, momentum, like):  # a convolution and its norm, with a bias and without, and otherwise the same
    dimensions, groups = KINDS[kind]
    pair = []
    for has_bias in (True, False):
        convolution = CONVOLUTIONS[dimensions](8, 8, 3, padding=1, groups=groups, bias=has_bias)
        pair.append(nn.Sequential(convolution, NORMS[dimensions](8, momentum=momentum)).to(like))
    nn.init.normal_(pair[0][0].bias, std=3)
    pair[1][0].weight.data.copy_(pair[0][0].weight)
    return nn.ModuleList(pair)


def gradients(net, x, direction):  # the output, and the gradients of what the convolution has
    y = net(x)
    return y.detach(), torch.autograd.grad((y * direction).sum(), [*net[0].parameters()])


def gap(nets, x):
    with torch.no_grad():
        return (nets[0](x) - nets[1](x)).abs().max().item()


def bias_norm(between, x):  # of the gradient of the bias, with these layers behind the convolution
    net = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), *between).to(x)
    return gradients(net, x, torch.randn_like(x))[1][1].norm()


def biases_of(model):  # of torchvision: whether its convolutions have one
    with torch.device("meta"):  # no numbers are needed
        modules = import_module("torchvision.models").get_model(model).modules()
    return [module.bias is not None for module in modules if isinstance(module, nn.Conv2d)]


def run(
    lab: Lab,
    momentum: float = 0.1,  # how far the running mean goes at each step, 0.001..1
    dtype: Literal["float64", "float32"] = "float64",  # of everything
) -> None:
    device = lab.device()
    apart, weights, biases, norms = [], [], [], []
    lab.axes("gap", x="batches", y="difference in evaluation", log="y")
    for kind in lab.sweep(KINDS, "kinds of convolutions"):
        x = torch.randn(16, 8, *[8] * KINDS[kind][0], dtype=getattr(torch, dtype)).to(device)
        nets = build_pair(kind, momentum, x)
        direction = torch.randn_like(x)
        (y, with_bias), (z, without) = (gradients(net, x, direction) for net in nets)
        apart.append((y - z).abs().max())
        weights.append((with_bias[0] - without[0]).abs().max())
        biases.append(with_bias[1].abs().max())
        norms.append(with_bias[0].norm())
    pair, batch = nets, x  # of the last kind, 2d
    lab.claim("same", max(apart), at_most=1e-11)
    lab.claim("weights", max(weights), at_most=1e-10)
    lab.claim("bias", max(biases), at_most=1e-10, answers=sum((part.abs() <= 1e-10).sum().item() for part in with_bias))
    lab.claim("weight-norm", min(norms), at_least=50)
    counts = [sum(weight.numel() for weight in net[0].parameters()) for net in pair]
    lab.claim("parameters", [counts[0], counts[0] - counts[1]], equals=[584, 8])
    gaps = []
    for step in lab.steps(300, "batches"):
        gaps.append(gap(pair.eval(), batch))
        lab.log(step + 1, gap=gaps[-1])
        gap(pair.train(), batch)  # the running means go on
    lab.claim("one-update", gaps[0], at_least=1)
    lab.claim("absorbed", gaps[-1], at_most=1e-10)

    lab.stage("where it does not apply")
    lab.claim("relu", bias_norm([nn.ReLU(), nn.BatchNorm2d(8)], batch), at_least=1)
    lab.claim("group-norm", bias_norm([nn.GroupNorm(4, 8)], batch), at_least=1)
    lab.claim("no-features", lab.raises(nn.BatchNorm2d).partition(":")[0], equals="TypeError")
    rows = nn.Linear(8, 8)(torch.zeros(16, 8))
    lab.claim("linear", lab.raises(nn.BatchNorm2d(8), rows).partition(":")[0], equals="ValueError")
    refusal = lab.raises(import_module, "torchvision")
    found = [] if refusal else [biases_of("resnet50"), biases_of("vgg16_bn")]
    lab.claim("torchvision", found, equals=[[False] * 53, [True] * 13], lacks=refusal and f"the package torchvision: {refusal}")
