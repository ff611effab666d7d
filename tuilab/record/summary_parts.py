"""The parts of a run's summary: its workers, claims, blocks, and who else was on its GPUs."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from tuilab.record import events
from tuilab.record.verdicts import NOT_JUDGED, is_against
from tuilab.text.words import gpu_words

CALM_SHARE = 0.05  # of the blocks or steps that may be disturbed before the wall clock is left

K = TypeVar("K")
V = TypeVar("V")


class Few(dict[K, V]):
    """What is kept by a name that a record gives: so many names and no more, whatever a record holds.

    Who sets one beyond that gets what is kept nowhere, as if it were.
    """

    MOST = 50_000
    is_full = False  # there were more

    def __setitem__(self, key: K, value: V) -> None:
        if self._takes(key):
            super().__setitem__(key, value)

    def setdefault(self, key: K, default: Any = None) -> Any:
        return super().setdefault(key, default) if self._takes(key) else default

    def _takes(self, key: K) -> bool:
        takes = len(self) < self.MOST or key in self
        self.is_full |= not takes
        return takes


@dataclass
class Worker:
    """A worker process of the run."""

    started: events.WorkerStarted | None = None
    exited: events.WorkerExited | None = None
    lost: int = 0  # records that it could not write
    is_stopped: bool = False  # it was ended with the run, and neither finished nor failed

    @property
    def repeat(self) -> int:
        return self.started.repeat if self.started else 0


@dataclass(slots=True)
class Claim:
    """A claim, what was measured for it, and the verdict once there is one."""

    text: str
    key: str = ""
    declared: events.ClaimDeclared | None = None
    others: list[events.ClaimDeclared] = field(
        default_factory=list
    )  # declarations that differ from the first one
    declared_in: set[str] = field(default_factory=set)  # streams
    is_late: bool = False  # a race of its arms had begun when it was declared
    measured: list[events.ClaimMeasured] = field(
        default_factory=list
    )  # one a repeat, of very many the first
    last: events.ClaimMeasured | None = None  # of all
    missed: events.ClaimMeasured | None = None  # the first of all that is not as claimed
    measured_in: set[str] = field(default_factory=set)  # streams
    missed_in: set[str] = field(default_factory=set)
    needs: str = ""  # why it cannot be tested here
    verdict: events.VerdictReached | None = None
    answered: events.QuestionAnswered | None = None  # it answers the question of the lesson
    is_once: bool = False  # it stands in a part that only the first repeat runs

    @property
    def claim_id(self) -> str:
        return self.key or self.text

    @property
    def outcome(self) -> str:
        """The verdict, or that there is none."""
        return self.verdict.verdict if self.verdict else NOT_JUDGED

    @property
    def gpu(self) -> str:
        """The GPU that the verdict is about, in words; nothing where it is about none."""
        return gpu_words(self.verdict.gpu_name, self.verdict.gpu) if self.verdict else ""

    @property
    def is_contradicted(self) -> bool:
        """Whether the verdict stands against the claim: what exit codes, JUnit and reports go by."""
        bound = self.declared.bound if self.declared else None
        return self.verdict is not None and is_against(self.verdict.verdict, bound)


@dataclass
class RacedSetting:
    """A setting whose values are held against each other, as the repeats said."""

    said: list[events.SettingRaced] = field(default_factory=list)  # one a repeat
    writers: list[str] = field(default_factory=list)  # of those
    is_late: bool = False  # a race of its arms had begun when it was said

    @property
    def against(self) -> str:
        """What speaks against it: where only the first repeat looked, the others said nothing."""
        return next((one.against for one in self.said if one.against), "")


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
    waits: int | None = None  # times that it gave its core away by itself
    submitted_ns: int | None = None  # until the last call had returned, on a GPU
    steps: int | None = None  # of a command, whose CPU time was read
    disturbed_steps: int | None = None
    waited_ns: int | None = None  # of such a step, in which its thread wanted no core
    helped_by: str = ""  # other processes that take part in it

    @property
    def thread_s(self) -> float | None:
        """The CPU time of one call, in seconds; None if it was not recorded."""
        return self.thread_ns / self.loops / 1e9 if self.thread_ns else None

    @property
    def has_disturbed_steps(self) -> bool:
        """Whether too many steps of a command were disturbed: its block is all of them together."""
        return bool(self.steps) and (self.disturbed_steps or 0) > CALM_SHARE * (self.steps or 0)


class GivenDevice(NamedTuple):
    """A device that `lab.device()` gave to a scenario."""

    wanted: str
    chosen: str
    why: str
    notice: str  # what is to be known of it first
    rank: str = ""  # on its box, of one under torchrun: each has a GPU of its own


class GpuState(NamedTuple):
    """What the sampler read of a GPU for verdicts; None where the driver did not tell."""

    t: int  # when it was asked
    uuid: str
    throttle_mask: int | None  # as in nvml.h
    sm_mhz: float | None
    foreign_percent: float | None = None  # of its time, in which processes of others kept it busy


@dataclass
class GpuTenant:
    """A process of somebody else that was seen on a GPU of the run."""

    tenant: events.Tenant
    most_bytes: int | None
    seen_t: int


@dataclass
class GpuTenants:
    """Who else was on a GPU of the run, and how many there were at most; `told_t` is when that was told last."""

    known: dict[tuple[int, str], GpuTenant] = field(default_factory=dict)  # by pid and user
    most: int = 0
    told_t: int = 0
