"""Run orders on the nodes of a cluster, one at a time on each, and copy the runs here meanwhile.

A task is an order with its files. It stays in the queue until a node is free for it. `tell` prints
a message for the user, and `take` receives the end of each run.
"""

import math
import time
from collections import deque
from collections.abc import Sequence

from msgspec.structs import replace

from tuilab.engine.engines import RemoteEnd, Take, Tell
from tuilab.engine.messages import RunOrder
from tuilab.errors import ExitCode
from tuilab.fleet.cluster import Cluster, HeadLost, Node, NodeLost
from tuilab.fleet.multi_node_run import MultiNodeRun
from tuilab.fleet.node_run import END_S, NodeRun, Task, hear, ourselves
from tuilab.fleet.placement import FleetPlacement, chosen
from tuilab.fleet.ship_sources import check_ranks, files_of
from tuilab.interrupts import OneByOne
from tuilab.record.origin import carried
from tuilab.text.display import join, plural, show

_MOST_TRIES = 3
_POLL_S = 0.1
_SILENCE_S = 5.0  # after so long, say what we wait for


def carry(
    orders: Sequence[RunOrder], cluster: Cluster, placement: FleetPlacement, tell: Tell, take: Take
) -> bool:
    """Run all orders on the cluster, and return whether Ctrl-C stopped them.

    `tell` gets messages for the user, `take` the end of each run. Raises UsageError or BoxLacks if
    the orders or the nodes do not fit, before any run starts. The nodes are released in any case.
    """
    if placement.nnodes:
        check_ranks(orders)
    nodes = chosen(cluster.nodes(), placement, tell)
    tasks = deque(_tasks(orders, nodes, placement))
    kind = MultiNodeRun if placement.nnodes else FleetQueue
    runner = kind(cluster, nodes, placement, tasks, tell, take)
    try:
        return runner.run()
    finally:
        runner.close()


def _tasks(
    orders: Sequence[RunOrder], nodes: Sequence[Node], placement: FleetPlacement
) -> list[Task]:
    """Return the tasks: each order once, or once for each of the nodes."""
    if not placement.is_per_node and not placement.count:
        return [Task(order, files_of(order)) for order in orders]
    used_nodes = nodes if placement.is_per_node else nodes[: placement.count]
    tasks = []
    for order in orders:
        files = files_of(order)
        tasks += [Task(order, files, node.id) for node in used_nodes]
    return tasks


