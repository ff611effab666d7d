"""The nodes of a Ray cluster. No other module uses Ray."""

import atexit
import contextlib
import errno
import logging
import os
import re
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from operator import itemgetter
from typing import Any

from tuilab.errors import BoxLacks, UsageError
from tuilab.fleet.host import Host
from tuilab.interrupts import OneByOne
from tuilab.text.display import show

_PATIENCE_S = 5.0  # for an address to answer
_CHECK_S = 5.0  # between two checks of the head of the cluster
_MOST_MISSED = 6  # failed checks: after a minute, Ray itself would end our process
_FACTS_S = 120.0  # for the first process on a node, which Ray has to start
_PINGS = 9
_PAUSE_S = 0.05  # if there is no open request
# The start of an HTTP/2 connection, which a gRPC server answers.
_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
_MOST_PRINTED = 1 << 20  # bytes of the output of Ray while it joins
# Ray reads these variables before the file ~/.ray/auth_token.
_TOKENS = ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
_HOST_AND_PORT = re.compile(r"(?P<host>[^:/]+):(?P<port>\d{1,5})")


class NodeLost(Exception):
    """A request has no answer: the process on the node, or the node, is gone."""


class NodeFailed(Exception):
    """A request failed on its node."""


class HeadLost(Exception):
    """The head of the cluster is gone, so Ray can say nothing about the nodes any more."""


@dataclass(frozen=True)
class Node:
    """A node of the cluster; `lacks` is the reason why nothing can run on it, if there is one."""

    id: str
    name: str
    cpus: float
    gpus: float
    address: str = ""  # for the other nodes
    tuilab: str = ""
    python: str = ""
    torch: str = ""
    lacks: str = ""


@dataclass(frozen=True)
class NodeRequest:
    """A request to a node, which may not have its answer yet."""

    ref: Any


