"""Has runs carried out on the nodes of a cluster, one at a time on each, and brings them here while they go on."""

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
_SILENCE_S = 5.0  # after which it is told what is waited for


def carry(
    orders: Sequence[RunOrder], cluster: Cluster, placement: FleetPlacement, tell: Tell, take: Take
) -> bool:
    """Have all orders carried out; `take` gets each that is over. Return whether an interrupt ended it."""
    if placement.nnodes:
        check_ranks(orders)
    nodes = chosen(cluster.nodes(), placement, tell)
    tasks = deque(_tasks(orders, nodes, placement))
    line = (MultiNodeRun if placement.nnodes else FleetQueue)(
        cluster, nodes, placement, tasks, tell, take
    )
    try:
        return line.run()
    finally:
        line.close()


def _tasks(
    orders: Sequence[RunOrder], nodes: Sequence[Node], placement: FleetPlacement
) -> list[Task]:
    """Return what is to be run where: each order once, or on each of some nodes."""
    if placement.is_per_node or placement.count:
        files = [(order, files_of(order)) for order in orders]
        used_nodes = nodes if placement.is_per_node else nodes[: placement.count]
        return [Task(order, found, node.id) for order, found in files for node in used_nodes]
    return [Task(order, files_of(order)) for order in orders]


class FleetQueue:
    """The runs that are wanted, and the nodes that are held for them as long as there is something for them to do."""

    def __init__(
        self,
        cluster: Cluster,
        nodes: Sequence[Node],
        placement: FleetPlacement,
        tasks: deque[Task],
        tell: Tell,
        take: Take,
    ) -> None:
        self._cluster, self._nodes, self._gpus, self._tasks = (
            cluster,
            list(nodes),
            placement.gpus,
            tasks,
        )
        self._tell, self._take, self._me = tell, take, ourselves()
        self._seats: list[NodeRun] = []
        self._stops = 0
        self._give_up_at = math.inf  # the nodes that were told to stop
        self._tell_at = time.monotonic() + _SILENCE_S  # what is waited for

    def run(self) -> bool:
        """Go on until all is done; return whether an interrupt ended it."""
        with OneByOne() as turns:
            turns.wait()
            while self._tasks or any(seat.task for seat in self._seats):
                try:
                    self._step()
                except KeyboardInterrupt:
                    self._interrupt()
                except HeadLost as problem:
                    self._nodes.clear()
                    for seat in list(self._seats):
                        self._lose(seat, problem)
        return self._stops > 0

    def close(self) -> None:
        """Let go of the nodes; a run that goes on there is stopped."""
        for seat in self._seats:
            if seat.mirror and seat.task:
                seat.mirror.end()
            seat.remote.drop()

    def _step(self) -> None:
        self._hold_nodes()
        self._tell_of_waiting()
        for seat in self._seats:
            if seat.is_ready and not seat.task and (task := self._next_for(seat)):
                seat.begin(task)
            seat.heed()
        seat_of_request = {seat.asked: seat for seat in self._seats if seat.asked}
        for question, answer in self._cluster.heard([*seat_of_request], _POLL_S):
            if isinstance(answer, NodeLost):
                self._lose(seat_of_request[question], answer)
            else:
                self._hear(seat_of_request[question], answer)
        if time.monotonic() > self._give_up_at:
            for seat in [seat for seat in self._seats if seat.task]:
                self._give_up(seat, "it did not stop in time; Ray ends it", ExitCode.FAILED)

    def _hold_nodes(self) -> None:
        """Ask Ray for each node that has something to do, and give back those that have not: whichever is free first begins."""
        for seat in [
            seat for seat in self._seats if not seat.task and not self._is_wanted(seat.node)
        ]:
            seat.remote.drop()
            self._seats.remove(seat)
        held = {seat.node.id for seat in self._seats}
        for node in self._nodes:
            if node.id not in held and self._is_wanted(node):
                gpus = node.gpus if self._gpus is None else self._gpus
                self._seats.append(
                    NodeRun(node, self._cluster.host(node, node.cpus, gpus), self._me)
                )

    def _tell_of_waiting(self) -> None:
        waiting = [show(seat.node.name, 60) for seat in self._seats if not seat.is_ready]
        if time.monotonic() > self._tell_at and waiting:
            self._tell_at = math.inf
            self._tell(
                f"waiting for {join(waiting)}: other work is running there, or Ray is starting a"
                " process"
            )

    def _is_wanted(self, node: Node) -> bool:
        return any(task.node in ("", node.id) for task in self._tasks)

    def _next_for(self, seat: NodeRun) -> Task | None:
        """Return the first run that may happen on a node, and take it out of the line."""
        for index, task in enumerate(self._tasks):
            if task.node in ("", seat.node.id):
                del self._tasks[index]
                return task
        return None

    def _hear(self, seat: NodeRun, answer: object) -> None:
        is_over = hear(seat, answer, self._tell)
        if (
            seat.is_broken
            and not seat.mirror
            and seat.task
            and self._try_again(seat.task, "", seat.node)
        ):
            self._drop(seat)
            self._leave(seat, seat.problem)
        elif seat.is_broken:
            self._give_up(seat, seat.problem, seat.code)
        elif is_over:
            run_dir = seat.run_dir
            seat.let_go()
            self._take(RemoteEnd(seat.node.name, run_dir, seat.problem, seat.code))

    def _give_up(self, seat: NodeRun, why: str, code: int) -> None:
        """What a node was asked for ends here; for the next run a process of its own is asked for there."""
        task, run_dir = seat.task, seat.run_dir
        self._drop(seat)
        if task:
            self._take(RemoteEnd(seat.node.name, run_dir, why, code))
        else:
            self._leave(seat, why)

    def _drop(self, seat: NodeRun) -> None:
        seat.let_go()
        seat.remote.drop()
        self._seats.remove(seat)

    def _lose(self, seat: NodeRun, why: Exception) -> None:
        """A node is gone: what it ran is lost, and is tried again on another one."""
        task, run_dir = seat.task, seat.run_dir
        seat.let_go()
        self._seats.remove(seat)
        run = run_dir.name if run_dir else ""
        self._tell(f"{show(seat.node.name, 60)}: lost{f' with {run}' if run else ''}: {why}")
        is_again = task is not None and not self._stops and self._try_again(task, run, seat.node)
        if run_dir:
            self._take(RemoteEnd(seat.node.name, run_dir, is_tried_again=is_again))
        elif task and not is_again:
            self._take(
                RemoteEnd(
                    seat.node.name,
                    None,
                    f"{show(task.order.scenario, 60)} is lost: {why}",
                    int(ExitCode.FAILED),
                )
            )
        self._leave(seat, "the node is gone")

    def _leave(self, seat: NodeRun, why: str) -> None:
        """Ask for nothing more on a node."""
        self._nodes = [node for node in self._nodes if node.id != seat.node.id]
        for gone in [task for task in self._tasks if task.node == seat.node.id]:
            self._tasks.remove(gone)
            self._take(RemoteEnd(seat.node.name, None, why, int(ExitCode.FAILED)))
        if self._tasks and not self._nodes:
            task_count = len(self._tasks)
            self._tasks.clear()
            self._take(
                RemoteEnd(
                    seat.node.name,
                    None,
                    f"no node is left for {plural(task_count, 'run')}",
                    int(ExitCode.FAILED),
                )
            )

    def _try_again(self, task: Task, run: str, lost: Node) -> bool:
        """Put a run that was lost in the line again, if that is wanted and a node is left; say whether."""
        name = show(task.order.scenario, 60)
        if task.node or task.tries >= _MOST_TRIES:
            why = (
                "it was meant for that node"
                if task.node
                else f"it was already lost {task.tries} times"
            )
            self._tell(f"{name} is not restarted: {why}")
            return False
        if all(node.id == lost.id for node in self._nodes):
            self._tell(f"{name} is not restarted: no node is left")
            return False
        self._tasks.appendleft(
            Task(replace(task.order, retry_of=run), task.files, tries=task.tries + 1)
        )
        self._tell(f"{name} is restarted on another node")
        return True

    def _interrupt(self) -> None:
        """Stop what goes on: in order, and by a second interrupt at once; nothing more begins."""
        self._stops += 1
        self._tasks.clear()
        busy = [seat for seat in self._seats if seat.task]
        for seat in busy:
            seat.wanted = carried.AT_ONCE if self._stops > 1 else ""
        if self._stops > 1:
            self._give_up_at = time.monotonic() + (END_S if self._stops == 2 else 0.0)
        names = join([show(seat.node.name, 40) for seat in busy])
        if busy:
            self._tell(
                f"stopping {names}; Ctrl-C again stops at once"
                if self._stops == 1
                else "stopping at once"
            )
