"""What a call of a function costs in numbers that are the same on every machine, and what the backward of its result costs."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from tuilab.lab.arguments import describe_value
from tuilab.lab.meters.meter import Meter


@dataclass(frozen=True)
class Counted:
    """What `Lab.count` returns.

    operators       calls of the dispatcher; `calls` has them by name, as in calls["aten.mm"]
    flops           of matrix products, convolutions and attention, as torch's FlopCounterMode counts them
    nodes           of the graph behind what was returned, its leaves among them
    saved_bytes     of distinct storages kept for backward, parameters not counted
    peak_bytes      the most that lived at once of what was made since the call began
    live_bytes      what of it lives when the call has returned, its result included
    born_bytes      of all that was made, as it was asked for
    value           what the function returned
    backward        the same of backward alone, but that its live and peak bytes go on from those before
    """

    operators: int
    calls: Counter[str]
    flops: int
    nodes: int
    saved_bytes: int
    peak_bytes: int
    live_bytes: int
    born_bytes: int
    value: Any
    backward: "Counted | None" = None


def count(f: Callable[..., Any], args: tuple[Any, ...], *, backward: bool) -> Counted:
    """Call a function and count; with `backward` also the backward of the sum of the tensors that it returned."""
    flops = _Flops()
    meter = Meter(seen=flops.add)
    with meter:
        value = f(*args)
        forward = _counted(meter, flops, value, _nodes(value))
        if not backward:
            return forward
        meter.calls, meter.born_bytes, meter.saved_bytes, flops.total = Counter(), 0, 0, 0
        meter.peak_bytes = meter.live_bytes
        gradients = _gradients(meter, value)
        return replace(forward, backward=_counted(meter, flops, gradients, []))


class _Flops:
    """Adds up what torch's counter knows of each operator, without the hooks of modules that it would set beside."""

    def __init__(self) -> None:
        from torch.utils.flop_counter import (
            flop_registry,
        )  # few lessons count, and every process would load it

        self._formulas = flop_registry
        self.total = 0

    def add(self, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        if formula := self._formulas.get(func.overloadpacket):
            self.total += int(formula(*args, **kwargs, out_val=result))


def _counted(meter: Meter, flops: _Flops, value: Any, nodes: list[Any]) -> Counted:
    return Counted(
        meter.operators, meter.calls, flops.total, len(nodes), meter.saved_bytes, meter.peak_bytes, meter.live_bytes,
        meter.born_bytes, value,
    )  # fmt: skip


def _gradients(meter: Meter, value: Any) -> Any:
    """Return the gradients of the sum of some tensors in the leaves of their graph; what they have in `.grad` stays."""
    outputs = [
        leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor) and leaf.requires_grad
    ]
    if not outputs:
        raise ValueError(
            "backward=True takes a function whose result requires a gradient, but f returned"
            f" {describe_value(value)}"
        )
    leaves = [
        node.variable for node in _nodes(outputs) if type(node).__name__ == "AccumulateGrad"
    ] or outputs
    with meter.paused():
        ones = [
            torch.ones((), dtype=out.dtype, device=out.device).expand_as(out) for out in outputs
        ]  # as a sum has them
    return torch.autograd.grad(outputs, leaves, ones, allow_unused=True)


def _nodes(value: Any) -> list[Any]:
    """Return the nodes of the graph behind the tensors in a value, each once, in an order that is always the same."""
    visited: dict[Any, None] = {}
    waiting = [leaf.grad_fn for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]
    while waiting:
        if (node := waiting.pop()) is not None and node not in visited:
            visited[node] = None
            waiting += [parent for parent, _ in node.next_functions]
    return list(visited)
