"""How far the lab can be trusted on this GPU: the same work against itself, and a delay that is a kernel, not more calls."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import torch

from tests.gpu.kernels import cycles_per_us
from tests.race_recorder import RaceRecorder, gather_from_recorder
from tests.simulated_machines import reach_simulated_verdict
from tuilab.judging.controls import describe_circumstances, describe_distrust
from tuilab.judging.evidence import Evidence
from tuilab.lab.device.cuda import Cuda
from tuilab.lab.races.race import Race, run_race
from tuilab.lab.races.timing import calibrate
from tuilab.record import events
from tuilab.record.verdicts import Verdict

if TYPE_CHECKING:
    from tests.gpu.page import Page

TRIALS = 4  # races of each kind of work, of three seconds or so
DELAY = 0.05

Work = Callable[[], object]


def product(device: torch.device) -> Work:
    a = torch.randn(4096, 4096, device=device)
    return lambda: a @ a


def launches(device: torch.device) -> Work:
    x = torch.zeros(10, device=device)

    def call() -> None:
        for _ in range(100):
            x.add_(1)

    return call


def memory(device: torch.device) -> Work:
    source = torch.zeros(256 << 20, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    return lambda: target.copy_(source)


def step(device: torch.device, rows: int = 512) -> Work:
    """A step of training: of few rows the interpreter takes about as long as the GPU, of many next to nothing."""
    model = torch.nn.Sequential(
        torch.nn.Linear(1024, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 1024)
    ).to(device)
    x = torch.randn(rows, 1024, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def call() -> None:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    return call


def large_step(device: torch.device) -> Work:
    return step(device, 16_384)


OF_THE_GPU = {"product": product, "memory": memory, "large step": large_step}
OF_THE_HOST = {"launches": launches, "step": step}
KINDS = OF_THE_GPU | OF_THE_HOST


def raced(device: torch.device, **arms: Work) -> tuple[Race, Evidence, events.ClaimDeclared]:
    """Race two arms and return what a claim that they do not differ has for evidence, as the only process of a run."""
    lab: Any = RaceRecorder()
    race = run_race(lab, arms, None, 0.5, 1, device, False)
    over, under = arms
    claim = events.ClaimDeclared(text="c", over=over, under=under, op="at_most", bound=1.1)
    return (
        race,
        replace(gather_from_recorder(claim, lab), process_sd=0.0),
        claim,
    )  # of several processes; here there is one


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_work_does_not_differ_and_the_known_delay_is_seen(
    device: torch.device, page: "Page", kind: str
) -> None:
    """What the host takes is as noisy as the host is, and then nothing is said: a delay that was not seen forbids it."""
    ratios, blind, verdicts = [], [], []
    for _ in range(TRIALS):
        race, found, claim = raced(device, left=KINDS[kind](device), right=KINDS[kind](device))
        ratios.append(race.ratio("left", "right"))
        blind += [why for why in [describe_distrust(claim, found)] if why]
        verdicts.append(reach_simulated_verdict(claim, found))
        page.note(
            "trust: the same work against itself, ratios",
            kind,
            [round(ratio, 4) for ratio in ratios],
        )
        page.note(
            "trust: what a verdict tells",
            kind,
            "; ".join(describe_circumstances(found)) or "nothing",
        )
    page.note("trust: the known delay was not seen", kind, f"{len(blind)} of {TRIALS} times")

    assert Verdict.REFUTED not in verdicts
    if kind in OF_THE_GPU:
        assert all(abs(ratio - 1) < 0.03 for ratio in ratios)
        assert blind == []


@pytest.mark.parametrize("kind", OF_THE_GPU)
def test_a_delay_that_is_a_kernel_is_a_difference_of_its_length(
    device: torch.device, page: "Page", kind: str
) -> None:
    """Of work that keeps the GPU busy; beside what the host takes it would pass unseen, and rightly so."""
    plain = KINDS[kind](device)
    step_us = calibrate(plain, Cuda(0)).step_s * 1e6
    cycles = round(DELAY * step_us * cycles_per_us())

    def delayed() -> None:
        plain()
        torch.cuda._sleep(cycles)

    race, found, _ = raced(device, delayed=delayed, plain=plain)
    ratio = race.ratio("delayed", "plain")
    page.note("trust: 5 % longer by a kernel", kind, f"{ratio:.4f}, of {step_us:.0f} us")

    assert "plain" not in found.host_bound
    assert 1 + 0.5 * DELAY < ratio < 1 + 2 * DELAY
