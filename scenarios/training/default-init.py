"""Initialise deep ReLU nets by He's rule: the default weights forget the input.

A layer multiplies the size of its input by some factor, and a deep net multiplies these factors.
If the factor of one layer is 0.5, 20 layers have a factor of 0.000001. Then all inputs give
nearly the same output, the first layers get nearly no gradient, and the net does not learn for a
long time. If the factor is above 1, the numbers explode instead.

The variance of the weights decides the factor. ReLU sets half of its inputs to zero, which halves
their mean square. So the variance of a weight should be 2 / fan_in, which is the rule of He
(`kaiming_normal_`). Xavier's rule, 1 / fan_in for square layers, was made for tanh. `nn.Linear` uses `kaiming_uniform_` with a=sqrt(5). The name suggests He's rule, but this
argument makes the variance 1 / (3 * fan_in), a sixth of 2 / fan_in. Its biases hide the problem:
they are random too, so outputs look alive. But they are the same for every input.

The measure here is the spread between inputs: how much an output varies over a batch of 128 random
rows, relative to the input. Nets with norms or residual connections hardly depend on the
initialisation, because these keep the sizes.

In practice: for a deep net of linear or convolutional layers with ReLU and without norms, call
`nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")` and set the biases to zero. For tanh,
use `xavier_normal_`. In other nets, measure the spread of the last hidden layer before training.
## Predict
The default variance of a weight in nn.Linear is which percentage of He's 2 / fan_in?
## Look for
- [variance] the variance of a default weight of nn.Linear is 16.7 % of 2 / fan_in, to 1 percentage
  point
- [default] behind 20 layers of 128 with ReLU and default weights, the spread between inputs is at
  most 1e-6 of the spread at the input
- [xavier] with Xavier's rule and zero biases, this spread is between 1e-5 and 0.01
- [he] with He's rule and zero biases, this spread is at least 0.05
- [gradient] the gradient of the first layer of the default net has at most 0.001 of the norm of
  the gradient of the last layer
- [learns] with He's rule, 200 steps of SGD bring the loss to at most 0.1 of the variance of the
  targets
- [stuck] with the default weights, the loss is still at least 0.9 of this variance
- [norm] with a layer norm before each ReLU, the spread of the default net is at least 0.05
## Try next
`--depth 2`: two layers forget little, and the default net learns. refutes: default, xavier, gradient, stuck
`--activation tanh`: tanh does not halve the mean square, so Xavier's rule fits.
refutes: default, xavier
## Source
K. He, X. Zhang, S. Ren, J. Sun, "Delving Deep into Rectifiers", https://arxiv.org/abs/1502.01852:
the variance 2 / fan_in for ReLU. The default of `nn.Linear` is in its documentation,
https://docs.pytorch.org/docs/stable/generated/torch.nn.Linear.html. Ours: the spread between
inputs and the trainings.
"""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import nn

from tuilab import Lab

WIDTH = 128
ROWS = 128
STEPS = 200
RATE = 0.005


def initialise(net, rule):
    """Apply a rule to all linear layers but the last one; "default" changes nothing."""
    if rule == "default":
        return
    for layer in net[:-1]:
        if isinstance(layer, nn.Linear):
            if rule == "he":
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            else:
                nn.init.xavier_normal_(layer.weight)
            nn.init.zeros_(layer.bias)


def build_net(rule, depth, activation, has_norms=False):
    """Return hidden layers of one width and a last linear layer with one output."""
    torch.manual_seed(0)
    layers = []
    for _ in range(depth):
        layers.append(nn.Linear(WIDTH, WIDTH))
        if has_norms:
            layers.append(nn.LayerNorm(WIDTH))
        layers.append(activation())
    layers.append(nn.Linear(WIDTH, 1))
    net = nn.Sequential(*layers)
    initialise(net, rule)
    return net


def spread(values):  # (rows, width)
    """Return how much the rows differ: the standard deviation over rows, mean over columns."""
    return values.std(dim=0).mean().item()


def log_spreads(lab, arm, net, x):
    """Log the relative spread behind each activation; return that behind the last one."""
    first = spread(x)
    layer_count = 0
    with torch.no_grad():
        for layer in net[:-1]:
            x = layer(x)  # (128, 128)
            if isinstance(layer, nn.ReLU | nn.Tanh):
                layer_count += 1
                relative = spread(x) / first
                lab.log(layer_count, arm=arm, spread=relative)
    return relative


def gradient_ratio(net, x, y):
    """Return the norm of the first layer's gradient, relative to that of the last layer."""
    F.mse_loss(net(x), y).backward()
    ratio = net[0].weight.grad.norm() / net[-1].weight.grad.norm()
    net.zero_grad()
    return ratio.item()


def train(lab, arm, net, x, y):
    """Return the last loss, relative to the variance of the targets."""
    optimizer = torch.optim.SGD(net.parameters(), lr=RATE)
    for step in lab.steps(STEPS, f"training with {arm}"):
        loss = F.mse_loss(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        lab.log(step, arm=arm, loss=loss.detach())
    return (loss.detach() / y.var(correction=0)).item()


def run(
    lab: Lab,
    depth: int = 20,  # hidden layers, 2..50
    activation: Literal["relu", "tanh"] = "relu",  # behind each hidden layer
) -> None:
    device = lab.device()
    activation_class = {"relu": nn.ReLU, "tanh": nn.Tanh}[activation]
    lab.axes("spread", x="layer", y="spread between inputs, relative", log="y")
    lab.axes("loss", x="step", y="loss")
    x = torch.randn(ROWS, WIDTH).to(device)
    y = x[:, :1] - x[:, 1:2]  # (128, 1)

    lab.stage("the default weights")
    variance = nn.Linear(WIDTH, 1024).weight.var().item()
    percentage = 100 * variance * WIDTH / 2
    lab.claim("variance", percentage, equals=16.7, tolerance=1, unit="%", answers=True)

    lab.stage("the spread, layer by layer")
    nets = {}
    spreads = {}
    for rule in ("default", "xavier", "he"):
        nets[rule] = build_net(rule, depth, activation_class).to(device)
        spreads[rule] = log_spreads(lab, rule, nets[rule], x)
    with_norms = build_net("default", depth, activation_class, has_norms=True).to(device)
    spreads["default, norms"] = log_spreads(lab, "default, norms", with_norms, x)
    lab.claim("default", spreads["default"], at_most=1e-6)
    lab.claim("xavier", spreads["xavier"], between=[1e-5, 0.01])
    lab.claim("he", spreads["he"], at_least=0.05)
    lab.claim("norm", spreads["default, norms"], at_least=0.05)
    lab.claim("gradient", gradient_ratio(nets["default"], x, y), at_most=0.001)

    lab.claim("learns", train(lab, "he", nets["he"], x, y), at_most=0.1)
    lab.claim("stuck", train(lab, "default", nets["default"], x, y), at_least=0.9)
