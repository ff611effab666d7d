"""Defines the records of a journal: one struct per kind, named in the past tense.

`journal.Writer` fills in `n` (sequence number in its stream) and `t` (CLOCK_MONOTONIC nanoseconds).
Fields may be added with a default. A field never changes its meaning, and a kind is never reused.
Readers skip kinds that they do not know. A `writer` is a process that writes a stream of its own,
under its name: a worker, a rank, the sampler, the supervisor or the judge.
"""

import math
import sys
from typing import Annotated, Any, Literal, TypeGuard, get_args

import msgspec

from tuilab.record import plain_value
from tuilab.record.plain_value import DEEPEST, Value
from tuilab.text.display import show
from tuilab.text.words import gpu_label

FORMAT = 1  # major version of the journal; a reader refuses a newer one

CLAIM_LIMIT = 4_000  # characters of a claim: several records repeat it, and each holds it whole
AGAIN = "again"  # after the name of an arm: its A/A control, a process of its own
SPAN_LIMIT = 2_000  # spans of one process in one picture
Scalar = bool | int | float | str
Cell = str | int | float  # of a table
Operator = Literal["equals", "at_most", "at_least", "between"]
Control = Literal["", "same", "delayed"]

# All numbers fit 64 bits, and all words can be displayed; any other record is not one of ours.
Whole = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
AtLeastOne = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Finite = Annotated[float, msgspec.Meta(ge=-sys.float_info.max, le=sys.float_info.max)]
Word = Annotated[str, msgspec.Meta(pattern=r"^(?a:[\w .+-]{1,60})\Z")]
WordOrNothing = Annotated[str, msgspec.Meta(pattern=r"^(?a:[\w .+-]{0,60})\Z")]


def _snake(name: str) -> str:
    """Return the name of a class in the form of the journal: `RunStarted` is `run_started`."""
    letters = []
    for letter in name:
        if letter.isupper():
            letters.append("_")
        letters.append(letter.lower())
    return "".join(letters).removeprefix("_")


class Event(msgspec.Struct, kw_only=True, omit_defaults=True, tag_field="k", tag=_snake):
    """The fields of all records."""

    n: Count = -1
    t: Count = 0


class Identity(msgspec.Struct, frozen=True):
    """A process, identified even after a reboot and if its pid is used again."""

    host: str
    boot: str
    pid: Count
    start: Count  # clock ticks after boot, from /proc/PID/stat
    pid_namespace: Count = 0
    time_namespace: Count = 0  # its clock is the clock of the records


# ---- written by the supervisor


class Sweep(msgspec.Struct, frozen=True, omit_defaults=True):
    """The sweep that a run is a point of, with all values: so each run names the whole sweep."""

    id: Word
    values: dict[str, list[Scalar]]  # by setting, in their order
    point: dict[str, Scalar]  # the values of this run
    argv: list[str] = []  # the command line of the sweep
    folder: str = ""  # where the command was given
    # the process that starts one point after another; None if all were queued at once
    front: Identity | None = None


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
    claims: list[str] = []  # read from the source before the run
    claim_keys: list[str] = []  # of those claims, in their order; an empty text for no key
    repeats: Count = 1
    looks: list[Count] = []  # numbers of repeats at which the verdicts may end the run
    rule: str = ""  # by which its claims are judged
    # variation between processes on this machine, measured by `calibrate`: a standard deviation of
    # log ratios
    luck: float | None = None
    budget_s: float | None = None
    quick: bool = False
    timeout_s: float | None = None
    prediction: float | None = None  # the user's answer to the lesson's question
    argv: list[str] = []
    command: list[str] = []  # of the user, which ran instead of a scenario
    folder: str = ""  # where the command ran
    sweep: Sweep | None = None
    retry_of: str = ""  # the run that was lost with its node, and that this one repeats
    node: str = ""  # of a cluster, where the run was
    # the nodes of its ranks, if they are on several; the run itself is on the first one
    nodes: list[str] = []


