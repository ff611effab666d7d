"""Runs the races of one worker, and refuses arms that have raced before."""

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

_LONGEST_S = 1e6  # of a race
_LONGEST_STEP_S = 1e9  # that an arm in a process of its own may return
_QUICK_SHARE = 1 / 4  # of the seconds, with --quick
Arms = Mapping[str, Callable[[], float]]


class Races:
    """The races of a worker; `raced` has the names of all arms so far."""

    def __init__(self, lab: RaceRecorder, holdings: Holdings) -> None:
        self.raced: set[str] = set()
        self._lab = lab
        self._holdings = holdings

    def run(
        self,
        arms: Mapping[str, Callable[[], Any]],
        same: Same,
        seconds: float,
        threads: int,
        device: torch.device,
        factories: bool,
        *,
        is_quick: bool,
        lacks: str = "",
    ) -> Race:
        """Race arms that have not raced before: functions, or arms in processes of their own.

        If the machine lacks something for the race, its arms are not called. Raises TypeError or
        ValueError for wrong arguments, or if an arm has raced already.
        """
        seconds = number_in("seconds", seconds, 1e-3, _LONGEST_S)
        threads = whole("threads", threads, 1, MOST_CORES)
        check_race(arms, same, device, threads, factories)
        again = self.raced & set(arms)
        if again:
            raise ValueError(
                f"the arms {', '.join(sorted(again))} were already raced; give them other names"
            )
        processes = _processes_of(arms, factories)
        self.raced |= set(arms)
        if lacks:
            return Race({}, lacks)
        if processes:
            return run_process_race(self._lab, processes)
        if is_quick:
            seconds *= _QUICK_SHARE
        self._holdings.watch(device)
        with self._holdings.kept_quiet():
            return run_race(self._lab, arms, same, seconds, threads, device, factories)


def _processes_of(arms: Mapping[str, Callable[[], Any]], factories: bool) -> dict[str, Arm]:
    """Return the arms that run in processes of their own: all of them, or none.

    Raises TypeError for a mixture, or if such arms come with factories.
    """
    processes = {name: arm for name, arm in arms.items() if isinstance(arm, Arm)}
    if processes and len(processes) < len(arms):
        raise TypeError("lab.race takes either functions or lab.arm(...), not both")
    if processes and factories:
        raise TypeError(
            "factories=True is for functions; leave it out, "
            "because each call of a lab.arm(...) starts a new process"
        )
    return processes


def run_process_race(lab: RaceRecorder, arms: Arms) -> Race:
    """Race arms that need a process each: each returns the seconds that one step of it took.

    They run one after another, in an order that alternates from repeat to repeat. The control is
    the first arm once more, at the end of every second repeat. There the order is reversed, so that
    it comes right after that arm itself, as the arms come after each other. A known delay cannot be
    added to what an arm measures by itself.
    """
    names = list(arms)
    first = names[0]
    started = events.RaceStarted(
        arms=names,
        threads=0,  # each arm decides that itself
        device=events.OWN_PROCESS,
        loops=dict.fromkeys(names, 1),
        base=first,
        has_instances=True,
    )
    lab.record(started)
    turns: list[tuple[str, events.Control]] = [(name, "") for name in names]
    if lab.repeat % 2:
        turns.reverse()
        turns.append((first, "same"))
    step_s: dict[str, list[float]] = {}
    with Sensors() as sensors:
        for slot, (name, control) in enumerate(turns):
            block = _time(sensors, name, arms[name], slot)
            block.control = control
            step_s.setdefault(name, [block.wall_ns / 1e9])
            lab.record(block)
            lab.progress(slot + 1, len(turns), "arms")
    lab.record(events.RaceFinished(arms=names))
    return Race(step_s)


def _time(sensors: Sensors, name: str, arm: Callable[[], float], slot: int) -> events.BlockTimed:
    """Run an arm, and return its record; the sensors cover its whole process.

    The timed step is a part of that. Raises TypeError or ValueError if the arm returns no possible
    time.
    """
    before = sensors.read()
    began_ns = time.perf_counter_ns()
    step_s = number(f"as the seconds of a step, the arm {name}", arm())
    elapsed_ns = time.perf_counter_ns() - began_ns
    counts = sensors.read().since(before)
    if not 1e-9 <= step_s < _LONGEST_STEP_S:
        raise ValueError(
            f"the arm {name} returned {step_s:g} seconds for a step; "
            "return the time of one step, from 1e-9 on"
        )
    block = events.BlockTimed(
        arm=name, round=0, slot=slot, loops=1, wall_ns=round(step_s * 1e9), cpu_ns=0
    )
    # Switches, waits and core are left out: they would be those of this process, which only waits.
    block.pressure_us = counts.pressure_us
    block.steal_ticks = counts.steal_ticks
    block.throttled = counts.throttled
    is_stolen = is_robbed(counts.steal_ticks, elapsed_ns, os.cpu_count() or 1)
    block.is_disturbed = bool(counts.throttled) or is_stolen
    return block
