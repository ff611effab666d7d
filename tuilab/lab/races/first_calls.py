"""The first call of each arm of a race: what it costs once, what it computes, and what it leaves behind."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import torch

from tuilab.lab.device.devices import all_in_use
from tuilab.lab.device.interface import Device
from tuilab.lab.races.timing import Call
from tuilab.lab.recorder import RaceRecorder
from tuilab.record import events

Same = float | Callable[[Any, Any], bool] | None


def first_calls(
    lab: RaceRecorder,
    arms: Mapping[str, Call],
    names: list[str],
    same: Same,
    device: Device,
    refuse_left: Callable[[str], object],
) -> tuple[bool | None, str]:
    """Call every arm for the first time; say whether all compute what the first one does, or else which is the first not to.

    What an arm returns is kept until it was compared, so that it takes no memory of a GPU while others run.
    """
    outputs: dict[str, Any] = {}
    others: set[str] = set()
    for gpu in all_in_use():
        gpu.wait()  # what the scenario did before is no part of the race
    for name, arm in arms.items():
        device.wait()
        began = time.perf_counter_ns()
        outputs[name] = arm()
        device.wait()
        lab.record(events.FirstCalled(arm=name, wall_ns=time.perf_counter_ns() - began))
        refuse_left(name)
        others |= _take_different(outputs, names[0], same)
    if same is None:
        return None, ""
    different = next((name for name in names if name in others), "")
    return not different, f"{different} does not compute what {names[0]} does" if different else ""


def _take_different(outputs: dict[str, Any], first: str, same: Same) -> set[str]:
    """Compare what is there with what the first arm returned, once it has, and keep only that; return which differ."""
    if same is None:
        outputs.clear()
    if first not in outputs:
        return set()
    return {
        name
        for name in outputs.keys() - {first}
        if not _is_same(outputs[first], outputs.pop(name), same)
    }


def _is_same(a: Any, b: Any, same: Same) -> bool:
    if callable(same):
        return bool(same(a, b))
    return torch.allclose(
        torch.as_tensor(a).double(), torch.as_tensor(b).double(), rtol=same or 0, atol=same or 0
    )
