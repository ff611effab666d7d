"""Leave out the bias of a convolution right before a batch norm.

A batch norm subtracts the mean of its channel. A bias adds the same number to the whole channel,
so it is part of the mean, and is subtracted with it. In training the output is the same with and
without the bias, up to rounding. So are the gradients of the weights. This is true for 1d, 2d and
3d convolutions and for depthwise ones. The bias only costs memory, and time of the optimizer.

In evaluation the norm subtracts the running mean, which follows slowly, by a tenth of the distance
in each step. A bias that was just set stays in the result until the running mean has followed. So
do not load a bias without the statistics that belong to it.

The advice needs a norm over the batch directly behind the convolution. With a ReLU between them,
the bias decides which values are cut off. A group norm takes the mean over several channels, whose
biases differ. In both cases the bias is learned.

The source says that the models of torchvision already do so. The ResNets do, but the VGGs with a
norm keep every bias. In the snippet of the source, BatchNorm2d gets no number of features, and
follows a Linear. Both raise an error.

In practice: write `nn.Conv2d(..., bias=False)` before `nn.BatchNorm2d`, and keep the bias before
any other layer.
## Predict
A 2d convolution with 584 parameters feeds a batch norm. For how many of its parameters is
the gradient 0, up to rounding?
## Look for
- [same] in training the outputs with and without a bias differ by at most 1e-11, for 1d, 2d, 3d and
  depthwise convolutions
- [weights] the gradients of the weights with and without a bias differ by at most 1e-10
- [bias] before a batch norm the gradients of the bias are at most 1e-10
- [weight-norm] the gradients of the weights have norms of at least 50
- [one-update] in evaluation after one batch, the outputs with and without a bias are at least 1
  apart
- [absorbed] in evaluation after 300 batches, the outputs with and without a bias are at most 1e-10
  apart
- [parameters] without the bias the 2d convolution loses 8 of its 584 parameters
- [relu] with a ReLU before the batch norm, the gradient of the bias has a norm of at least 1
- [group-norm] before a group norm the gradient of the bias has a norm of at least 1
- [no-features] BatchNorm2d() raises a TypeError
- [torchvision] none of the 53 convolutions in torchvision's resnet50 has a bias, and all 13 in its
  vgg16_bn have one
- [linear] BatchNorm2d after a Linear raises a ValueError
## Try next
`--momentum 0.01`: the running mean takes ten times as long, and 300 batches are not enough.
refutes: absorbed
`--dtype float32`: the same, with larger roundings. refutes: same, weights, bias, absorbed
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 4,
https://www.toymoban.com/news/detail-808122.html. Its counterexample raises two errors. Ours:
evaluation, the kinds of convolutions, and the exceptions.
"""

from importlib import import_module
from typing import Literal

import torch
from torch import nn

from tuilab import Lab

CONVOLUTIONS = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
NORMS = {1: nn.BatchNorm1d, 2: nn.BatchNorm2d, 3: nn.BatchNorm3d}
KINDS = {"1d": (1, 1), "3d": (3, 1), "depthwise": (2, 8), "2d": (2, 1)}  # dimensions, groups


def build_net(kind, momentum, has_bias):
    """Return a convolution of 8 channels and its batch norm."""
    dimensions, groups = KINDS[kind]
    convolution = CONVOLUTIONS[dimensions](8, 8, 3, padding=1, groups=groups, bias=has_bias)
    return nn.Sequential(convolution, NORMS[dimensions](8, momentum=momentum))


def build_pair(kind, momentum, like):
    """Return a net with a bias and one without, with the same weights."""
    with_bias = build_net(kind, momentum, has_bias=True)
    without_bias = build_net(kind, momentum, has_bias=False)
    nn.init.normal_(with_bias[0].bias, std=3)
    without_bias[0].weight.data.copy_(with_bias[0].weight)
    return with_bias.to(like), without_bias.to(like)


def output_and_gradients(net, x, direction):
    """Return the output, and the gradients of the parameters of the convolution."""
    output = net(x)
    loss = (output * direction).sum()
    gradients = torch.autograd.grad(loss, list(net[0].parameters()))
    return output.detach(), gradients


def largest_difference(a, b):
    return (a - b).abs().max().item()


def output_gap(pair, x):
    with torch.no_grad():
        return largest_difference(pair[0](x), pair[1](x))


