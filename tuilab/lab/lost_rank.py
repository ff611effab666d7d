"""Find the rank that a signal ended, from what torchrun reports; the rank cannot report it."""

import signal
from collections.abc import Iterable
from typing import NamedTuple

from tuilab.engine import processes

_SOON_S = 10  # 30 s after SIGTERM, torchrun sends SIGKILL to the other ranks
_OF_OTHERS = (signal.SIGTERM, signal.SIGABRT)  # sent by torchrun, or by a rank to itself


class LostRank(NamedTuple):
    """A rank that failed."""

    rank: int
    code: int  # negative: a signal
    time_s: float  # when torchrun noticed it; equal times have no order

    @property
    def may_follow(self) -> bool:
        """Whether it may have ended because another rank did, perhaps on another node."""
        return -self.code in _OF_OTHERS

    @property
    def words(self) -> str:
        """The sentence about its end by a signal."""
        return f"rank {self.rank} was {processes.ended_by(-self.code)}"


def lost_of(failures: Iterable[LostRank]) -> LostRank | None:
    """Return the rank whose signal ended all ranks; None if a signal was not the cause.

    `failures` are in order of time, and there must be at least one.
    """
    first, *later = failures
    near = [rank for rank in later if rank.time_s - first.time_s < _SOON_S]
    for rank in (first, *near):
        if rank.code < 0 and not rank.may_follow:
            return rank
    has_raised = any(rank.code > 0 and rank.time_s == first.time_s for rank in near)
    if first.code < 0 and not has_raised:
        return first
    return None
