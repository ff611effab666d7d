"""The types of the documents about runs."""

from typing import Any, Literal, NotRequired, TypedDict

from tuilab.cli.schemas.shared import Counts, ExitCode, Judged, Maybe, NamedGpu, Note, Path, Run
from tuilab.record.states import RunState
from tuilab.reports.result import ResultVerdict


class Started(TypedDict):
    schema: Literal["tuilab.started/1"]
    runs: list[Run]
    sweep: NotRequired[str]
    """the sweep that the runs are points of"""


class PointOf(TypedDict):
    id: str
    point: dict[str, Any]
    """value of each setting"""


class ListedRun(Run):
    scenario: str
    topic: str
    changed: dict[str, Any]
    state: RunState
    reason: str
    """why the run ended in this state"""
    sweep: PointOf | None
    """the sweep that the run is a point of; null: none"""
    elapsed_s: Maybe
    bytes: int | None
    claims: list[Judged]
    host: str | None
    """the machine that it ran on; null: not recorded, or imported"""
    gpus: list[NamedGpu]
    tags: list[str]
    notes: list[Note]


class Runs(TypedDict):
    schema: Literal["tuilab.runs/1"]
    total: int
    """number of runs in these folders, before filters"""
    closed: int
    """number of runs that you may not read"""
    spoilt: list[Run]
    """runs that are damaged: the journal is not a folder"""
    bytes: int | None
    """size of all runs on disk; null: not yet counted"""
    runs: list[ListedRun]


class Verify(Run):
    schema: Literal["tuilab.verify/1"]
    exit_code: ExitCode
    digest: str
    records: int
    streams: int
    artifacts: int
    unknown: int
    """records of kinds that this version does not know"""
    state: RunState
    is_over: bool
    wrong: list[str]
    taken_out: int | None
    """number of words that were removed from the source as secrets;
    null: the source is unchanged"""
    rules: list[str]
    """rules of the recorded verdicts"""
    rule: str
    """rule of this version"""
    recorded: list[ResultVerdict]
    again: list[ResultVerdict]
    """verdicts by the rule of this version"""


class Noted(Run):
    schema: Literal["tuilab.note/1"]
    tags: list[str]
    notes: list[Note]


class Stopped(Run):
    done: str
    """what was done, in a sentence"""


class Stop(Stopped):
    schema: Literal["tuilab.stop/1"]


class Rm(TypedDict):
    schema: Literal["tuilab.rm/1"]
    is_done: bool
    """false: nothing was deleted; the runs are those that would be deleted"""
    runs: list[Run]
    kept: list[str]
    """which runs were kept, and why, in sentences"""


class Export(TypedDict):
    schema: Literal["tuilab.export/1"]
    run: str
    file: Path
    files: int
    bytes: int
    taken_out: Counts
    """number of removed secrets, by place"""
    left_out: list[str]


class Imported(Run):
    damage: str | None
    left_out: list[str]
    taken_out: Counts


class Import(TypedDict):
    schema: Literal["tuilab.import/1"]
    runs: list[Imported]


class Queued(Run):
    scenario: str
    topic: str | None
    state: RunState
    place: int | None
    """place in the queue, 1 is next; null: not queued"""
    devices: list[str]


class Queue(TypedDict):
    schema: Literal["tuilab.queue/1"]
    is_paused: bool
    runs: list[Queued]


class SweepListed(TypedDict):
    sweep: str
    name: str
    """name of the scenario, or the command as it was typed"""
    values: dict[str, list[Any]]
    """values of each setting"""
    points: dict[str, int]
    """number of points by state; `not begun`: without a run"""
    runs: list[Run]


class Sweeps(TypedDict):
    schema: Literal["tuilab.sweeps/1"]
    total: int
    sweeps: list[SweepListed]
    """the newest sweeps, newest first"""


class StopSweep(TypedDict):
    schema: Literal["tuilab.stop-sweep/1"]
    sweep: str
    is_ended: bool
    """true: the process that starts the points was asked to end"""
    runs: list[Stopped]