class RunDescribed(Event):
    """The part of a run's description that does not fit its first record."""

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
    """No further repeat fits the time budget."""

    repeats: Count
    stage: WordOrNothing = ""  # the stage of a tuning whose share of the budget is spent


class NothingTimed(Event):
    """The first repeat recorded no race; further repeats would add nothing, and are not run."""


class WorkerStarted(Event):
    writer: str
    pid: Count
    start: Count
    repeat: Count = 0
    arm: str = ""
    env: dict[str, str] = {}  # of an arm: differences from the supervisor's; secrets are removed
    prefix: list[str] = []
    was_warm: bool = False


class WorkerExited(Event):
    writer: str
    code: Whole | None = None
    signal: Count | None = None
    reason: str = ""
    fault: str = ""  # the place of a crash
    lost: Count = 0  # records that it could not write, as it reported itself
    rss_peak_bytes: Count | None = None  # of its largest process, by the kernel, not by samples


class OutputCaptured(Event):
    stream: Word
    bytes_total: Count
    bytes_head: Count
    bytes_tail: Count
    # places of the values of secret variables: begin and end in characters of the file
    secrets: list[tuple[Count, Count]] = []


class StopRequested(Event):
    how: str


class LeftoversEnded(Event):
    processes: list[str]  # the names of the first ones
    count: Count


class SamplerEnded(Event):
    reason: str
    restarts: Count


class StreamsCounted(Event):
    """The number of records of each stream, once all writers are gone.

    If there are many streams, several records name them.
    """

    records: dict[str, Count]


# ---- written by a worker


class EnvironmentRecorded(Event):
    part: Word  # "box", "gpu", "torch", "cuda"
    facts: dict[str, Any]

    def __post_init__(self) -> None:
        if not is_shallow(self.facts):
            raise ValueError("the facts are nested too deeply")


class RankPlaced(Event):
    """A rank of a run on several nodes starts, on this node."""

    rank: Count
    node: str
    clock_error_ns: Count = 0  # its times may be wrong by so much, as the nodes' clocks differ


class StageEntered(Event):
    name: str


class Logged(Event, gc=False):
    """The scalars of one step; keys are short, because there may be a million such records."""

    s: Whole
    v: dict[str, float]
    a: str = ""  # arm
    at: Count = 0  # time of the call, if the values were still on a GPU and were written later
    x: Finite | None = None  # place on the axis if it is no whole number: `s` counts the points

    @property
    def logged_at(self) -> int:
        return self.at or self.t

    @property
    def place(self) -> float:
        """Its place on the axis."""
        return self.s if self.x is None else self.x


