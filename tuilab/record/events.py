"""The records of a journal: one struct per kind, named in the past tense.

`n` (sequence number in its stream) and `t` (CLOCK_MONOTONIC nanoseconds) are filled in by `journal.Writer`. Fields may be
added with a default; a field never changes its meaning, a kind is never reused. Readers pass over kinds they do not know.
"""

import math
from typing import Annotated, Any, Literal, TypeGuard, get_args

import msgspec

from tuilab.record import plain_value
from tuilab.record.plain_value import DEEPEST, Value
from tuilab.text.display import show
from tuilab.text.words import gpu_label

FORMAT = 1  # major version of the journal; a reader refuses a newer one

CLAIM_LIMIT = 4_000  # characters of a claim: several records repeat it, and each must hold it whole
AGAIN = "again"  # behind the name of an arm: its control, a process of its own
SPAN_LIMIT = 2_000  # spans of one process in one picture
Scalar = bool | int | float | str
Cell = str | int | float  # of a table
Operator = Literal["equals", "at_most", "at_least", "between"]
Control = Literal["", "same", "delayed"]

# Every number fits 64 bits and every word can be displayed: a record that says otherwise is not one of ours.
Whole = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
AtLeastOne = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Word = Annotated[str, msgspec.Meta(pattern=r"^(?a:[\w .+-]{1,60})\Z")]


def _snake(name: str) -> str:
    return "".join("_" + c.lower() if c.isupper() else c for c in name)[1:]


class Event(msgspec.Struct, kw_only=True, omit_defaults=True, tag_field="k", tag=_snake):
    """What every record has."""

    n: Count = -1
    t: Count = 0


class Identity(msgspec.Struct, frozen=True):
    """A process that cannot be mistaken for another one, not even after a reboot or when its pid is used again."""

    host: str
    boot: str
    pid: Count
    start: Count  # clock ticks after boot, from /proc/PID/stat
    pid_namespace: Count = 0
    time_namespace: Count = 0  # whose clock its records are on


# ---- written by the supervisor


class Sweep(msgspec.Struct, frozen=True, omit_defaults=True):
    """The sweep that a run is a point of: all of its values, so that each run tells what else belongs to it."""

    id: Word
    values: dict[str, list[Scalar]]  # by setting, in their order
    point: dict[str, Scalar]  # that this run is
    argv: list[str] = []  # the command line that makes the sweep
    folder: str = ""  # that it was given in
    front: Identity | None = (
        None  # who begins one point after another; nobody, where all were queued at once
    )


class RunStarted(Event):
    format: Count
    run: str
    scenario: str
    topic: str
    title: str
    source_sha256: str
    params: dict[str, Scalar]  # the text of a secret is removed
    supervisor: Identity
    tuilab: str
    wall_ns: Count  # wall clock, for people only
    changed: list[str] = []  # the params that differ from the scenario's defaults
    claims: list[str] = []  # read from the source before anything ran
    claim_keys: list[str] = []  # of those claims, in their order; empty words where they have none
    repeats: Count = 1
    looks: list[Count] = []  # numbers of repeats at which the verdicts may end the run
    rule: str = ""  # by which its claims are judged
    luck: float | None = (
        None  # of one process on this box, as `calibrate` measured it: a standard deviation of log ratios
    )
    budget_s: float | None = None
    quick: bool = False
    timeout_s: float | None = None
    prediction: float | None = (
        None  # what the user expected the answer to the lesson's question to be
    )
    argv: list[str] = []
    command: list[str] = []  # of the user's, which was run instead of a scenario
    folder: str = ""  # that the command ran in
    sweep: Sweep | None = None
    retry_of: str = ""  # the run that was lost with its node, and is tried again by this one
    node: str = ""  # of a cluster, that it was carried out on
    nodes: list[
        str
    ] = []  # that its ranks are divided over, if they are not all on one; the run itself is on the first


class RunDescribed(Event):
    """What of a run's description does not fit its first record; it is added to what stands there."""

    params: dict[str, Scalar] = {}
    changed: list[str] = []
    claims: list[str] = []
    claim_keys: list[str] = []
    argv: list[str] = []
    command: list[str] = []


class StateChanged(Event):
    state: Word
    reason: str = ""


class BudgetSpent(Event):
    """No further repeat fits the time that was given."""

    repeats: Count


class NothingTimed(Event):
    """The first repeat recorded no race, so that the usual further ones would find out nothing more: they are not run."""


