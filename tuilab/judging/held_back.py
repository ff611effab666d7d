"""Which blocks of a race on a GPU ran while something held its clocks down, by the sampler's readings alone."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import chain
from statistics import median
from typing import NamedTuple

from tuilab.record.summary import Block, GpuState, RunSummary

# Of nvml.h: hardware slowdown, software and hardware thermal slowdown, power brake. Not idle, nor clocks set by the user, nor
# the power cap: an arm that works a GPU to its cap is measured as it is.
_HELD_BACK = 0x8 | 0x20 | 0x40 | 0x80
_CLOCK_SHARE = 0.75  # of the race's median clock, below which a block counts as disturbed; nvbench drops samples there too
_REACH_NS = 250_000_000  # half the sampler's period: a reading speaks for the time that is nearer to it than to the next


class Span(NamedTuple):
    """A stretch of CLOCK_MONOTONIC nanoseconds."""

    begin: int
    end: int


def held_back(summary: RunSummary, blocks: Sequence[Block]) -> list[bool]:
    """Say for each block of a race on a GPU, those of all repeats, whether the GPU was held back while it ran."""
    states = _states(summary)
    near = [_near(states, Span(block.t - block.wall_ns, block.t)) for block in blocks]
    clocks = [state.sm_mhz for state in {*chain(*near)} if state.sm_mhz is not None]
    least_mhz = _CLOCK_SHARE * median(clocks) if clocks else 0.0
    return [any(_is_held_back(state, least_mhz) for state in found) for found in near]


def _is_held_back(state: GpuState, least_mhz: float) -> bool:
    is_slow = state.sm_mhz is not None and state.sm_mhz < least_mhz
    return is_slow or bool((state.throttle_mask or 0) & _HELD_BACK)


def _near(states: Sequence[GpuState], span: Span) -> Sequence[GpuState]:
    """Return the readings that speak for some of a stretch of time."""
    first = bisect_left(states, span.begin - _REACH_NS, key=lambda state: state.t)
    return states[first : bisect_right(states, span.end + _REACH_NS, key=lambda state: state.t)]


def _states(summary: RunSummary) -> list[GpuState]:
    """Return the readings of the GPU that torch uses, in their order; none where it is not known which one that is."""
    uuid = _uuid_of_torch(summary)
    return sorted((state for state in summary.gpu_states if state.uuid == uuid), key=lambda state: state.t)


def _uuid_of_torch(summary: RunSummary) -> str:
    """Return NVML's name of torch's first device, the one that races run on: they number GPUs each in their own way."""
    known = {state.uuid for state in summary.gpu_states}
    devices = summary.environment.get("cuda", {}).get("devices")
    first = devices[0] if isinstance(devices, list) and devices else None
    tail = str(first.get("uuid", "")) if isinstance(first, dict) else ""
    if tail:
        return next((uuid for uuid in sorted(known) if uuid.endswith(tail)), "")
    return next(iter(known)) if len(known) == 1 else ""
