"""What a front asks of a supervisor, and what supervisor and worker say to each other.

An order travels as one line of JSON over the supervisor's stdin. Its answer is a receipt, and a run begins when the front has
heard that: one that was interrupted meanwhile leaves nothing behind. Supervisor and worker talk in messages over a socket
pair that keeps message boundaries, so nothing needs framing. Both are Python's JSON, which has words for NaN and Inf and
for file names that are not UTF-8.
"""

import errno
import json
import os
import socket
from typing import Any

import msgspec

from tuilab.record.events import Scalar, Sweep
from tuilab.storage.files import identity

RECEIPT = b"\x1etuilab: "  # stands before it: who loads at the start of Python, as a sitecustomize, may print something first
GO = b"!"  # the front has heard of its run
UNDECIDED = 10  # exit code of a judge that looked and wants more repeats
TORCHRUN = -1  # in the place of a rank: that itself says so
LIMIT = 200_000  # bytes of a message; under the default send buffer of a unix socket
_ENVELOPE = 1_000  # what a reply may have beside the value that an arm's farewell brought


class CommandArm(msgspec.Struct, kw_only=True):
    """One way to run a command that is raced against others."""

    name: str
    env: dict[str, str] = {}
    prefix: list[str] = []  # before the words of the command
    words: list[str] = []  # behind them


class ArmClaim(msgspec.Struct, kw_only=True):
    """That an arm of a command takes so many times less than another."""

    text: str
    key: str
    over: str
    under: str
    bound: float


class CommandOrder(msgspec.Struct, kw_only=True):
    """A command of the user's, to be run as it is and watched; with arms, to be raced against itself."""

    words: list[str]
    folder: str = ""  # that it runs in; empty: that of the front
    umask: int = 0o077  # that it begins with: that of the front
    arms: list[CommandArm] = []
    claims: list[ArmClaim] = []
    has_guard: bool = True  # the arms have to learn the same
    measure: str = ""  # what is held against each other of them: `memory`, or the last value of a curve; "": the time of a step
    watch: str = "all"  # or `steps`, or `nothing`
    metrics: list[str] = []  # NAME=PATTERN of numbers that it prints
    step_of: str = ""  # the optimizer whose step ends a step
    outputs: list[
        int
    ] = []  # descriptors that what it prints goes to besides, as it comes: stdout and stderr of the front
    is_joined: bool = False  # these are one file, as after 2>&1: then they are for the command, too, and keep their order
    stdin: int | None = None  # a descriptor that it reads, of the front; None: nothing
    others: list[
        int
    ] = []  # descriptors that the shell gave the front, as of <(...), which it has under the same numbers

    @property
    def said(self) -> list[str]:
        """All words of it, and those of its arms with their variables."""
        arms = (
            [*arm.prefix, *(f"{name}={value}" for name, value in arm.env.items()), *arm.words]
            for arm in self.arms
        )
        return [*self.words, *(word for arm in arms for word in arm)]

    @property
    def descriptors(self) -> list[int]:
        """Those of the front that the processes on the way to the command inherit."""
        return [*self.outputs, *self.handed_over]

    @property
    def handed_over(self) -> list[int]:
        """Those of them that are the command's alone: whoever is at the other end sees when it has closed them."""
        return [*self.others, *([] if self.stdin is None else [self.stdin])]


class RankNode(msgspec.Struct, frozen=True):
    """A node of a cluster that ranks run on."""

    name: str
    address: str  # by which the others reach it


class NodeSpread(msgspec.Struct, kw_only=True):
    """The nodes that the ranks of a group are divided over; the run itself is on the first."""

    nodes: list[RankNode]
    line: str = ""  # the socket of whoever starts ranks on the others


class Place(msgspec.Struct, frozen=True):
    """Where a rank runs, and how its clock is made that of its run."""

    node: str
    ahead_ns: int = 0  # that the clock of the run's node is, beside that of this one
    error_ns: int = 0  # by how much that may be wrong


class RunOrder(msgspec.Struct, kw_only=True):
    """One run, as a front orders it."""

    root: str
    scenario: str
    topic: str
    title: str
    path: str
    params: dict[str, Scalar]
    changed: list[str] = []
    secrets: list[str] = []  # the params whose values are not recorded
    claims: list[str] = []
    claim_keys: list[str] = []
    repeats: int = 1
    has_usual_repeats: bool = (
        False  # nobody asked for their number: of a run that times nothing the first is enough
    )
    looks: list[int] = []
    budget_s: float | None = None
    imports: list[str] = []  # modules that a worker may load before its turn
    quick: bool = False
    timeout_s: float | None = None
    devices: list[
        str
    ] = []  # that what it times needs for itself: `cores`, `cuda:0`, or `cuda` for any GPU
    wants_quiet: bool = True  # nothing is loaded beside it
    waits: bool = False  # until runs before it in the queue have done with these
    prediction: float | None = None
    argv: list[str] = []
    command: CommandOrder | None = None  # instead of a scenario
    sweep: Sweep | None = None  # that it is a point of
    retry_of: str = ""
    node: str = ""  # of a cluster, that it is carried out on
    spread: NodeSpread | None = None  # the nodes of its ranks, if they are not all on one


