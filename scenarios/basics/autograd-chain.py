"""Let autograd compute gradients: it is exact, and one pass serves all inputs.

A derivative can be estimated with a difference quotient, (f(x + h) - f(x)) / h. The estimate has
two sources of error. If h is large, it measures the slope of a secant. If h is small, the two
values of f agree in most of their digits, and their difference is mostly rounding error. In
float32 even the best h leaves an error far larger than one rounding. With h = 1e-8 the sum x + h
is rounded to x, and the quotient is 0. A gradient by quotients also needs one call of f for each
input.

Autograd records each operation as a node of a graph. Backward walks the graph from the result to
the inputs and multiplies by the derivative of each operation, which PyTorch knows as a formula.
For -(x * x) the minus contributes -1, and the product contributes x twice, once for each factor.
The gradient is -2x to the last bit, for a million inputs in one pass.

Two properties of `.backward()` surprise many users. It adds to `.grad`: a second backward without
a reset gives twice the gradient. And it frees the tensors that the graph saved: a second backward
through the same graph raises an error.

In practice: train with autograd, and keep difference quotients for tests
(`torch.autograd.gradcheck`, in float64). Call `optimizer.zero_grad()` once in each step. Pass
`retain_graph=True` only if you need two backward passes through one graph, and never to silence
the error.
## Predict
The slope of -x * x at x = 1 is -2. In float32, how far from it is (f(x + h) - f(x)) / h, with the
best h from 1 to 1e-8?
## Look for
- [minus-two] autograd gives exactly -2 for the derivative of -x * x at the chosen x
- [everywhere] at all points from -3 to 3 autograd gives -2x, bit for bit
- [vanishes] in float32 with h = 1e-8 the quotient (f(x + h) - f(x)) / h is 0
- [best-quotient] in float32, the best quotient at x = 1 is wrong by 0.0001 or more
- [nodes] the graph of -x * x has 3 nodes: the product, the minus and the leaf
- [one-pass] for n inputs, quotients call the function n + 1 times, and backward runs 6 operators
- [accumulates] after a second backward without a reset, .grad is 2 times the gradient
- [freed] a second backward through the same graph raises a RuntimeError
## Try next
`--x 2`: the slope is steeper there. refutes: minus-two
`--dtype float64`: 16 digits leave room for a small h, and quotients get good. refutes: vanishes,
best-quotient
`--reset`: .grad is emptied before the second backward, as `zero_grad()` does.
refutes: accumulates
`--retain`: the graph keeps its tensors, so a second backward works. refutes: freed
## Source
EffectivePyTorch, chapter "PyTorch basics", https://github.com/vahidk/EffectivePyTorch: -2 at 1.
Ours: quotients, the graph and the two habits of backward.
"""

from typing import Literal

import torch

from tuilab import Lab


def parabola(x):
    return -(x * x)


def difference_quotient(function, x, h):
    return (function(x + h) - function(x)) / h


def gradient_by_autograd(function, x):  # (points,) -> (points,)
    x = x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(function(x).sum(), x)
    return gradient


def gradient_by_quotients(function, x, h):  # (points,) -> (points,)
    """Move one element of x at a time: one call for each element, and one before."""
    before = function(x)
    slopes = []
    for one_hot in torch.eye(len(x), dtype=x.dtype, device=x.device):  # (points,)
        after = function(x + h * one_hot)
        slopes.append((after - before).sum() / h)
    return torch.stack(slopes)


class CallCounter:
    """A function that counts how often it is called."""

    def __init__(self, function):
        self.function = function
        self.calls = 0

    def __call__(self, x):
        self.calls += 1
        return self.function(x)


def grad_after_two_backwards(value, reset):
    """Return .grad after two forward passes with a backward pass each."""
    x = value.clone().requires_grad_()
    parabola(x).backward()
    if reset:
        x.grad = None
    parabola(x).backward()
    return x.grad


def backward_twice_through_one_graph(value, retain):
    x = value.clone().requires_grad_()
    y = parabola(x)
    y.backward(retain_graph=retain)
    y.backward()


def run(
    lab: Lab,
    x: float = 1.0,  # where the derivative is taken, -10..10
    points: int = 60,  # on the curve from -3 to 3, 2..1000
    dtype: Literal["float32", "float64"] = "float32",  # of the numbers
    reset: bool = False,  # empty .grad before a second backward
    retain: bool = False,  # backward keeps the graph
) -> None:
    device = lab.device()
    dtype = getattr(torch, dtype)
    at = torch.tensor(x, dtype=dtype, device=device)
    lab.claim("minus-two", gradient_by_autograd(parabola, at), equals=-2)

    lab.axes("error", x="h", y="error of the slope", log="xy")
    lab.axes("gradient", x="x", y="slope of -x * x")
    lab.axes("value", x="x", y="-x * x")

    exact_slope = -2 * x
    errors = []
    for power in lab.sweep(range(33), "quotients"):
        h = 10 ** (-power / 4)  # from 1 down to 1e-8
        quotient = difference_quotient(parabola, at, h).item()
        error = abs(quotient - exact_slope)
        errors.append(error)
        lab.log(h, arm="quotient", error=error)
    lab.claim("vanishes", quotient, equals=0)  # the last one, with h = 1e-8
    lab.claim("best-quotient", min(errors), at_least=0.0001, at={"x": 1.0}, answers=True)

    curve = torch.linspace(-3, 3, points, dtype=dtype, device=device)
    values = parabola(curve)
    gradients = gradient_by_autograd(parabola, curve)
    for i in range(points):
        lab.log(curve[i].item(), arm="autograd", gradient=gradients[i], value=values[i])
    lab.claim("everywhere", torch.equal(gradients, -2 * curve))

    lab.stage("counting")
    counter = CallCounter(parabola)
    gradient_by_quotients(counter, curve, 0.001)
    counted = lab.count(parabola, curve.clone().requires_grad_(), backward=True)
    operators = counted.backward.operators
    lab.claim("nodes", counted.nodes, equals=3)
    lab.claim("one-pass", [counter.calls, operators], equals=[points + 1, 6])
    bars = {
        "quotients: calls of the function": counter.calls,
        "autograd: operators": operators,
    }
    lab.bars("calls", bars)

    lab.stage("two habits")
    twice = grad_after_two_backwards(at, reset)
    lab.claim("accumulates", twice / gradient_by_autograd(parabola, at), equals=2)
    error = lab.raises(backward_twice_through_one_graph, at, retain)
    lab.claim("freed", error.partition(":")[0], equals="RuntimeError")
