"""What is kept one by one, but not without end."""

from bisect import insort
from operator import attrgetter
from typing import Any

_KEPT = 500  # texts, stages, damages and the like that are kept one by one


def keep(kept: list[Any], item: Any) -> None:
    if len(kept) < _KEPT:
        kept.append(item)


def keep_in_time(kept: list[Any], event: Any) -> None:
    """Keep a record among those before and after it: of several processes one may be read later that was written earlier."""
    if len(kept) < _KEPT:
        insort(kept, event, key=attrgetter("t"))
