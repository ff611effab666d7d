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
    sweep: NotRequired[Annotated[str, Meta(description="that the runs are the points of")]]


class PointOf(TypedDict):
    id: str
    point: Annotated[dict[str, Any], Meta(description="the values of the settings")]


class Listed(Run):
    scenario: str
    topic: str
    changed: dict[str, Any]
    state: RunState
    reason: Annotated[str, Meta(description="why it ended so")]
    sweep: Annotated[PointOf | None, Meta(description="that it is a point of")]
    elapsed_s: Maybe
    bytes: int | None
    claims: list[Judged]
    gpus: list[Gpu]
    tags: list[str]
    notes: list[Note]


class Runs(TypedDict):
    schema: Literal["tuilab.runs/1"]
    total: Annotated[int, Meta(description="runs in these folders, before any is chosen")]
    closed: Annotated[int, Meta(description="runs that may not be read")]
    spoilt: Annotated[list[Run], Meta(description="runs no more: their journal is no folder any more")]
    bytes: Annotated[int | None, Meta(description="of all of them; null: not yet counted")]
    runs: list[Listed]


class Side(TypedDict):
    verdict: Verdict | None
    estimate: Maybe
    low: Maybe
    high: Maybe
    measured: Annotated[str, Meta(description="of an exact claim, in words")]
    why: str
    op: Annotated[str, Meta(description="of a claim about a ratio")]
    is_open: Annotated[bool, Meta(description="no verdict yet, and the run goes on")]
    gpu_words: str
    clock: Annotated[str, Meta(description="that a ratio was judged on: wall or cpu; empty: not about a ratio")]


class Moment(Run):
    side: Side
    changes: Annotated[list[Difference], Meta(description="since the run before")]


class ClaimHistory(TypedDict):
    schema: Literal["tuilab.claim-history/1"]
    scenario: str
    key: Key
    text: str
    claimed: Annotated[Maybe, Meta(description="the bound of a ratio")]
    runs: list[Moment]


class Compared(Run):
    scenario: str | None
    state: RunState
    elapsed_s: Maybe
    host: str | None


class Pair(Claim):
    former_keys: list[str]
    differs: Annotated[str, Meta(description="in words; empty: nothing")]
    sides: Annotated[list[Side | None], Meta(description="of each run")]
    shifts: Annotated[list[Shift | None], Meta(description="of each run after the first, against that one")]


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
    name: Annotated[str, Meta(description="steps in milliseconds, memory in bytes, the last value of a curve")]
    values: Annotated[list[Maybe], Meta(description="in each run")]
    shifts: Annotated[list[Shift | None], Meta(description="of each run after the first; none but of a step")]


class Comparison(TypedDict):
    scenarios: list[str]
    runs: list[Compared]
    differences: list[Difference]
    same: Annotated[int, Meta(description="facts that are the same in all")]
    source_changes: list[str]
    claims: list[Pair]
    times_s: Annotated[dict[str, list[Maybe]], Meta(description="of a call of each arm, in each run")]
    time_shifts: dict[str, list[Shift | None]]
    cpu_times_s: Annotated[
        dict[str, list[Maybe]], Meta(description="the same in CPU time; empty if no verdict rests on CPU time")
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
    not_in_all: Annotated[list[str], Meta(description="scenarios")]
    found: Annotated[list[str], Meta(description="what --fail-on found, in sentences")]
    undecided: Annotated[list[str], Meta(description="what --fail-on could not decide, in sentences; it does not fail")]


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
    taken_out: Annotated[int | None, Meta(description="words of the source that the archive left out; null: it is as it ran")]
    rules: Annotated[list[str], Meta(description="that judged")]
    rule: Annotated[str, Meta(description="of this version")]
    recorded: list[Reached]
    again: Annotated[list[Reached], Meta(description="as this version judges")]


class Noted(Run):
    schema: Literal["tuilab.note/1"]
    tags: list[str]
    notes: list[Note]


class Stopped(Run):
    done: Annotated[str, Meta(description="in a sentence")]


class Stop(Stopped):
    schema: Literal["tuilab.stop/1"]


class Rm(TypedDict):
    schema: Literal["tuilab.rm/1"]
    is_done: Annotated[bool, Meta(description="false: it was only said what would be deleted")]
    runs: list[Run]
    kept: Annotated[list[str], Meta(description="which stay, and why, in sentences")]


class Export(TypedDict):
    schema: Literal["tuilab.export/1"]
    run: str
    file: Path
    files: int
    bytes: int
    taken_out: Annotated[Counts, Meta(description="what looks like a secret, by where it stood")]
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
    place: Annotated[int | None, Meta(description="1 is the next; null: it does not wait")]
    devices: list[str]


class Queue(TypedDict):
    schema: Literal["tuilab.queue/1"]
    is_paused: bool
    runs: list[Queued]


class SweepListed(TypedDict):
    sweep: str
    name: Annotated[str, Meta(description="of the scenario, or the command as it was typed")]
    values: Annotated[dict[str, list[Any]], Meta(description="that it goes through, by setting")]
    points: Annotated[dict[str, int], Meta(description="how many are in which state; `not begun` have no run")]
    runs: list[Run]


class Sweeps(TypedDict):
    schema: Literal["tuilab.sweeps/1"]
    total: int
    sweeps: Annotated[list[SweepListed], Meta(description="the newest, the newest first")]


class StopSweep(TypedDict):
    schema: Literal["tuilab.stop-sweep/1"]
    sweep: str
    is_ended: Annotated[bool, Meta(description="whether the tuilab sweep that begins one point after another was asked to end")]
    runs: list[Stopped]


class SweptPoint(TypedDict):
    point: Annotated[dict[str, Any], Meta(description="the values of the settings")]
    id: Annotated[str, Meta(description="of the run")]
    holds: Annotated[bool | None, Meta(description="null: the measurement gives no answer")]
    verdict: Verdict | None
    why: str
    estimate: Maybe
    low: Maybe
    high: Maybe
    confidence: Annotated[Maybe, Meta(description="of the interval")]
    units: int | None
    unit: str | None
    noise_floor: Maybe
    smallest_effect: Maybe
    measure: Annotated[str | None, Meta(description="the clock: wall, or cpu where the box was disturbed; null: nothing timed")]


class SweptClaim(TypedDict):
    text: Annotated[str, Meta(description="with the names of settings in braces, where their values stood in it")]
    about: Annotated[str, Meta(description="of which values its numbers are, where these vary; else empty")]
    key: str | None
    holds: Annotated[list[str], Meta(description="where it holds, a sentence for each combination of the other settings")]
    points: list[SweptPoint]


class PointRun(Run):
    point: dict[str, Any]
    state: str
    last: Annotated[dict[str, Maybe], Meta(description="where the curves of a command ended")]


class Swept(TypedDict):
    schema: Literal["tuilab.sweep/1"]
    exit_code: ExitCode
    sweep: Annotated[str, Meta(description="its id, which report and sweep --resume take")]
    values: Annotated[dict[str, list[Any]], Meta(description="that it goes through, by setting")]
    runs: list[PointRun]
    claims: list[SweptClaim]
    missing: Annotated[list[str], Meta(description="points without a result, and why")]
