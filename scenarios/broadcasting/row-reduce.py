"""One operator, not five hundred slices.

Every call of an operator costs a microsecond or more before any number is added: Python, dispatcher, a new tensor, a node for
autograd, on a GPU a kernel launch. A loop over the rows pays for two calls a row, `x[i]` and `+`; `unbind` takes all rows apart
in one call; `sum(0)` is one call in all. How much that gains depends on how little work a row is: here, ten numbers.

Backward is worse and seldom counted. The gradient of `x[i]` is a tensor of the size of `x`, zero but for one row, and autograd
adds them up one by one: 500 tensors and 499 sums, where `unbind` stacks its gradients once and `sum` returns a view. Twice the
rows are four times the bytes, and near four times the time where the bytes cost more than the calls: wide rows on a CPU; a GPU
is launch-bound for longer. The sum is also more accurate, as it keeps several partial sums.
## Predict
How many times faster than the loop over x[i] is x.sum(0) for 500 rows of 10 numbers?
## Look for
- [operators] the loop over x[i] calls two operators a row and one more, unbind one a row and two more, sum one in all
- [backward] in backward the loop over 500 rows makes 999 tensors of the size of all of x, unbind one, sum none
- [accuracy] against float64 the error of sum is at most that of the loop
- [unbind] unbind is at least 1.3 times faster than x[i]
- [sum] sum is at least 100 times faster than x[i]
## Try next
`--rows 5`: eleven operators against one, 9 tensors against none. sum is only a few times faster, and unbind may gain less.
refutes: backward
`--cols 1000`: every call has real work to do, overhead counts for less, and the sum is WEAKER THAN CLAIMED on a CPU.
## Source
000 EffectivePyTorch, chapter "Take advantage of the overloaded operators", https://github.com/vahidk/EffectivePyTorch:
unbind some 30 % faster (read here as 1.3 times: 23 % of the time saved), sum some 100 times, each timed once. Ours: the rest.
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
        lab.claim("backward", [one.backward.born_bytes / x.nbytes for one in counted], equals=[999, 1, 0])
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
