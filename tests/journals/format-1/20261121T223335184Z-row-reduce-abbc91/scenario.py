"""One operator, not five hundred slices.

Every call of an operator costs a microsecond or more before any number is added: Python, dispatcher, a new tensor, a node for
autograd, on a GPU a kernel launch. A loop over the rows pays for two calls a row, `x[i]` and `+`; `unbind` takes all rows apart
in one call; `sum(0)` is one call in all. How much that gains depends on how little work a row is: here, ten numbers.

Backward is worse and seldom timed. The gradient of `x[i]` is a tensor of the size of *x*, zero but for one row, so the backward
of the loop costs rows x rows x cols: double the rows and it takes four times as long. `unbind` stacks its gradients once, and
`sum` returns a view. The chart shows it for ever more rows. The sum is also more accurate, as it keeps several partial sums.

## Predict
How many times faster than the loop over x[i] is x.sum(0) for 500 rows of 10 numbers?

## Look for
- the loop over x[i] calls two operators a row and one more, unbind one a row and two more, sum one in all
- autograd records as many nodes, and for sum two
- the loop calls at least 100 times as many operators as sum
- the gradient of one row taken by x[i] has the size of all of x
- sum is as accurate as the loop or more, to within one rounding
- unbind is at least 1.3 times faster than x[i]
- sum is at least 100 times faster than x[i]

## Try next
`--rows 5`: eleven operators against one. The claim of a hundred times as many is REFUTED, and sum is only a few times faster.
`--cols 1000`: every call has real work to do, overhead counts for less, and the sum is WEAKER THAN CLAIMED on a CPU.

## Source
000 EffectivePyTorch by vahidk, https://github.com/vahidk/EffectivePyTorch, the chapter on overloaded operators: 500 x 10,
unbind some 30 % faster, sum some 100 times, each timed once. 30 % is read here as 1.3 times faster, which saves 23 % of the
time. Operators, nodes, backward and accuracy are ours.
"""

import time
from typing import Literal

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


def count_nodes(tensor):
    """Nodes of the graph behind a tensor."""
    seen, stack = {None}, [tensor.grad_fn]
    while stack:
        if (node := stack.pop()) not in seen:
            seen.add(node)
            stack += [parent for parent, _ in node.next_functions]
    return len(seen) - 1


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
    device: Literal["auto", "cpu", "cuda"] = "auto",  # where the tensors live
) -> None:
    device = lab.device(device)
    torch.manual_seed(0)
    x = torch.rand(rows, cols).to(device).requires_grad_()
    arms = {"index": by_index, "unbind": by_unbind, "sum": by_sum}

    lab.stage("counting operators")
    operators, nodes, errors = {}, {}, {}
    for name, arm in arms.items():
        with lab.memory("forward", arm=name) as memory:
            total = arm(x)
        operators[name], nodes[name] = memory.operators, count_nodes(total)
        errors[name] = (total.double() - x.double().sum(0)).abs().max().item()
    lab.claim(
        "the loop over x[i] calls two operators a row and one more, unbind one a row and two more, sum one in all",
        list(operators.values()),
        equals=[2 * rows + 1, rows + 2, 1],
    )
    lab.claim("autograd records as many nodes, and for sum two", list(nodes.values()), equals=[2 * rows + 1, rows + 2, 2])
    lab.claim("the loop calls at least 100 times as many operators as sum", operators["index"] / operators["sum"], at_least=100)
    of_one_row = x[0].grad_fn(torch.ones(cols, device=device))
    lab.claim("the gradient of one row taken by x[i] has the size of all of x", list(of_one_row.shape), equals=[rows, cols])
    bound = max(errors["index"], rows * torch.finfo(x.dtype).eps)
    lab.claim("sum is as accurate as the loop or more, to within one rounding", errors["sum"], at_most=bound)

    lab.stage("forward and backward for more and more rows")
    for k in range(1, 9):
        more = torch.rand(max(1, rows * k // 4), cols).to(device).requires_grad_()
        for name, arm in arms.items():
            forward, backward = map(min, zip(*(time_both(arm, more) for _ in range(3)), strict=True))
            lab.log(len(more), arm=name, backward_ms=backward, forward_ms=forward)
        lab.progress(k, 8, "sizes")

    lab.stage("timing the forward")
    lab.claim("unbind is at least 1.3 times faster than x[i]", ratio="index/unbind", at_least=1.3)
    lab.claim("sum is at least 100 times faster than x[i]", ratio="index/sum", at_least=100)
    lab.race(index=lambda: by_index(x), unbind=lambda: by_unbind(x), sum=lambda: by_sum(x), same=1e-4, device=device)