class Cluster:
    """The cluster to which this process is connected."""

    def __init__(self, address: str) -> None:
        """Join a Ray cluster, or raise BoxLacks without Ray, and UsageError if the cluster refuses.

        An empty `address` means RAY_ADDRESS, or else the cluster of this machine. The instance
        checks later whether the head of the cluster still answers, so its host and port are kept.
        """
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        try:
            import ray
        except ImportError as problem:
            raise BoxLacks(
                f"Ray is not installed here ({problem}); install it with pip install 'tuilab[ray]'"
            ) from problem
        self._ray: Any = ray
        _check_answers(address or os.environ.get("RAY_ADDRESS", ""))
        _hide_command_line()
        with tempfile.TemporaryFile() as printed:
            try:
                # On the nodes, Python would import modules from a folder of this name.
                with contextlib.chdir("/"), _stderr_into(printed.fileno()):
                    ray.init(
                        address=address or "auto",
                        log_to_driver=False,
                        logging_level=logging.ERROR,
                        configure_logging=False,
                    )
            except (
                ConnectionError,
                ValueError,
                RuntimeError,
                OSError,
                ray.exceptions.RayError,
            ) as problem:
                printed.seek(0)
                raise _cannot_join(address, problem, printed.read(_MOST_PRINTED)) from problem
        head = address.removeprefix("ray://")
        if not _HOST_AND_PORT.fullmatch(head):
            head = ray.get_runtime_context().gcs_address
        host, _, port = head.rpartition(":")
        self._head = (host.strip("[]"), int(port))
        self._missed = 0
        self._check_at = 0.0

    def close(self) -> None:
        """Disconnect from the cluster, unless its head is gone."""
        if self._missed < _MOST_MISSED:
            self._ray.shutdown()
        else:  # without a head, Ray would end our process before the results are printed
            atexit.unregister(self._ray.shutdown)

    def nodes(self) -> list[Node]:
        """Return the living nodes with their software, sorted by name.

        Waits up to two minutes for the answers. A node that did not answer gets the reason in
        `lacks`.
        """
        alive = [node for node in self._ray.nodes() if node["Alive"]]
        alive.sort(key=itemgetter("NodeName", "NodeID"))
        names = _unique_names([str(node["NodeName"]) for node in alive])
        requests = [self._on(node["NodeID"], _facts_by_value()) for node in alive]
        self._ray.wait(requests, num_returns=len(requests), timeout=_FACTS_S)
        nodes = []
        for record, name, request in zip(alive, names, requests, strict=True):
            nodes.append(self._node(record, name, request))
        return nodes

    def host(self, node: Node, cpus: float, gpus: float) -> "Remote":
        """Return a host on a node; it starts when Ray can reserve so many cores and GPUs there."""
        strategy = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            node.id, soft=False
        )
        return _host(self._ray, cpus, gpus, strategy)

    def group(self, nodes: Sequence[Node], count: int, gpus: float | None) -> "NodeGroup":
        """Return hosts on `count` of the nodes; they start when so many are free at the same time.

        Ray reserves the same on each node: as many cores and GPUs as the smallest of the `count`
        largest nodes has.
        """
        largest = sorted(nodes, key=lambda node: (node.gpus, node.cpus))[-count:]
        cpus = min(node.cpus for node in largest)
        if gpus is None:
            gpus = min(node.gpus for node in largest)
        return NodeGroup(self._ray, nodes, count, cpus, gpus)

    def heard(
        self, requests: Sequence[NodeRequest], patience_s: float
    ) -> list[tuple[NodeRequest, Any]]:
        """Return the requests that are answered within this time, with their answers.

        While it waits, Ctrl-C raises KeyboardInterrupt; elsewhere, Ctrl-C is delayed until then.
        Raises HeadLost as `answered` does.
        """
        OneByOne.be_ready()
        try:
            return list(self.answered(requests, patience_s))
        finally:
            OneByOne.wait()

    def are_there(self, nodes: Iterable[Node]) -> bool:
        """Say whether all of these nodes are alive."""
        living = {record["NodeID"] for record in self._ray.nodes() if record["Alive"]}
        return all(node.id in living for node in nodes)

    def answered(
        self, requests: Sequence[NodeRequest], patience_s: float
    ) -> Iterator[tuple[NodeRequest, Any]]:
        """Yield the next request that is answered within this time, with its answer.

        If the request failed, the answer is NodeFailed or NodeLost, which are not raised. Raises
        HeadLost if the head of the cluster is gone. Without open requests, it only pauses for a
        moment.
        """
        self._check_head()
        by_ref = {request.ref: request for request in requests}
        if not by_ref:
            time.sleep(_PAUSE_S)
            return
        for ref in self._ray.wait(list(by_ref), num_returns=1, timeout=patience_s)[0]:
            try:
                yield by_ref[ref], self._ray.get(ref)
            except self._ray.exceptions.RayTaskError as problem:
                yield by_ref[ref], NodeFailed(_shorten(str(problem.cause or problem)))
            except self._ray.exceptions.RayError as problem:
                yield by_ref[ref], NodeLost(_shorten(str(problem)))

    def _check_head(self) -> None:
        """Connect to the head of the cluster, if the last check is old enough.

        Raises HeadLost, only once, when the head has missed `_MOST_MISSED` checks in a row.
        """
        if time.monotonic() < self._check_at:
            return
        self._check_at = time.monotonic() + _CHECK_S
        try:
            socket.create_connection(self._head, _PATIENCE_S).close()
            self._missed = 0
        except OSError as problem:
            self._missed += 1
            if self._missed == _MOST_MISSED:  # later checks do not raise: the caller knows it
                raise HeadLost(
                    f"the head of the cluster is gone ({problem.strerror or problem})"
                ) from problem

    def _on(self, node_id: str, function: Callable[[], Any]) -> Any:
        """Start a function on a node without reserving a core; return the reference of its result.

        Ray neither moves the function to another node nor retries it.
        """
        strategy = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            node_id, soft=False
        )
        task = self._ray.remote(function)
        task = task.options(num_cpus=0, scheduling_strategy=strategy, max_retries=0)
        return task.remote()

    def _node(self, record: dict[str, Any], name: str, ref: Any) -> Node:
        """Return the Node for a record of Ray, with the versions that the node answered.

        `ref` is the reference of the node's answer. If it is not there yet, `lacks` says so.
        """
        resources = record["Resources"]
        node = Node(
            id=record["NodeID"],
            name=name,
            cpus=float(resources.get("CPU", 0)),
            gpus=float(resources.get("GPU", 0)),
            address=record["NodeManagerAddress"],
        )
        try:
            facts = self._ray.get(ref, timeout=0)
        except self._ray.exceptions.RayError as problem:
            return replace(node, lacks=f"the node did not answer ({show(type(problem).__name__)})")
        # A node may answer anything, so the text is made safe.
        tuilab = show(str(facts.get("tuilab", "")), 40)
        python = show(str(facts.get("python", "")), 40)
        torch = show(str(facts.get("torch", "")), 40)
        return replace(node, tuilab=tuilab, python=python, torch=torch)


