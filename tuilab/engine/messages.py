"""The messages between client, supervisor and worker.

An order is one line of JSON on the stdin of the supervisor, and its answer is a receipt. The run
begins when the client has read the receipt, so that an interrupted client leaves nothing behind.
Supervisor and worker send messages over a socket pair that keeps message boundaries. All of them
are JSON as Python writes it, because that has NaN, Inf, and file names that are not UTF-8.

An arm is one variant of a comparison, and a race times arms in turn. A writer is the name of the
journal stream that a worker writes.
"""

import errno
import json
import os
import socket
from typing import Any

import msgspec

from tuilab.record.events import Scalar, Sweep
from tuilab.storage.files import identity

# Comes before a receipt, because a sitecustomize may print something first.
RECEIPT = b"\x1etuilab: "
GO = b"!"  # the client has read the receipt
UNDECIDED = 10  # exit code of a judge: more repeats could decide a claim
TORCHRUN = -1  # instead of a rank: the message is from torchrun
TUNE_COPY = "copy"  # the folder of a run with the copy in which a tuning runs the script
LIMIT = 200_000  # bytes of a message: less than the default send buffer of a unix socket
_ENVELOPE = 1_000  # bytes of an ArmReply besides the value from the WorkerResult


class CommandArm(msgspec.Struct, kw_only=True):
    """One way to run a command, for a race of commands."""

    name: str
    env: dict[str, str] = {}
    prefix: list[str] = []  # before the words of the command
    words: list[str] = []  # after the words of the command
    treatments: list[str] = []  # of a tuning, which its process applies


class TuneOrder(msgspec.Struct, kw_only=True):
    """What to tune, and within which limits."""

    budget_s: float
    only: list[str] = []  # names of treatments; empty: all
    steps: int = 0  # of each process; 0: chosen after the script was watched
    # Whether the script may run again although it has changed or deleted files.
    may_change_files: bool = False
    is_in_copy: bool = False  # whether the script runs in a copy of its folder


class ArmClaim(msgspec.Struct, kw_only=True):
    """The claim that arm `under` is faster than arm `over` by at least `bound` times."""

    text: str
    key: str
    over: str
    under: str
    bound: float


class CommandOrder(msgspec.Struct, kw_only=True):
    """A command of the user, which is run unchanged and watched.

    With arms, its variants are timed against each other.
    """

    words: list[str]
    folder: str = ""  # where it runs; empty: the folder of the client
    umask: int = 0o077  # of the client
    arms: list[CommandArm] = []
    claims: list[ArmClaim] = []
    has_guard: bool = True  # whether the arms must learn the same
    measure: str = ""  # compared between arms: time of a step (empty), `memory`, or a curve
    watch: str = "all"  # or `steps` or `nothing`
    metrics: list[str] = []  # NAME=PATTERN of printed numbers
    step_of: str = ""  # the optimizer whose steps are counted
    tune: TuneOrder | None = None  # try treatments instead of running the command once
    # Whether torch records which line allocates each block on a GPU.
    has_memory_history: bool = False
    tokens: int = 0  # of a step, as the user says; 0: tuilab looks for them
    peak_tflops: float = 0.0  # of the device, by its data sheet; 0: not given
    outputs: list[int] = []  # stdout and stderr of the client, which get a copy of the output
    # Whether these are one file, as after 2>&1. The command then also has one file for both.
    is_joined: bool = False
    stdin: int | None = None  # the descriptor of the client that it reads; None: nothing
    # Descriptors that the shell gave the client, as for <(...). The command has the same numbers.
    others: list[int] = []

    @property
    def all_words(self) -> list[str]:
        """All words of the command and its arms, variables included."""
        words = list(self.words)
        for arm in self.arms:
            words += arm.prefix
            words += [f"{name}={value}" for name, value in arm.env.items()]
            words += arm.words
        return words

    @property
    def descriptors(self) -> list[int]:
        """The descriptors of the client that supervisor and worker inherit."""
        return [*self.outputs, *self.handed_over]

    @property
    def handed_over(self) -> list[int]:
        """The descriptors that only the command keeps, so that their other end sees its end."""
        if self.stdin is None:
            return self.others
        return self.others + [self.stdin]


class RankNode(msgspec.Struct, frozen=True):
    """A node of a cluster that ranks run on."""

    name: str
    address: str  # for the other nodes


class NodeSpread(msgspec.Struct, kw_only=True):
    """The nodes over which the ranks of a group are distributed; the run itself is on the first."""

    nodes: list[RankNode]
    line: str = ""  # path of the socket of the process that starts ranks on other nodes


class Place(msgspec.Struct, frozen=True):
    """Where a rank runs, and how its clock differs from that of the run."""

    node: str
    ahead_ns: int = 0  # the clock of the run minus the clock of this node
    error_ns: int = 0  # the uncertainty of that


class RunOrder(msgspec.Struct, kw_only=True):
    """The order of a client for one run."""

    root: str
    scenario: str
    topic: str
    title: str
    path: str
    params: dict[str, Scalar]
    changed: list[str] = []
    secrets: list[str] = []  # names of params whose values are not recorded
    claims: list[str] = []
    claim_keys: list[str] = []
    repeats: int = 1
    # Whether the number is the default: then one repeat is enough if it times nothing.
    has_usual_repeats: bool = False
    looks: list[int] = []
    budget_s: float | None = None
    imports: list[str] = []  # modules that a worker may load in advance
    quick: bool = False
    timeout_s: float | None = None
    devices: list[str] = []  # devices that it needs alone: `cores`, `cuda:0`, or `cuda` for any GPU
    wants_quiet: bool = True  # no other process may load modules while it runs
    waits: bool = False  # whether it waits in the queue for these devices
    prediction: float | None = None
    argv: list[str] = []
    command: CommandOrder | None = None  # instead of a scenario
    sweep: Sweep | None = None  # the sweep of which it is a point
    retry_of: str = ""
    node: str = ""  # the node of a cluster on which it runs
    spread: NodeSpread | None = None  # the nodes of its ranks, if they are not all on one


