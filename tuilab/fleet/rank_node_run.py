"""A further node of a run with ranks on several nodes: its open request and its answers."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tuilab.engine import messages
from tuilab.engine.messages import Place, Receipt, WorkerResult
from tuilab.fleet.cluster import Node, NodeFailed, NodeRequest, Remote
from tuilab.fleet.host import RunNews
from tuilab.fleet.node_run import PATIENCE_S
from tuilab.text.display import show

_EVERY_S = 0.1  # between two requests for news, at least: ranks on other nodes wait for them


@dataclass
class RankNodeRun:
    """A node with some of the ranks; their output is passed on to the first node."""

    node: Node
    remote: Remote
    first: Remote
    at: int  # its number among the nodes
    place: Place  # its name, and its clock compared with that of the first node
    asked: NodeRequest | None = None
    is_lost: bool = False
    _what: str = ""  # the method of the open request
    _call: int = 0  # the call of its ranks; 0: it has none
    _done: int = 0  # the last call that it has finished
    _known: dict[str, int] = field(default_factory=dict)  # the size of each file passed on
    _is_over: bool = False  # the result of its ranks was passed on
    _is_ended: bool = False  # its ranks were told to end
    _due: float = 0.0

    def heed(self, call: int, order: bytes, files: Mapping[str, bytes], scenario: str) -> None:
        """Start the ranks of a call, ask for their news, and end them when the call is over.

        `call` is the open call of the first node, or 0. If this node is lost, its ranks fail at
        once.
        """
        if self._call and self._call != call and not self._is_ended:
            self._is_ended = True
            self.remote.ask("stop", at_once=True)  # we do not wait for its answer
        if self.asked:
            return
        if self._call:
            if time.monotonic() >= self._due:
                self._due = time.monotonic() + _EVERY_S
                self._ask("read", self._known, PATIENCE_S)
        elif call > self._done:
            self._call, self._known, self._is_over, self._is_ended = call, {}, False, False
            if self.is_lost:
                self._end(f"the node {show(self.node.name, 60)} is lost with its ranks")
            else:
                self._ask("start_ranks", order, dict(files), scenario, self.at, self.place)

    def hear(self, answer: Any) -> None:
        """Handle an answer; an error on the node or an invalid answer fails the ranks there."""
        try:
            if isinstance(answer, NodeFailed):
                raise answer
            self.take(answer)
        except Exception as problem:  # a node may answer anything
            self.asked = None
            if self._what == "pass_on":
                self._done, self._call = self._call, 0
            else:
                self.remote.ask("stop", at_once=True)
                self._end(
                    f"the node {show(self.node.name, 60)} failed:"
                    f" {show(str(problem) or repr(problem), 200)}"
                )

    def take(self, answer: Any) -> None:
        """Handle a valid answer; an invalid one may raise anything."""
        self.asked = None
        match self._what:
            case "start_ranks":
                self._started(answer)
            case "read":
                self._has_read(answer)
            case "pass_on" if self._is_over:
                self._done, self._call = self._call, 0

    def lose(self) -> None:
        """Handle the loss of this node, or of the first one while it got news from this one.

        The ranks of a lost node fail at the next call of `heed`.
        """
        self.asked = None
        self.is_lost = self._what != "pass_on"
        self._call = 0

    def _started(self, receipt: Receipt) -> None:
        """Pass on the error of ranks that did not start."""
        if receipt.error:
            self._end(receipt.error)

    def _has_read(self, reading: RunNews) -> None:
        """Pass on the news of the ranks to the first node, with their result if they are over."""
        for piece in reading.pieces:
            self._known[piece.name] = piece.end
        end: WorkerResult | None = None
        if reading.is_over:
            if reading.said:
                end = messages.unpack(reading.said, WorkerResult)
            else:
                end = WorkerResult(error="the process that started its ranks is gone")
            end.rank = 1  # not 0, because the result of rank 0 is that of all
            if end.error:
                end.error = f"{end.error} (on {show(self.node.name, 60)})"
        self._pass_on(reading.pieces, end)

    def _end(self, why: str) -> None:
        """Send an error to the first node as the result of these ranks."""
        self._pass_on([], WorkerResult(error=why, rank=1))

    def _pass_on(self, pieces: Any, end: WorkerResult | None) -> None:
        """Send output of the ranks to the first node, and their result; None if they still run."""
        self._is_over = end is not None
        self._what, self.asked = "pass_on", self.first.ask("pass_on", self._call, pieces, end)

    def _ask(self, method: str, *args: Any) -> None:
        """Send a request to the node, and remember the method: `take` handles its answer."""
        self._what, self.asked = method, self.remote.ask(method, *args)
