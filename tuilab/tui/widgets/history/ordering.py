"""The orders of the table of runs: newest first, or sorted by something else."""

from collections.abc import Callable, Mapping, Sequence

from tuilab.record.verdicts import WORST_FIRST
from tuilab.runs.entry import RunEntry


def _worst_verdict(entry: RunEntry, now_s: float) -> int:
    """Return the place of the worst verdict in `WORST_FIRST`; its length if no verdict is in it."""
    verdicts = {verdict for _, verdict in entry.claims}
    for place, verdict in enumerate(WORST_FIRST):
        if verdict in verdicts:
            return place
    return len(WORST_FIRST)


def _longest(entry: RunEntry, now_s: float) -> float:
    return -(entry.elapsed_at(now_s) or 0.0)


def _largest(entry: RunEntry, now_s: float) -> int:
    return -(entry.bytes_total or 0)


def _name(entry: RunEntry, now_s: float) -> str:
    return entry.name


# Every sort key gets the time, but only running runs need it for their duration.
_SORT_KEYS: dict[str, Callable[[RunEntry, float], int | float | str]] = {
    "worst first": _worst_verdict,
    "longest first": _longest,
    "largest first": _largest,
    "by name": _name,
}
ORDERS = ("newest first", *_SORT_KEYS)
_COLUMNS = {"longest first": "took", "largest first": "size"}


def next_order(order: str) -> str:
    """Return the order after this one; after the last, the first."""
    return ORDERS[(ORDERS.index(order) + 1) % len(ORDERS)]


def column_of(order: str) -> str:
    """Return the column by which an order sorts, if a narrow table leaves it out, else nothing."""
    return _COLUMNS.get(order, "")


def sort_runs(
    runs: Sequence[str], entries: Mapping[str, RunEntry], order: str, now_s: float
) -> list[str]:
    """Return runs, which are given newest first, in another order. Ties stay newest first."""
    sort_key = _SORT_KEYS.get(order)
    if sort_key is None:
        return list(runs)
    return sorted(runs, key=lambda run: sort_key(entries[run], now_s))
