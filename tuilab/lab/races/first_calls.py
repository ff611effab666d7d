"""Makes the first call of each arm of a race, and checks its result and what it leaves behind.

An arm is a function that is timed. A race times arms against each other, in turn.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any

import torch

from tuilab.lab.device.devices import all_in_use
from tuilab.lab.device.interface import Device
from tuilab.lab.races.timing import Call
from tuilab.lab.recorder import RaceRecorder
from tuilab.record import events

# A tolerance, a function that compares two results, or None to compare nothing.
Same = float | Callable[[Any, Any], bool] | None


def first_calls(
    lab: RaceRecorder,
    arms: Mapping[str, Call],
    names: list[str],
    same: Same,
    device: Device,
    check_switches: Callable[[str], object],
) -> tuple[bool | None, str]:
    """Call every arm for the first time, and compare the results with that of the first arm.

    Returns whether all are the same (None if they are not compared), and a sentence about the first
    arm that differs. Each call is recorded. `check_switches` raises ValueError if an arm has
    changed a switch of torch. A result is kept only until it was compared, so that it takes no
    memory of a GPU while other arms run.
    """
    results: dict[str, Any] = {}
    different_arms: set[str] = set()
    for gpu in all_in_use():
        gpu.wait()  # earlier work of the scenario is no part of the race
    for name, arm in arms.items():
        device.wait()
        began_ns = time.perf_counter_ns()
        results[name] = arm()
        device.wait()
        lab.record(events.FirstCalled(arm=name, wall_ns=time.perf_counter_ns() - began_ns))
        check_switches(name)
        different_arms |= _take_different(results, names[0], same)
    if same is None:
        return None, ""
    for name in names:
        if name in different_arms:
            return False, f"{name} does not compute what {names[0]} does"
    return True, ""


def _take_different(results: dict[str, Any], first: str, same: Same) -> set[str]:
    """Compare the results with that of the first arm, and return the arms that differ.

    Only the result of the first arm stays in `results`. Until it is there, all of them stay.
    """
    if same is None:
        results.clear()
    if first not in results:
        return set()
    different_arms = set()
    for name in results.keys() - {first}:
        if not _is_same(results[first], results.pop(name), same):
            different_arms.add(name)
    return different_arms


def _is_same(a: Any, b: Any, same: Same) -> bool:
    """Say whether two results are equal within a tolerance, or by the function `same`."""
    if callable(same):
        return bool(same(a, b))
    tolerance = same or 0
    left = torch.as_tensor(a).double()
    right = torch.as_tensor(b).double()
    return torch.allclose(left, right, rtol=tolerance, atol=tolerance)
