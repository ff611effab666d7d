"""The first process of a container, whose children are also those whose parents were killed."""

import os

import pytest

from tests.engine import until
from tuilab.first_process import Orphans


def test_who_is_dead_at_two_looks_is_reaped_and_whoever_is_waited_for_is_not() -> None:
    orphans = Orphans()
    children = [_that_ends(), _that_ends()]
    until(
        lambda: all(
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) for pid in children
        )
    )

    orphans.bury()
    waited_for = os.waitpid(children[0], 0)
    orphans.bury()

    assert waited_for == (children[0], 3 << 8)
    with pytest.raises(ChildProcessError):
        os.waitpid(children[1], 0)


def _that_ends() -> int:
    child = os.fork()
    if child == 0:
        os._exit(3)
    return child
