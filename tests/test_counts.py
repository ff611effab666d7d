"""What a call costs, counted: the same numbers on every machine, and those that torch itself counts."""

from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from tuilab.lab.meters.counted import Counted, count
from tuilab.lab.meters.meter import Meter


def by_index(x: torch.Tensor) -> torch.Tensor:
    total = torch.zeros(x.shape[1])
    for i in range(len(x)):
        total = total + x[i]
    return total


def backward_of(counted: Counted) -> Counted:
    assert counted.backward is not None
    return counted.backward


def test_a_call_has_operators_by_name_nodes_bytes_and_what_it_returned() -> None:
    x = torch.ones(50, 10, requires_grad=True)

    counted = count(by_index, (x,), backward=False)

    assert counted.calls == {"aten.zeros": 1, "aten.select": 50, "aten.add": 50}
    assert (counted.operators, counted.nodes, counted.flops) == (101, 101, 0)
    assert (counted.peak_bytes, counted.live_bytes, counted.born_bytes) == (1024, 512, 51 * 10 * 4)
    assert counted.value.tolist() == [50.0] * 10
    assert counted.backward is None


def test_backward_is_counted_apart_and_leaves_no_gradient_behind() -> None:
    x = torch.ones(50, 10, requires_grad=True)
    x.grad = before = torch.ones(50, 10)

    backward = backward_of(count(by_index, (x,), backward=True))

    assert backward.calls == {"aten.select_backward": 50, "aten.add": 49}
    assert backward.born_bytes == 99 * x.nbytes
    assert x.grad is before
    assert before.sum() == 500


def test_a_sum_makes_nothing_in_backward_but_a_view() -> None:
    backward = backward_of(
        count(lambda: torch.ones(50, 10, requires_grad=True).sum(0), (), backward=True)
    )

    assert (backward.operators, backward.born_bytes) == (2, 0)


def test_the_peak_of_backward_goes_on_from_what_forward_left() -> None:
    layer, x = nn.Linear(256, 256, bias=False), torch.ones(256, 256)

    counted = count(lambda: layer(layer(x)), (), backward=True)

    assert (counted.peak_bytes, counted.live_bytes, counted.saved_bytes) == (
        2 * x.nbytes,
        2 * x.nbytes,
        2 * x.nbytes,
    )
    assert backward_of(counted).peak_bytes > counted.peak_bytes


@pytest.mark.parametrize(
    ("net", "shape"),
    [
        (nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)), (3, 8)),
        (nn.Conv2d(3, 4, 3), (1, 3, 8, 8)),
        (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (2, 5, 8)),
    ],
    ids=["linear", "convolution", "attention"],
)
def test_flops_are_those_that_torch_counts(net: nn.Module, shape: tuple[int, ...]) -> None:
    x = torch.ones(shape)
    with FlopCounterMode(display=False) as forward:
        total = net(x).sum()
    with FlopCounterMode(display=False) as backward:
        total.backward()

    counted = count(net, (x,), backward=True)

    assert counted.flops == forward.get_total_flops() > 0
    assert backward_of(counted).flops == backward.get_total_flops() > 0


def test_inference_mode_calls_the_same_operators() -> None:
    net, x = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)), torch.ones(3, 8)

    with torch.inference_mode():
        inside = count(net, (x,), backward=False)

    outside = count(net, (x,), backward=False)
    assert (inside.calls, inside.flops, inside.peak_bytes) == (
        outside.calls,
        outside.flops,
        outside.peak_bytes,
    )
    assert (inside.nodes, inside.saved_bytes) == (0, 0)


def test_a_tensor_on_paper_has_operations_and_no_bytes() -> None:
    counted = count(
        torch.mm, (torch.ones(2, 3, device="meta"), torch.ones(3, 5, device="meta")), backward=False
    )

    assert (counted.flops, counted.born_bytes) == (2 * 2 * 3 * 5, 0)


def test_the_backward_of_several_tensors_is_that_of_the_sum_of_all() -> None:
    x, y = torch.ones(3, requires_grad=True), torch.ones(3)

    backward = backward_of(
        count(lambda: {"a": [x * 2, y], "b": (x * 3, "text")}, (), backward=True)
    )

    assert [gradient.tolist() for gradient in backward.value] == [[5.0] * 3]


@pytest.mark.parametrize("f", [lambda: torch.ones(3), lambda: None])
def test_what_has_no_gradient_has_no_backward(f: Any) -> None:
    with pytest.raises(
        ValueError,
        match="backward=True takes a function whose result requires a gradient, but f returned",
    ):
        count(f, (), backward=True)


def test_after_an_exception_nothing_is_counted_any_more() -> None:
    meter = Meter()
    with pytest.raises(KeyError, match="mine"), meter:
        raise KeyError("mine")

    torch.ones(2)
    assert meter.operators == 0
