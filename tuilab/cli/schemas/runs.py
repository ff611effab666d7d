"""The documents about runs."""

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from msgspec import Meta

from tuilab.cli.schemas.shared import Claim, Counts, ExitCode, Gpu, Judged, Key, Maybe, Note, Path, Run
from tuilab.record.states import RunState
from tuilab.record.verdicts import Verdict
from tuilab.runs.comparing.claim_pairs import Shift
from tuilab.runs.comparing.differences import Difference


class Started(TypedDict):
    schema: Literal["tuilab.started/1"]
    runs: list[Run]
    sweep: NotRequired[Annotated[str, Meta(description="the sweep that the runs are points of")]]


class PointOf(TypedDict):
    id: str
    point: Annotated[dict[str, Any], Meta(description="value of each setting")]


class Listed(Run):
    scenario: str
    topic: str
    changed: dict[str, Any]
    state: RunState
    reason: Annotated[str, Meta(description="why the run ended in this state")]
    sweep: Annotated[PointOf | None, Meta(description="the sweep that the run is a point of; null: none")]
    elapsed_s: Maybe
    bytes: int | None
    claims: list[Judged]
    host: Annotated[str | None, Meta(description="the machine that it ran on; null: not recorded, or imported")]
    gpus: list[Gpu]
    tags: list[str]
    notes: list[Note]


class Runs(TypedDict):
    schema: Literal["tuilab.runs/1"]
    total: Annotated[int, Meta(description="number of runs in these folders, before filters")]
    closed: Annotated[int, Meta(description="number of runs that you may not read")]
    spoilt: Annotated[list[Run], Meta(description="runs that are damaged: the journal is not a folder")]
    bytes: Annotated[int | None, Meta(description="size of all runs on disk; null: not yet counted")]
    runs: list[Listed]


class Side(TypedDict):
    verdict: Verdict | None
    estimate: Maybe
    low: Maybe
    high: Maybe
    measured: Annotated[str, Meta(description="exact claim: what was measured, as text")]
    why: str
    op: Annotated[str, Meta(description="claim about a ratio: at_least, at_most or between")]
    is_open: Annotated[bool, Meta(description="true: no verdict yet, and the run is running")]
    gpu_words: str
    clock: Annotated[str, Meta(description="claim about a ratio: the clock that judged, wall or cpu; else empty")]


class Moment(Run):
    side: Side
    changes: Annotated[list[Difference], Meta(description="what changed since the previous run")]


class ClaimHistory(TypedDict):
    schema: Literal["tuilab.claim-history/1"]
    scenario: str
    key: Key
    text: str
    claimed: Annotated[Maybe, Meta(description="claim about a ratio: the claimed bound")]
    runs: list[Moment]


class Compared(Run):
    scenario: str | None
    state: RunState
    elapsed_s: Maybe
    host: str | None


class Pair(Claim):
    former_keys: list[str]
    differs: Annotated[str, Meta(description="difference between the runs, as text; empty: none")]
    sides: Annotated[list[Side | None], Meta(description="what each run found; null: it does not have the claim")]
    shifts: Annotated[list[Shift | None], Meta(description="change of each further run from the first run")]


class Line(TypedDict):
    run: str
    arm: str
    writer: str
    count: int
    last: Maybe
    low: Maybe
    high: Maybe


class Curve(TypedDict):
    name: str
    lines: list[Line]


class OfCommands(TypedDict):
    name: Annotated[str, Meta(description="time of a step in milliseconds, memory in bytes, or the last value of a curve")]
    values: Annotated[list[Maybe], Meta(description="value in each run")]
    shifts: Annotated[
        list[Shift | None], Meta(description="change of each further run from the first run; only for the time of a step")
    ]


class Comparison(TypedDict):
    scenarios: list[str]
    runs: list[Compared]
    differences: list[Difference]
    same: Annotated[int, Meta(description="number of facts that are the same in all runs")]
    source_changes: list[str]
    claims: list[Pair]
    times_s: Annotated[dict[str, list[Maybe]], Meta(description="time of a call of each arm, in each run")]
    time_shifts: dict[str, list[Shift | None]]
    cpu_times_s: Annotated[
        dict[str, list[Maybe]],
        Meta(description="CPU time of a call of each arm, in each run; empty if no verdict was judged on CPU time"),
    ]
    cpu_time_shifts: dict[str, list[Shift | None]]
    judged_on_cpu: Annotated[list[str], Meta(description="arms that every run judged on CPU time")]
    memory: dict[str, list[Maybe]]
    commands: list[OfCommands]
    curves: list[Curve]
    regressions: list[str]


class Compare(TypedDict):
    schema: Literal["tuilab.compare/1"]
    exit_code: ExitCode
    comparisons: list[Comparison]
    not_in_all: Annotated[list[str], Meta(description="scenarios that not all folders have")]
    found: Annotated[list[str], Meta(description="what --fail-on found, in sentences")]
    undecided: Annotated[list[str], Meta(description="what --fail-on could not decide, in sentences; not in the exit code")]