class Receipt(msgspec.Struct):
    """The answer of a supervisor to an order: the folder of the run, or an error."""

    run_dir: str = ""
    error: str = ""
    exit_code: int = 0


class ArmOrder(msgspec.Struct, kw_only=True, tag=True):
    """A function of the scenario that a new process calls."""

    arm: str
    function: str
    args: list[Any] = []
    env: dict[str, str] = {}
    prefix: list[str] = []
    timeout_s: float = 60.0
    has_group: bool = False  # its ranks form a process group, and rank 0 returns all their values
    elsewhere: list[list[str]] = []  # the prefix of the command line on each further node


class WarmUp(msgspec.Struct, tag=True):
    """Tells a worker that was started in advance to load modules; its order follows later."""

    modules: list[str]
    # It is the first worker of a run: the sampler counts its resources from now on.
    is_first: bool = False
    is_timed: bool = True  # its run is timed, so it must finish all loading before that


class Ready(msgspec.Struct, tag=True):
    """Says that a worker has loaded the modules of its WarmUp."""


class WorkerOrder(msgspec.Struct, kw_only=True, tag=True):
    """Tells a worker what to run: the scenario, or one arm of it."""

    run_dir: str
    writer: str
    source_dir: str  # the original folder of the scenario file, for imports from it
    params: dict[str, Scalar] = {}
    secrets: list[str] = []  # names of params whose values are not recorded
    repeat: int = 0
    repeats: int = 1
    quick: bool = False
    arm: ArmOrder | None = None
    rank: int = 0  # under torchrun
    command: CommandOrder | None = None
    spread: NodeSpread | None = None
    place: Place | None = None  # of a rank, if ranks are on several nodes


class LeftProcess(msgspec.Struct):
    """A process that a command left behind and that still prints."""

    pid: int
    name: str


class WorkerResult(msgspec.Struct, tag=True):
    """The last message of a worker: its result. A worker that died sends none."""

    error: str = ""
    value: Any = None
    lost: int = 0  # records that could not be written
    rank: int = 0  # under torchrun, or TORCHRUN
    failed_ns: int = 0  # on the clock of the run: the earliest failure of all nodes is recorded
    lacks: str = ""  # what the machine lacks: the run is over, but has not failed
    enough: str = ""  # of a tuning: why no further repeat is needed
    left: list[LeftProcess] = []


class ArmReply(msgspec.Struct, tag=True):
    """Tells the worker that ordered an arm its result."""

    writer: str
    elapsed_s: float
    value: Any = None
    error: str = ""


Message = WarmUp | Ready | WorkerOrder | ArmOrder | WorkerResult | ArmReply


class WorkerLine:
    """The end of a socket pair in a worker.

    A scenario may close it by mistake, and a file that it opens then may get the same descriptor.
    """

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._file = identity(os.fstat(end.fileno()))
        self._pid = os.getpid()

    def send(self, message: Message) -> None:
        """Send one message; raise ValueError if it is too large or no plain data."""
        self.check()
        send(self._end, message)

    def receive(self) -> Message | None:
        """Return the next message, or None at the end; raise ValueError if it is invalid."""
        self.check()
        return receive(self._end)

    def check(self) -> None:
        """Raise OSError if the socket was closed, RuntimeError in a forked child."""
        if os.getpid() != self._pid:
            raise RuntimeError("the lab can only be used by the process that runs the scenario")
        try:
            is_open = identity(os.fstat(self._end.fileno())) == self._file
        except OSError:
            is_open = False
        if not is_open:
            raise OSError(
                errno.EBADF,
                "the scenario closed the line to its supervisor: close only what the scenario"
                " opened",
            )


def pack(value: Any) -> bytes:
    """Return a message as bytes; raise ValueError if it has values that JSON cannot hold."""
    try:
        return json.dumps(msgspec.to_builtins(value)).encode()
    except (TypeError, RecursionError) as problem:
        raise ValueError(str(problem)) from problem


def unpack(data: bytes, kind: Any) -> Any:
    """Return the message of this type in `data`; raise ValueError if it is another one."""
    try:
        return msgspec.convert(json.loads(data), kind)
    except (msgspec.MsgspecError, RecursionError) as problem:
        raise ValueError(str(problem)) from problem


def pack_message(message: Message) -> bytes:
    """Return a message between supervisor and worker as bytes.

    Raise ValueError if it is too large.
    """
    data = pack(message)
    limit = LIMIT - _ENVELOPE
    if isinstance(message, ArmReply):
        limit = LIMIT
    if len(data) > limit:
        raise ValueError(f"{len(data)} bytes are too much for a message; save it as an artifact")
    return data


def send(line: socket.socket, message: Message) -> None:
    """Send one message; raise ValueError if it is too large or no plain data."""
    line.sendall(pack_message(message))


def receive(line: socket.socket, flags: int = 0) -> Message | None:
    """Return the next message, or None at the end; raise ValueError if it is invalid."""
    data = line.recv(LIMIT + 1, flags)
    if not data:
        return None
    message: Message = unpack(data, Message)
    return message
