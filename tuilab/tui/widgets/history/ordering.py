"""In which order the runs of History stand: the newest first, or what one looks for first."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tuilab.record.verdicts import WORST_FIRST
from tuilab.runs.entry import RunEntry

_BY: dict[str, Callable[[RunEntry, float], Any]] = {
    "worst first": lambda entry, now_s: _worst(entry),
    "longest first": lambda entry, now_s: -(entry.elapsed_at(now_s) or 0.0),
    "largest first": lambda entry, now_s: -(entry.bytes_total or 0),
    "by name": lambda entry, now_s: entry.name,
}
ORDERS = ("newest first", *_BY)
_COLUMNS = {"longest first": "took", "largest first": "size"}


def after(order: str) -> str:
    """Return the next order."""
    return ORDERS[(ORDERS.index(order) + 1) % len(ORDERS)]


def column(order: str) -> str:
    """Return the column that an order is of, where that is one for which there may be no room."""
    return _COLUMNS.get(order, "")


def ordered(
    runs: Sequence[str], entries: Mapping[str, RunEntry], order: str, now_s: float
) -> list[str]:
    """Return runs, the newest first, in another order; those that are alike in it stay as they are."""
    by = _BY.get(order)
    return sorted(runs, key=lambda run: by(entries[run], now_s)) if by else list(runs)


def _worst(entry: RunEntry) -> int:
    verdicts = {verdict for _, verdict in entry.claims}
    return next(
        (at for at, verdict in enumerate(WORST_FIRST) if verdict in verdicts), len(WORST_FIRST)
    )
