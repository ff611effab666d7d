"""Busy neighbours: there in the block, gone after it, and gone with the process that has them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine import until
from tuilab.lab.lesson_helpers import busy_neighbours


def children_of(pid: int) -> set[int]:
    return {int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}


def test_they_are_busy_in_the_block_and_gone_after_it() -> None:
    before = children_of(os.getpid())
    with busy_neighbours(2):
        new = children_of(os.getpid()) - before
        are_busy = [is_spinning(pid) for pid in new]

    assert are_busy == [True, True]
    assert not new & children_of(os.getpid())


def test_what_fails_in_the_block_ends_them() -> None:
    before = children_of(os.getpid())
    with pytest.raises(KeyError, match="mine"), busy_neighbours(1):
        raise KeyError("mine")

    assert children_of(os.getpid()) == before


def test_they_end_with_the_process_that_has_them_however_it_ends() -> None:
    script = """
import signal
from tuilab.lab.lesson_helpers import busy_neighbours
with busy_neighbours(2):
    print("busy", flush=True)
    signal.pause()
"""
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "busy\n"
        neighbours = children_of(owner.pid)
        owner.kill()

    assert len(neighbours) == 2
    until(lambda: not any(map(is_spinning, neighbours)))


def is_spinning(pid: int) -> bool:
    try:
        return b"while True" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
