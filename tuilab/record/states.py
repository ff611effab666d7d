"""Defines the states of a run, and the groups of them that all views use.

A record of a newer tuilab may have an unknown state: it is in no group, and is shown as it is.
"""

from enum import StrEnum


class RunState(StrEnum):
    """The state of a run."""

    QUEUED = "queued"  # it waits for its device
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    FAILED = "failed"
    KILLED = "killed"
    STOPPED = "stopped"
    SUCCEEDED = "succeeded"
    UNKILLABLE = "unkillable"  # one of its processes could not be ended
    # These two are in no record; views find them out.
    LOST = "lost"  # its supervisor died before it ended the run
    UNREADABLE = "unreadable"


RUNNING_STATES = frozenset(
    {RunState.QUEUED, RunState.STARTING, RunState.RUNNING, RunState.STOPPING}
)
FINAL_STATES = frozenset(
    {RunState.FAILED, RunState.KILLED, RunState.STOPPED, RunState.SUCCEEDED, RunState.UNKILLABLE}
)
BROKEN_STATES = frozenset(
    {RunState.FAILED, RunState.KILLED, RunState.UNKILLABLE, RunState.LOST, RunState.UNREADABLE}
)