class WorkerStarted(Event):
    writer: str
    pid: Count
    start: Count
    repeat: Count = 0
    arm: str = ""
    env: dict[str, str] = {}  # of an arm: what differs from the supervisor's; secrets are removed
    prefix: list[str] = []
    was_warm: bool = False


class WorkerExited(Event):
    writer: str
    code: Whole | None = None
    signal: Count | None = None
    reason: str = ""
    fault: str = ""  # where it was when it crashed
    lost: Count = 0  # records that it could not write, as it said itself
    rss_peak_bytes: Count | None = (
        None  # of the largest of its processes, by the kernel; samples are of moments
    )


class OutputCaptured(Event):
    stream: Word
    bytes_total: Count
    bytes_head: Count
    bytes_tail: Count
    secrets: list[
        tuple[Count, Count]
    ] = []  # from where to where values of secret variables stand: characters of the file


class StopRequested(Event):
    how: str


class LeftoversEnded(Event):
    processes: list[str]  # the first of them by name
    count: Count


class SamplerEnded(Event):
    reason: str
    restarts: Count


class StreamsCounted(Event):
    """How many records each stream has, now that everybody who wrote one is gone; several tell of many streams."""

    records: dict[str, Count]


# ---- written by a worker


class EnvironmentRecorded(Event):
    part: Word  # "box", "gpu", "torch", "cuda"
    facts: dict[str, Any]

    def __post_init__(self) -> None:
        if not is_shallow(self.facts):
            raise ValueError("the facts are nested too deeply")


class RankPlaced(Event):
    """A rank of a run whose ranks are on several nodes begins: on this one, by whose clock its times are not quite right."""

    rank: Count
    node: str
    clock_error_ns: Count = 0  # by how much they may be wrong


class StageEntered(Event):
    name: str


class Logged(Event, gc=False):
    """The hot record: scalars of one step. Short keys, because there may be a million of them."""

    s: Whole
    v: dict[str, float]
    a: str = ""  # arm
    at: Count = (
        0  # when it was logged, if it was written later because its values were still on a GPU
    )
    x: float | None = (
        None  # where it stands on the axis, if that is no whole number; `s` counts such points then
    )

    @property
    def logged_at(self) -> int:
        return self.at or self.t

    @property
    def place(self) -> float:
        """Where it stands on the axis."""
        return self.s if self.x is None else self.x


class AxesNamed(Event):
    """What is along the axes of the chart of a metric, and which of them are logarithmic from the start."""

    metric: str
    x: str = ""
    y: str = ""
    log: Literal["", "x", "y", "xy"] | None = None  # None: y as its values suggest


class Progressed(Event):
    done: Count
    total: Count  # 0: nobody knows
    unit: str = "steps"  # behind a comma of which round, if there are more of the same total


class Measured(msgspec.Struct, omit_defaults=True):
    """What an exact claim compares: numbers, or words where there are no numbers.

    That is all of a number, of a row of them and of a text. Of other values it is what older readers show, and `shape` or
    `exact` says the rest.
    """

    numbers: list[float] = []
    words: str = ""
    shape: list[AtLeastOne] = []  # of numbers in lists within lists that are as long as each other
    exact: str = ""  # the value as JSON: whole numbers that no float is, texts in lists, True, lists of several lengths

    def __post_init__(self) -> None:
        """Refuse a record that says two things."""
        if self.exact and repr(plain_value.flat(plain_value.read(self.exact))) != repr(
            (self.numbers, self.words)
        ):
            raise ValueError("the numbers and words are not those of the exact value")
        if self.shape and (
            math.prod(self.shape) != len(self.numbers)
            or not 1 < len(self.shape) <= DEEPEST
            or self.exact
        ):
            raise ValueError("the shape is not that of the numbers")

    @classmethod
    def of(cls, value: Value) -> "Measured":
        """Return a value as it is recorded."""
        numbers, words = plain_value.flat(value)
        found = cls(numbers=numbers, words=words)
        shape = plain_value.shape_of(value)
        if numbers and shape and len(shape) > 1 and not plain_value.is_equal(found.value, value):
            found = cls(numbers=numbers, shape=[*shape])
        if plain_value.is_equal(found.value, value):
            return found
        return cls(numbers=numbers, words=words, exact=plain_value.spell(value))

    @property
    def value(self) -> Value:
        if self.exact:
            return plain_value.read(self.exact)
        if self.words:
            return self.words
        if self.shape:
            return plain_value.nest(self.numbers, self.shape)
        return self.numbers[0] if len(self.numbers) == 1 else [*self.numbers]


