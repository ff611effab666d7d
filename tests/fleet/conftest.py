"""Three real nodes of Ray on this machine, each with a loopback address of its own.

No test uses `ray stop`, which would end every Ray of the machine.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import LIGHT, TUILAB

RAY = str(Path(sys.executable).with_name("ray"))
NAMES = ("one", "two", "three")
_PORTS = range(26_000, 29_000)  # none of them among those that Ray gives its workers


class RayNode(NamedTuple):
    """A node of the cluster."""

    name: str
    process: "subprocess.Popen[bytes]"

    def kill(self) -> None:
        """End all processes of the node at once, as a loss of power does."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Cluster(NamedTuple):
    address: str
    boxes: list[RayNode]


LACKS_RAY = pytest.mark.skipif(
    find_spec("ray") is None, reason="Ray is not installed: pip install -e '.[test,ray]'"
)


def pytest_itemcollected(item: pytest.Item) -> None:
    if Path(__file__).parent in item.path.parents:
        item.add_marker(pytest.mark.fleet)
        item.add_marker(LACKS_RAY)


@contextlib.contextmanager
def cluster_of(names: tuple[str, ...] = NAMES, paths: str | None = None) -> Iterator[Cluster]:
    """Start a cluster. The first node is its head, and ends last. Its runs load modules from `paths`."""
    port = _free_port()
    boxes: list[RayNode] = []
    # A short path: the name of a socket has 107 characters at most.
    folder = Path(tempfile.mkdtemp(prefix="ray-"))
    try:
        for number, name in enumerate(names):
            is_head = number == 0
            box = _start(folder, name, f"127.0.0.{number + 2}", port, paths, is_head=is_head)
            boxes.append(box)
            _wait_for(box, f"127.0.0.2:{port}", len(boxes))
        yield Cluster(f"127.0.0.2:{port}", boxes)
    finally:
        for box in reversed(boxes):
            box.kill()
        shutil.rmtree(folder, ignore_errors=True)


def _start(
    folder: Path, name: str, address: str, port: int, paths: str | None, *, is_head: bool
) -> RayNode:
    """Start a node with two cores and one GPU, which does not exist."""
    command = [
        RAY,
        "start",
        "--block",
        f"--node-name={name}",
        f"--node-ip-address={address}",
        "--disable-usage-stats",
        "--num-cpus=2",
        "--num-gpus=1",
        "--object-store-memory=80000000",
    ]
    if is_head:
        command += ["--head", f"--port={port}", "--include-dashboard=false"]
        command.append(f"--temp-dir={folder}/ray")
    else:
        command.append(f"--address=127.0.0.2:{port}")
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "0"}
    if paths is not None:
        environment["PYTHONPATH"] = paths
    with open(folder / f"{name}.log", "wb") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=log, start_new_session=True, env=environment
        )
    return RayNode(name, process)


def _wait_for(box: RayNode, address: str, count: int) -> None:
    """Wait until so many nodes are alive. Ask in the same way as Ray's own tools."""
    code = (
        "import logging, ray, sys\n"
        f"ray.init(address={address!r}, log_to_driver=False, logging_level=logging.ERROR)\n"
        "print(sum(node['Alive'] for node in ray.nodes()))"
    )
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and box.process.poll() is None:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        if done.stdout.strip().endswith(str(count)):
            return
    raise AssertionError(f"the node {box.name} did not come up")


def _free_port() -> int:
    """Return a free port. Workers of pytest that search at the same time begin at different ports."""
    first = os.getpid() % len(_PORTS)
    for index in range(len(_PORTS)):
        port = _PORTS[(first + index) % len(_PORTS)]
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.2", port))
            return port
    raise AssertionError("no port is free")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with cluster_of() as made:
        yield made


@pytest.fixture(scope="module")
def real_cluster() -> Iterator[Cluster]:
    """A cluster whose runs load the real torch."""
    with cluster_of(paths=paths_to_torch()) as made:
        yield made


def paths_to_torch() -> str:
    return os.environ["PYTHONPATH"].removeprefix(LIGHT).removeprefix(os.pathsep)


Afar = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def afar(cluster: Cluster, root: Path) -> Afar:
    """Run `tuilab ... --engine ray` as a user does."""

    def run(*words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [TUILAB, *words, "--engine", "ray", "--address", cluster.address],
            capture_output=True,
            text=True,
            timeout=180,
            env={**os.environ, "TUILAB_ROOT": str(root)},
            stdin=subprocess.DEVNULL,
        )

    return run
