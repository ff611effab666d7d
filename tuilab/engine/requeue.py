"""Queues runs again that waited when they were killed, or when the box was started anew."""

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
    """Queue the chosen ones of the runs that were lost while they waited, or all; yield each with the folder of its new run."""
    lost = [one for one in queue.lost(root) if not chosen or one.run in chosen]
    if strangers := set(chosen) - {one.run for one in lost}:
        step = hint(root, "queue")
        raise UsageError(
            f"{show(store.short_id(min(strangers)))} was not lost while it was queued; list the lost runs: {step}"
        )
    for one in lost:
        if (order := queue.own_order(root, one.run)) is None:
            id = store.short_id(one.run)
            raise UsageError(
                f"{show(one.name)} {id} cannot be queued again: it has a secret, which tuilab does not store; run it again"
            )
        run_dir, _ = launch.start(_order_of(one.run, order))
        queue.leave(root, one.run)
        yield one.run, run_dir


def _order_of(run: str, fields: dict[str, Any]) -> RunOrder:
    """Return the order in a ticket; one of a newer tuilab may ask for what this one would not do."""
    try:
        if unknown := fields.keys() - set(RunOrder.__struct_fields__):
            raise ValueError(f"a newer tuilab ordered it, with {show(min(unknown), 60)}")
        return msgspec.convert(fields, RunOrder)
    except (ValueError, msgspec.MsgspecError) as problem:
        raise UsageError(
            f"{show(store.short_id(run))} cannot be queued again: {show(problem, 200)}; run it again"
        ) from problem
