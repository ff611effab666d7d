"""One node while it carries out runs: what it was asked last, and what its answer leads to."""

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tuilab.engine import messages
from tuilab.engine.messages import Receipt, RunOrder
from tuilab.errors import ExitCode, TuilabError
from tuilab.fleet.cluster import Node, NodeFailed, NodeRequest, Remote
from tuilab.fleet.host import RunNews
from tuilab.fleet.mirror import Mirror
from tuilab.record import presence
from tuilab.record.events import Identity
from tuilab.record.origin import carried
from tuilab.record.origin.carried import Carrier
from tuilab.runs.run_name import RunName
from tuilab.text.display import show

_EVERY_S = 0.25  # that a run is asked for news, at most
END_S = 10.0  # that a node has to stop what was told to stop at once
PATIENCE_S = 10.0  # with a node that has none
_MUCH = 1 << 20  # bytes at a time, behind which more is asked for at once
_DAY_S = 86_400.0
_ROUNDS = 3  # of bringing over again what is not as it is there


@dataclass
class Task:
    """A run that is wanted: anywhere, or on one node."""

    order: RunOrder
    files: Mapping[str, bytes] = field(default_factory=dict)  # that travel with it
    node: str = ""  # its id
    tries: int = 1


@dataclass
class NodeRun:
    """A node that this process holds, the run that it has there, and the question that is open."""

    node: Node
    remote: Remote
    me: Identity
    asked: NodeRequest | None = None
    task: Task | None = None
    mirror: Mirror | None = None
    problem: str = ""  # why the task could not begin, or what is missing of it
    code: int = 0
    is_ready: bool = False  # Ray has placed it on its node
    is_broken: bool = False  # what it has there is of no use any more
    odd: str = ""  # what is odd about that, until it is told
    _what: str = ""
    _due: float = 0.0
    _stop: str | None = None  # how it was asked to stop, when that was passed on
    _rounds: int = 0
    wanted: str | None = None  # how this process wants it to stop
    call: int = 0  # the number of the ranks that the run wants on other nodes now; 0: of none
    order: bytes = b""  # for these

    def __post_init__(self) -> None:
        self._ask("is_there")  # answered when Ray has placed it

    @property
    def run_dir(self) -> Path | None:
        """The folder of its run here; None where it has none."""
        return self.mirror.run_dir if self.mirror else None

    def let_go(self) -> None:
        """The run is over, or lost."""
        if self.mirror:
            self.mirror.end()
        self.task = self.mirror = None

    def begin(self, task: Task) -> None:
        self.task, self.mirror, self.problem, self.code = task, None, "", 0
        self._stop, self._rounds, self.wanted, self.call = None, 0, None, 0
        self._ask(
            "start", messages.pack(replace(task.order, node=self.node.name)), dict(task.files)
        )

    def heed(self) -> None:
        """Ask for what is due, and pass on that the run is to stop."""
        if self.mirror is None:
            return
        stop = (
            self.wanted if self.wanted is not None else carried.asked_to_stop(self.mirror.run_dir)
        )
        if stop is not None and stop != self._stop:
            self._stop = stop
            self.remote.ask("stop", at_once=stop == carried.AT_ONCE)  # it says nothing to that
        if self.asked is None and time.monotonic() >= self._due:
            self._due = time.monotonic() + _EVERY_S
            self._ask("read", self.mirror.known, PATIENCE_S)

    def take(self, answer: Any) -> bool:
        """Take an answer; return whether the run is over, and all of it here.

        What goes wrong there or is of no use, or cannot be written here, ends this run, and no other.
        """
        self.asked = None
        try:
            if isinstance(answer, NodeFailed):
                raise answer
            return self._take(answer)
        except TuilabError as problem:
            self.problem, self.code = str(problem), int(problem.exit_code)
        except NodeFailed as problem:
            self.problem, self.code = f"failed on the node: {problem}", int(ExitCode.FAILED)
        except Exception as problem:  # a node may answer anything
            self.problem = f"the node sent an invalid answer ({show(repr(problem), 100)})"
            self.code = int(ExitCode.FAILED)
        self.is_broken = True
        return True

    def _take(self, answer: Any) -> bool:
        match self._what:
            case "is_there":
                self.is_ready, self.odd = True, str(answer)
            case "start":
                return self._started(answer)
            case "read":
                return self._has_read(answer)
            case "digests":
                return self._compared(answer)
        return False

    def _ask(self, method: str, *args: Any, **named: Any) -> None:
        self._what, self.asked = method, self.remote.ask(method, *args, **named)

    def _started(self, receipt: Receipt) -> bool:
        assert self.task
        if receipt.error:
            self.is_broken = receipt.exit_code == ExitCode.CANNOT_RECORD  # nothing can run there
            is_known = receipt.exit_code in [*ExitCode]
            self.problem, self.code = (
                receipt.error,
                receipt.exit_code if is_known else int(ExitCode.FAILED),
            )
            return True
        name = Path(receipt.run_dir).name
        if why := _why_no_name(name):
            self.problem, self.code = (
                f"the node named its run {show(name, 60)}, {why}",
                int(ExitCode.FAILED),
            )
            return True
        run_dir = Path(self.task.order.root) / name
        self.mirror = Mirror(run_dir, Carrier(self.me, self.node.name))
        self._due = 0.0
        return False

    def _has_read(self, reading: RunNews) -> bool:
        assert self.mirror
        self.mirror.take(reading.pieces)
        self.call, self.order = reading.call, reading.order or self.order
        if sum(len(piece.data) for piece in reading.pieces) > _MUCH:
            self._due = 0.0
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
        if not is_whole:
            self.problem, self.code = (
                "its files could not be copied completely from the node",
                int(ExitCode.FAILED),
            )
        return True


def _why_no_name(name: str) -> str:
    """Return why a run cannot be called so here; a node may say anything."""
    started_s = RunName(name).started_s
    if started_s is None:
        return "which is not the name of a run"
    if started_s > time.time() + _DAY_S:
        return "which starts more than a day in the future: the clock of the node is wrong"
    return ""


def ourselves() -> Identity:
    """Return who carries the runs: this process."""
    me = presence.identify(os.getpid())
    assert me is not None  # we are here
    return me


def hear(seat: NodeRun, answer: Any, tell: Callable[[str], None]) -> bool:
    """Have a node take an answer, and tell what is new of it; return whether its run is over."""
    had, name = seat.mirror, show(seat.node.name, 60)
    is_over = seat.take(answer)
    if seat.odd:
        step = "on that node, set RAY_worker_niceness=0 before `ray start`"
        tell(f"{name}: {show(seat.odd, 200)}, which disturbs measurements; {step}")
        seat.odd = ""
    if seat.run_dir and not had:
        tell(f"{name}: started {show(seat.run_dir.name, 80)}")
    return is_over