@contextlib.contextmanager
def _stderr_into(file: int) -> Iterator[None]:
    """Redirect stderr to a file: the C++ code of Ray prints a line each second while it joins."""
    sys.stderr.flush()
    stderr = os.dup(2)
    os.dup2(file, 2)
    try:
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)


def _cannot_join(address: str, problem: Exception, printed: bytes) -> UsageError:
    """Return the error for a cluster that cannot be joined; `printed` is the stderr of Ray."""
    where = f"at {show(address, 80)}" if address else "on this machine"
    reason = str(problem).strip() or type(problem).__name__
    if b"AuthToken" in printed or type(problem).__name__ == "AuthenticationError":
        step = "copy ~/.ray/auth_token from its head node to this machine"
        for variable in reversed(_TOKENS):
            if os.environ.get(variable):
                step = f"set {variable} to its token"
        return UsageError(
            f"the Ray cluster {where} did not accept the token of this machine; {step}, and set"
            " RAY_AUTH_MODE=token"
        )
    first_sentence = show(reason.splitlines()[0].partition(". ")[0].rstrip("."), 200)
    step = "start a cluster with `ray start --head`, or name one with --address HOST:PORT"
    return UsageError(f"cannot join a Ray cluster {where}: {first_sentence}; {step}")


class NodeGroup:
    """Several nodes that Ray reserves at the same time, as soon as they are free."""

    def __init__(
        self, ray: Any, nodes: Sequence[Node], count: int, cpus: float, gpus: float
    ) -> None:
        self._ray = ray
        self._cpus = cpus
        self._gpus = gpus
        self._nodes = {node.id: node for node in nodes}
        resources = {"CPU": cpus}
        if gpus:
            resources["GPU"] = gpus
        label = {"ray.io/node-id": f"in({','.join(self._nodes)})"}
        self._held = ray.util.placement_group(
            [resources] * count, "STRICT_SPREAD", bundle_label_selector=[label] * count
        )
        self.asked = NodeRequest(self._held.ready())  # it has an answer when all are free

    def hosts(self) -> list[tuple[Node, "Remote"]]:
        """Return each reserved node with a host on it, in the order of the nodes.

        Raises LookupError if Ray has placed a bundle on another node, because one was lost.
        """
        node_ids = self._ray.util.placement_group_table(self._held)["bundles_to_node_id"]
        bundle_of = {node_id: bundle for bundle, node_id in node_ids.items()}
        strategy = self._ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy
        if not bundle_of.keys() <= self._nodes.keys():
            raise LookupError("a node that was not asked for")
        hosts = []
        for node_id, node in self._nodes.items():
            if node_id in bundle_of:
                place = strategy(self._held, bundle_of[node_id])
                hosts.append((node, _host(self._ray, self._cpus, self._gpus, place)))
        return hosts

    def drop(self) -> None:
        """Release the reserved nodes; Ray ends the hosts on them."""
        self._ray.util.remove_placement_group(self._held)


