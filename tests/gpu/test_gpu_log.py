"""What is logged from a real GPU: as it was in its stream, without a wait, at next to no cost, and all of it."""

import math
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch

from tests.engine import read_stream
from tests.gpu.kernels import busy, each
from tuilab.record.events import Logged

if TYPE_CHECKING:
    from tests.gpu.page import Page
    from tuilab import Lab

STEPS = 1000


def logged(folder: Path) -> list[Logged]:
    return [item for item in read_stream(folder / "worker-0.jsonl") if isinstance(item, Logged)]


def test_a_value_is_that_of_its_step_whatever_is_written_over_it(
    lab: "Lab", device: torch.device, tmp_path: Path
) -> None:
    busy(20_000)
    loss = torch.ones((), device=device)
    for step in range(200):
        loss.add_(1)
        lab.log(step, loss=loss, twice=2.0 * step)
    lab.close()

    assert [(record.s, record.v) for record in logged(tmp_path)] == [
        (step, {"loss": step + 2.0, "twice": 2.0 * step}) for step in range(200)
    ]


def test_a_value_of_a_side_stream_is_that_of_its_step(
    lab: "Lab", device: torch.device, tmp_path: Path
) -> None:
    side, kernel = torch.cuda.Stream(), each(2_000)
    loss = torch.ones((), device=device)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for step in range(20):
            kernel()
            loss.mul_(2)
            lab.log(step, loss=loss)
    lab.stage("on the first stream again")
    lab.close()

    assert [record.v["loss"] for record in logged(tmp_path)] == [
        2.0 ** (step + 1) for step in range(20)
    ]


def test_numbers_that_are_none_and_other_types_come_as_they_are(
    lab: "Lab", device: torch.device, tmp_path: Path
) -> None:
    given = [torch.tensor(value, device=device) for value in (math.nan, math.inf, 7, True)]
    given += [
        torch.tensor([1.5], device=device, dtype=dtype)
        for dtype in (torch.float16, torch.bfloat16, torch.float64)
    ]
    for step, value in enumerate(given):
        lab.log(step, value=value)
    lab.close()

    found = [record.v["value"] for record in logged(tmp_path)]
    assert math.isnan(found[0]) and found[1:] == [math.inf, 7, 1, 1.5, 1.5, 1.5]


def test_a_record_has_the_time_of_its_call(
    lab: "Lab", device: torch.device, tmp_path: Path
) -> None:
    loss = torch.ones((), device=device)
    lab.log(0, loss=loss)  # which makes what the others use
    torch.cuda.synchronize()
    busy(100_000)
    calls = []
    for step in range(1, 4):
        began = time.monotonic_ns()
        lab.log(step, loss=loss)
        calls.append((began, time.monotonic_ns()))
        time.sleep(0.01)
    lab.close()

    times = [record.at for record in logged(tmp_path)[1:]]
    assert [began <= at <= ended for at, (began, ended) in zip(times, calls, strict=True)] == [
        True
    ] * 3


def test_no_log_waits_for_the_gpu(lab: "Lab", device: torch.device, tmp_path: Path) -> None:
    """Torch raises for each call that would, and while the GPU is busy they come back: no more than its queue can hold."""
    loss = torch.zeros((), device=device)
    lab.log(0, loss=loss)
    torch.cuda.synchronize()
    done = torch.cuda.Event()
    busy(2_000_000)
    done.record()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that it is a prototype
        torch.cuda.set_sync_debug_mode("error")
    try:
        for step in range(1, 150):
            lab.log(step, loss=loss)
        is_ahead = not done.query()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    lab.close()

    assert is_ahead
    assert [record.s for record in logged(tmp_path)] == [*range(150)]


def test_logging_costs_a_step_of_a_millisecond_little(
    lab: "Lab", device: torch.device, page: "Page"
) -> None:
    kernel = each(1_000)
    loss = torch.zeros((), device=device)

    def took_s(log: Callable[[int], object]) -> float:
        torch.cuda.synchronize()
        began = time.perf_counter()
        for step in range(STEPS):
            kernel()
            log(step)
        torch.cuda.synchronize()
        return time.perf_counter() - began

    pairs = [
        (took_s(lambda step: None), took_s(lambda step: lab.log(step, loss=loss))) for _ in range(3)
    ]
    without, beside = (min(times) for times in zip(*pairs, strict=True))
    page.note("logging", "a step of 1 ms, longer by", f"{100 * (beside / without - 1):.3f} %")

    assert (
        beside / without <= 1.02
    )  # of an H100, which changes from computing to copying and back in 10 us: 1.010


def test_the_call_itself_is_short(lab: "Lab", device: torch.device, page: "Page") -> None:
    loss = torch.zeros((), device=device)
    for step in range(STEPS):
        lab.log(step, loss=loss)
    began = time.perf_counter()
    for step in range(STEPS):
        lab.log(step, loss=loss)
    each_us = (time.perf_counter() - began) / STEPS * 1e6
    page.note("logging", "one call", f"{each_us:.1f} us")

    assert each_us < 500


def test_what_a_graph_records_is_not_logged_and_the_graph_is_whole(
    lab: "Lab", device: torch.device, tmp_path: Path
) -> None:
    x = torch.zeros((), device=device)
    lab.log(0, x=x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x.add_(1)
        with pytest.raises(ValueError, match="records a graph"):
            lab.log(1, x=x)
    for step in (2, 3):
        graph.replay()
        lab.log(step, x=x)
    lab.close()

    assert [record.v["x"] for record in logged(tmp_path)] == [0.0, 1.0, 2.0]


def test_what_cannot_be_logged_is_refused_at_the_call(lab: "Lab", device: torch.device) -> None:
    with pytest.raises(TypeError, match="loss takes a number"):
        lab.log(0, loss=torch.ones(2, device=device))


def test_host_and_gpu_numbers_of_a_step_are_one_record(
    lab: "Lab", device: torch.device, tmp_path: Path
) -> None:
    lab.log(0, loss=torch.ones((), device=device), right=torch.tensor(0.5), count=3)
    lab.close()

    assert [record.v for record in logged(tmp_path)] == [{"loss": 1.0, "right": 0.5, "count": 3.0}]