class Reached(Judged):
    why: str
    estimate: Maybe
    low: Maybe
    high: Maybe
    confidence: Maybe
    units: int
    unit: str
    noise_floor: Maybe
    smallest_effect: Maybe
    more_repeats: int | None
    rule: str
    measure: str | None
    gpu: Gpu | None


class Verify(Run):
    schema: Literal["tuilab.verify/1"]
    exit_code: ExitCode
    digest: str
    records: int
    streams: int
    artifacts: int
    unknown: Annotated[int, Meta(description="records of kinds that this version does not know")]
    state: RunState
    is_over: bool
    wrong: list[str]
    taken_out: Annotated[
        int | None,
        Meta(description="number of words that were removed from the source as secrets; null: the source is unchanged"),
    ]
    rules: Annotated[list[str], Meta(description="rules of the recorded verdicts")]
    rule: Annotated[str, Meta(description="rule of this version")]
    recorded: list[Reached]
    again: Annotated[list[Reached], Meta(description="verdicts by the rule of this version")]


class Noted(Run):
    schema: Literal["tuilab.note/1"]
    tags: list[str]
    notes: list[Note]


class Stopped(Run):
    done: Annotated[str, Meta(description="what was done, in a sentence")]


class Stop(Stopped):
    schema: Literal["tuilab.stop/1"]


class Rm(TypedDict):
    schema: Literal["tuilab.rm/1"]
    is_done: Annotated[bool, Meta(description="false: nothing was deleted; the runs are those that would be deleted")]
    runs: list[Run]
    kept: Annotated[list[str], Meta(description="which runs were kept, and why, in sentences")]


class Export(TypedDict):
    schema: Literal["tuilab.export/1"]
    run: str
    file: Path
    files: int
    bytes: int
    taken_out: Annotated[Counts, Meta(description="number of removed secrets, by place")]
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
    place: Annotated[int | None, Meta(description="place in the queue, 1 is next; null: not queued")]
    devices: list[str]


class Queue(TypedDict):
    schema: Literal["tuilab.queue/1"]
    is_paused: bool
    runs: list[Queued]


class SweepListed(TypedDict):
    sweep: str
    name: Annotated[str, Meta(description="name of the scenario, or the command as it was typed")]
    values: Annotated[dict[str, list[Any]], Meta(description="values of each setting")]
    points: Annotated[dict[str, int], Meta(description="number of points by state; `not begun`: without a run")]
    runs: list[Run]


class Sweeps(TypedDict):
    schema: Literal["tuilab.sweeps/1"]
    total: int
    sweeps: Annotated[list[SweepListed], Meta(description="the newest sweeps, newest first")]


class StopSweep(TypedDict):
    schema: Literal["tuilab.stop-sweep/1"]
    sweep: str
    is_ended: Annotated[bool, Meta(description="true: the process that starts the points was asked to end")]
    runs: list[Stopped]


class SweptPoint(TypedDict):
    point: Annotated[dict[str, Any], Meta(description="value of each setting")]
    id: Annotated[str, Meta(description="id of the run")]
    holds: Annotated[bool | None, Meta(description="true: the claim holds; null: the measurement does not decide it")]
    verdict: Verdict | None
    why: str
    estimate: Maybe
    low: Maybe
    high: Maybe
    confidence: Annotated[Maybe, Meta(description="confidence of the interval, such as 0.95")]
    units: int | None
    unit: str | None
    noise_floor: Maybe
    smallest_effect: Maybe
    measure: Annotated[
        str | None,
        Meta(description="clock that judged: wall, or cpu if other processes disturbed the run; null: nothing was timed"),
    ]


class SweptClaim(TypedDict):
    text: Annotated[str, Meta(description="text of the claim, with {NAME} in place of the value of a setting")]
    about: Annotated[str, Meta(description="values for which the numbers in the text are true, if these vary; else empty")]
    key: str | None
    holds: Annotated[
        list[str], Meta(description="where the claim holds: a sentence for each combination of the other settings")
    ]
    points: list[SweptPoint]


class PointRun(Run):
    point: dict[str, Any]
    state: str
    last: Annotated[dict[str, Maybe], Meta(description="last value of each curve of a command")]


class Swept(TypedDict):
    schema: Literal["tuilab.sweep/1"]
    exit_code: ExitCode
    sweep: Annotated[str, Meta(description="id of the sweep, for report and sweep --resume")]
    values: Annotated[dict[str, list[Any]], Meta(description="values of each setting")]
    runs: list[PointRun]
    claims: list[SweptClaim]
    missing: Annotated[list[str], Meta(description="points without a result, and why")]