def _host(ray: Any, cpus: float, gpus: float, strategy: Any) -> "Remote":
    """Return the handle of a Host that Ray starts when the cores and GPUs are free.

    `strategy` names the node. Ray does not restart the actor, so that a lost run is noticed.
    """
    options = {
        "num_cpus": cpus,
        "num_gpus": gpus,
        "scheduling_strategy": strategy,
        "max_restarts": 0,
        "max_concurrency": 2,  # `stop` is called while `read` waits
    }
    actor = ray.remote(Host).options(**options)
    return Remote(ray, actor.remote())


class Remote:
    """The handle of a Host, which is an actor on a node."""

    def __init__(self, ray: Any, handle: Any) -> None:
        self._ray = ray
        self._handle = handle

    def ask(self, method: str, *args: Any, **named: Any) -> NodeRequest:
        """Call a method of the Host, and return the open request without waiting."""
        return NodeRequest(getattr(self._handle, method).remote(*args, **named))

    def clock(self) -> tuple[int, int]:
        """Return the clock of its node minus ours, and the uncertainty of that, in nanoseconds.

        Takes the quickest of several answers. Raises NodeLost if the node does not answer.
        """
        tries = []
        for _ in range(_PINGS):
            began_ns = time.monotonic_ns()
            try:
                remote_ns = self._ray.get(self._handle.now_ns.remote(), timeout=_FACTS_S)
            except self._ray.exceptions.RayError as problem:
                raise NodeLost(_shorten(str(problem))) from problem
            half_ns = (time.monotonic_ns() - began_ns) // 2
            tries.append((half_ns, remote_ns - began_ns - half_ns))
        error_ns, ahead_ns = min(tries)
        return ahead_ns, error_ns

    def drop(self) -> None:
        """End its process, and with it whatever it still runs."""
        self._ray.kill(self._handle)


def _hide_command_line() -> None:
    """Hide our command line, which may have secrets: Ray shows it as the entry point."""
    utils: Any = import_module("ray._private.utils")
    utils.get_entrypoint_name = lambda: "tuilab"


def _check_answers(address: str) -> None:
    """Raise UsageError for an address without an answer: Ray itself would try for minutes."""
    if address in ("", "auto"):
        return
    match = _HOST_AND_PORT.fullmatch(address.removeprefix("ray://"))
    if match is None:
        raise UsageError(
            f"--address takes HOST:PORT, ray://HOST:PORT or auto, not {show(address, 80)}"
        )
    try:
        _check_grpc((match["host"], int(match["port"])))
    except (OSError, OverflowError, UnicodeError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        raise UsageError(
            f"nothing answers at {show(address, 80)} ({reason}); "
            "name a Ray cluster with --address HOST:PORT"
        ) from problem


def _check_grpc(address: tuple[str, int]) -> None:
    """Raise OSError unless a gRPC server answers; with TLS, a connection is enough."""
    with socket.create_connection(address, _PATIENCE_S) as line:
        if os.environ.get("RAY_USE_TLS", "0") in ("", "0"):
            line.sendall(_HELLO)
            if not line.recv(1):
                raise OSError(errno.EPROTO, "not a Ray cluster")


def _shorten(message: str) -> str:
    """Return the line of a message with the reason: after a traceback, the last one."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    if not lines:
        return "Ray gave no reason"
    if "Error: " in lines[-1]:
        return show(lines[-1], 200)
    return show(lines[0], 200)


def _unique_names(names: Sequence[str]) -> list[str]:
    """Return the names of nodes, numbered as `name#1` where several share one.

    A number is left out if a node already has that name.
    """
    taken = set(names)
    unique = []
    for name in names:
        unique_name = name
        if names.count(name) > 1:
            number = 1
            while f"{name}#{number}" in taken:
                number += 1
            unique_name = f"{name}#{number}"
            taken.add(unique_name)
        unique.append(unique_name)
    return unique


def _facts_by_value() -> Callable[[], dict[str, str]]:
    """Return a function that Ray sends by value, so that it also runs on a node without tuilab."""

    def facts() -> dict[str, str]:
        import platform
        from importlib import metadata

        versions = {"python": platform.python_version()}
        for name in ("tuilab", "torch"):
            try:
                versions[name] = metadata.version(name)
            except metadata.PackageNotFoundError:
                versions[name] = ""
        return versions

    return facts
