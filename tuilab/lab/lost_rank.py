"""Which of several ranks a signal ended, as torchrun tells how they ended: that rank itself could not say so."""

import signal
from collections.abc import Iterable
from typing import NamedTuple

from tuilab.engine import processes

_SOON_S = 10  # half a minute after SIGTERM torchrun sends SIGKILL to who is still there
_OF_OTHERS = (signal.SIGTERM, signal.SIGABRT)  # torchrun ends those who are left, or they give up


class LostRank(NamedTuple):
    """A rank that failed."""

    rank: int
    code: int  # less than 0 is a signal
    time_s: float  # when torchrun saw it; of those that it saw at once the order says nothing

    @property
    def may_follow(self) -> bool:
        """Whether it may have ended because another one did, perhaps on another node."""
        return -self.code in _OF_OTHERS

    @property
    def words(self) -> str:
        """What a signal did."""
        return f"rank {self.rank} was {processes.ended_by(-self.code)}"


def lost_of(failures: Iterable[LostRank]) -> LostRank | None:
    """Return the rank that a signal ended, if that is why all did; they are given in the order in which they were seen."""
    first, *later = failures
    near = [rank for rank in later if rank.time_s - first.time_s < _SOON_S]
    if lost := next(
        (rank for rank in (first, *near) if rank.code < 0 and not rank.may_follow), None
    ):
        return lost
    has_raised = any(rank.code > 0 and rank.time_s == first.time_s for rank in near)
    return first if first.code < 0 and not has_raised else None
