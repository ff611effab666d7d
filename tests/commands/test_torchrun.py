"""What torchrun prints of a rank that a signal ended, as torch itself words it."""

import re
import signal

import pytest

from tuilab.commands.command_failure import failure_of, lost_rank_of

pytestmark = pytest.mark.real_torch
LOST = """\
[rank0]: Traceback (most recent call last):
[rank0]:   File "/home/me/t.py", line 6, in <module>
[rank0]: RuntimeError: Connection closed by peer
W1127 01:45:21.150000 24028 torch/distributed/elastic/multiprocessing/api.py:1028] Sending process 24079 closing signal SIGTERM
"""


def printed(*codes: tuple[int, int]) -> str:
    """Return what torchrun prints of ranks that ended so, in the order in which it saw them."""
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure

    failures = {
        rank: ProcessFailure(local_rank=rank, pid=70 + rank, exitcode=code, error_file="")
        for rank, code in codes
    }
    return f"{LOST}torch.distributed.elastic.multiprocessing.errors.ChildFailedError: {ChildFailedError('t.py', failures)}\n"


@pytest.mark.parametrize(
    ("codes", "told"),
    [
        (
            [(1, -signal.SIGKILL), (0, -signal.SIGTERM)],
            "rank 1 was ended by SIGKILL; nobody asked for that: out of memory?",
        ),
        ([(0, -signal.SIGSEGV)], "rank 0 was ended by SIGSEGV"),
        ([(1, 1), (0, -signal.SIGTERM)], ""),
    ],
)
def test_the_rank_that_a_signal_ended_is_told(codes: list[tuple[int, int]], told: str) -> None:
    assert lost_rank_of(printed(*codes)) == told


def test_what_torchrun_says_is_no_part_of_what_a_rank_said() -> None:
    failure = failure_of(printed((0, 1)), ["torchrun", "t.py"], "/home/me")

    assert failure and failure.message == "Connection closed by peer"


def test_who_prints_the_like_is_no_harm() -> None:
    odd = re.sub(
        r"time      : .*", "time      : 2026-99-99_99:99:99", printed((0, -signal.SIGKILL))
    )

    assert lost_rank_of(odd) == lost_rank_of("[1]:\n") == lost_rank_of("") == ""
