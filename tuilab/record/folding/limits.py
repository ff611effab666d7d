"""Keeps single records in a summary, up to a limit."""

from bisect import insort
from operator import attrgetter
from typing import Any

MOST = 500  # texts, stages, damages and the like


def keep(records: list[Any], record: Any) -> None:
    """Append a record, unless there are 500 already."""
    if len(records) < MOST:
        records.append(record)


def keep_in_time(records: list[Any], record: Any) -> None:
    """Insert a record by its time, unless there are 500 already.

    With several processes, an earlier record may be read later.
    """
    if len(records) < MOST:
        insort(records, record, key=attrgetter("t"))
