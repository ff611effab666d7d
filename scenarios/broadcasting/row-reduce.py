"""One operator, not five hundred slices.

A loop over the rows of a tensor is slow for a reason that has little to do with arithmetic. Each call
of an operator costs a microsecond or more before any number is added: Python, the dispatcher, a new
tensor, a node of the autograd graph, and on a GPU a kernel launch. The loop calls two operators for
each row, `x[i]` and `+`. `unbind` returns all rows in one call. `sum(0)` is a single call. The gain
depends on how little work a row is: here, ten numbers.

The backward pass costs more, and is seldom counted. The gradient of `x[i]` is a tensor of the size of
x, zero everywhere but in one row. Autograd adds these tensors: 500 tensors and 499 sums. `unbind`
stacks its gradients once, and the gradient of `sum` is a view. Twice the rows need about four times the
bytes. The sum is also more accurate, because it keeps several partial sums.

How much `unbind` gains depends on the CPU and on the version of Python. It saves the call of `x[i]`,
but the call of `+` stays. So the gain is large only where `x[i]` is expensive compared with `+`. CPUs
of 2024 with Python 3.11 show 1.2 to 1.5 times. On such a CPU the source's 30 % is honestly WEAKER THAN
CLAIMED.

In practice: replace a loop over rows by one reduction, such as `x.sum(0)`. If each row needs a function
of its own, use `torch.vmap`, or `unbind` as a small improvement.
## Predict
How many times faster than the loop over x[i] is x.sum(0) for 500 rows of 10 numbers?
## Look for
- [operators] for n rows the loop over x[i] calls 2n + 1 operators, unbind n + 2, and sum 1
- [backward] in backward the loop over 500 rows makes 999 tensors of the size of all of x, unbind one, sum none
- [square] for twice the rows the backward of the loop makes 4 times the bytes, to within 0.2
- [accuracy] against float64 the error of sum is at most that of the loop
- [unbind] unbind is at least 1.3 times faster than x[i]
- [sum] sum is at least 100 times faster than x[i]
## Try next
`--rows 5`: eleven operators against one. sum is only a few times faster, and unbind may gain less. In
backward 4 rows make 4.7 times the bytes of 2. refutes: square
`--cols 1000`: each call has real work to do, so overhead counts for less. On a CPU sum is WEAKER THAN CLAIMED.
## Source
EffectivePyTorch, chapter "Take advantage of the overloaded operators", https://github.com/vahidk/EffectivePyTorch: unbind some
30 % faster, sum some 100 times, each timed once. The 30 % is read here as 1.3 times, which saves 23 % of the time. Ours: the
rest.
"""

import time

import torch

from tuilab import Lab


def by_index(x):  # (rows, cols) -> (cols,)
    total = torch.zeros(x.shape[1], device=x.device)
    for i in range(len(x)):
        total = total + x[i]
    return total


def by_unbind(x):
    total = torch.zeros(x.shape[1], device=x.device)
    for row in x.unbind():
        total = total + row
    return total


def by_sum(x):
    return x.sum(0)


def time_both(arm, x):
    """Milliseconds of one forward and one backward; .item() waits for a GPU."""
    began = time.perf_counter()
    loss = arm(x).sum()
    loss.item()
    middle = time.perf_counter()
    torch.autograd.grad(loss, x)[0].sum().item()
    return 1e3 * (middle - began), 1e3 * (time.perf_counter() - middle)


def run(
    lab: Lab,
    rows: int = 500,  # rows to add up, two operator calls each, 1..2000
    cols: int = 10,  # numbers that each call adds, 1..1000
) -> None:
    device = lab.device()
    x = torch.rand(rows, cols).to(device).requires_grad_()
    arms = {"index": by_index, "unbind": by_unbind, "sum": by_sum}

    @lab.once
    def exact():
        lab.stage("counting operators")
        counted = [lab.count(arm, x, backward=True) for arm in arms.values()]
        by_loop, _, at_once = [(one.value.double() - x.double().sum(0)).abs().max() for one in counted]
        lab.claim("operators", [one.operators for one in counted], equals=[2 * rows + 1, rows + 2, 1])
        made = [one.backward.born_bytes / x.nbytes for one in counted]
        lab.claim("backward", made, equals=[999, 1, 0], at={"rows": 500})
        half = max(1, rows // 2)
        sizes = []
        for count in (half, 2 * half):
            ones = torch.ones(count, cols, device=device, requires_grad=True)
            sizes.append(lab.count(by_index, ones, backward=True).backward.born_bytes)
        growth = sizes[1] / sizes[0]
        lab.claim("square", growth, equals=4, tolerance=0.2)
        lab.claim("accuracy", at_once, at_most=by_loop)

        lab.axes("backward_ms", x="rows", y="backward", log="xy")
        lab.axes("forward_ms", x="rows", y="forward", log="xy")
        for size in lab.sweep([max(1, rows * k // 8) for k in range(1, 9)], "forward and backward for more and more rows"):
            more = torch.rand(size, cols).to(device).requires_grad_()
            for name, arm in arms.items():
                forward, backward = map(min, zip(*(time_both(arm, more) for _ in range(3)), strict=True))
                lab.log(size, arm=name, backward_ms=backward, forward_ms=forward)

    lab.stage("timing the forward")
    lab.claim_ratio("unbind", "index/unbind", at_least=1.3)
    lab.claim_ratio("sum", "index/sum", at_least=100, answers=True)
    lab.race(
        index=lambda: by_index(x), unbind=lambda: by_unbind(x), sum=lambda: by_sum(x), same=1e-4, seconds=0.7, device=device
    )