class AboutClaim(Event, kw_only=True):
    """What every record about a claim has; in early records a claim has no key, and is known by its text."""

    text: str
    key: str = ""
    is_once: bool = False  # it stands in a part of the scenario that only the first repeat runs

    @property
    def claim_id(self) -> str:
        return self.key or self.text


class ClaimMeasured(AboutClaim):
    """An exact claim: judged from this one record."""

    got: Measured
    op: Operator
    want: Measured
    tolerance: float = 0.0
    unit: str = ""

    def __post_init__(self) -> None:
        bounds = len(self.want.numbers)
        if self.op == "between" and bounds != 2:
            raise ValueError(f"between takes two numbers, not {bounds}")
        if self.op in ("at_most", "at_least") and bounds != 1 and not self.want.words:
            raise ValueError(f"{self.op} takes one number, not {bounds}")


class ClaimDeclared(AboutClaim):
    """A claim about the ratio of two arms of a race, declared before the race is run."""

    over: str  # the arm above the line of the ratio
    under: str
    op: Operator
    bound: float
    margin: float = 0.03
    confidence: float = 0.95
    cores: int = 0  # that must be free for the claim to mean anything


class ClaimNotTestable(AboutClaim):
    needs: str


class Candidate(msgspec.Struct, omit_defaults=True):
    """A value that a setting may have, and what speaks for it: an arm of a race still to come, or what was measured."""

    value: str
    arm: str = ""
    cost: float | None = None  # less is better

    def __post_init__(self) -> None:
        if bool(self.arm) == (self.cost is not None):
            raise ValueError("a value has an arm or a cost")


class SettingRaced(Event):
    """Values of a setting are held against each other: those that take least of the box first."""

    name: str
    candidates: list[Candidate]
    default: str  # the value that holds where nothing is set: one of them
    about: str  # the work that they were held against each other with
    against: str = ""  # what this run saw that speaks against setting it
    ranks: Count = 0  # for each of so many ranks; 0: for one program
    cores: int = 0  # that must be free for the race to mean anything
    unit: str = ""  # of the costs


class QuestionAnswered(AboutClaim):
    """The claim answers the question under Predict: with this value, or where there is none, with its estimate."""

    value: float | None = None


class TextShown(Event):
    text: str
    title: str = ""


class ImageShown(Event):
    """A small array as a picture: base64 of one byte a cell, 0..254 from `low` to `high`, 255 where it is not finite."""

    title: str
    rows: Count
    cols: Count
    cells: str
    low: float
    high: float
    arm: str = ""
    step: Whole = 0


class BarsShown(Event):
    """Named values as bars that begin at 0."""

    title: str
    names: list[str]
    values: list[float]
    unit: str = ""

    def __post_init__(self) -> None:
        if len(self.names) != len(self.values):
            raise ValueError(f"{len(self.names)} names for {len(self.values)} bars")


class TableShown(Event):
    """A small table; a number that is not finite is a word in it."""

    title: str
    rows: list[list[Cell]]
    head: list[str] = []


class SpanShown(Event):
    """A stretch of a lane, as of what a process did from when to when; the spans of an arm are one picture."""

    lane: str
    began: float
    ended: float
    name: str = ""  # what went on
    arm: str = ""
    unit: str = "s"  # of `began` and `ended`: seconds on any clock, or steps and the like


class ArtifactSaved(Event):
    name: str
    bytes_total: Count
    sha256: str


class MemoryMeasured(Event):
    name: str
    values: dict[str, float]  # e.g. peak_bytes, saved_bytes
    arm: str = ""


class GpuHeld(Event):
    """What torch's allocator holds on a GPU in this process: CUDA's context comes on top, and is not known."""

    uuid: str  # torch's name of it, which ends NVML's
    allocated_bytes: Count  # given out to tensors
    reserved_bytes: Count  # taken from the GPU
    allocated_peak_bytes: Count = (
        0  # given out at most since the process began, or since the scenario forgot what was before
    )


class ArmFinished(Event):
    """An arm that ran in a process of its own came back."""

    arm: str
    writer: str
    elapsed_s: float
    error: str = ""


class RaceStarted(Event):
    arms: list[str]
    threads: Count
    device: str
    loops: dict[str, AtLeastOne]  # calls of each arm in one of its blocks
    base: str = ""  # the arm that the controls use
    delay: Share = 0.0  # of the control with a known delay, as a share of a step
    seed: int | None = None  # of the order in which the arms take turns; None: it rotated
    has_instances: bool = (
        False  # the controls are instances of their own, not the arm itself once more
    )
    uuid: str = ""  # torch's name of the GPU that it runs on, which ends NVML's
    device_index: Count | None = None  # of that GPU, as CUDA counts
    luck: float | None = (
        None  # of one process on that GPU, as `calibrate` measured it there; where one process is to judge
    )
    measure: str = ""  # what is told of each arm instead of the time of a call
    unit: Literal["", "bytes"] = ""  # of that: its blocks count bytes, or billionths
    guard: str = ""  # the curve that tells whether the arms learn the same, where they have to


