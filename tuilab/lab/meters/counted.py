"""Count the exact costs of a function call, and of the backward of its result."""

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
    """The result of `Lab.count`.

    operators       calls of the dispatcher; `calls` has them by name, as in calls["aten.mm"]
    flops           of matrix products, convolutions and attention, by torch's FlopCounterMode
    nodes           of the graph of the result, including leaves
    saved_bytes     of distinct storages saved for backward, without parameters
    peak_bytes      the most memory at one time of storages that the call created
    live_bytes      of storages that the call created and that live after it, including the result
    born_bytes      of all storages that the call created, as requested
    value           the result of the function
    backward        the same for backward; its live and peak bytes continue from those of the call
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
    """Call a function and count; with `backward` also the backward of the sum of its results.

    Raises ValueError with `backward` if no result requires a gradient.
    """
    flops = _Flops()
    meter = Meter(seen=flops.add)
    with meter:
        value = f(*args)
        forward = _counted(meter, flops, value, _nodes(value))
        if not backward:
            return forward
        meter.calls = Counter()
        meter.born_bytes = 0
        meter.saved_bytes = 0
        flops.total = 0
        meter.peak_bytes = meter.live_bytes
        gradients = _gradients(meter, value)
        return replace(forward, backward=_counted(meter, flops, gradients, []))


class _Flops:
    """Adds up FLOPs with the formulas of FlopCounterMode, without its hooks on modules."""

    def __init__(self) -> None:
        from torch.utils.flop_counter import flop_registry  # slow to import, and rarely needed

        self._formulas = flop_registry
        self.total = 0

    def add(self, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        formula = self._formulas.get(func.overloadpacket)
        if formula:
            self.total += int(formula(*args, **kwargs, out_val=result))


def _counted(meter: Meter, flops: _Flops, value: Any, nodes: list[Any]) -> Counted:
    """Return the counts of a meter so far, with a value and the nodes of its graph."""
    return Counted(
        operators=meter.operators,
        calls=meter.calls,
        flops=flops.total,
        nodes=len(nodes),
        saved_bytes=meter.saved_bytes,
        peak_bytes=meter.peak_bytes,
        live_bytes=meter.live_bytes,
        born_bytes=meter.born_bytes,
        value=value,
    )


def _gradients(meter: Meter, value: Any) -> Any:
    """Return the gradients of the sum of some tensors for their leaves; `.grad` stays unchanged.

    Raises ValueError if no tensor requires a gradient.
    """
    tensors = [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]
    outputs = [tensor for tensor in tensors if tensor.requires_grad]
    if not outputs:
        raise ValueError(
            "backward=True takes a function whose result requires a gradient, but f returned"
            f" {describe_value(value)}"
        )
    leaves = []
    for node in _nodes(outputs):
        if type(node).__name__ == "AccumulateGrad":
            leaves.append(node.variable)
    ones = []  # the gradients of a sum
    with meter.paused():
        for output in outputs:
            one = torch.ones((), dtype=output.dtype, device=output.device)
            ones.append(one.expand_as(output))
    return torch.autograd.grad(outputs, leaves or outputs, ones, allow_unused=True)


def _nodes(value: Any) -> list[Any]:
    """Return the nodes of the graph of the tensors in a value, each once, in a fixed order."""
    visited: dict[Any, None] = {}
    waiting = [leaf.grad_fn for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in visited:
            visited[node] = None
            waiting += [parent for parent, _ in node.next_functions]
    return list(visited)
