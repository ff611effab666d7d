"""Process groups: ranks under torchrun, here or on several nodes, or a group of one process."""

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

_MOST = 64  # ranks, because each loads torch
# An address works even if the name of the host cannot be resolved; the port is a free one.
_TORCHRUN = ["torchrun", "--standalone", "--local-addr", "127.0.0.1", "--nproc-per-node"]
_ENDING_S = 1.0  # for the end of the process groups, which may block
_INTERFACE = "GLOO_SOCKET_IFNAME"


def ranks_order(
    count: int,
    body: Callable[..., Any],
    args: Sequence[Any],
    spread: NodeSpread | None,
    *,
    timeout: float,
) -> ArmOrder:
    """Return the order for an arm that calls `body` in `count` ranks, under torchrun.

    The ranks run on this node, or on those of `spread`. Raises TypeError or ValueError for wrong
    arguments, BoxLacks without torch.distributed, ArmFailed if there are fewer ranks than nodes.
    """
    count = whole("count", count, 1, _MOST)
    _need_distributed()
    if spread:
        prefixes = _prefixes(count, spread.nodes)
        environment = dict(network_of(spread.nodes[0].address))
    else:
        prefixes = [[*_TORCHRUN, str(count)]]
        environment = {_INTERFACE: "lo"}
    if "OMP_NUM_THREADS" not in os.environ:
        environment["OMP_NUM_THREADS"] = "1"  # else torchrun would do that, with a warning
    name = f"{count} ranks of {function_name(body)}"
    order = arm_order(name, body, args, env=environment, prefix=prefixes[0], timeout=timeout)
    order.has_group = True
    order.elsewhere = [complete(prefix) for prefix in prefixes[1:]]
    return order


def _prefixes(count: int, nodes: Sequence[RankNode]) -> list[list[str]]:
    """Return the torchrun command of each node; they meet at a free port of the first node.

    Raises ArmFailed if there are fewer ranks than nodes.
    """
    if count < len(nodes):
        raise ArmFailed(
            f"{plural(count, 'rank')} cannot run on {len(nodes)} nodes; use more ranks, or fewer"
            " nodes"
        )
    with socket.create_server((nodes[0].address, 0)) as server:
        port = server.getsockname()[1]
    ranks_per_node, left_over = divmod(count, len(nodes))
    prefixes = []
    for index, node in enumerate(nodes):
        ranks = ranks_per_node
        if index < left_over:
            ranks += 1
        prefix = ["torchrun", "--nnodes", str(len(nodes)), "--node-rank", str(index)]
        prefix += ["--rdzv-backend", "static"]
        prefix += ["--master-addr", nodes[0].address, "--master-port", str(port)]
        prefix += ["--local-addr", node.address, "--nproc-per-node", str(ranks)]
        prefixes.append(prefix)
    return prefixes


def call_in_group(
    body: Callable[..., Any], lab: Any, args: Sequence[Any], timeout_s: float
) -> list[Any] | None:
    """Call the function in the group of all ranks; rank 0 returns the values of all.

    A collective of the function that not all ranks join blocks until its time-out. So the values
    are gathered in a group of their own. The end of the groups may block as well, so it gets little
    time: the process ends soon anyway. After a failure the groups are not ended, because that would
    make other ranks fail, and hide the first error.
    """
    dist.init_process_group("gloo", timeout=timedelta(seconds=timeout_s))
    answers = dist.new_group(timeout=timedelta(seconds=timeout_s))
    value = body(lab, *args)
    values: list[Any] | None = None
    if dist.get_rank() == 0:
        values = [None] * dist.get_world_size()
    dist.gather_object(value, values, group=answers)
    # Without this, torch aborts in a normal exit.
    ending = threading.Thread(target=dist.destroy_process_group, daemon=True)
    ending.start()
    ending.join(_ENDING_S)
    return values


@contextmanager
def group_of_one() -> Iterator[None]:
    """Put this process alone into a process group (gloo) in a `with` block.

    DDP and FSDP work there. Raises BoxLacks without torch.distributed.
    """
    _need_distributed()
    previous = os.environ.get(_INTERFACE)
    os.environ[_INTERFACE] = "lo"  # otherwise gloo resolves the name of the host
    try:
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)  # type: ignore[attr-defined]
    finally:
        if previous is None:
            del os.environ[_INTERFACE]
        else:
            os.environ[_INTERFACE] = previous
    try:
        yield
    finally:
        dist.destroy_process_group()


def _need_distributed() -> None:
    if not dist.is_available():
        raise BoxLacks("a torch with torch.distributed")
