"""The races of one worker: what each may be made of, and which arms have raced."""

import os
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch

from tuilab.lab.arguments import MOST_CORES, number, number_in, whole
from tuilab.lab.arms import Arm
from tuilab.lab.gpu_memory import Holdings
from tuilab.lab.races.first_calls import Same
from tuilab.lab.races.race import Race, check_race, run_race
from tuilab.lab.races.sensors import Sensors, is_robbed
from tuilab.lab.recorder import RaceRecorder
from tuilab.record import events

_LONGEST_S = 1e6


_LONGEST_STEP_S = 1e9
Arms = Mapping[str, Callable[[], float]]


class Races:
    """What `lab.race` runs; `raced` are the names of all arms so far."""

    def __init__(self, lab: RaceRecorder, holdings: Holdings) -> None:
        self.raced: set[str] = set()
        self._lab = lab
        self._holdings = holdings

    def run(
        self, arms: Mapping[str, Callable[[], Any]], same: Same, seconds: float, threads: int, device: torch.device,
        factories: bool, *, is_quick: bool, lacks: str = "",
    ) -> Race:  # fmt: skip
        """Race arms that have not raced before: functions in this process, or arms in processes of their own.

        A race for which the box lacks something is none: its arms are not called.
        """
        seconds, threads = (
            number_in("seconds", seconds, 1e-3, _LONGEST_S),
            whole("threads", threads, 1, MOST_CORES),
        )
        check_race(arms, same, device, threads, factories)
        if again := self.raced & set(arms):
            raise ValueError(
                f"the arms {', '.join(sorted(again))} were already raced; give them other names"
            )
        processes = _processes_of(arms, factories)
        self.raced |= set(arms)
        if lacks:
            return Race({}, lacks)
        if processes:
            return run_process_race(self._lab, processes)
        self._holdings.watch(device)
        with self._holdings.kept_quiet():
            return run_race(
                self._lab,
                arms,
                same,
                seconds / 4 if is_quick else seconds,
                threads,
                device,
                factories,
            )


def _processes_of(arms: Mapping[str, Callable[[], Any]], factories: bool) -> dict[str, Arm]:
    """Return the arms that run in processes of their own: all of them, or none."""
    processes = {name: arm for name, arm in arms.items() if isinstance(arm, Arm)}
    if processes and len(processes) < len(arms):
        raise TypeError("lab.race takes either functions or lab.arm(...), not both")
    if processes and factories:
        raise TypeError(
            "factories=True is for functions; leave it out, because each call of a lab.arm(...) starts a new process"
        )
    return processes


def run_process_race(lab: RaceRecorder, arms: Arms) -> Race:
    """Race arms that need a process each: each returns the seconds that one step of it took.

    They run one after another, in an order that alternates from repeat to repeat. The control is the first arm once
    more, at the end of every second repeat. There the order is reversed, so that it comes right after that arm itself,
    as the arms come after each other. A known delay cannot be added to what an arm measures by itself.
    """
    first, *_ = names = list(arms)
    loops = dict.fromkeys(names, 1)
    lab.record(
        events.RaceStarted(
            arms=names, threads=0, device="process", loops=loops, base=first, has_instances=True
        )
    )
    turns: list[tuple[str, events.Control]] = [(name, "") for name in names]
    if lab.repeat % 2:
        turns = [*turns[::-1], (first, "same")]
    times: dict[str, list[float]] = {}
    with Sensors() as sensors:
        for slot, (name, control) in enumerate(turns):
            block = _time(sensors, name, arms[name], slot)
            block.control = control
            times.setdefault(name, [block.wall_ns / 1e9])
            lab.record(block)
            lab.progress(slot + 1, len(turns), "arms")
    lab.record(events.RaceFinished(arms=names))
    return Race(times)


def _time(sensors: Sensors, name: str, arm: Callable[[], float], slot: int) -> events.BlockTimed:
    """Run an arm; the sensors see all of its process, of which the step that it timed is a part."""
    before, began = sensors.read(), time.perf_counter_ns()
    step_s = number(f"as the seconds of a step, the arm {name}", arm())
    elapsed_ns, seen = time.perf_counter_ns() - began, sensors.read().since(before)
    if not 1e-9 <= step_s < _LONGEST_STEP_S:
        raise ValueError(
            f"the arm {name} returned {step_s:g} seconds for a step; return the time of one step, from 1e-9 on"
        )
    block = events.BlockTimed(
        arm=name, round=0, slot=slot, loops=1, wall_ns=round(step_s * 1e9), cpu_ns=0
    )
    # its switches, waits and core are its own affair: ours tell of a process that waits
    block.pressure_us, block.steal_ticks, block.throttled = (
        seen.pressure_us,
        seen.steal_ticks,
        seen.throttled,
    )
    block.is_disturbed = bool(seen.throttled) or is_robbed(
        seen.steal_ticks, elapsed_ns, os.cpu_count() or 1
    )
    return block
