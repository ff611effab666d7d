"""What is found out about an arm before it is raced."""

from collections.abc import Iterator

import pytest
import torch

from tuilab.lab import timing
from tuilab.lab.timing import Pace, Timed, calibrate


def scripted(monkeypatch: pytest.MonkeyPatch, *blocks: Timed) -> None:
    script: Iterator[Timed] = iter(blocks)
    monkeypatch.setattr(timing, "time_block", lambda call, loops, device: next(script))


def ms(wall: float, cpu: float) -> Timed:
    return Timed(int(wall * 1e6), int(cpu * 1e6), None)


def test_on_a_busy_box_the_calmest_block_tells_what_an_arm_does_undisturbed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The arm is on its core for 55 % of most blocks, but of one for all of it: what it did there is what it does."""
    scripted(monkeypatch, ms(10, 5.5), ms(20, 11), ms(10, 10), ms(18, 9))

    assert calibrate(print, torch.device("cpu")) == Pace(loops=1, step_s=0.010, calm_share=1.0)


def test_blocks_that_are_short_beside_the_clocks_tell_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """One call takes 0.5 ms, of which the clocks see more CPU time than passed; 4 calls take 2 ms, 8 calls 6 ms."""
    scripted(monkeypatch, ms(0.5, 0.6), ms(2, 1.6), ms(6, 3), ms(12, 6), ms(12, 6), ms(12, 6))

    assert calibrate(print, torch.device("cpu")) == Pace(loops=14, step_s=0.012 / 14, calm_share=0.8)
