"""Autograd applies the chain rule to what was computed: exact, and one pass for all inputs.

The obvious way to a derivative is the quotient (f(x + h) - f(x)) / h. It is wrong twice. With a large h it has the slope of a
secant. With a small h the two values agree in most of their digits, and their difference is rounding. Between them lies a
best h, whose error is still no rounding of the last digit. For h = 1e-8 in float32 x + h is x, and the quotient is 0. And it
takes a call for each input.

Autograd records each operator as a node of a graph. Backward walks the graph from the result to the inputs, and multiplies
with the derivative of each operator, which torch knows as a formula. For -x * x that is: -1 for the minus, and for the
product x once from each factor. So the gradient is -2x to the last bit, for a million inputs in one pass.

Two habits of `.backward()` surprise. It adds to `.grad`: a second backward without a reset in between gives twice the
gradient. And it frees the values that the graph had kept, so that a second backward through the same graph is refused.
## Predict
The slope of -x * x at x = 1 is -2. In float32, how far from it is (f(x + h) - f(x)) / h, with the best h from 1 to 1e-8?
## Look for
- [minus-two] autograd gives -2 for the derivative of -x * x at x
- [everywhere] at all the points from -3 to 3 it gives -2x, bit for bit
- [vanishes] with h = 1e-8 the quotient at x is 0
- [best-quotient] at x = 1 the best of the quotients is wrong by 0.0001 or more
- [nodes] the graph of -x * x has 3 nodes: the product, the minus and the leaf
- [one-pass] quotients call the function once for each point and once more, and backward runs 6 operators for all of them
- [accumulates] after a second backward .grad is twice the gradient
- [freed] a second backward through the same graph is refused
## Try next
`--x 2`: the slope is steeper there. refutes: minus-two
`--dtype float64`: 16 digits leave room for a small h, and quotients get good. refutes: vanishes, best-quotient
`--reset`: .grad is emptied before the second backward, as an optimizer's zero_grad does. refutes: accumulates
`--retain`: the graph keeps its values; backward through it works twice. refutes: freed
## Source
EffectivePyTorch, chapter "PyTorch basics", https://github.com/vahidk/EffectivePyTorch: -2 at 1. Ours: quotients, the graph and
the two habits.
"""

from typing import Literal

import torch

from tuilab import Lab


def parabola(x):
    return -(x * x)


def quotients(f, x, h):
    """The slope of f in each of x (points,), by a call for each of them."""
    before = f(x)
    return torch.stack([(f(x + h * one) - before).sum() / h for one in torch.eye(len(x)).to(x)])


def slope(f, x):
    x = x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(f(x).sum(), x)
    return gradient


def backward_twice(value, reset):
    """What is in .grad after two calls of the function and backward of each."""
    x = value.clone().requires_grad_()
    parabola(x).backward()
    if reset:
        x.grad = None
    parabola(x).backward()
    return x.grad


def same_graph_twice(value, retain):
    y = parabola(value.clone().requires_grad_())
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
    form = {"device": device, "dtype": getattr(torch, dtype)}
    at = torch.tensor(x, **form)
    lab.claim("minus-two", slope(parabola, at), equals=-2)

    lab.axes("error", x="h", y="error of the slope", log="xy")
    lab.axes("gradient", x="x", y="slope of -x * x")
    lab.axes("value", x="x", y="-x * x")
    exact = -2 * at.double()
    errors = {}
    for power in lab.sweep(range(33), "quotients"):
        h = 10 ** (-power / 4)
        found = (parabola(at + h) - parabola(at)) / h
        errors[h] = (found - exact).abs().item()
        lab.log(h, arm="quotient", error=errors[h])
    lab.claim("vanishes", found, equals=0)
    lab.claim("best-quotient", min(errors.values()), at_least=0.0001, at={"x": 1.0}, answers=True)

    curve = torch.linspace(-3, 3, points, **form)
    gradients = slope(parabola, curve)
    for where, value, gradient in zip(curve.tolist(), parabola(curve).tolist(), gradients.tolist(), strict=True):
        lab.log(where, arm="autograd", gradient=gradient, value=value)
    lab.claim("everywhere", torch.equal(gradients, -2 * curve))

    lab.stage("counting")
    called = []
    quotients(lambda x: called.append(1) or parabola(x), curve, 0.001)
    counted = lab.count(parabola, curve.clone().requires_grad_(), backward=True)
    lab.claim("nodes", counted.nodes, equals=3)
    lab.claim("one-pass", [len(called), counted.backward.operators], equals=[points + 1, 6])
    lab.bars("calls", {"quotients: calls of the function": len(called), "autograd: operators": counted.backward.operators})

    lab.stage("two habits")
    lab.claim("accumulates", backward_twice(at, reset) / slope(parabola, at), equals=2)
    lab.claim("freed", lab.raises(same_graph_twice, at, retain).partition(":")[0], equals="RuntimeError")
