"""What a front asks of a supervisor, and what supervisor and worker say to each other.

An order travels as one JSON document over the supervisor's stdin. Supervisor and worker talk in messages over a socket
pair that keeps message boundaries, so nothing needs framing.
"""

import socket
from typing import Any

import msgspec

from tuilab.events import Scalar

UNDECIDED = 10  # exit code of a judge that looked and wants more repeats
_LIMIT = 200_000  # bytes; under the default send buffer of a unix socket


class RunOrder(msgspec.Struct, kw_only=True):
    """One run, as a front orders it."""

    root: str
    scenario: str
    topic: str
    title: str
    path: str
    params: dict[str, Scalar]
    changed: list[str] = []
    claims: list[str] = []
    repeats: int = 1
    looks: list[int] = []
    budget_s: float | None = None
    quick: bool = False
    timeout_s: float | None = None
    argv: list[str] = []


class Receipt(msgspec.Struct):
    """The supervisor's answer to an order: the folder of the run, or why there is none."""

    run_dir: str = ""
    error: str = ""
    exit_code: int = 0


class ArmOrder(msgspec.Struct, kw_only=True):
    """A function of the scenario to be called in a process of its own."""

    arm: str
    function: str
    args: list[Any] = []
    env: dict[str, str] = {}
    prefix: list[str] = []
    timeout_s: float = 60.0


class WorkerOrder(msgspec.Struct, kw_only=True):
    """What a worker is to run: the whole scenario, or one arm of it."""

    run_dir: str
    writer: str
    source_dir: str  # where the scenario file came from: its neighbours can be imported
    params: dict[str, Scalar] = {}
    repeat: int = 0
    repeats: int = 1
    quick: bool = False
    arm: ArmOrder | None = None


class Farewell(msgspec.Struct):
    """A worker's last message: how its part ended. None at all means that it died."""

    error: str = ""
    value: Any = None


class ArmReply(msgspec.Struct):
    """What came of an arm, for the worker that asked."""

    writer: str
    elapsed_s: float
    value: Any = None
    error: str = ""


Message = WorkerOrder | ArmOrder | Farewell | ArmReply


def pair() -> tuple[socket.socket, socket.socket]:
    """Return the two ends of a new line between supervisor and worker."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def send(line: socket.socket, message: Message) -> None:
    """Send one message; ValueError when it is too large or cannot be said in JSON."""
    try:
        data = msgspec.json.encode([type(message).__name__, message])
    except TypeError as problem:
        raise ValueError(str(problem)) from problem
    if len(data) > _LIMIT:
        raise ValueError(f"{len(data)} bytes are too much for a message; save it as an artifact")
    line.sendall(data)


def receive(line: socket.socket) -> Message | None:
    """Return the next message; None at the end of the line."""
    data = line.recv(_LIMIT + 1)
    if not data:
        return None
    name, fields = msgspec.json.decode(data, type=tuple[str, msgspec.Raw])
    kinds: dict[str, Any] = {kind.__name__: kind for kind in (WorkerOrder, ArmOrder, Farewell, ArmReply)}
    message: Message = msgspec.json.decode(fields, type=kinds[name])
    return message
