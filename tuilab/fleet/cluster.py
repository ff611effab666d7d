"""The nodes of a Ray cluster: the only file that knows Ray."""

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
from typing import Any

from tuilab.errors import BoxLacks, UsageError
from tuilab.fleet.host import Host
from tuilab.interrupts import OneByOne
from tuilab.text.display import show

_PATIENCE_S = 5.0  # for an address to answer
_LOOK_S = 5.0  # between two looks whether the head of the cluster is there
_MOST_MISSED = 6  # looks in vain: Ray itself ends our process after a minute
_FACTS_S = 120.0  # for the first process of a node: Ray starts it, and it imports what it needs
_PINGS = 9
_PAUSE_S = 0.05  # where nothing is asked: soon something is due
_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(
    [0, 0, 0, 4, 0, 0, 0, 0, 0]
)  # to which whoever speaks gRPC says something
_MOST_PRINTED = 1 << 20  # bytes of what Ray prints while it joins
_TOKENS = (
    "RAY_AUTH_TOKEN",
    "RAY_AUTH_TOKEN_PATH",
)  # that Ray reads before the file ~/.ray/auth_token
_PLAIN = re.compile(r"(?P<host>[^:/]+):(?P<port>\d{1,5})")


class NodeLost(Exception):
    """What was asked of a node has no answer: its process, or all of it, is gone."""


class NodeFailed(Exception):
    """What was asked of a node went wrong there."""


class HeadLost(Exception):
    """The head of the cluster is gone, and with it all that Ray could say of the nodes."""


@dataclass(frozen=True)
class Node:
    """A node that is there, and what was found on it; `lacks` says why nothing can run there."""

    id: str
    name: str
    cpus: float
    gpus: float
    address: str = ""  # by which the other nodes reach it
    tuilab: str = ""
    python: str = ""
    torch: str = ""
    lacks: str = ""


@dataclass(frozen=True)
class NodeRequest:
    """Something that was asked of a node."""

    ref: Any


