"""Run orders one after another on several nodes, which are reserved at the same time.

The first node has the run. Its scenario starts ranks (processes that compute together) there and on
the other nodes.
"""

import math
import os
import time
from collections import deque
from collections.abc import Sequence

from msgspec.structs import replace

from tuilab.engine.engines import RemoteEnd, Take, Tell
from tuilab.engine.messages import NodeSpread, Place, RankNode
from tuilab.errors import BoxLacks, ExitCode, UsageError
from tuilab.fleet.cluster import Cluster, HeadLost, Node, NodeGroup, NodeLost, Remote
from tuilab.fleet.node_run import END_S, NodeRun, Task, hear, ourselves
from tuilab.fleet.placement import FleetPlacement, chosen
from tuilab.fleet.rank_node_run import RankNodeRun
from tuilab.interrupts import OneByOne
from tuilab.record.origin import carried
from tuilab.text.display import join, plural, show

_POLL_S = 0.1
_CHECK_S = 5.0


class MultiNodeRun:
    """The tasks and their nodes: the first has the run, the others have ranks of it."""

    def __init__(
        self,
        cluster: Cluster,
        nodes: Sequence[Node],
        placement: FleetPlacement,
        tasks: deque[Task],
        tell: Tell,
        take: Take,
    ) -> None:
        self._cluster = cluster
        self._nodes = nodes
        self._placement = placement
        self._tasks = tasks
        self._tell = tell
        self._take = take
        self._me = ourselves()
        self._group: NodeGroup | None = None
        self._first: NodeRun | None = None
        self._others: list[RankNodeRun] = []
        self._stops = 0  # how often Ctrl-C was pressed
        self._check_at = 0.0  # when to check the nodes for which we wait
        self._give_up_at = math.inf  # when to give up nodes that were told to stop

    def run(self) -> bool:
        """Run all tasks, one after another; return whether Ctrl-C was pressed."""
        with OneByOne() as turns:
            turns.wait()
            while self._tasks or (self._first and self._first.task):
                try:
                    self._step()
                except KeyboardInterrupt:
                    self._interrupt()
                except HeadLost as problem:
                    self._give_up_all(problem)
        return self._stops > 0

    def close(self) -> None:
        """Release the nodes, so that a run that is still running there is stopped.

        The copy of such a run has no end, so it counts as lost.
        """
        if self._first and self._first.mirror and self._first.task:
            self._first.mirror.end()
        for node_run in self._node_runs():
            node_run.remote.drop()
        if self._group:
            self._group.drop()
        self._forget_nodes()

    def _forget_nodes(self) -> None:
        """Drop the handles of all nodes without releasing them."""
        self._group = None
        self._first = None
        self._others = []

    def _node_runs(self) -> list[NodeRun | RankNodeRun]:
        """Return the reserved nodes with their runs, the first node first; none before that."""
        if not self._first:
            return []
        return [self._first, *self._others]

    def _step(self) -> None:
        """Reserve nodes if there are none; else start the next task, and wait a moment for answers.

        If the run does not stop in time after Ctrl-C, it ends as failed. Raises KeyboardInterrupt
        at Ctrl-C, and HeadLost if the head of the cluster is gone.
        """
        first = self._first
        if first is None:
            self._hold_nodes()
            return
        if first.is_ready and not first.task and self._tasks:
            first.begin(self._tasks.popleft())
        first.heed()
        if first.task:
            scenario = os.path.basename(first.task.order.path)
            for rank_node_run in self._others:
                rank_node_run.heed(first.call, first.order, first.task.files, scenario)
        node_run_of = {node_run.asked: node_run for node_run in self._node_runs() if node_run.asked}
        for question, answer in self._cluster.heard(list(node_run_of), _POLL_S):
            self._hear(node_run_of[question], answer)
        if first.task and time.monotonic() > self._give_up_at:
            self._end(first, "it did not stop in time; Ray ends it")

    def _hold_nodes(self) -> None:
        """Reserve all nodes at the same time, and use them once all are free.

        If one is lost while tuilab waits, begin again with the nodes that are left.
        """
        if self._group is None:
            self._group = self._cluster.group(
                self._nodes, self._placement.nnodes, self._placement.gpus
            )
            self._tell(
                f"waiting for {plural(self._placement.nnodes, 'node')} to be free at the same time"
            )
            self._check_at = time.monotonic() + _CHECK_S
        for _ in self._cluster.heard([self._group.asked], _POLL_S):
            try:
                self._use_nodes(self._group.hosts())
            except (NodeLost, LookupError, ValueError) as problem:  # one was lost meanwhile
                self._tell(f"lost a node: {problem}")
                self._begin_again()
            return
        if time.monotonic() > self._check_at:
            self._check_at = time.monotonic() + _CHECK_S
            if not self._cluster.are_there(self._nodes):
                self._tell("a node disappeared while tuilab waited for it")
                self._begin_again()

    def _use_nodes(self, hosts: Sequence[tuple[Node, Remote]]) -> None:
        """Use reserved nodes: put the run on the first node, and ranks of it on the others.

        Measures the clock of each node against that of the first, and adds the nodes to every task
        that is left. Raises NodeLost if a node does not answer.
        """
        clocks = [remote.clock() for _, remote in hosts]
        first_node, first_remote = hosts[0]
        first_ahead_ns, first_error_ns = clocks[0]
        self._first = NodeRun(first_node, first_remote, self._me)
        for node_index in range(1, len(hosts)):
            node, remote = hosts[node_index]
            ahead_ns, error_ns = clocks[node_index]
            place = Place(node.name, first_ahead_ns - ahead_ns, first_error_ns + error_ns)
            self._others.append(RankNodeRun(node, remote, first_remote, node_index, place))
        nodes = [node for node, _ in hosts]
        spread = NodeSpread(nodes=[RankNode(node.name, node.address) for node in nodes])
        tasks: deque[Task] = deque()
        for task in self._tasks:
            tasks.append(Task(replace(task.order, spread=spread), task.files))
        self._tasks = tasks
        self._tell(f"ranks run on {join([node.name for node in nodes])}")

    def _hear(self, node_run: NodeRun | RankNodeRun, answer: object) -> None:
        """Handle the answer of a node, or the loss of it.

        If the first node is lost, its run ends. If another node is lost, the run gets an error as
        the result of the ranks there.
        """
        if isinstance(node_run, RankNodeRun):
            if isinstance(answer, NodeLost):
                node_run.lose()
                if node_run.is_lost:
                    self._tell(f"{show(node_run.node.name, 60)} is lost: {answer}")
            else:
                node_run.hear(answer)
        elif isinstance(answer, NodeLost):
            self._end(
                node_run, f"{show(node_run.node.name, 60)}, which has the run, is lost: {answer}"
            )
        elif hear(node_run, answer, self._tell):
            self._end(node_run)

    def _end(self, first: NodeRun, lost: str = "") -> None:
        """Report the end of the run; `lost` says why its node was lost, and is empty if it was not.

        If any node is lost or cannot be used any more, release all, and reserve others.
        """
        run_dir = first.run_dir
        first.let_go()
        if lost:
            self._take(RemoteEnd(first.node.name, run_dir, lost, int(ExitCode.FAILED)))
        else:
            self._take(RemoteEnd(first.node.name, run_dir, first.problem, first.code))
        if lost or first.is_broken or any(node_run.is_lost for node_run in self._others):
            self._begin_again()

    def _begin_again(self) -> None:
        """Release the nodes, and choose again among the living ones for the tasks that are left.

        If too few nodes are left, the tasks are reported as not started.
        """
        self.close()
        if not self._tasks:
            return
        try:
            self._nodes = chosen(self._cluster.nodes(), self._placement, self._tell)
        except (UsageError, BoxLacks) as problem:
            self._give_up_tasks(problem)

    def _give_up_all(self, why: HeadLost) -> None:
        """End everything, because no node can be reached any more."""
        first = self._first
        self._forget_nodes()
        if first and first.task:
            run_dir = first.run_dir
            first.let_go()
            self._take(RemoteEnd(first.node.name, run_dir, str(why), int(ExitCode.FAILED)))
        if self._tasks:
            self._give_up_tasks(why)

    def _give_up_tasks(self, why: Exception) -> None:
        """Report the tasks that are left as not started."""
        problem = f"{why}; {plural(len(self._tasks), 'run')} not started"
        self._tasks.clear()
        self._take(RemoteEnd("the cluster", None, problem, int(ExitCode.FAILED)))

    def _interrupt(self) -> None:
        """Stop the run and drop the tasks that are left, after one Ctrl-C.

        The second Ctrl-C stops the run at once, the third gives up its node.
        """
        self._stops += 1
        self._tasks.clear()
        if self._stops == 2:
            self._give_up_at = time.monotonic() + END_S
        elif self._stops > 2:
            self._give_up_at = time.monotonic()
        if not self._first:
            return
        if self._stops == 1:
            self._first.wanted = ""
            name = show(self._first.node.name, 40)
            self._tell(f"stopping {name}; Ctrl-C again stops at once")
        else:
            self._first.wanted = carried.AT_ONCE
            self._tell("stopping at once")
