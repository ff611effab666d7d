"""A line about a run, as lists show it, and as it is kept; kept free of slow imports, as `tuilab runs` shows some."""

import re
import time
from collections.abc import Iterable
from typing import Any, NamedTuple

from tuilab.record.states import FINAL_STATES, RUNNING_STATES, RunState
from tuilab.runs.run_name import RunName
from tuilab.text import show
from tuilab.words import gpu_words

WAITS = "waits"  # in the place of how long a run took, while it is queued
NEWBORN_S = 10.0  # in which a folder may lack its first record


class Entry(NamedTuple):
    """What a list of runs shows of one; `state` is empty while nobody has looked."""

    run: str  # the name of its folder
    scenario: str
    topic: str = ""
    title: str = ""
    state: str = ""
    reason: str = ""
    changed: dict[str, bool | int | float | str] = {}  # the params that differ from the scenario's defaults
    claims: list[tuple[str, str]] = []  # text and verdict, which is empty while there is none
    elapsed_s: float | None = None
    bytes_total: int | None = None
    claim_keys: list[str] = []  # of the claims, in their order; empty words where they have none
    source_sha256: str = ""
    claim_gpus: list[str] = []  # on which the claims were measured, in their order: torch's UUIDs
    gpu_names: dict[str, str] = {}  # of those; of a command, on which there are none, of what it held memory on
    quick: bool = False
    waited_s: float = 0.0  # in the queue, before it began; of a run that goes on
    sweep: str = ""  # that it is a point of
    host: str = ""  # the box that it ran on; nothing for a run out of an archive, which may say what it likes
    point: dict[str, bool | int | float | str] = {}  # of that sweep: its values

    @property
    def gpus(self) -> list[str]:
        """The GPUs on which its claims were measured, or that a command held memory on, in words."""
        return [gpu_words(name, uuid) for uuid, name in self.gpu_names.items()]

    @property
    def is_read(self) -> bool:
        return bool(self.state)

    @property
    def is_running(self) -> bool:
        return self.state in RUNNING_STATES

    @property
    def is_over(self) -> bool:
        """Whether it came to an end that is in its record, so that it stays as it is."""
        return self.state in FINAL_STATES

    @property
    def is_of_this_box(self) -> bool:
        from tuilab.record.presence import host_name

        return self.host == host_name()

    @property
    def is_lost(self) -> bool:
        return self.state == RunState.LOST

    @property
    def started_s(self) -> float | None:
        """When it started, in seconds since 1970; None for a folder with another kind of name."""
        return RunName(self.run).started_s

    @property
    def is_waiting(self) -> bool:
        return self.state == RunState.QUEUED

    def elapsed_at(self, now_s: float) -> float | None:
        """Return how many seconds it took, or since it began where it goes on; None while it waits."""
        if self.is_running and self.started_s is not None:
            return None if self.is_waiting else max(now_s - self.started_s - self.waited_s, 0.0)
        return self.elapsed_s

    @property
    def name(self) -> str:
        return f"{self.topic}/{self.scenario}" if self.topic else self.scenario


def from_name(run: str) -> Entry:
    """Return what the name of a run's folder tells: its time and its scenario."""
    return Entry(run, RunName(run).scenario or run)


def from_fields(fields: list[Any]) -> Entry:
    """Return the entry that was kept as these fields; ValueError or TypeError where they are of another kind."""
    found = Entry(*fields)
    claims = [(text, verdict) for text, verdict in found.claims]
    words = [
        found.run,
        found.scenario,
        found.topic,
        found.title,
        found.state,
        found.reason,
        found.source_sha256,
        found.sweep,
        found.host,
    ]
    words += [*found.claim_keys, *found.claim_gpus, *found.changed, *found.point, *found.gpu_names, *found.gpu_names.values()]
    words += [word for claim in claims for word in claim]
    numbers = found.elapsed_s, found.bytes_total, found.waited_s
    if not all(isinstance(word, str) for word in words) or not all(isinstance(one, int | float | None) for one in numbers):
        raise ValueError("it holds something else than entries")
    return found._replace(claims=claims)


def is_newborn(run: str) -> bool:
    """Say whether a run was made so lately that it may lack its first record."""
    return _is_young(run, time.time(), NEWBORN_S)


def may_change(entry: Entry, now_s: float) -> bool:
    """Say whether a run may be otherwise when it is looked at again; one that looks lost may have written nothing yet."""
    return entry.is_running or (entry.is_read and not entry.is_over and _is_young(entry.run, now_s, 2 * NEWBORN_S))


def _is_young(run: str, now_s: float, age_s: float) -> bool:
    started = RunName(run).started_s
    return started is not None and abs(now_s - started) <= age_s


def sweeps_among(newest_first: Iterable[Entry]) -> list[str]:
    """Return the sweeps that some runs are points of: `sweep-last` is the first, `sweep-last~1` the next."""
    return list(dict.fromkeys(entry.sweep for entry in newest_first if entry.sweep))


def own_words(entry: Entry) -> str:
    """Return the command of the user's that a run was of, without the folder of its program; nothing of a scenario."""
    is_command = RunName(entry.run).scenario.endswith((".exec", ".ab"))
    return re.sub(r"^\S*/", "", entry.title) if is_command else ""


def changed_words(entry: Entry) -> str:
    """Return the params that differ from the defaults, as they would be typed; the smaller sizes of `quick` are some.

    Of a point of a sweep its values come first, whatever the defaults are.
    """
    from tuilab.catalogue.params import spell  # for runs that have any

    words = [f"{show(name, 40)}={show(spell(value), 60)}" for name, value in {**entry.point, **entry.changed}.items()]
    return "  ".join([*(["quick"] if entry.quick else []), *words])
