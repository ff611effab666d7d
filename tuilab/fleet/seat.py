"""One node while it carries out runs: what it was asked last, and what its answer leads to."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tuilab.engine import messages
from tuilab.engine.messages import Receipt, RunOrder
from tuilab.errors import ExitCode
from tuilab.fleet.cluster import Asked, Node, Remote
from tuilab.fleet.host import Reading
from tuilab.fleet.mirror import Mirror
from tuilab.record.events import Identity
from tuilab.record.origin import carried
from tuilab.record.origin.carried import Carrier
from tuilab.runs.run_name import RunName
from tuilab.text import show

_EVERY_S = 0.25  # that a run is asked for news, at most
PATIENCE_S = 10.0  # with a node that has none
_ROUNDS = 3  # of bringing over again what is not as it is there


@dataclass
class Task:
    """A run that is wanted: anywhere, or on one node."""

    order: RunOrder
    files: Mapping[str, bytes] = field(default_factory=dict)  # that travel with it
    node: str = ""  # its id
    tries: int = 1


@dataclass
class Seat:
    """A node that this process holds, the run that it has there, and the question that is open."""

    node: Node
    remote: Remote
    me: Identity
    asked: Asked | None = None
    task: Task | None = None
    mirror: Mirror | None = None
    problem: str = ""  # why the task could not begin, or what is missing of it
    code: int = 0
    is_ready: bool = False  # Ray has placed it on its node
    _what: str = ""
    _due: float = 0.0
    _stop: str | None = None  # how it was asked to stop, when that was passed on
    _rounds: int = 0
    wanted: str | None = None  # how this process wants it to stop
    call: int = 0  # the number of the ranks that the run wants on other nodes now; 0: of none
    order: bytes = b""  # for these

    def __post_init__(self) -> None:
        self._ask("is_there")  # answered when Ray has placed it

    def let_go(self) -> None:
        """The run is over, or lost."""
        if self.mirror:
            self.mirror.end()
        self.task = self.mirror = None

    def begin(self, task: Task) -> None:
        self.task, self.mirror, self.problem, self.code = task, None, "", 0
        self._stop, self._rounds, self.wanted, self.call = None, 0, None, 0
        self._ask("start", messages.pack(replace(task.order, node=self.node.name)), dict(task.files))

    def heed(self) -> None:
        """Ask for what is due, and pass on that the run is to stop."""
        if self.mirror is None:
            return
        stop = self.wanted if self.wanted is not None else carried.asked_to_stop(self.mirror.run_dir)
        if stop is not None and stop != self._stop:
            self._stop = stop
            self.remote.ask("stop", at_once=stop == carried.AT_ONCE)  # it says nothing to that
        if self.asked is None and time.monotonic() >= self._due:
            self._due = time.monotonic() + _EVERY_S
            self._ask("read", self.mirror.known, PATIENCE_S)

    def take(self, answer: Any) -> bool:
        """Take an answer; return whether the run is over, and all of it here."""
        self.asked = None
        match self._what:
            case "is_there":
                self.is_ready = True
            case "start":
                return self._started(answer)
            case "read":
                return self._has_read(answer)
            case "digests":
                return self._compared(answer)
        return False

    def _ask(self, what: str, *given: Any, **named: Any) -> None:
        self._what, self.asked = what, self.remote.ask(what, *given, **named)

    def _started(self, receipt: Receipt) -> bool:
        assert self.task
        if receipt.error:
            self.problem, self.code = receipt.error, receipt.exit_code
            return True
        name = Path(receipt.run_dir).name
        if RunName(name).started_s is None:  # a node may say anything
            self.problem, self.code = f"it called its run {show(name, 60)}, which is no name of one", int(ExitCode.FAILED)
            return True
        run_dir = Path(self.task.order.root) / name
        self.mirror = Mirror(run_dir, Carrier(self.me, self.node.name))
        self._due = 0.0
        return False

    def _has_read(self, reading: Reading) -> bool:
        assert self.mirror
        self.mirror.take(reading.pieces)
        self.call, self.order = reading.call, reading.order or self.order
        if reading.is_over:
            self._ask("digests")
        return False

    def _compared(self, digests: dict[str, str]) -> bool:
        assert self.mirror
        self._rounds += 1
        is_whole = self.mirror.forget_wrong(digests)
        if not is_whole and self._rounds < _ROUNDS:
            self._due = 0.0
            return False
        self.problem = "" if is_whole else "not all of its files are here as they are there"
        return True
