"""torchrun, which also reports a rank that a signal ended.

python -P -m tuilab.lab.torchrun OPTIONS... COMMAND LINE OF A RANK...
"""

import os
import socket
import sys

from tuilab.engine import messages
from tuilab.engine.messages import TORCHRUN, WorkerResult
from tuilab.lab.lost_rank import LostRank, lost_of

_LAST_NS = 2**62  # later than every error of another node


def main() -> None:
    """Run torchrun with the arguments of this process.

    If a signal ended a rank, that is sent through stdin, a socket of the launcher, before the error
    of torchrun is raised.
    """
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.run import main as torchrun

    line = socket.socket(fileno=os.dup(0))
    try:
        torchrun(sys.argv[1:])
    except ChildFailedError as problem:
        failures = [
            LostRank(rank, failure.exitcode, failure.timestamp)
            for rank, failure in problem.failures.items()
        ]
        lost = lost_of(failures)
        if lost:
            failed_ns = _LAST_NS if lost.may_follow else 0
            messages.send(line, WorkerResult(error=lost.words, rank=TORCHRUN, failed_ns=failed_ns))
        raise


if __name__ == "__main__":
    main()
