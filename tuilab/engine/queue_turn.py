"""A run's turn in the queue: its supervisor takes a ticket, asks whether it may begin, and gives the ticket back."""

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from tuilab.catalogue.params import has_gpus
from tuilab.catalogue.scenario import Scenario
from tuilab.engine.messages import RunOrder
from tuilab.errors import CannotRecord
from tuilab.probes.gpu.is_present import is_gpu_there
from tuilab.record import presence
from tuilab.record.events import Scalar
from tuilab.runs import queue, store
from tuilab.scrub import words_for_record
from tuilab.text.display import show

CORES = "cores"  # all of them are one device
_NAMED = 3  # runs that one waits for


def devices_of(scenario: Scenario, params: Mapping[str, Scalar]) -> list[str]:
    """Return what a run needs for itself to time anything; nothing where it times nothing."""
    if not scenario.is_timed:
        return []
    wanted = str(params["device"]) if any(map(has_gpus, scenario.params)) else "cpu"
    if wanted == "auto":
        wanted = "cuda" if is_gpu_there() else "cpu"
    return [CORES if wanted == "cpu" else wanted]


def take_ticket(order: RunOrder, run_dir: Path) -> None:
    """Enter the queue, at its end; a run that does not wait has begun, and others wait for it."""
    if not order.devices:
        return
    me = presence.identify(os.getpid())
    assert me is not None  # we are here
    ticket = queue.Ticket(
        run=run_dir.name,
        name=f"{order.topic}/{order.scenario}",
        devices=order.devices,
        supervisor=me,
        place=0.0,
        since_ns=time.time_ns(),
        has_begun=not order.waits,
        order=None if has_secret(order) else msgspec.to_builtins(order),
    )
    queue.enter(run_dir.parent, ticket)


def has_secret(order: RunOrder) -> bool:
    """Say whether an order has what is not to be kept: a parameter, or a word of a command."""
    words = [*order.argv, *(order.command.said if order.command else [])]
    return bool(order.secrets) or words_for_record(words) != words


def may_begin(run_dir: Path) -> bool:
    """Say whether it is a run's turn; where that cannot be told or noted, as on a full disk, it is not yet."""
    with suppress(OSError, CannotRecord):
        return queue.begin(run_dir.parent, run_dir.name)
    return False


def why_not(run_dir: Path) -> str:
    """Return what a run waits for, in words."""
    root = run_dir.parent
    if queue.is_paused(root):
        return "the queue is paused"
    every = queue.tickets(root)
    own = next((one for one in every if one.run == run_dir.name), None)
    before = queue.tickets_ahead(own, every) if own else []
    return (
        f"behind {', '.join(f'{one.name} {store.short_id(one.run)}' for one in before)}"
        if before
        else ""
    )


def where_it_waits(run_dir: Path) -> str:
    """Return the place of a run in the queue, the runs before it, and whether the queue is paused; empty if it has left."""
    standing = queue.read_queue(run_dir.parent)
    place, own = next(
        ((at, one) for at, one in enumerate(standing.waiting, 1) if one.run == run_dir.name),
        (0, None),
    )
    if own is None:
        return ""
    ahead = queue.tickets_ahead(own, [*standing.running, *standing.waiting])
    before = [f"{show(one.name, 60)} {store.short_id(one.run)}" for one in ahead]
    more = [f"{len(before) - _NAMED} more"] if len(before) > _NAMED else []
    behind = f", behind {', '.join([*before[:_NAMED], *more])}" if before else ""
    paused = "; the queue is paused" if standing.is_paused else ""
    return f"place {place} of {len(standing.waiting)}{behind}{paused}"