class FirstCalled(Event):
    """The first call of an arm: what it costs once (compiling, first allocation) is a number of its own."""

    arm: str
    wall_ns: Count


class BlockTimed(Event):
    """Calls of one arm, timed together; each round has one block of every arm, in alternating order."""

    arm: str
    round: Count
    slot: Count
    loops: AtLeastOne
    wall_ns: AtLeastOne
    cpu_ns: Count
    device_ns: Count | None = None  # of older versions, from CUDA events: loops x the median step
    is_warmup: bool = False
    control: Control = ""
    is_disturbed: bool = False  # by the sensors alone
    is_rerun: bool = False  # of versions that ran a disturbed block again at once
    switches: int = 0  # involuntary context switches
    thread_ns: Count | None = (
        None  # CPU time of the thread that made the calls; cpu_ns is that of the whole process
    )
    waits: int | None = (
        None  # times that this thread gave its core away by itself: for a lock, a disk, a sleep
    )
    pressure_us: int | None = None  # in which some process of the box waited for a core
    run_delay_ns: int | None = (
        None  # in which the thread that made the calls wanted a core and had none
    )
    others_share: float | None = (
        None  # of the usable cores, used by other processes; asked only after a long delay
    )
    steal_ticks: int | None = None  # that the hypervisor took, of all cores
    core_steal_ticks: int | None = None  # of the core that the thread ran on
    throttled: int | None = None  # periods in which the cgroup's quota was used up
    records: int = 0  # written while the time ran
    stream_ns: Count | None = (
        None  # between the first and the last mark in the current stream of the GPU
    )
    submitted_ns: Count | None = (
        None  # until the last call had returned: what it took to tell the GPU
    )
    # of a command, of which a block is the mean of the steady steps of one process; cpu_ns then counts its helpers, too
    steps: Count | None = None  # whose CPU time was read
    disturbed_steps: Count | None = (
        None  # of these: whose thread was kept from a core for more than a tenth of the time
    )
    waited_ns: Count | None = None  # of a step: in which its thread wanted no core
    helped_by: str = ""  # other processes that take part in a step


class RaceFinished(Event):
    arms: list[str]
    is_same: bool | None = None  # did the arms compute the same thing; None: not asked
    difference: str = ""
    record_ns: int = 0  # what writing a record cost, to judge the observer
    is_settled: bool | None = (
        None  # had the times stopped drifting before the first round that counts; None: not known
    )
    gpu_ns: dict[
        str, Count
    ] = {}  # that the GPU works at a call of each arm at most: told ahead, before the race and after it
    learned: dict[
        str, list[float]
    ] = {}  # of arms that are commands: the first values of the curve that guards them
    dtypes: dict[str, str] = {}  # and the coarsest that each computes in, where that was seen
    accounts: dict[
        str, dict[str, float]
    ] = {}  # and what else is told of each: seconds and counts a step, totals of its process


class CoresMeasured(Event):
    """How many cores' worth of work as many busy processes really got."""

    processes: int
    effective: float


class CoresAwaited(Event):
    """How long a watched command waited for a core while it trained, and how many cores other processes used then."""

    elapsed_s: float  # from the first to the last reading between its steps
    waited_s: float  # of all its threads, in which each could run and had no core
    usable: AtLeastOne  # cores that the command may use
    others: float | None = None  # cores that other processes used on average; None: not known


class ScenarioFailed(Event):
    type: str
    message: str
    traceback: str
    hint: str = ""
    source_dir: str = ""  # where the file of the scenario lay


class BoxLacked(Event):
    """The scenario ended early: this box lacks what it needs."""

    needs: str


class ScenarioFinished(Event):
    lost: Count = 0  # records that could not be written
    trouble: str = ""


# ---- written by the sampler


class Sampled(Event):
    processes: Count
    threads: Count
    cpu_percent: float
    rss_bytes: Count
    uss_bytes: Count | None = None
    waiting_bytes: Count = (
        0  # resident, of processes that wait for their repeat and count for nothing else here
    )
    gpus: dict[str, dict[str, float]] = {}  # uuid -> metric -> value; what is unknown is left out
    gpus_asked: dict[
        str, Count
    ] = {}  # uuid -> when it was asked; a GPU may answer long before the sample is written


