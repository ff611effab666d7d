"""What a run is doing, or how it ended: one word, and the groups of them that every view goes by.

A record of a newer tuilab may hold a word that is none of these: it belongs to no group, and is shown as it stands there.
"""

from enum import StrEnum


class RunState(StrEnum):
    """The state of a run."""

    QUEUED = "queued"  # it waits until others have done with its device
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    FAILED = "failed"
    KILLED = "killed"
    STOPPED = "stopped"
    SUCCEEDED = "succeeded"
    UNKILLABLE = "unkillable"  # something of it could not be ended
    # In no record; whoever looks at a run finds out:
    LOST = "lost"  # nobody is left who could end it
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
