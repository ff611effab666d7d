"""Which blocks of a race on a GPU ran while its clocks were held down, or others used it, by the sampler's readings alone."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from itertools import chain
from statistics import median
from typing import NamedTuple

from tuilab.record.events import RaceStarted
from tuilab.record.gpus.own_gpus import HELD_BACK
from tuilab.record.gpus.raced_gpu import nvml_uuid, torch_uuid
from tuilab.record.parts import Block, GpuState, Worker
from tuilab.record.summary import RunSummary

_IDLE = 0x1
_CLOCK_SHARE = 0.75  # of the race's median clock, below which a block counts as disturbed; nvbench drops samples there too
_MOST_FOREIGN = 2.0  # percent of a GPU's time, in which others keep it busy
_REACH_NS = 250_000_000  # half the sampler's period: a reading speaks for the time that is nearer to it than to the next


class Stretch(NamedTuple):
    """A stretch of CLOCK_MONOTONIC nanoseconds in which a GPU worked for an arm."""

    begin: int
    end: int
    uuid: str  # torch's name of it; empty: not known
    may_idle: bool = False  # there is more in it than what was timed


class Seen(NamedTuple):
    """What the readings of a GPU say about a stretch of time; of one without a reading nothing is known."""

    is_held_back: bool = False
    is_watched: bool = False  # its clocks were
    are_others_known: bool = False


def stretch(summary: RunSummary, writer: str, race: RaceStarted, block: Block) -> Stretch | None:
    """Return where and when a block ran, None for one that did not run on a GPU."""
    if race.device == "process":
        return _stretch_apart(summary, writer, block)
    if not (race.uuid or race.device.startswith("cuda")):
        return None
    facts = summary.cuda.get(writer) or summary.environment.get("cuda", {})
    return Stretch(block.t - block.wall_ns, block.t, torch_uuid(race.uuid, facts))


def held_back(summary: RunSummary, stretches: Sequence[Stretch]) -> list[Seen]:
    """Say what is known of the GPU in each stretch of time, those of all repeats."""
    states: defaultdict[str, list[GpuState]] = defaultdict(list)
    for state in sorted(summary.gpu_states, key=lambda state: state.t):
        states[state.uuid].append(state)
    nvmls = {one.uuid: nvml_uuid(one.uuid, states.keys()) for one in stretches}
    near = [_near(states[nvmls[one.uuid]], one) if nvmls[one.uuid] else [] for one in stretches]
    least = _least_clocks({*chain(*near)})
    return [_seen(found, least) for found in near]


def _stretch_apart(summary: RunSummary, writer: str, block: Block) -> Stretch | None:
    """Return when the process ran that timed a block by itself: the one of this repeat that began last before its end."""
    repeat = summary.workers.get(writer, Worker()).repeat
    begun = {
        name: worker.started.t
        for name, worker in summary.workers.items()
        if worker.started and worker.started.arm and worker.repeat == repeat and worker.started.t < block.t
    }
    arm = max(begun, key=lambda name: begun[name], default="")
    if arm not in summary.cuda:
        return None
    return Stretch(begun[arm], block.t, torch_uuid("", summary.cuda[arm]), may_idle=True)


def _near(states: Sequence[GpuState], span: Stretch) -> Sequence[GpuState]:
    """Return the readings that speak for some of a stretch of time; a GPU that idles is not held back."""
    first = bisect_left(states, span.begin - _REACH_NS, key=lambda state: state.t)
    found = states[first : bisect_right(states, span.end + _REACH_NS, key=lambda state: state.t)]
    return [state for state in found if not (span.may_idle and (state.throttle_mask or 0) & _IDLE)]


def _least_clocks(states: set[GpuState]) -> dict[str, float]:
    """Return, by GPU, the clock below which a block counts as disturbed."""
    clocks: defaultdict[str, list[float]] = defaultdict(list)
    for state in states:
        if state.sm_mhz is not None:
            clocks[state.uuid].append(state.sm_mhz)
    return {uuid: _CLOCK_SHARE * median(found) for uuid, found in clocks.items()}


def _seen(states: Sequence[GpuState], least: dict[str, float]) -> Seen:
    return Seen(
        any(_is_held_back(state, least.get(state.uuid, 0.0)) for state in states),
        any(state.sm_mhz is not None or state.throttle_mask is not None for state in states),
        any(state.foreign_percent is not None for state in states),
    )


def _is_held_back(state: GpuState, least_mhz: float) -> bool:
    is_slow = state.sm_mhz is not None and state.sm_mhz < least_mhz
    is_shared = state.foreign_percent is not None and state.foreign_percent > _MOST_FOREIGN
    return is_slow or is_shared or bool((state.throttle_mask or 0) & HELD_BACK)
