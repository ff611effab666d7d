"""The facts about a run that lists show and the index keeps.

Kept free of slow imports: `tuilab list` and `tuilab runs` load it.
"""

import re
import time
from collections.abc import Iterable
from typing import Any, NamedTuple

from tuilab.record.states import FINAL_STATES, RUNNING_STATES, RunState
from tuilab.runs.run_name import RunName, is_of_command
from tuilab.text.display import show
from tuilab.text.words import gpu_words

WAITS = "waits"  # shown instead of a duration while a run is queued
NEWBORN_S = 10.0  # for this long after the start, the first record of a run may be missing

ParamValues = dict[str, bool | int | float | str]  # of parameters, by name


class RunEntry(NamedTuple):
    """The facts about a run that lists show; `state` is empty while the run has not been read.

    The index file has these fields in this order.
    """

    run: str  # the name of its folder
    scenario: str
    topic: str = ""
    title: str = ""
    state: str = ""
    reason: str = ""
    changed: ParamValues = {}  # the parameters that differ from the defaults of the scenario
    claims: list[tuple[str, str]] = []  # text and verdict; the verdict is empty while there is none
    elapsed_s: float | None = None
    bytes_total: int | None = None
    claim_keys: list[str] = []  # of the claims, in their order; empty for a claim without a key
    source_sha256: str = ""
    claim_gpus: list[str] = []  # the GPU of each claim in their order: its UUID in torch's form
    # Names of these GPUs by UUID. For a command, of the GPUs on which it held memory.
    gpu_names: dict[str, str] = {}
    quick: bool = False
    waited_s: float = 0.0  # in the queue before it started; 0 once it is over
    sweep: str = ""  # the id of the sweep that it is a point of
    # The machine that it ran on. Empty for a run from an archive, which may claim any machine.
    host: str = ""
    point: ParamValues = {}  # its values in that sweep

    @property
    def gpus(self) -> list[str]:
        """The GPUs on which its claims were measured or a command held memory, in words."""
        return [gpu_words(name, uuid) for uuid, name in self.gpu_names.items()]

    @property
    def is_read(self) -> bool:
        return bool(self.state)

    @property
    def is_running(self) -> bool:
        return self.state in RUNNING_STATES

    @property
    def is_over(self) -> bool:
        """Whether its end is recorded, so that nothing changes any more."""
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
        """The start time in seconds since 1970; None if it is not in the name of its folder."""
        return RunName(self.run).started_s

    @property
    def is_waiting(self) -> bool:
        return self.state == RunState.QUEUED

    def elapsed_at(self, now_s: float) -> float | None:
        """Return how many seconds it took or has been running; None while it is queued."""
        if not self.is_running or self.started_s is None:
            return self.elapsed_s
        if self.is_waiting:
            return None
        return max(now_s - self.started_s - self.waited_s, 0.0)

    @property
    def name(self) -> str:
        return f"{self.topic}/{self.scenario}" if self.topic else self.scenario


def from_name(run: str) -> RunEntry:
    """Return the entry of a run that has not been read, from the name of its folder."""
    return RunEntry(run, RunName(run).scenario or run)


def from_fields(fields: list[Any]) -> RunEntry:
    """Return the entry with these fields from a file.

    ValueError or TypeError if one of them is of another kind.
    """
    entry = RunEntry(*fields)
    for mapping in (entry.changed, entry.point, entry.gpu_names):
        if not isinstance(mapping, dict):
            raise ValueError("a mapping is of another kind")
    claims = [(text, verdict) for text, verdict in entry.claims]
    texts = [entry.run, entry.scenario, entry.topic, entry.title, entry.state, entry.reason]
    texts += [entry.source_sha256, entry.sweep, entry.host, *entry.claim_keys, *entry.claim_gpus]
    texts += [*entry.changed, *entry.point, *entry.gpu_names, *entry.gpu_names.values()]
    for claim in claims:
        texts += claim
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("a text is of another kind")
    numbers = (entry.elapsed_s, entry.bytes_total, entry.waited_s)
    if not all(isinstance(number, int | float | None) for number in numbers):
        raise ValueError("a number is of another kind")
    return entry._replace(claims=claims)


def is_newborn(run: str) -> bool:
    """Return whether a run is so new that its first record may still be missing."""
    return _is_young(run, time.time(), NEWBORN_S)


def may_change(entry: RunEntry, now_s: float) -> bool:
    """Return whether a run may differ when it is read again.

    A new run that looks lost may have written nothing yet.
    """
    if entry.is_running:
        return True
    if entry.is_over or not entry.is_read:
        return False
    return _is_young(entry.run, now_s, 2 * NEWBORN_S)


def _is_young(run: str, now_s: float, age_s: float) -> bool:
    started = RunName(run).started_s
    return started is not None and abs(now_s - started) <= age_s


def sweeps_among(newest_first: Iterable[RunEntry]) -> list[str]:
    """Return the ids of the sweeps of some runs.

    `sweep-last` is the first one, `sweep-last~1` the second.
    """
    return list(dict.fromkeys(entry.sweep for entry in newest_first if entry.sweep))


def own_words(entry: RunEntry) -> str:
    """Return the user's command that a run ran, without the folder of its program.

    Empty for a scenario.
    """
    if not is_of_command(entry.run):
        return ""
    return re.sub(r"^\S*/", "", entry.title)


def changed_words(entry: RunEntry) -> str:
    """Return the parameters that differ from the defaults as they would be typed, and `quick`.

    For a point of a sweep, its values come first, also those that are the defaults.
    """
    words = []
    if entry.quick:
        words.append("quick")
    values = {**entry.point, **entry.changed}
    if values:
        from tuilab.catalogue.params import spell  # imported here: most runs have no such values

        for name, value in values.items():
            words.append(f"{show(name, 40)}={show(spell(value), 60)}")
    return "  ".join(words)
