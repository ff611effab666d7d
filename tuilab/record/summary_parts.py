"""Defines the parts of a run's summary: workers, claims, blocks, and the users of its GPUs."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from tuilab.record import events
from tuilab.record.verdicts import NOT_JUDGED, is_against
from tuilab.text.words import gpu_words

# If more than this share of the blocks or steps is disturbed, the wall clock is not judged.
CALM_SHARE = 0.05

K = TypeVar("K")
V = TypeVar("V")


class Few(dict[K, V]):
    """A dict with a limited number of keys, because the keys come from records.

    Setting a further key stores nothing. `setdefault` then returns the default, as if it were
    stored.
    """

    MOST = 50_000
    is_full = False  # there were more keys

    def __setitem__(self, key: K, value: V) -> None:
        if self._has_room_for(key):
            super().__setitem__(key, value)

    def setdefault(self, key: K, default: Any = None) -> Any:
        if not self._has_room_for(key):
            return default
        return super().setdefault(key, default)

    def _has_room_for(self, key: K) -> bool:
        """Return whether a key may be set; if not, note that the dict is full."""
        if len(self) < self.MOST or key in self:
            return True
        self.is_full = True
        return False


@dataclass
class Worker:
    """A worker process of the run."""

    started: events.WorkerStarted | None = None
    exited: events.WorkerExited | None = None
    is_stopped: bool = False  # it was ended with the run, so it neither finished nor failed

    @property
    def repeat(self) -> int:
        return self.started.repeat if self.started else 0


@dataclass(slots=True)
class Claim:
    """A claim, what was measured for it, and the verdict once there is one."""

    text: str
    key: str = ""
    declared: events.ClaimDeclared | None = None
    # declarations that differ from the first one
    others: list[events.ClaimDeclared] = field(default_factory=list)
    declared_in: set[str] = field(default_factory=set)  # streams
    is_late: bool = False  # a race of its arms had begun when it was declared
    # one measurement for each repeat; the first ones if there are very many
    measured: list[events.ClaimMeasured] = field(default_factory=list)
    last: events.ClaimMeasured | None = None  # the last of all measurements
    missed: events.ClaimMeasured | None = None  # the first of all that contradicts the claim
    measured_in: set[str] = field(default_factory=set)  # streams
    missed_in: set[str] = field(default_factory=set)  # streams
    needs: str = ""  # why it cannot be tested here
    verdict: events.VerdictReached | None = None
    answered: events.QuestionAnswered | None = None  # the claim answers the lesson's question
    is_once: bool = False  # only the first repeat runs the part that measures it

    @property
    def claim_id(self) -> str:
        return self.key or self.text

    @property
    def outcome(self) -> str:
        """The verdict, or `not judged`."""
        return self.verdict.verdict if self.verdict else NOT_JUDGED

    @property
    def gpu(self) -> str:
        """The GPU that the verdict is about, in words; empty if it is about none."""
        if self.verdict is None:
            return ""
        return gpu_words(self.verdict.gpu_name, self.verdict.gpu)

    @property
    def is_contradicted(self) -> bool:
        """Whether the verdict contradicts the claim; exit codes, JUnit and reports use this."""
        bound = self.declared.bound if self.declared else None
        return self.verdict is not None and is_against(self.verdict.verdict, bound)


@dataclass
class RacedSetting:
    """A setting whose values were compared, as the repeats recorded it."""

    records: list[events.SettingRaced] = field(default_factory=list)  # one for each repeat
    writers: list[str] = field(default_factory=list)  # of these records
    is_late: bool = False  # a race of its arms had begun when it was recorded

    @property
    def against(self) -> str:
        """A reason against the setting; a repeat that did not look for one records none."""
        for record in self.records:
            if record.against:
                return record.against
        return ""


@dataclass(slots=True)
class Block:
    """The time of one call of an arm in one block of a race, and whether it counts."""

    round: int
    step_s: float
    is_warmup: bool = False
    is_disturbed: bool = False
    is_rerun: bool = False
    wall_ns: int = 0
    records: int = 0  # written while the time ran
    t: int = 0  # when it had ended
    loops: int = 1
    cpu_ns: int = 0
    thread_ns: int | None = None  # CPU time of the thread that made the calls
    waits: int | None = None  # how often that thread gave its core away by itself
    submitted_ns: int | None = None  # on a GPU, until the last call had returned
    steps: int | None = None  # of a command: steps whose CPU time was read
    disturbed_steps: int | None = None
    waited_ns: int | None = None  # of such a step: time in which its thread wanted no core
    helped_by: str = ""  # other processes that take part in such a step

    @property
    def thread_s(self) -> float | None:
        """The CPU time of one call, in seconds; None if it was not recorded."""
        return self.thread_ns / self.loops / 1e9 if self.thread_ns else None

    @property
    def has_disturbed_steps(self) -> bool:
        """Whether too many steps of a command were disturbed; a block is all its steps together."""
        return bool(self.steps) and (self.disturbed_steps or 0) > CALM_SHARE * (self.steps or 0)


class GivenDevice(NamedTuple):
    """A device that `lab.device()` gave to a scenario."""

    wanted: str
    chosen: str
    why: str
    notice: str  # what a reader must know before any result
    rank: str = ""  # under torchrun, the rank on its machine: each rank has a GPU of its own


class GpuState(NamedTuple):
    """A reading of a GPU for verdicts; None for what the driver did not report."""

    t: int  # when the driver was asked
    uuid: str
    throttle_mask: int | None  # as in nvml.h
    sm_mhz: float | None
    foreign_percent: float | None = None  # of the time, in which other processes kept it busy


@dataclass
class GpuTenant:
    """A process of another user or run that was seen on a GPU of the run."""

    tenant: events.Tenant
    most_bytes: int | None
    seen_t: int


@dataclass
class GpuTenants:
    """The other processes that were seen on a GPU of the run."""

    processes: dict[tuple[int, str], GpuTenant] = field(default_factory=dict)  # by pid and user
    most: int = 0  # at a time
    reported_t: int = 0  # of the last report

    def has_now(self, tenant: GpuTenant) -> bool:
        """Say whether a process is in the last report."""
        return tenant.seen_t == self.reported_t


@dataclass
class Tuning:
    """What a tuning has planned and tried so far."""

    treatments: dict[str, events.TreatmentPlanned] = field(default_factory=Few)  # by arm
    plan: events.TuningPlanned | None = None  # None: the plan is not complete yet
    # by arm: what its processes have shown; the last outcome counts
    tried: dict[str, events.TreatmentTried] = field(default_factory=Few)
    tries: int = 0  # processes with a treatment that ended before the comparison, or ended theirs
    combinations: list[events.TuningCombined] = field(default_factory=list)
    spent_stages: set[str] = field(default_factory=set)  # whose share of the budget is spent
