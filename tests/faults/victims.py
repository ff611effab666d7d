"""Processes of a run that a fault test kills or stops, as pid and start time."""

import signal
from collections.abc import Iterator
from pathlib import Path

from tests.engine import look, until
from tuilab.engine import processes
from tuilab.record import presence


def kill(*victims: tuple[int, int], number: int = signal.SIGKILL) -> None:
    for pid, start in victims:
        assert processes.send(pid, start, number)


def is_suspended(pid: int) -> bool:
    """Say whether every thread of a process has taken note of SIGSTOP."""
    return all(
        ") T " in (task / "stat").read_text() for task in Path(f"/proc/{pid}/task").iterdir()
    )


def supervisor_of(run_dir: Path) -> tuple[int, int]:
    """Return pid and start time of a run's supervisor."""
    run = until(lambda: look(run_dir).summary.run)
    return run.supervisor.pid, run.supervisor.start


def child_of(pid: int, word: str) -> Iterator[tuple[int, int]]:
    """Yield (pid, start time) of the processes below `pid` whose command line has this word.

    One that was forked by such a process is left out: it has the words of that until it has begun its own program, as what
    the sampler asks NVML with.
    """
    named = {child for child in presence.descendants(pid) if word in processes.name_of(child)}
    for child in named:
        start, parent = presence.start_time(child), parent_of(child)
        if start is not None and parent not in named:
            yield child, start


def parent_of(pid: int) -> int | None:
    """Return the parent of a process, None when it is gone."""
    fields = presence.stat_fields(pid)
    return int(fields[1]) if fields else None
