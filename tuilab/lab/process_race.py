"""A race between arms that need a process each, one after another, in an order that alternates from repeat to repeat."""

from collections.abc import Callable, Mapping

from tuilab.lab.given import number
from tuilab.lab.race import Race
from tuilab.lab.recorder import RaceRecorder
from tuilab.record import events

_LONGEST_STEP_S = 1e9


def run_process_race(lab: RaceRecorder, arms: Mapping[str, Callable[[], float]]) -> Race:
    """Race arms of which each returns the seconds that one step of it took."""
    names = list(arms) if lab.repeat % 2 == 0 else list(arms)[::-1]
    lab.record(events.RaceStarted(arms=list(arms), threads=0, device="process", loops=dict.fromkeys(arms, 1)))
    times: dict[str, list[float]] = {}
    for slot, name in enumerate(names):
        step_s = number(f"as the seconds of a step, the arm {name}", arms[name]())
        if not 1e-9 <= step_s < _LONGEST_STEP_S:
            raise ValueError(f"the arm {name} returned {step_s:g} seconds for a step")
        times[name] = [step_s]
        lab.record(events.BlockTimed(arm=name, round=0, slot=slot, loops=1, wall_ns=int(step_s * 1e9), cpu_ns=0))
        lab.progress(slot + 1, len(names), "arms")
    lab.record(events.RaceFinished(arms=list(arms)))
    return Race(times)
