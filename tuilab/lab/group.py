"""Processes that compute together: n ranks under torchrun, here or on several nodes, or this process alone, in a group."""

import os
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch.distributed as dist

from tuilab.engine.messages import ArmOrder, NodeSpread, RankNode
from tuilab.errors import BoxLacks
from tuilab.lab.arguments import whole
from tuilab.lab.arms import ArmFailed, arm_order, function_name
from tuilab.lab.command_prefix import complete
from tuilab.probes.interfaces import network_of
from tuilab.text.display import plural

_MOST = 64  # ranks: each loads a torch of its own
# By its address the box is found even where nobody knows its name; the port is a free one.
_TORCHRUN = ["torchrun", "--standalone", "--local-addr", "127.0.0.1", "--nproc-per-node"]
_ENDING_S = 1.0
_LOOPBACK = {"GLOO_SOCKET_IFNAME": "lo"}


def ranks_order(
    count: int,
    body: Callable[..., Any],
    args: Sequence[Any],
    spread: NodeSpread | None,
    *,
    timeout: float,
) -> ArmOrder:
    """Return what the supervisor is asked to run."""
    count = whole("count", count, 1, _MOST)
    _need_distributed()
    threads = (
        {} if "OMP_NUM_THREADS" in os.environ else {"OMP_NUM_THREADS": "1"}
    )  # else torchrun warns that it says so
    name = f"{count} ranks of {function_name(body)}"
    prefixes, network = [[*_TORCHRUN, str(count)]], _LOOPBACK
    if spread:
        prefixes, network = _prefixes(count, spread.nodes), network_of(spread.nodes[0].address)
    order = arm_order(
        name, body, args, env={**network, **threads}, prefix=prefixes[0], timeout=timeout
    )
    order.has_group, order.elsewhere = True, [complete(prefix) for prefix in prefixes[1:]]
    return order


def _prefixes(count: int, nodes: Sequence[RankNode]) -> list[list[str]]:
    """Return, for each node, the torchrun that starts its share of the ranks; they meet on the first node, at a free port."""
    if count < len(nodes):
        raise ArmFailed(
            f"{plural(count, 'rank')} cannot run on {len(nodes)} nodes; use more ranks, or fewer"
            " nodes"
        )
    with socket.create_server((nodes[0].address, 0)) as free:
        port = free.getsockname()[1]
    meeting = [
        "--rdzv-backend",
        "static",
        "--master-addr",
        nodes[0].address,
        "--master-port",
        str(port),
    ]
    return [
        ["torchrun", "--nnodes", str(len(nodes)), "--node-rank", str(index), *meeting, "--local-addr", node.address,
         "--nproc-per-node", str(count // len(nodes) + (index < count % len(nodes)))]
        for index, node in enumerate(nodes)
    ]  # fmt: skip


def call_in_group(
    body: Callable[..., Any], lab: Any, args: Sequence[Any], timeout_s: float
) -> list[Any] | None:
    """Call the body in the group of all ranks; rank 0 returns what each of them returned.

    A collective that the body has begun, and that not all ranks join, takes until the time-out. So the answers have a group of
    their own, and the end of the groups, which would wait for it, too, is not waited for: the process ends soon. After a
    failure they are left as they are: to leave them would fail the others, and theirs could be the failure that is told.
    """
    dist.init_process_group("gloo", timeout=timedelta(seconds=timeout_s))
    answers = dist.new_group(timeout=timedelta(seconds=timeout_s))
    value = body(lab, *args)
    values: list[Any] | None = [None] * dist.get_world_size() if dist.get_rank() == 0 else None
    dist.gather_object(value, values, group=answers)
    ending = threading.Thread(
        target=dist.destroy_process_group, daemon=True
    )  # torch aborts in an orderly exit without it
    ending.start()
    ending.join(_ENDING_S)
    return values


@contextmanager
def group_of_one() -> Iterator[None]:
    """Have this process alone in a process group (gloo) in a `with` block; DDP and FSDP do there all that they do."""
    _need_distributed()
    (name, loopback), *_ = _LOOPBACK.items()
    previous = os.environ.get(name)
    os.environ[name] = loopback  # else it looks for the host by its name
    try:
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)  # type: ignore[attr-defined]
    finally:
        if previous is None:
            del os.environ[name]
        else:
            os.environ[name] = previous
    try:
        yield
    finally:
        dist.destroy_process_group()


def _need_distributed() -> None:
    if not dist.is_available():
        raise BoxLacks("a torch with torch.distributed")
