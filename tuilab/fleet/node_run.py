"""One node with the run that it carries out: the open request, and what follows from its answer."""

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

_EVERY_S = 0.25  # between two requests for news, at least
END_S = 10.0  # for a node to stop a run at once
PATIENCE_S = 10.0  # a node without news answers after so long
_MUCH = 1 << 20  # bytes: after a larger answer, the next request follows at once
_DAY_S = 86_400.0
_ROUNDS = 3  # attempts to copy files that differ from those on the node


@dataclass
class Task:
    """An order to be run on any node, or on one."""

    order: RunOrder
    files: Mapping[str, bytes] = field(default_factory=dict)  # sent with it, by name
    node: str = ""  # the id of a node; empty: any
    tries: int = 1


@dataclass
class NodeRun:
    """A reserved node, its run, and the open request."""

    node: Node
    remote: Remote
    me: Identity
    asked: NodeRequest | None = None
    task: Task | None = None
    mirror: Mirror | None = None
    problem: str = ""  # why the run could not begin, or is incomplete here
    code: int = 0
    is_ready: bool = False  # the host has started on the node
    is_broken: bool = False  # the host cannot be used any more
    odd: str = ""  # a warning about the host that was not shown yet
    _what: str = ""  # the method of the open request
    _due: float = 0.0  # when to ask for news again, by the monotonic clock
    _stop: str | None = None  # the request to stop that was sent to the node
    _rounds: int = 0
    # The request of this process to stop: None, "" (cleanly) or carried.AT_ONCE.
    wanted: str | None = None
    call: int = 0  # the number of the call that needs ranks on other nodes; 0: none
    order: bytes = b""  # of that call

    def __post_init__(self) -> None:
        self._ask("is_there")  # it has an answer when the host has started

    @property
    def run_dir(self) -> Path | None:
        """The folder of the run on this machine, or None."""
        return self.mirror.run_dir if self.mirror else None

    def let_go(self) -> None:
        """Forget the run, which is over or lost, and record that it is no longer copied."""
        if self.mirror:
            self.mirror.end()
        self.task = None
        self.mirror = None

    def begin(self, task: Task) -> None:
        """Send the order of a task to the node, without waiting for its answer."""
        self.task = task
        self.mirror = None
        self.problem = ""
        self.code = 0
        self._stop = None
        self._rounds = 0
        self.wanted = None
        self.call = 0
        order = replace(task.order, node=self.node.name)
        self._ask("start", messages.pack(order), dict(task.files))

    def heed(self) -> None:
        """Pass on a request to stop that is new, and ask for news if that is due.

        Such a request comes from this process (`wanted`), or from another one through a file in the
        folder of the run. Does nothing until the run has started.
        """
        if self.mirror is None:
            return
        stop = self.wanted
        if stop is None:
            stop = carried.asked_to_stop(self.mirror.run_dir)
        if stop is not None and stop != self._stop:
            self._stop = stop
            # We do not wait for the answer.
            self.remote.ask("stop", at_once=stop == carried.AT_ONCE)
        if self.asked is None and time.monotonic() >= self._due:
            self._due = time.monotonic() + _EVERY_S
            self._ask("read", self.mirror.known, PATIENCE_S)

    def take(self, answer: Any) -> bool:
        """Handle the answer to the open request; return whether the run is over and copied.

        An error on the node, an invalid answer, or a full disk here ends this run, and no other.
        Then `is_broken`, `problem` and `code` are set.
        """
        self.asked = None
        try:
            if isinstance(answer, NodeFailed):
                raise answer
            return self._take(answer)
        except TuilabError as problem:
            self.problem = str(problem)
            self.code = int(problem.exit_code)
        except NodeFailed as problem:
            self.problem = f"failed on the node: {problem}"
            self.code = int(ExitCode.FAILED)
        except Exception as problem:  # a node may answer anything
            self.problem = f"the node sent an invalid answer ({show(repr(problem), 100)})"
            self.code = int(ExitCode.FAILED)
        self.is_broken = True
        return True

    def _take(self, answer: Any) -> bool:
        """Handle an answer by the method that was asked; return whether the run is over.

        May raise anything if the node sent something else.
        """
        match self._what:
            case "is_there":
                self.is_ready = True
                self.odd = str(answer)
            case "start":
                return self._started(answer)
            case "read":
                return self._has_read(answer)
            case "digests":
                return self._compared(answer)
        return False

    def _ask(self, method: str, *args: Any, **named: Any) -> None:
        """Send a request to the node, and remember the method: `take` handles its answer.

        Only one request is open at a time; requests to stop do not count.
        """
        self._what = method
        self.asked = self.remote.ask(method, *args, **named)

    def _started(self, receipt: Receipt) -> bool:
        """Begin the copy of a run that has started; return True if it did not start, else False.

        The node names the run, so the name is checked before a folder of that name is created here.
        """
        assert self.task
        if receipt.error:
            self.is_broken = receipt.exit_code == ExitCode.CANNOT_RECORD  # the next one fails, too
            self.problem = receipt.error
            self.code = receipt.exit_code
            if self.code not in list(ExitCode):
                self.code = int(ExitCode.FAILED)
            return True
        name = Path(receipt.run_dir).name
        reason = _why_no_name(name)
        if reason:
            self.problem = f"the node named its run {show(name, 60)}, {reason}"
            self.code = int(ExitCode.FAILED)
            return True
        run_dir = Path(self.task.order.root) / name
        self.mirror = Mirror(run_dir, Carrier(self.me, self.node.name))
        self._due = 0.0
        return False

    def _has_read(self, reading: RunNews) -> bool:
        """Write the news into the copy; after the last news, ask for the digests of the files.

        The result is False: the run is over only after the files were compared.
        """
        assert self.mirror
        self.mirror.take(reading.pieces)
        self.call = reading.call
        self.order = reading.order or self.order
        if sum(len(piece.data) for piece in reading.pieces) > _MUCH:
            self._due = 0.0
        if reading.is_over:
            self._ask("digests")
        return False

    def _compared(self, digests: dict[str, str]) -> bool:
        """Compare the copy with the digests of the node, and return whether the run is over.

        Files that differ are read again, up to three times. After that the run ends with a problem.
        """
        assert self.mirror
        self._rounds += 1
        is_whole = self.mirror.forget_wrong(digests)
        if not is_whole and self._rounds < _ROUNDS:
            self._due = 0.0
            return False
        if not is_whole:
            self.problem = "its files could not be copied completely from the node"
            self.code = int(ExitCode.FAILED)
        return True


def _why_no_name(name: str) -> str:
    """Return why a name from a node is not accepted for a run, or nothing."""
    started_s = RunName(name).started_s
    if started_s is None:
        return "which is not the name of a run"
    if started_s > time.time() + _DAY_S:
        return "which starts more than a day in the future: the clock of the node is wrong"
    return ""


def ourselves() -> Identity:
    """Return the identity of this process."""
    me = presence.identify(os.getpid())
    assert me is not None  # this process exists
    return me


def hear(node_run: NodeRun, answer: Any, tell: Callable[[str], None]) -> bool:
    """Handle an answer; return whether the run is over.

    Prints, once each, a warning about the host and the start of the run.
    """
    had_run = node_run.mirror is not None
    name = show(node_run.node.name, 60)
    is_over = node_run.take(answer)
    if node_run.odd:
        step = "on that node, set RAY_worker_niceness=0 before `ray start`"
        tell(f"{name}: {show(node_run.odd, 200)}, which disturbs measurements; {step}")
        node_run.odd = ""
    if node_run.run_dir and not had_run:
        tell(f"{name}: started {show(node_run.run_dir.name, 80)}")
    return is_over