class FleetQueue:
    """The tasks that are left, and the nodes that are reserved while they have a task."""

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
        self._nodes = list(nodes)
        self._gpus = placement.gpus
        self._tasks = tasks
        self._tell = tell
        self._take = take
        self._me = ourselves()
        self._node_runs: list[NodeRun] = []
        self._stops = 0  # how often Ctrl-C was pressed
        self._give_up_at = math.inf  # when to give up nodes that were told to stop
        self._tell_at = time.monotonic() + _SILENCE_S  # when to say what we wait for

    def run(self) -> bool:
        """Run all tasks; return whether Ctrl-C was pressed.

        If the head of the cluster is gone, every run counts as lost.
        """
        with OneByOne() as turns:
            turns.wait()
            while self._tasks or any(node_run.task for node_run in self._node_runs):
                try:
                    self._step()
                except KeyboardInterrupt:
                    self._interrupt()
                except HeadLost as problem:
                    self._nodes.clear()
                    for node_run in list(self._node_runs):
                        self._lose(node_run, problem)
        return self._stops > 0

    def close(self) -> None:
        """Release the nodes, so that the runs that are still running there are stopped.

        The copy of such a run has no end, so it counts as lost.
        """
        for node_run in self._node_runs:
            if node_run.mirror and node_run.task:
                node_run.mirror.end()
            node_run.remote.drop()

    def _step(self) -> None:
        """Give free nodes their next task, ask for news, and wait a moment for answers.

        Reserves and releases nodes first. If runs do not stop in time after Ctrl-C, it gives them
        up. Raises KeyboardInterrupt at Ctrl-C, and HeadLost if the head of the cluster is gone.
        """
        self._hold_nodes()
        self._tell_of_waiting()
        for node_run in self._node_runs:
            if node_run.is_ready and not node_run.task:
                task = self._next_for(node_run)
                if task:
                    node_run.begin(task)
            node_run.heed()
        node_run_of = {node_run.asked: node_run for node_run in self._node_runs if node_run.asked}
        for question, answer in self._cluster.heard(list(node_run_of), _POLL_S):
            if isinstance(answer, NodeLost):
                self._lose(node_run_of[question], answer)
            else:
                self._hear(node_run_of[question], answer)
        if time.monotonic() > self._give_up_at:
            busy = [node_run for node_run in self._node_runs if node_run.task]
            for node_run in busy:
                self._give_up(node_run, "it did not stop in time; Ray ends it", ExitCode.FAILED)

    def _hold_nodes(self) -> None:
        """Reserve every node that has a task, and release the others; the first free one begins."""
        for node_run in list(self._node_runs):
            if not node_run.task and not self._has_task(node_run.node):
                node_run.remote.drop()
                self._node_runs.remove(node_run)
        held = {node_run.node.id for node_run in self._node_runs}
        for node in self._nodes:
            if node.id not in held and self._has_task(node):
                gpus = node.gpus if self._gpus is None else self._gpus
                remote = self._cluster.host(node, node.cpus, gpus)
                self._node_runs.append(NodeRun(node, remote, self._me))

    def _tell_of_waiting(self) -> None:
        """Print, once after five seconds, which nodes have not started their process."""
        not_ready = [node_run for node_run in self._node_runs if not node_run.is_ready]
        waiting = [show(node_run.node.name, 60) for node_run in not_ready]
        if time.monotonic() > self._tell_at and waiting:
            self._tell_at = math.inf
            self._tell(
                f"waiting for {join(waiting)}: other work is running there, or Ray is starting a"
                " process"
            )

    def _has_task(self, node: Node) -> bool:
        """Return whether any task that is left may run on a node."""
        return any(task.node in ("", node.id) for task in self._tasks)

    def _next_for(self, node_run: NodeRun) -> Task | None:
        """Remove the first task that may run on a node, and return it; None if there is none."""
        for index, task in enumerate(self._tasks):
            if task.node in ("", node_run.node.id):
                del self._tasks[index]
                return task
        return None

    def _hear(self, node_run: NodeRun, answer: object) -> None:
        """Handle the answer of a node; if its run is over, report the end of the run.

        If the node cannot be used any more, its task moves to another node if the run had not
        started there and Ctrl-C was not pressed. Otherwise the task fails.
        """
        is_over = hear(node_run, answer, self._tell)
        if node_run.is_broken:
            task = node_run.task
            can_be_tried = task is not None and not node_run.mirror and not self._stops
            if task and can_be_tried and self._try_again(task, "", node_run.node):
                self._drop(node_run)
                self._leave(node_run, node_run.problem)
            else:
                self._give_up(node_run, node_run.problem, node_run.code)
        elif is_over:
            run_dir = node_run.run_dir
            node_run.let_go()
            self._take(RemoteEnd(node_run.node.name, run_dir, node_run.problem, node_run.code))

    def _give_up(self, node_run: NodeRun, why: str, code: int) -> None:
        """Release a node, and report its run as failed with this reason and exit code.

        A later task gets a new process on the node. If the node had no task, it could not even
        start its process, so it is used no more.
        """
        task = node_run.task
        run_dir = node_run.run_dir
        self._drop(node_run)
        if task:
            self._take(RemoteEnd(node_run.node.name, run_dir, why, code))
        else:
            self._leave(node_run, why)

    def _drop(self, node_run: NodeRun) -> None:
        """Forget the run of a node and release the node; Ray ends the process there."""
        node_run.let_go()
        node_run.remote.drop()
        self._node_runs.remove(node_run)

    def _lose(self, node_run: NodeRun, why: Exception) -> None:
        """Handle a lost node: report its run as lost, and use the node no more.

        Its task is tried again on another node, unless Ctrl-C was pressed or `_try_again` refuses.
        """
        task = node_run.task
        run_dir = node_run.run_dir
        node_run.let_go()
        self._node_runs.remove(node_run)
        name = node_run.node.name
        run = run_dir.name if run_dir else ""
        if run:
            self._tell(f"{show(name, 60)}: lost with {run}: {why}")
        else:
            self._tell(f"{show(name, 60)}: lost: {why}")
        is_again = False
        if task is not None and not self._stops:
            is_again = self._try_again(task, run, node_run.node)
        if run_dir:
            self._take(RemoteEnd(name, run_dir, is_tried_again=is_again))
        elif task and not is_again:
            problem = f"{show(task.order.scenario, 60)} is lost: {why}"
            self._take(RemoteEnd(name, None, problem, int(ExitCode.FAILED)))
        self._leave(node_run, "the node is gone")

    def _leave(self, node_run: NodeRun, why: str) -> None:
        """Use a node no more, and report the tasks that only this node may run as failed.

        If no node is left, all other tasks fail as well.
        """
        self._nodes = [node for node in self._nodes if node.id != node_run.node.id]
        for task in list(self._tasks):
            if task.node == node_run.node.id:
                self._tasks.remove(task)
                self._take(RemoteEnd(node_run.node.name, None, why, int(ExitCode.FAILED)))
        if self._tasks and not self._nodes:
            problem = f"no node is left for {plural(len(self._tasks), 'run')}"
            self._tasks.clear()
            self._take(RemoteEnd(node_run.node.name, None, problem, int(ExitCode.FAILED)))

    def _try_again(self, task: Task, run: str, lost: Node) -> bool:
        """Queue a lost task as the next one; return False if it cannot be tried again, else True.

        A task is not queued if it was meant for its node, if it was lost three times, or if no
        other node is left. `run` is the name of the lost run, or empty if it had none yet.
        """
        name = show(task.order.scenario, 60)
        if task.node:
            self._tell(f"{name} is not restarted: it was meant for that node")
            return False
        if task.tries >= _MOST_TRIES:
            self._tell(f"{name} is not restarted: it was already lost {task.tries} times")
            return False
        if all(node.id == lost.id for node in self._nodes):
            self._tell(f"{name} is not restarted: no node is left")
            return False
        order = replace(task.order, retry_of=run)
        self._tasks.appendleft(Task(order, task.files, tries=task.tries + 1))
        self._tell(f"{name} is restarted on another node")
        return True

    def _interrupt(self) -> None:
        """Stop all runs and drop the tasks that are left, after one Ctrl-C.

        The second Ctrl-C stops the runs at once, the third gives up their nodes.
        """
        self._stops += 1
        self._tasks.clear()
        busy = [node_run for node_run in self._node_runs if node_run.task]
        for node_run in busy:
            node_run.wanted = carried.AT_ONCE if self._stops > 1 else ""
        if self._stops == 2:
            self._give_up_at = time.monotonic() + END_S
        elif self._stops > 2:
            self._give_up_at = time.monotonic()
        if busy and self._stops == 1:
            names = join([show(node_run.node.name, 40) for node_run in busy])
            self._tell(f"stopping {names}; Ctrl-C again stops at once")
        elif busy:
            self._tell("stopping at once")