class Cluster:
    """A cluster that this process is connected to."""

    def __init__(self, address: str) -> None:
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
                # In the current folder Python would look for modules on the nodes, whosever folder that is there.
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
        plain = address.removeprefix("ray://")
        host, _, port = (
            plain if _PLAIN.fullmatch(plain) else ray.get_runtime_context().gcs_address
        ).rpartition(":")
        self._head, self._missed, self._look_at = (host.strip("[]"), int(port)), 0, 0.0

    def close(self) -> None:
        if self._missed < _MOST_MISSED:
            self._ray.shutdown()
        else:  # where there is no head Ray ends our process instead, before what came of the runs is told
            atexit.unregister(self._ray.shutdown)

    def nodes(self) -> list[Node]:
        """Return the nodes that are alive, each with what was found on it."""
        alive = sorted(
            (node for node in self._ray.nodes() if node["Alive"]),
            key=lambda node: (node["NodeName"], node["NodeID"]),
        )
        names = _told_apart([str(node["NodeName"]) for node in alive])
        requests = [self._on(node["NodeID"], _facts_by_value()) for node in alive]
        self._ray.wait(requests, num_returns=len(requests), timeout=_FACTS_S)
        return [
            self._node(node, name, ref)
            for node, name, ref in zip(alive, names, requests, strict=True)
        ]

    def host(self, node: Node, cpus: float, gpus: float) -> "Remote":
        """Ask for a host on a node, for which Ray holds so many of its cores and GPUs; it waits until they are free."""
        strategy = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            node.id, soft=False
        )
        return _host(self._ray, cpus, gpus, strategy)

    def group(self, nodes: Sequence[Node], count: int, gpus: float | None) -> "NodeGroup":
        """Ask for hosts on so many of some nodes at once; it waits until that many are free at the same time.

        Of nodes that differ Ray holds as many cores and GPUs as the smallest of the largest has.
        """
        largest = sorted(nodes, key=lambda node: (node.gpus, node.cpus))[-count:]
        return NodeGroup(
            self._ray,
            nodes,
            count,
            min(node.cpus for node in largest),
            min(node.gpus for node in largest) if gpus is None else gpus,
        )

    def heard(
        self, requests: Sequence[NodeRequest], patience_s: float
    ) -> list[tuple[NodeRequest, Any]]:
        """Return what is answered by then. Ctrl-C is heeded meanwhile alone: at another time a node would lose its question."""
        OneByOne.be_ready()
        try:
            return list(self.answered(requests, patience_s))
        finally:
            OneByOne.wait()

    def are_there(self, nodes: Iterable[Node]) -> bool:
        """Say whether nodes are alive."""
        return {node.id for node in nodes} <= {
            one["NodeID"] for one in self._ray.nodes() if one["Alive"]
        }

    def answered(
        self, requests: Sequence[NodeRequest], patience_s: float
    ) -> Iterator[tuple[NodeRequest, Any]]:
        """Yield what has an answer by then: that, NodeLost or NodeFailed. HeadLost where none can come any more."""
        self._check_head()
        by_ref = {request.ref: request for request in requests}
        if not by_ref:
            time.sleep(_PAUSE_S)
            return
        for ref in self._ray.wait(list(by_ref), num_returns=1, timeout=patience_s)[0]:
            try:
                yield by_ref[ref], self._ray.get(ref)
            except self._ray.exceptions.RayTaskError as problem:
                yield by_ref[ref], NodeFailed(_in_short(str(problem.cause or problem)))
            except self._ray.exceptions.RayError as problem:
                yield by_ref[ref], NodeLost(_in_short(str(problem)))

    def _check_head(self) -> None:
        if time.monotonic() < self._look_at:
            return
        self._look_at = time.monotonic() + _LOOK_S
        try:
            socket.create_connection(self._head, _PATIENCE_S).close()
            self._missed = 0
        except OSError as problem:
            self._missed += 1
            if self._missed == _MOST_MISSED:
                raise HeadLost(
                    f"the head of the cluster is gone ({problem.strerror or problem})"
                ) from problem

    def _on(self, node_id: str, function: Callable[[], Any]) -> Any:
        strategy = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            node_id, soft=False
        )
        return (
            self._ray.remote(function)
            .options(num_cpus=0, scheduling_strategy=strategy, max_retries=0)
            .remote()
        )

    def _node(self, found: dict[str, Any], name: str, ref: Any) -> Node:
        resources = found["Resources"]
        node = Node(
            found["NodeID"],
            name,
            float(resources.get("CPU", 0)),
            float(resources.get("GPU", 0)),
            found["NodeManagerAddress"],
        )
        try:
            facts = self._ray.get(ref, timeout=0)
        except self._ray.exceptions.RayError as problem:
            return replace(node, lacks=f"the node did not answer ({show(type(problem).__name__)})")
        tuilab, python, torch = (
            show(str(facts.get(name, "")), 40) for name in ("tuilab", "python", "torch")
        )  # or anything
        return replace(node, tuilab=tuilab, python=python, torch=torch)


@contextlib.contextmanager
def _stderr_into(file: int) -> Iterator[None]:
    """Redirect stderr to a file: Ray's C++ code prints there a line for each second in which it could not join."""
    sys.stderr.flush()
    stderr = os.dup(2)
    os.dup2(file, 2)
    try:
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)


def _cannot_join(address: str, problem: Exception, printed: bytes) -> UsageError:
    """Return why a cluster cannot be joined, and the next step; `printed` is what Ray wrote to stderr meanwhile."""
    where = f"at {show(address, 80)}" if address else "on this machine"
    reason = str(problem).strip() or type(problem).__name__
    if b"AuthToken" in printed or type(problem).__name__ == "AuthenticationError":
        variable = next((name for name in _TOKENS if os.environ.get(name)), "")
        step = (
            f"set {variable} to its token"
            if variable
            else "copy ~/.ray/auth_token from its head node to this machine"
        )
        return UsageError(
            f"the Ray cluster {where} did not accept the token of this machine; {step}, and set"
            " RAY_AUTH_MODE=token"
        )
    why = show(reason.splitlines()[0].partition(". ")[0].rstrip("."), 200)
    step = "start a cluster with `ray start --head`, or name one with --address HOST:PORT"
    return UsageError(f"cannot join a Ray cluster {where}: {why}; {step}")


