"""What is kept one by one, but not without end."""

from typing import Any

_KEPT = 500  # texts, stages, damages and the like that are kept one by one


def keep(kept: list[Any], item: Any) -> None:
    if len(kept) < _KEPT:
        kept.append(item)