class ValuesOfBlock(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """What a name had in a block of steps. Without a finite value, all but `bad` is 0."""

    first: Finite
    last: Finite
    least: Finite
    greatest: Finite
    total: Finite
    count: Count  # of finite values
    bad: Count = 0  # values that were NaN or infinite


class BlockLogged(Event, gc=False):
    """A block of steps of a long command: what the watcher found in them, instead of each step.

    Values that a script logs or prints are never recorded in blocks.
    """

    s: Whole  # the first step
    steps: Count
    v: dict[str, ValuesOfBlock]
    a: str = ""  # arm
    at: Count = 0  # when the last step ended

    @property
    def logged_at(self) -> int:
        return self.at or self.t


class AxesNamed(Event):
    """The titles of the axes of a metric's chart, and which axes are logarithmic at first."""

    metric: str
    x: str = ""
    y: str = ""
    log: Literal["", "x", "y", "xy"] | None = None  # None: y is, if its values suggest it


class Progressed(Event):
    done: Count
    total: Count  # 0 if not known
    unit: str = "steps"  # after a comma the round, if several rounds have the same total


class Measured(msgspec.Struct, omit_defaults=True):
    """A value that an exact claim compares: numbers, or words if there are no numbers.

    This is the whole value for a number, a row of numbers, or a text. For other values, older
    readers show these numbers or words, and `shape` or `exact` has the rest.
    """

    numbers: list[float] = []
    words: str = ""
    shape: list[AtLeastOne] = []  # of numbers in nested lists, if lists of a depth are equally long
    # the value as JSON: large whole numbers, texts in lists, True, lists of different lengths
    exact: str = ""

    def __post_init__(self) -> None:
        """Raise ValueError if the fields contradict each other."""
        if self.exact:
            flat_value = plain_value.flat(plain_value.read(self.exact))
            # repr, because NaN does not equal NaN
            if repr(flat_value) != repr((self.numbers, self.words)):
                raise ValueError("the numbers and words are not those of the exact value")
        if self.shape:
            has_all_numbers = math.prod(self.shape) == len(self.numbers)
            is_nested = 1 < len(self.shape) <= DEEPEST
            if not has_all_numbers or not is_nested or self.exact:
                raise ValueError("the shape is not that of the numbers")

    @classmethod
    def of(cls, value: Value) -> "Measured":
        """Return a value as it is recorded, in the first form that keeps it."""
        numbers, words = plain_value.flat(value)
        as_row = cls(numbers=numbers, words=words)
        if plain_value.is_equal(as_row.value, value):
            return as_row
        shape = plain_value.shape_of(value)
        if numbers and shape and len(shape) > 1:
            as_lists = cls(numbers=numbers, shape=[*shape])
            if plain_value.is_equal(as_lists.value, value):
                return as_lists
        return cls(numbers=numbers, words=words, exact=plain_value.spell(value))

    @property
    def value(self) -> Value:
        if self.exact:
            return plain_value.read(self.exact)
        if self.words:
            return self.words
        if self.shape:
            return plain_value.nest(self.numbers, self.shape)
        if len(self.numbers) == 1:
            return self.numbers[0]
        return list(self.numbers)


class AboutClaim(Event, kw_only=True):
    """The fields of all records about a claim; in early records it has a text, but no key."""

    text: str
    key: str = ""
    is_once: bool = False  # only the first repeat runs its part of the scenario

    @property
    def claim_id(self) -> str:
        return self.key or self.text


class ClaimMeasured(AboutClaim):
    """A measurement of an exact claim, which is judged from this record alone."""

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
    """A claim about the ratio of two arms of a race, declared before the race."""

    over: str  # the arm in the numerator of the ratio
    under: str  # the arm in the denominator
    op: Operator
    bound: float
    margin: float = 0.03
    confidence: float = 0.95
    cores: int = 0  # that have to be free for a meaningful race


class ClaimNotTestable(AboutClaim):
    needs: str


class Candidate(msgspec.Struct, omit_defaults=True):
    """A value that a setting may have: with an arm of a race still to come, or with its cost."""

    value: str
    arm: str = ""
    cost: float | None = None  # less is better

    def __post_init__(self) -> None:
        if bool(self.arm) == (self.cost is not None):
            raise ValueError("a value has an arm or a cost")


class SettingRaced(Event):
    """Values of a setting are compared; the values that use the machine least come first."""

    name: str
    candidates: list[Candidate]
    default: str  # the candidate that applies if the setting is not set
    about: str  # the work that the values were compared with
    against: str = ""  # a reason against the setting that this run found
    ranks: Count = 0  # the value is for each of so many ranks; 0: for one program
    cores: int = 0  # that have to be free for a meaningful race
    unit: str = ""  # of the costs


class QuestionAnswered(AboutClaim):
    """The claim answers the question under Predict: with this value, else with its estimate."""

    value: float | None = None


class TextShown(Event):
    text: str
    title: str = ""


class ImageShown(Event):
    """A small array as a picture.

    `cells` is the base64 of one byte a cell: 0..254 from `low` to `high`, 255 for not finite.
    """

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
    """A small table; a number that is not finite is a text."""

    title: str
    rows: list[list[Cell]]
    head: list[str] = []


class SpanShown(Event):
    """A part of a lane, for example one task of a process; the spans of an arm are one picture."""

    lane: str  # the row of the picture that the span is drawn in
    began: Finite
    ended: Finite
    name: str = ""  # of the task
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
    """Bytes of torch's allocator on a GPU in this process, without CUDA's unknown context."""

    uuid: str  # torch's UUID, which is the end of NVML's
    allocated_bytes: Count  # given out to tensors
    reserved_bytes: Count  # taken from the GPU
    allocated_peak_bytes: Count = 0  # since the process began, or the scenario reset the peak


class ArmFinished(Event):
    """An arm in a process of its own has ended."""

    arm: str
    writer: str
    elapsed_s: float
    error: str = ""


# How a treatment changes what a script learns: not at all, by rounding as in another order of
# operations, or by the rounding of another dtype. A `bound` learns something else on purpose: it
# shows what other treatments can gain at most.
Learning = Literal["same", "rounding", "other rounding", "bound"]
OWN_PROCESS = "process"  # the device of a race in which each arm has a process of its own


class RaceStarted(Event):
    arms: list[str]
    threads: Count
    device: str  # torch's name of it, or OWN_PROCESS
    loops: dict[str, AtLeastOne]  # calls of each arm in one of its blocks
    base: str = ""  # the arm that the controls use
    delay: Share = 0.0  # of the control with a known delay, as a share of a step
    seed: int | None = None  # of the order in which the arms take turns; None: it rotated
    has_instances: bool = False  # the controls are instances of their own, not the arm once more
    uuid: str = ""  # torch's UUID of the GPU, which is the end of NVML's
    device_index: Count | None = None  # CUDA's number of that GPU
    # variation between processes on that GPU, by `calibrate`; if one process is to be judged
    luck: float | None = None
    measure: str = ""  # the quantity that is compared instead of the time of a call
    unit: Literal["", "bytes"] = ""  # of that quantity: blocks count bytes, or billionths
    guard: str = ""  # the curve that shows whether the arms learn the same, if they have to
    # Of a tuning. Its stages are judged one by one: each has its own claims and repeats.
    stage: WordOrNothing = ""
    learns: dict[str, Learning] = {}  # by arm: how a treatment changes what the script learns


class TreatmentPlanned(Event):
    """A change to a training that a tuning has thought about."""

    arm: Word  # unique, such as "workers-2"
    name: Word  # of the treatment, as in `--only`, such as "workers"
    title: str  # such as "2 DataLoader workers"
    treatments: list[str] = []  # what the process applies, such as "workers=2"
    env: dict[str, str] = {}  # variables that it adds to the environment
    prefix: list[str] = []  # words before the command
    learns: Learning = "same"
    change: str = ""  # the change as the user would write it
    diff: str = ""  # the change as a unified diff of the script, if its line is known
    file: str = ""  # where the change belongs
    line: Count = 0
    lesson: str = ""  # the scenario that explains it
    # The most that it can make a step faster, as a ratio: the upper end of its interval.
    at_most: float | None = None
    at_most_why: str = ""  # how that is known, or why it is not
    memory: str = ""  # what it costs in memory, in words
    outcome: WordOrNothing = ""  # why it is not tried, such as "ALREADY SET"; empty: it is
    why: str = ""  # the reason of that outcome


class TuningPlanned(Event):
    """The plan of a tuning is complete: its treatments come in the records before this one."""

    steps: Count  # of each process
    step_s: float  # a step of the unchanged script
    process_s: float  # a whole process, from its start to its end
    parts: dict[str, float] = {}  # of a step: shares in percent
    disabled: list[str] = []  # what was switched off, such as uploads
    written: list[str] = []  # files that the script wrote


class TreatmentTried(Event):
    """A process with a treatment has ended.

    It is recorded for each process before the comparison, and in the comparison for a process that
    ends its treatment.
    """

    arm: Word
    outcome: WordOrNothing = ""  # such as "OUT OF MEMORY"; empty: the treatment goes on
    why: str = ""  # the reason of that outcome
    did: list[str] = []  # what the treatment did
    step_s: float | None = None
    ratio: float | None = None  # the time of the base divided by this one; above 1 is faster
    peak_bytes: Count | None = None  # of the memory that counts: that of the GPU if one is used
    base_peak_bytes: Count | None = None  # the same of the base
    graphs: Count | None = None  # that torch.compile made
    compile_s: float | None = None


class TuningCombined(Event):
    """The winners of a tuning are combined into one more arm."""

    arm: Word
    parts: list[Word]  # the arms, in the order in which they are applied
    best: Word  # the best of the winners alone
    learns: Learning = "same"
    left_out: dict[str, str] = {}  # winners that are not in it: the reason by arm


class FirstCalled(Event):
    """The first call of an arm, with its one-time costs: compiling, first allocation."""

    arm: str
    wall_ns: Count


class BlockTimed(Event):
    """Calls of one arm that were timed together; each round has one block of each arm."""

    arm: str
    round: Count
    slot: Count
    loops: AtLeastOne
    wall_ns: AtLeastOne
    cpu_ns: Count
    device_ns: Count | None = None  # of older versions, from CUDA events: loops x the median step
    is_warmup: bool = False
    control: Control = ""
    is_disturbed: bool = False  # as the sensors show
    is_rerun: bool = False  # only in versions that ran a disturbed block again
    switches: int = 0  # involuntary context switches
    thread_ns: Count | None = None  # CPU time of the calling thread; cpu_ns is the whole process's
    waits: int | None = (
        None  # how often that thread gave its core away: for a lock, a disk, a sleep
    )
    pressure_us: int | None = None  # in which some process of the machine waited for a core
    run_delay_ns: int | None = None  # in which the calling thread wanted a core and had none
    # share of the usable cores that other processes used; asked only after a long delay
    others_share: float | None = None
    steal_ticks: int | None = None  # that the hypervisor took, of all cores
    core_steal_ticks: int | None = None  # of the core that the thread ran on
    throttled: int | None = None  # periods in which the cgroup's quota was used up
    records: int = 0  # written while the time ran
    stream_ns: Count | None = None  # between the first and last mark in the GPU's current stream
    submitted_ns: Count | None = None  # until the last call had returned, with its work queued
    # These fields are for commands. A block is then the mean of the steady steps of one process,
    # and cpu_ns includes its helpers.
    steps: Count | None = None  # whose CPU time was read
    # of these steps: those whose thread was kept from a core for more than a tenth of the time
    disturbed_steps: Count | None = None
    waited_ns: Count | None = None  # of a step: in which its thread wanted no core
    helped_by: str = ""  # other processes that take part in a step


class RaceFinished(Event):
    arms: list[str]
    is_same: bool | None = None  # whether the arms computed the same; None if not asked
    difference: str = ""
    record_ns: int = 0  # the cost of writing a record, to judge the observer
    # whether the times had stopped drifting before the first round that counts; None if not known
    is_settled: bool | None = None
    # by arm: GPU time of a call at most, of calls queued ahead, before the race and after it
    gpu_ns: dict[str, Count] = {}
    # of arms that are commands
    learned: dict[str, list[float]] = {}  # the first values of the curve that guards them
    dtypes: dict[str, str] = {}  # the coarsest dtype that each computes in, if that was seen
    # further numbers of each: seconds and counts a step, totals of its process
    accounts: dict[str, dict[str, float]] = {}


class CoresMeasured(Event):
    """The cores' worth of work that a number of busy processes really got."""

    processes: int
    effective: float


class CoresAwaited(Event):
    """How long a watched command waited for a core while it trained, and the load of others."""

    elapsed_s: float  # from the first to the last reading between its steps
    waited_s: float  # of all its threads: time in which they could run and had no core
    usable: AtLeastOne  # cores that the command may use
    others: float | None = None  # cores that other processes used on average; None if not known


class CountedPlace(msgspec.Struct, omit_defaults=True, frozen=True):
    """A line of a watched script that copies between host and device, or reads a value."""

    file: str
    line: Count
    kind: str  # "host to device", "device to host" or ".item()"
    memory: str  # of the host, for a copy: "pageable" or "pinned"; for a read: the type of device
    count: Count  # how often in the counted part
    bytes: Count  # of all these times
    source: str = ""  # the text of the line


class StepCounted(Event):
    """What one part of a watched command computed, copied and read: usually one step."""

    step: Count  # the number of the step in the curves
    arm: str = ""
    steps: AtLeastOne = 1  # whole steps of the counted part; all sums are those of the part
    flops: Count = 0
    kinds: dict[str, Count] = {}  # FLOPs by dtype; "tf32" is float32 that a GPU rounds
    uncounted: list[str] = []  # operators and kernels whose FLOPs are not known
    tokens: Count | None = None  # None: none were seen
    tokens_from: str = ""  # where they were seen: "module" or "DataLoader"
    copies: Count = 0  # between host and device, in lines of the script
    device_reads: Count = 0  # of a value that is on a GPU or another device, not on the host
    places: list[CountedPlace] = []
    packages: dict[str, list[Count]] = {}  # copies and device reads of installed packages
    device: str = ""  # the type of the device with the most FLOPs
    gpu: str = ""
    uuid: str = ""  # torch's UUID of that GPU
    threads: Count = 0  # of torch
    cores: Count = 0  # that the process may use
    precision: str = ""  # torch's precision of products in float32


class DeviceUsed(Event):
    """How much of a device a watched command used: its FLOPs, next to those of a matrix product."""

    step_s: Finite  # mean of the steady steps
    steps: AtLeastOne  # in that mean
    arm: str = ""
    flops: Finite | None = None  # of a step; None if the counted steps differ
    tokens: Finite | None = (
        None  # of a step; None if none were seen, or if the counted steps differ
    )
    tokens_from: str = ""  # "module", "DataLoader" or "--tokens"
    kind: str = ""  # the dtype of most FLOPs, or "tf32"
    device: str = ""  # in words
    # FLOPs a second of a matrix product of this kind on the same device; None if the steps are
    # not compared with it, for the reason in `why`
    matmul_flops_s: Finite | None = None
    why: str = ""
    peak_flops_s: Finite | None = None  # of a data sheet, by --peak-tflops


class ScenarioFailed(Event):
    type: str
    message: str
    traceback: str
    hint: str = ""
    source_dir: str = ""  # the folder of the scenario's file


class BoxLacked(Event):
    """The scenario ended early: this machine lacks what it needs."""

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
    waiting_bytes: Count = 0  # resident, of processes that wait for their repeat; not counted above
    gpus: dict[str, dict[str, float]] = {}  # uuid -> metric -> value; unknown ones are left out
    # uuid -> time of asking; a GPU may answer long before the sample is written
    gpus_asked: dict[str, Count] = {}


class GpuFound(Event):
    uuid: str
    index: Count  # by NVML; for a slice that of the whole GPU
    name: str
    bytes_total: Count | None = None
    slice: str = ""  # named as by nvidia-smi: "MIG 1g.10gb Device 0"; empty for a whole GPU
    power_limit_w: float | None = None
    most_sm_mhz: float | None = None

    @property
    def label(self) -> str:
        """Its name in charts and lists."""
        return gpu_label(self.index, self.slice)


class Tenant(msgspec.Struct, omit_defaults=True):
    """A process on a GPU that is not part of the run."""

    pid: Count
    user: str = ""  # empty if not known
    why: str = ""  # the reason why the user is not known
    bytes_used: Count | None = None  # None if the driver does not report it


class GpuShared(Event):
    """The other processes on a GPU of the run; written whenever they change."""

    uuid: str
    others: list[Tenant]  # the first ones
    count: Count


class XidReported(Event):
    """The driver reported an error of a GPU, or of a program on it."""

    uuid: str
    xid: Count


class Unavailable(Event):
    what: str
    reason: str


class Alerted(Event):
    """An event that the user of a training run wants to know at once; views show this text."""

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
    # the end of the A/A interval that is farther from 1, as a ratio minus 1
    noise_floor: float | None = None
    # the effect that would have been detected in four of five runs, as a ratio minus 1
    smallest_effect: float | None = None
    more_repeats: int | None = None
    units: int = 0
    unit: str = ""  # "repeats", or "rounds" of one process
    confidence: float | None = None  # of the interval
    measure: Word = "wall"  # the wall clock, or "cpu": CPU time of the calling thread
    gpu: str = ""  # torch's UUIDs of the GPUs that it was measured on; empty if none, or not known
    gpu_name: str = ""


def is_shallow(value: Any, depth: int = 20) -> bool:
    """Say whether plain data has at most `depth` levels; deeper data was not made for readers."""
    if isinstance(value, dict):
        parts = list(value.values())
    elif isinstance(value, list):
        parts = value
    else:
        parts = []
    return depth > 0 and all(is_shallow(part, depth - 1) for part in parts)


class Unknown(msgspec.Struct):
    """A record of a kind that this version does not know: it is kept and skipped."""

    n: Count
    t: Count
    k: str
    fields: dict[str, Any]


Record = (
    RunStarted | RunDescribed | StateChanged | BudgetSpent | WorkerStarted | WorkerExited
    | OutputCaptured | StopRequested | LeftoversEnded | SamplerEnded | StreamsCounted
    | EnvironmentRecorded | StageEntered | Logged | Progressed | ClaimMeasured | ClaimDeclared
    | ClaimNotTestable | TextShown | ImageShown | ArtifactSaved | MemoryMeasured | ArmFinished
    | RaceStarted | BlockTimed | RaceFinished | ScenarioFailed | FirstCalled | CoresMeasured
    | BoxLacked | ScenarioFinished | Sampled | GpuFound | Unavailable | VerdictReached
    | NothingTimed | XidReported | GpuHeld | GpuShared | Alerted | AxesNamed | BarsShown
    | TableShown | SpanShown | QuestionAnswered | SettingRaced | RankPlaced | CoresAwaited
    | BlockLogged | StepCounted | DeviceUsed | TreatmentPlanned | TuningPlanned
    | TreatmentTried | TuningCombined
)  # fmt: skip


def tag_of(kind: Any) -> str:
    """Return the name of a kind of records in the journal."""
    return str(kind.__struct_config__.tag)


KINDS = frozenset(map(tag_of, get_args(Record)))


def is_newer(record: object) -> "TypeGuard[RunStarted | Unknown]":
    """Say whether a record is the start of a run in a newer format, which may have other fields."""
    if isinstance(record, Unknown):
        version = record.fields.get("format")
        return record.k == "run_started" and isinstance(version, int) and version > FORMAT
    return isinstance(record, RunStarted) and record.format > FORMAT


def newer_words(started: "RunStarted | Unknown") -> str:
    """Return that a newer tuilab recorded a run, and what to do about it."""
    if isinstance(started, Unknown):
        fields = started.fields
    else:
        fields = msgspec.structs.asdict(started)
    version = f"{show(fields.get('tuilab', 'n/a'), 40)}, in format {show(fields['format'], 20)}"
    return (
        f"was recorded by a newer tuilab ({version}); upgrade this one, which reads format {FORMAT}"
    )
