"""Queue runs again that were killed while they waited, for example by a reboot."""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import msgspec

from tuilab.engine import launch
from tuilab.engine.messages import RunOrder
from tuilab.errors import UsageError
from tuilab.runs import queue, store
from tuilab.runs.command_line import hint
from tuilab.text.display import show


def queue_again(root: Path, chosen: Collection[str] = ()) -> Iterator[tuple[str, Path]]:
    """Queue lost runs again, all or the chosen ones; yield each with the folder of its new run.

    Raises UsageError before the first run if a chosen run is not lost. Raises it at the first run
    that cannot be queued again: it had a secret, or another user may have written its ticket. The
    runs before it are queued by then.
    """
    lost = [ticket for ticket in queue.lost(root) if not chosen or ticket.run in chosen]
    unknown = set(chosen) - {ticket.run for ticket in lost}
    if unknown:
        step = hint(root, "queue")
        raise UsageError(
            f"{show(store.short_id(min(unknown)))} was not lost while it was queued; list the lost"
            f" runs: {step}"
        )
    for ticket in lost:
        order = queue.trusted_order(root, ticket.run)
        if order is None:
            short_id = store.short_id(ticket.run)
            raise UsageError(
                f"{show(ticket.name)} {short_id} cannot be queued again: it has a secret, which"
                " tuilab does not store; run it again"
            )
        run_dir, _ = launch.start(_order_of(ticket.run, order))
        queue.leave(root, ticket.run)
        yield ticket.run, run_dir


def _order_of(run: str, fields: dict[str, Any]) -> RunOrder:
    """Return the order in a ticket; raise UsageError if this tuilab cannot read it.

    A newer tuilab may have written fields that this one lacks.
    """
    try:
        unknown = fields.keys() - set(RunOrder.__struct_fields__)
        if unknown:
            raise ValueError(f"a newer tuilab ordered it, with {show(min(unknown), 60)}")
        return msgspec.convert(fields, RunOrder)
    except (ValueError, msgspec.MsgspecError) as problem:
        raise UsageError(
            f"{show(store.short_id(run))} cannot be queued again: {show(problem, 200)}; run it"
            " again"
        ) from problem