class Receipt(msgspec.Struct):
    """The supervisor's answer to an order: the folder of the run, or why there is none."""

    run_dir: str = ""
    error: str = ""
    exit_code: int = 0


class ArmOrder(msgspec.Struct, kw_only=True, tag=True):
    """A function of the scenario to be called in a process of its own."""

    arm: str
    function: str
    args: list[Any] = []
    env: dict[str, str] = {}
    prefix: list[str] = []
    timeout_s: float = 60.0
    has_group: bool = (
        False  # its ranks are in one process group, and rank 0 returns what each of them returned
    )
    elsewhere: list[
        list[str]
    ] = []  # what stands before the command line on each further node, as it was given


class WarmUp(msgspec.Struct, tag=True):
    """To a worker that is started ahead: get ready, the order will follow."""

    modules: list[str]  # to be loaded meanwhile
    is_first: bool = False  # of its run: while it loads, what it uses counts as that of a worker that has its order
    is_timed: bool = True  # what it will run: nothing of the loading is to be left to do then


class Ready(msgspec.Struct, tag=True):
    """From a worker that was started ahead: it has loaded what it was told to."""


class WorkerOrder(msgspec.Struct, kw_only=True, tag=True):
    """What a worker is to run: the whole scenario, or one arm of it."""

    run_dir: str
    writer: str
    source_dir: str  # where the scenario file came from: its neighbours can be imported
    params: dict[str, Scalar] = {}
    secrets: list[str] = []  # the params whose values are not recorded
    repeat: int = 0
    repeats: int = 1
    quick: bool = False
    arm: ArmOrder | None = None
    rank: int = 0  # under torchrun
    command: CommandOrder | None = None
    spread: NodeSpread | None = None
    place: Place | None = None  # of a rank, if not all are on one node


class LeftProcess(msgspec.Struct):
    """A process that a command left behind and that still prints: it may end when nobody reads it."""

    pid: int
    name: str


class WorkerResult(msgspec.Struct, tag=True):
    """A worker's last message: how its part ended. None at all means that it died."""

    error: str = ""
    value: Any = None
    lost: int = 0  # records that could not be written
    rank: int = 0  # whose it is, under torchrun; or TORCHRUN
    failed_ns: int = 0  # when, by the clock of the run: of ranks on several nodes the first is told
    lacks: str = ""  # what this box has not: the run is over, and has not failed
    left: list[LeftProcess] = []


class ArmReply(msgspec.Struct, tag=True):
    """What came of an arm, for the worker that asked."""

    writer: str
    elapsed_s: float
    value: Any = None
    error: str = ""


Message = WarmUp | Ready | WorkerOrder | ArmOrder | WorkerResult | ArmReply


class WorkerLine:
    """A worker's end of its line: the scenario may close it, and what it opens then may get its number."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._file = identity(os.fstat(end.fileno()))
        self._pid = os.getpid()

    def send(self, message: Message) -> None:
        """Send one message; ValueError when it is too large or no plain data."""
        self.check()
        send(self._end, message)

    def receive(self) -> Message | None:
        """Return the next message; None at the end of the line, ValueError when it is none."""
        self.check()
        return receive(self._end)

    def check(self) -> None:
        """Raise OSError when the line was closed, RuntimeError in the child of a fork."""
        if os.getpid() != self._pid:
            raise RuntimeError("the lab can only be used by the process that runs the scenario")
        try:
            is_open = identity(os.fstat(self._end.fileno())) == self._file
        except OSError:
            is_open = False
        if not is_open:
            raise OSError(
                errno.EBADF,
                "the scenario closed the line to its supervisor: close only what the scenario opened",
            )


def pack(value: Any) -> bytes:
    """Return an order, a receipt or a message as bytes; ValueError when it holds something that is no plain data."""
    try:
        return json.dumps(msgspec.to_builtins(value)).encode()
    except (TypeError, RecursionError) as problem:
        raise ValueError(str(problem)) from problem


def unpack(data: bytes, kind: Any) -> Any:
    """Return what `pack` was given; ValueError when it is not of that kind."""
    try:
        return msgspec.convert(json.loads(data), kind)
    except (msgspec.MsgspecError, RecursionError) as problem:
        raise ValueError(str(problem)) from problem


def pack_message(message: Message) -> bytes:
    """Return a message as bytes; ValueError when it is too large or no plain data."""
    data = pack(message)
    if len(data) > (LIMIT if isinstance(message, ArmReply) else LIMIT - _ENVELOPE):
        raise ValueError(f"{len(data)} bytes are too much for a message; save it as an artifact")
    return data


def send(line: socket.socket, message: Message) -> None:
    """Send one message; ValueError when it is too large or no plain data."""
    line.sendall(pack_message(message))


def receive(line: socket.socket, flags: int = 0) -> Message | None:
    """Return the next message; None at the end of the line, ValueError when it is none."""
    data = line.recv(LIMIT + 1, flags)
    if not data:
        return None
    message: Message = unpack(data, Message)
    return message