class GpuFound(Event):
    uuid: str
    index: Count  # NVML's, of a slice that of the whole GPU
    name: str
    bytes_total: Count | None = None
    slice: str = ""  # as nvidia-smi names it: "MIG 1g.10gb Device 0"; empty: a whole GPU
    power_limit_w: float | None = None
    most_sm_mhz: float | None = None

    @property
    def label(self) -> str:
        """What it is called in charts and lists."""
        return gpu_label(self.index, self.slice)


class Tenant(msgspec.Struct, omit_defaults=True):
    """A process of somebody else on a GPU."""

    pid: Count
    user: str = ""  # empty: not known
    why: str = ""  # the user is not known
    bytes_used: Count | None = None  # None: the driver does not tell


class GpuShared(Event):
    """Who else computes on a GPU of the run, as soon as it is other than before."""

    uuid: str
    others: list[Tenant]  # the first of them
    count: Count


class XidReported(Event):
    """The driver has noted an error of a GPU, or of a program on it."""

    uuid: str
    xid: Count


class Unavailable(Event):
    what: str
    reason: str


class Alerted(Event):
    """Something that whoever trains wants to know at once, as it was seen: told by every view, in these words."""

    what: Word  # "stall", "not finite", "memory" or "slow rank"
    text: str
    arm: str = ""


# ---- written by the judge


class VerdictReached(AboutClaim):
    verdict: Word
    rule: Word
    why: str = ""
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    noise_floor: float | None = (
        None  # the end of the A/A interval that is farther from 1, as a ratio minus 1
    )
    smallest_effect: float | None = (
        None  # that would have been seen four times in five, as a ratio minus 1
    )
    more_repeats: int | None = None
    units: int = 0
    unit: str = ""  # "repeats", or "rounds" of one process
    confidence: float | None = None  # of the interval
    measure: Word = "wall"  # clock, or "cpu": time of the thread that made the calls
    gpu: str = ""  # torch's UUID of the GPU that it was measured on, of several all of them; empty: none, or not told
    gpu_name: str = ""


def is_shallow(value: Any, depth: int = 20) -> bool:
    """Say whether plain data is nested no deeper than anybody would who is to read it."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return depth > 0 and all(is_shallow(part, depth - 1) for part in inner)


class Unknown(msgspec.Struct):
    """A record of a kind that this version does not know: kept and passed over."""

    n: Count
    t: Count
    k: str
    fields: dict[str, Any]


Record = (
    RunStarted | RunDescribed | StateChanged | BudgetSpent | WorkerStarted | WorkerExited | OutputCaptured | StopRequested
    | LeftoversEnded | SamplerEnded | StreamsCounted | EnvironmentRecorded | StageEntered | Logged | Progressed | ClaimMeasured
    | ClaimDeclared | ClaimNotTestable | TextShown | ImageShown | ArtifactSaved | MemoryMeasured | ArmFinished
    | RaceStarted | BlockTimed | RaceFinished | ScenarioFailed | FirstCalled | CoresMeasured | BoxLacked | ScenarioFinished
    | Sampled | GpuFound | Unavailable | VerdictReached | NothingTimed | XidReported | GpuHeld | GpuShared
    | Alerted | AxesNamed | BarsShown | TableShown | SpanShown | QuestionAnswered | SettingRaced | RankPlaced | CoresAwaited
)  # fmt: skip


def tag_of(kind: Any) -> str:
    """Return what the records of a kind are called in a journal."""
    return str(kind.__struct_config__.tag)


KINDS = frozenset(map(tag_of, get_args(Record)))


def is_newer(record: object) -> "TypeGuard[RunStarted | Unknown]":
    """Say whether it is the start of a run in a newer format, whose fields may be others."""
    if isinstance(record, Unknown):
        version = record.fields.get("format") if record.k == "run_started" else None
        return isinstance(version, int) and version > FORMAT
    return isinstance(record, RunStarted) and record.format > FORMAT


def newer_words(started: "RunStarted | Unknown") -> str:
    """Return by which newer tuilab a run was recorded, and what to do about it."""
    fields = started.fields if isinstance(started, Unknown) else msgspec.structs.asdict(started)
    which = f"{show(fields.get('tuilab', 'n/a'), 40)}, in format {show(fields['format'], 20)}"
    return (
        f"was recorded by a newer tuilab ({which}); upgrade this one, which reads format {FORMAT}"
    )