class NodeGroup:
    """Nodes that are held together, or waited for."""

    def __init__(
        self, ray: Any, nodes: Sequence[Node], count: int, cpus: float, gpus: float
    ) -> None:
        self._ray, self._cpus, self._gpus = ray, cpus, gpus
        self._nodes = {node.id: node for node in nodes}
        resources = {"CPU": cpus, **({"GPU": gpus} if gpus else {})}
        among = {"ray.io/node-id": f"in({','.join(self._nodes)})"}
        self._held = ray.util.placement_group(
            [resources] * count, "STRICT_SPREAD", bundle_label_selector=[among] * count
        )
        self.asked = NodeRequest(self._held.ready())  # answered when all are free

    def hosts(self) -> list[tuple[Node, "Remote"]]:
        """Return each node, and a host on it, in the order of the nodes."""
        places = self._ray.util.placement_group_table(self._held)["bundles_to_node_id"]
        strategy = self._ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy
        return [
            (
                self._nodes[places[index]],
                _host(self._ray, self._cpus, self._gpus, strategy(self._held, index)),
            )
            for index in sorted(places, key=lambda index: [*self._nodes].index(places[index]))
        ]

    def drop(self) -> None:
        self._ray.util.remove_placement_group(self._held)


def _host(ray: Any, cpus: float, gpus: float, strategy: Any) -> "Remote":
    options = {
        "num_cpus": cpus,
        "num_gpus": gpus,
        "scheduling_strategy": strategy,
        "max_restarts": 0,
        "max_concurrency": 2,
    }
    return Remote(ray, ray.remote(Host).options(**options).remote())


class Remote:
    """A host on a node."""

    def __init__(self, ray: Any, handle: Any) -> None:
        self._ray, self._handle = ray, handle

    def ask(self, method: str, *args: Any, **named: Any) -> NodeRequest:
        return NodeRequest(getattr(self._handle, method).remote(*args, **named))

    def clock(self) -> tuple[int, int]:
        """Return how far the clock of its node is ahead of ours, and by how much that may be wrong, in nanoseconds."""
        tries = []
        for _ in range(_PINGS):
            began = time.monotonic_ns()
            try:
                remote_ns = self._ray.get(self._handle.now_ns.remote(), timeout=_FACTS_S)
            except self._ray.exceptions.RayError as problem:
                raise NodeLost(_in_short(str(problem))) from problem
            half = (time.monotonic_ns() - began) // 2
            tries.append((half, remote_ns - began - half))
        error, ahead = min(tries)
        return ahead, error

    def drop(self) -> None:
        """Let go of it: its process ends, and with it what it still runs."""
        self._ray.kill(self._handle)


def _hide_command_line() -> None:
    """Have the whole cluster not told our command line, in which a secret may stand, as the entry point of a job."""
    utils: Any = import_module("ray._private.utils")
    utils.get_entrypoint_name = lambda: "tuilab"


def _check_answers(address: str) -> None:
    """Refuse an address at which nothing answers: Ray itself would ask for minutes."""
    if match := _PLAIN.fullmatch(address.removeprefix("ray://")):
        try:
            _hear((match["host"], int(match["port"])))
        except (OSError, OverflowError, UnicodeError) as problem:
            why = getattr(problem, "strerror", None) or str(problem)
            raise UsageError(
                f"nothing answers at {show(address, 80)} ({why}); name a Ray cluster with --address"
                " HOST:PORT"
            ) from problem
    elif address and address != "auto":
        raise UsageError(
            f"--address takes HOST:PORT, ray://HOST:PORT or auto, not {show(address, 80)}"
        )


def _hear(address: tuple[str, int]) -> None:
    """Have whoever listens at an address say something; what takes a connection and is silent is no cluster."""
    with socket.create_connection(address, _PATIENCE_S) as line:
        if os.environ.get("RAY_USE_TLS", "0") in ("", "0"):
            line.sendall(_HELLO)
            if not line.recv(1):
                raise OSError(errno.EPROTO, "not a Ray cluster")


def _in_short(words: str) -> str:
    """Return the line of a message of Ray that says why: the last one where it has a traceback, else the first."""
    lines = [line.strip() for line in words.splitlines() if line.strip()] or ["Ray gave no reason"]
    return show(lines[-1] if "Error: " in lines[-1] else lines[0], 200)


def _told_apart(names: Sequence[str]) -> list[str]:
    """Return the names of nodes; of several with one name, which of them each is."""
    return [
        f"{name}#{names[:index].count(name) + 1}" if names.count(name) > 1 else name
        for index, name in enumerate(names)
    ]


def _facts_by_value() -> Callable[[], dict[str, str]]:
    """Return a function that travels whole: a node that has no tuilab can still say so."""

    def facts() -> dict[str, str]:
        import platform
        from importlib import metadata

        found = {"python": platform.python_version()}
        for name in ("tuilab", "torch"):
            try:
                found[name] = metadata.version(name)
            except metadata.PackageNotFoundError:
                found[name] = ""
        return found

    return facts
