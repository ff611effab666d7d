"""Processes that compute together: n ranks under torchrun on loopback, or this process alone, in a group made for them."""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch.distributed as dist

from tuilab.engine.messages import ArmOrder
from tuilab.errors import BoxLacks
from tuilab.lab.arms import arm_order, function_name
from tuilab.lab.given import whole

_MOST = 64  # ranks: each loads a torch of its own
# By its address the box is found even where nobody knows its name; the port is a free one.
_TORCHRUN = ["torchrun", "--standalone", "--local-addr", "127.0.0.1", "--nproc-per-node"]
_ENDING_S = 1.0
_LOOPBACK = {"GLOO_SOCKET_IFNAME": "lo"}


def ranks_order(count: int, body: Callable[..., Any], args: Sequence[Any], *, timeout: float) -> ArmOrder:
    """Return what the supervisor is asked to run."""
    count = whole("count", count, 1, _MOST)
    _need_distributed()
    threads = {} if "OMP_NUM_THREADS" in os.environ else {"OMP_NUM_THREADS": "1"}  # else torchrun warns that it says so
    name = f"{count} ranks of {function_name(body)}"
    order = arm_order(name, body, args, env={**_LOOPBACK, **threads}, prefix=[*_TORCHRUN, str(count)], timeout=timeout)
    order.has_group = True
    return order


def call_in_group(body: Callable[..., Any], lab: Any, args: Sequence[Any], timeout_s: float) -> list[Any] | None:
    """Call the body in the group of all ranks; rank 0 returns what each of them returned.

    A collective that the body has begun, and that not all ranks join, takes until the time-out. So the answers have a group of
    their own, and the end of the groups, which would wait for it, too, is not waited for: the process ends soon. After a
    failure they are left as they are: to leave them would fail the others, and theirs could be the failure that is told.
    """
    dist.init_process_group("gloo", timeout=timedelta(seconds=timeout_s))
    answers = dist.new_group(timeout=timedelta(seconds=timeout_s))
    value = body(lab, *args)
    found: list[Any] | None = [None] * dist.get_world_size() if dist.get_rank() == 0 else None
    dist.gather_object(value, found, group=answers)
    ending = threading.Thread(target=dist.destroy_process_group, daemon=True)  # torch aborts in an orderly exit without it
    ending.start()
    ending.join(_ENDING_S)
    return found


@contextmanager
def group_of_one() -> Iterator[None]:
    """Have this process alone in a process group (gloo) in a `with` block; DDP and FSDP do there all that they do."""
    _need_distributed()
    (name, loopback), *_ = _LOOPBACK.items()
    before = os.environ.get(name)
    os.environ[name] = loopback  # else it looks for the host by its name
    try:
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)  # type: ignore[attr-defined]
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
    try:
        yield
    finally:
        dist.destroy_process_group()


def _need_distributed() -> None:
    if not dist.is_available():
        raise BoxLacks("a torch with torch.distributed")
