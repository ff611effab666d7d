"""The place of a run in the queue: its ticket, whether it may begin, and what it waits for."""

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

CORES = "cores"  # all cores are one device
_MOST_NAMED = 3  # runs in a sentence


def devices_of(scenario: Scenario, params: Mapping[str, Scalar]) -> list[str]:
    """Return the devices that a run must have alone; an empty list if it times nothing."""
    if not scenario.is_timed:
        return []
    device = "cpu"
    if any(has_gpus(param) for param in scenario.params):
        device = str(params["device"])
    if device == "auto":
        device = "cuda" if is_gpu_there() else "cpu"
    if device == "cpu":
        return [CORES]
    return [device]


def take_ticket(order: RunOrder, run_dir: Path) -> None:
    """Append a run to the queue, unless it needs no device alone.

    Later runs also wait for a run that begins at once. The ticket has the order, so that a lost run
    can be queued again, unless the order has a secret. Raises CannotRecord if the disk takes no
    ticket.
    """
    if not order.devices:
        return
    me = presence.identify(os.getpid())
    assert me is not None  # this process exists
    stored_order = None
    if not has_secret(order):
        stored_order = msgspec.to_builtins(order)
    ticket = queue.Ticket(
        run=run_dir.name,
        name=f"{order.topic}/{order.scenario}",
        devices=order.devices,
        supervisor=me,
        place=0.0,
        since_ns=time.time_ns(),
        has_begun=not order.waits,
        order=stored_order,
    )
    queue.enter(run_dir.parent, ticket)


def has_secret(order: RunOrder) -> bool:
    """Say whether a parameter or a word of an order is a secret, which must not be stored."""
    words = list(order.argv)
    if order.command:
        words += order.command.all_words
    return bool(order.secrets) or words_for_record(words) != words


def may_begin(run_dir: Path) -> bool:
    """Let a run begin if it is its turn, record that, and return whether it may begin.

    False if the disk is full.
    """
    with suppress(OSError, CannotRecord):
        return queue.begin(run_dir.parent, run_dir.name)
    return False


def why_not(run_dir: Path) -> str:
    """Return a sentence about what a run waits for; empty if nothing is ahead of it."""
    root = run_dir.parent
    if queue.is_paused(root):
        return "the queue is paused"
    tickets = queue.tickets(root)
    own_tickets = [ticket for ticket in tickets if ticket.run == run_dir.name]
    if not own_tickets:
        return ""
    ahead = queue.tickets_ahead(own_tickets[0], tickets)
    if not ahead:
        return ""
    names = [f"{ticket.name} {store.short_id(ticket.run)}" for ticket in ahead]
    return f"behind {', '.join(names)}"


def where_it_waits(run_dir: Path) -> str:
    """Return a sentence about the place of a run in the queue; empty if the run does not wait."""
    standing = queue.read_queue(run_dir.parent)
    for place, ticket in enumerate(standing.waiting, 1):
        if ticket.run == run_dir.name:
            return _describe_place(place, ticket, standing)
    return ""


def _describe_place(place: int, own: queue.Ticket, standing: queue.QueueState) -> str:
    """Return a sentence about a place in the queue; it names at most _MOST_NAMED runs ahead."""
    sentence = f"place {place} of {len(standing.waiting)}"
    ahead = queue.tickets_ahead(own, [*standing.running, *standing.waiting])
    if ahead:
        names = [f"{show(ticket.name, 60)} {store.short_id(ticket.run)}" for ticket in ahead]
        if len(names) > _MOST_NAMED:
            names[_MOST_NAMED:] = [f"{len(names) - _MOST_NAMED} more"]
        sentence += f", behind {', '.join(names)}"
    if standing.is_paused:
        sentence += "; the queue is paused"
    return sentence