def bias_gradient_norm(layers, x):
    """Return the norm of the gradient of the bias, with these layers behind the convolution."""
    net = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), *layers).to(x)
    _, (_, bias_gradient) = output_and_gradients(net, x, torch.randn_like(x))
    return bias_gradient.norm()


def count_parameters(module):
    return sum(weight.numel() for weight in module.parameters())


def biases_of(name):
    """Return whether each convolution of a model of torchvision has a bias."""
    with torch.device("meta"):  # the numbers are not needed
        model = import_module("torchvision.models").get_model(name)
    have_bias = []
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            have_bias.append(module.bias is not None)
    return have_bias


def claim_training(lab, momentum, dtype, device):
    """Compare all kinds of convolutions. Return the 2d pair and its batch."""
    output_gaps, weight_gaps, bias_gradients, norms = [], [], [], []
    for kind in lab.sweep(KINDS, "kinds of convolutions"):
        dimensions, _ = KINDS[kind]
        x = torch.randn(16, 8, *[8] * dimensions, dtype=dtype).to(device)
        pair = build_pair(kind, momentum, x)
        direction = torch.randn_like(x)
        output, (weight_gradient, bias_gradient) = output_and_gradients(pair[0], x, direction)
        other_output, other_gradients = output_and_gradients(pair[1], x, direction)
        output_gaps.append(largest_difference(output, other_output))
        weight_gaps.append(largest_difference(weight_gradient, other_gradients[0]))
        bias_gradients.append(bias_gradient.abs().max())
        norms.append(weight_gradient.norm())
    zeros = 0  # of the 2d convolution, which is the last kind
    for gradient in (weight_gradient, bias_gradient):
        zeros += (gradient.abs() <= 1e-10).sum().item()
    lab.claim("same", max(output_gaps), at_most=1e-11)
    lab.claim("weights", max(weight_gaps), at_most=1e-10)
    lab.claim("bias", max(bias_gradients), at_most=1e-10, answers=zeros)
    lab.claim("weight-norm", min(norms), at_least=50)
    with_bias, without_bias = count_parameters(pair[0][0]), count_parameters(pair[1][0])
    lab.claim("parameters", [with_bias, with_bias - without_bias], equals=[584, 8])
    return pair, x


def claim_evaluation(lab, pair, batch):
    """Evaluate after each batch; the pair has seen one batch before."""
    lab.axes("gap", x="batches", y="difference in evaluation", log="y")
    gaps = []
    for step in lab.steps(300, "batches"):
        for net in pair:
            net.eval()
        gaps.append(output_gap(pair, batch))
        lab.log(step + 1, gap=gaps[-1])
        for net in pair:
            net.train()
        output_gap(pair, batch)  # a forward in training moves the running means
    lab.claim("one-update", gaps[0], at_least=1)
    lab.claim("absorbed", gaps[-1], at_most=1e-10)


def claim_exceptions(lab, batch):
    lab.stage("where it does not apply")
    behind_relu = bias_gradient_norm([nn.ReLU(), nn.BatchNorm2d(8)], batch)
    lab.claim("relu", behind_relu, at_least=1)
    with_groups = bias_gradient_norm([nn.GroupNorm(4, 8)], batch)
    lab.claim("group-norm", with_groups, at_least=1)

    error = lab.raises(nn.BatchNorm2d)
    lab.claim("no-features", error.partition(":")[0], equals="TypeError")
    rows = nn.Linear(8, 8)(torch.zeros(16, 8))
    error = lab.raises(nn.BatchNorm2d(8), rows)
    lab.claim("linear", error.partition(":")[0], equals="ValueError")

    error = lab.raises(import_module, "torchvision")
    if error:
        lab.claim("torchvision", lacks=f"the package torchvision: {error}")
        return
    have_bias = [biases_of("resnet50"), biases_of("vgg16_bn")]
    lab.claim("torchvision", have_bias, equals=[[False] * 53, [True] * 13])


def run(
    lab: Lab,
    momentum: float = 0.1,  # how far the running mean moves in each step, 0.001..1
    dtype: Literal["float64", "float32"] = "float64",  # of everything
) -> None:
    device = lab.device()
    pair, batch = claim_training(lab, momentum, getattr(torch, dtype), device)
    claim_evaluation(lab, pair, batch)
    claim_exceptions(lab, batch)
