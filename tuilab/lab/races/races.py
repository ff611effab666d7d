"""The races of one worker: what each may be made of, and which arms have raced."""

from collections.abc import Callable, Mapping
from typing import Any

import torch

from tuilab.lab.arms import Arm
from tuilab.lab.given import MOST_CORES, number_in, whole
from tuilab.lab.holdings import Holdings
from tuilab.lab.races.first_calls import Same
from tuilab.lab.races.process_race import run_process_race
from tuilab.lab.races.race import Race, check_race, run_race
from tuilab.lab.recorder import RaceRecorder

_LONGEST_S = 1e6


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
        seconds, threads = number_in("seconds", seconds, 1e-3, _LONGEST_S), whole("threads", threads, 1, MOST_CORES)
        check_race(arms, same, device, threads, factories)
        if again := self.raced & set(arms):
            raise ValueError(f"the arms {', '.join(sorted(again))} were already raced; give them other names")
        processes = _processes_of(arms, factories)
        self.raced |= set(arms)
        if lacks:
            return Race({}, lacks)
        if processes:
            return run_process_race(self._lab, processes)
        self._holdings.watch(device)
        with self._holdings.kept_quiet():
            return run_race(self._lab, arms, same, seconds / 4 if is_quick else seconds, threads, device, factories)


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
