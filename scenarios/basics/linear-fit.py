"""Use noise of mean 0: a fit adds the mean of the noise to the intercept.

The source draws y = 5x + 3 + 0.3 u, with u uniform between 0 and 1. It fits a line by gradient
descent, and says that the result should be close to 5 and 3. But u has the mean 0.5. A fit cannot
separate noise from signal, so the mean of the noise becomes part of the intercept: 3 + 0.15. Noise
of mean 0 only scatters the result: with a hundred points by 0.02 in the intercept and by 0.03 in
the slope. The same happens with labels that are all too large by a constant.

A second question is whether gradient descent has arrived. For a squared loss this is known before
the first step. Let H be the second derivative of the loss. Each step then multiplies the distance
to the best line by the matrix 1 - rate * H. The flattest direction (slope up, intercept down)
shrinks by only 0.13 % in a step. Least squares in float64 gives the best line without a step, and
shows how far away gradient descent is.

Twenty draws of the noise are fitted at once. Each draw has its own row of the weights, and rows do
not affect each other. On a GPU expect these steps to be launch-bound, and slower than on a CPU.

In practice: if you make synthetic data, subtract the mean of the noise, for example
`0.3 * (torch.rand(100) - 0.5)`. Do not stop because the loss looks flat; compare with a closed
form where you have one. For a layer on single numbers, `x.unsqueeze(1)` makes the rows that
`nn.Linear` wants.
## Predict
Slopes go from 0 to 5 by gradient descent, with x from 0 to 0.99 and a rate of 0.01. After 2000
steps, how far is the worst of twenty slopes from that of its best line?
## Look for
- [intercept] the mean of the twenty intercepts is 3.15 to within 0.01
- [not-three] none of the twenty intercepts is nearer to 3 than to 3.15
- [arrived] after the last step all weights are those of least squares to within 0.001
- [halfway] after 2000 steps at least one slope is off by 0.1 or more
- [foretold] the powers of the matrix 1 - rate * H predict all weights after 2000 steps to within
  0.0001
- [layer] nn.Linear between unsqueeze and squeeze has the same weights as a * x + b after 100 steps,
  to within 0.000001
## Try next
`--centred`: the noise is between -0.15 and 0.15. refutes: intercept, not-three
`--steps 2000`: the fit stops too early. refutes: intercept, arrived
`--rate 0.1`: ten times the rate, so 2000 steps are enough. refutes: halfway
## Source
EffectivePyTorch, chapter "Encapsulate your model with Modules",
https://github.com/vahidk/EffectivePyTorch: the line, the steps and both modules. It expects 3 for
the intercept, which is wrong. Ours: the mean of the noise, twenty draws, least squares and the
formula.
"""

import torch
from torch import nn

from tuilab import Lab

HALFWAY = 2000  # steps


class Line(nn.Module):
    """Lines a * x + b, one for each draw of the noise."""

    def __init__(self, draws):
        super().__init__()
        self.a = nn.Parameter(torch.zeros(draws, 1))
        self.b = nn.Parameter(torch.zeros(draws, 1))

    def forward(self, x):  # (points,) -> (draws, points)
        return self.a * x + self.b

    def weights(self):  # (2, draws)
        weights = torch.stack([self.a, self.b])  # (2, draws, 1)
        return weights.detach().squeeze(2).double()


class Layer(nn.Linear):
    """The same line as a layer, which works on rows of numbers."""

    def forward(self, x):  # (points,) -> (points,)
        return super().forward(x.unsqueeze(1)).squeeze(1)


def loss_of(prediction, y):  # (..., points)
    losses = (prediction - y).square().mean(-1)
    return losses.sum()  # the sum gives each row of weights its own gradient


def train_step(net, optimizer, x, y):
    optimizer.zero_grad()
    loss = loss_of(net(x), y)
    loss.backward()
    optimizer.step()


def features_of(x):  # (points,) -> (points, 2)
    return torch.stack([x, torch.ones_like(x)], 1).double()


def best_lines(x, y):  # -> (2, draws), the slopes and intercepts of least squares
    return torch.linalg.lstsq(features_of(x), y.double().T).solution


def predict_weights(x, y, rate, steps):  # -> (2, draws)
    """Return where gradient descent from 0 is after so many steps, without a step."""
    features = features_of(x)
    hessian = 2 * features.T @ features / len(x)  # (2, 2), the H of the lesson
    shrink = torch.eye(2).to(hessian) - rate * hessian
    best = best_lines(x, y)
    return best - torch.linalg.matrix_power(shrink, steps) @ best


def train_hundred_steps(module, rate, x, y):
    """Return the slope and the intercept after 100 steps from 0."""
    for weight in module.parameters():
        nn.init.zeros_(weight)
    optimizer = torch.optim.SGD(module.parameters(), lr=rate)
    for _ in range(100):
        train_step(module, optimizer, x, y)
    return torch.cat([weight.detach().flatten() for weight in module.parameters()])


def descend(lab, net, x, y, steps, rate):
    """Train, and return the weights after 2000 steps."""
    lab.axes("intercept", x="step of gradient descent", y="intercepts, their mean")
    lab.axes("slope", x="step of gradient descent", y="slopes, their mean")
    lab.axes("loss", x="step of gradient descent", log="y")
    optimizer = torch.optim.SGD(net.parameters(), lr=rate)
    for step in lab.steps(steps, "gradient descent"):
        if step == HALFWAY:
            halfway = net.weights()
        if step % 100 == 0:
            slopes, intercepts = net.weights()
            loss = loss_of(net(x), y).detach() / len(y)
            lab.log(step, intercept=intercepts.mean(), slope=slopes.mean(), loss=loss)
        train_step(net, optimizer, x, y)
    if steps == HALFWAY:
        halfway = net.weights()
    return halfway


def run(
    lab: Lab,
    steps: int = 10000,  # of gradient descent, 2000..100000
    rate: float = 0.01,  # of gradient descent, 0.001..0.5
    centred: bool = False,  # noise of mean 0
) -> None:
    device = lab.device()
    x = torch.arange(100, device=device) / 100
    uniform = torch.rand(20, 100)
    if centred:
        uniform -= 0.5
    y = 5 * x + 3 + 0.3 * uniform.to(device)  # (draws, points)

    net = Line(len(y)).to(device)
    halfway = descend(lab, net, x, y, steps, rate)
    weights = net.weights()
    intercepts = weights[1]
    best = best_lines(x, y)
    from_three = (intercepts - 3).abs()
    from_mean = (intercepts - 3.15).abs()
    lab.claim("intercept", intercepts.mean(), equals=3.15, tolerance=0.01)
    lab.claim("not-three", (from_three < from_mean).sum(), equals=0)
    lab.claim("arrived", (weights - best).abs().max(), at_most=0.001)
    slope_errors = (halfway - best)[0].abs()
    lab.claim("halfway", slope_errors.max(), at_least=0.1, answers=True)
    predicted = predict_weights(x, y, rate, HALFWAY)
    lab.claim("foretold", (halfway - predicted).abs().max(), at_most=0.0001)

    lab.stage("a layer instead of two numbers")
    line = train_hundred_steps(Line(1).to(device), rate, x, y[:1])
    layer = train_hundred_steps(Layer(1, 1).to(device), rate, x, y[0])
    lab.claim("layer", (line - layer).abs().max(), at_most=1e-6)
