"""torchrun, which says on the line of its ranks which of them a signal ended: that rank itself could not.

python -P -m tuilab.lab.torchrun OPTIONS... RANK'S COMMAND LINE...
"""

import os
import signal
import socket
import sys
from collections.abc import Iterable
from typing import NamedTuple

from tuilab.engine import messages, processes
from tuilab.engine.messages import TORCHRUN, Farewell

_SOON_S = 10  # half a minute after SIGTERM torchrun sends SIGKILL to who is still there
_OF_OTHERS = (signal.SIGTERM, signal.SIGABRT)  # torchrun ends those who are left, or they give up


class Ended(NamedTuple):
    """A rank that failed, as torchrun tells it: in the order in which it saw them."""

    rank: int
    code: int  # less than 0 is a signal
    time_s: float


def main() -> None:
    """Be torchrun."""
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.run import main as torchrun

    line = socket.socket(fileno=os.dup(0))
    try:
        torchrun(sys.argv[1:])
    except ChildFailedError as problem:
        failures = [Ended(rank, one.exitcode, one.timestamp) for rank, one in problem.failures.items()]
        if why := ended_by_signal(failures):
            messages.send(line, Farewell(error=why, rank=TORCHRUN))
        raise


def ended_by_signal(failures: Iterable[Ended]) -> str:
    """Return which rank was ended by which signal, if that is what failed; not what torchrun did to the others for it."""
    first, *later = failures
    soon = [one for one in later if one.time_s - first.time_s < _SOON_S and -one.code not in _OF_OTHERS]
    found = next((one for one in [first, *soon] if one.code < 0), None)
    return f"rank {found.rank} was {processes.ended_by(-found.code)}" if found else ""


if __name__ == "__main__":
    main()
