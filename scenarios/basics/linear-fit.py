"""The noise has a mean: the line through 5 x + 3 + noise has the intercept 3.15, not 3.

The source draws y = 5x + 3 + 0.3 u with u uniform between 0 and 1, and fits a line by gradient descent. It says that the
result should be close to 5 and 3. But u has the mean 0.5. A fit knows nothing of noise, it knows y: the mean of the noise is
part of the intercept, 3 + 0.15. What noise of mean 0 costs is only scatter: at a hundred points 0.02 in the intercept and 0.03
in the slope. Least squares in float64 has the best line for these points without a step.

How far gradient descent is from there is known before the first step. With a loss of squares each step multiplies the
distance to the best line by the matrix 1 - rate * H, where H is the second derivative of the loss. Its flattest direction,
slope up and intercept down, shrinks by 0.13 % a step: 7 % of the distance is left after 2000 steps, and next to nothing after
10,000. Twenty draws of the noise are fitted at once, each with a row of the weights, and rows do not touch each other. On a
GPU expect these steps to be launch-bound, and to take longer than on a CPU.
## Predict
Slopes go from 0 to 5 by gradient descent, with x from 0 to 0.99 and the rate 0.01. How far from that of its best line is the
worst of twenty after 2000 steps?
## Look for
- [intercept] the mean of the twenty intercepts is 3.15 to within 0.01
- [not-three] not one of the twenty intercepts is nearer to 3 than to 3.15
- [arrived] after the last step all weights are those of least squares to within 0.001
- [halfway] after 2000 steps a slope is still off by 0.1 or more
- [foretold] the formula of the text says all weights after 2000 steps to within 0.0001
- [layer] nn.Linear, with a column unsqueezed before it and squeezed after, takes the same 100 steps to within 0.000001
## Try next
`--centred`: noise from -0.15 to 0.15. refutes: intercept, not-three
`--steps 2000`: too early. refutes: intercept, arrived
`--rate 0.1`: ten times the rate; 2000 steps are plenty. refutes: halfway
## Source
EffectivePyTorch, chapter "Encapsulate your model with Modules", https://github.com/vahidk/EffectivePyTorch: the line, the
steps and both modules. Ours: the mean of the noise, twenty draws, least squares and the formula.
"""

import torch
from torch import nn

from tuilab import Lab


class Line(nn.Module):
    def __init__(self, draws):
        super().__init__()
        self.a = nn.Parameter(torch.zeros(draws, 1))
        self.b = nn.Parameter(torch.zeros(draws, 1))

    def forward(self, x):  # (points) -> (draws, points)
        return self.a * x + self.b

    def weights(self):  # (2, draws)
        return torch.stack([self.a, self.b]).detach()[..., 0].double()


class Layer(nn.Linear):
    def forward(self, x):  # (points) -> (points)
        return super().forward(x.unsqueeze(1)).squeeze(1)


def loss_of(prediction, y):  # (..., points); the sum over draws, so that each row of weights gets its own gradient
    return (prediction - y).square().mean(-1).sum()


def step(net, optimizer, x, y):
    optimizer.zero_grad()
    loss_of(net(x), y).backward()
    optimizer.step()


def features(x):  # (points) -> (points, 2)
    return torch.stack([x, torch.ones_like(x)], 1).double()


def best_lines(x, y):  # slopes and intercepts (2, draws) of least squares
    return torch.linalg.lstsq(features(x), y.double().T).solution


def foretold(x, y, rate, steps):
    """Where gradient descent from 0 is after some steps: the distance to the best line shrinks by a matrix a step."""
    steepness = 2 * features(x).T @ features(x) / len(x)  # (2, 2), the H of the text
    shrinks = torch.linalg.matrix_power(torch.eye(2).to(steepness) - rate * steepness, steps)
    best = best_lines(x, y)
    return best - shrinks @ best


def run(
    lab: Lab,
    steps: int = 10000,  # of gradient descent, 2000..100000
    rate: float = 0.01,  # of gradient descent, 0.001..0.5
    centred: bool = False,  # noise of mean 0
) -> None:
    device = lab.device()
    lab.axes("intercept", x="step of gradient descent", y="intercepts, their mean")
    lab.axes("slope", x="step of gradient descent", y="slopes, their mean")
    lab.axes("loss", x="step of gradient descent", log="y")
    x = torch.arange(100, device=device) / 100
    noise = 0.3 * (torch.rand(20, 100) - 0.5 * centred).to(device)
    y = 5 * x + 3 + noise  # (draws, points)
    net = Line(len(y)).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=rate)
    path = []  # the weights after every 100 steps
    for done in lab.steps(steps, "gradient descent"):
        if done % 100 == 0:
            path.append(net.weights())
            lab.log(done, intercept=path[-1][1].mean(), slope=path[-1][0].mean(), loss=loss_of(net(x), y).detach() / len(y))
        step(net, optimizer, x, y)
    found = net.weights()
    halfway, intercepts = [*path, found][20], found[1]
    lab.claim("intercept", intercepts.mean(), equals=3.15, tolerance=0.01)
    lab.claim("not-three", ((intercepts - 3).abs() < (intercepts - 3.15).abs()).sum(), equals=0)
    lab.claim("arrived", (found - best_lines(x, y)).abs().max(), at_most=0.001)
    lab.claim("halfway", (halfway - best_lines(x, y))[0].abs().max(), at_least=0.1, answers=True)
    lab.claim("foretold", (halfway - foretold(x, y, rate, 2000)).abs().max(), at_most=0.0001)

    lab.stage("a layer instead of two numbers")
    pair = Line(1).to(device), Layer(1, 1).to(device)
    for module, target in zip(pair, (y[:1], y[0]), strict=True):
        for weight in module.parameters():
            nn.init.zeros_(weight)
        optimizer = torch.optim.SGD(module.parameters(), lr=rate)
        for _ in range(100):
            step(module, optimizer, x, target)
    weights = [torch.cat([weight.detach().flatten() for weight in module.parameters()]) for module in pair]
    lab.claim("layer", (weights[0] - weights[1]).abs().max(), at_most=1e-6)
