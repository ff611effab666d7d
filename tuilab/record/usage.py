"""What a sample tells of the processes of a run; what could not be told is NaN, and there is a reason."""

import math

from tuilab.record.events import Sampled

IDLE = "nothing of the run was at work"
UNCOUNTED = "what a process that went had taken was counted nowhere"


def usage_of(sample: Sampled) -> dict[str, float]:
    """Return the numbers of a sample by their names; where nothing is at work there is no memory to tell, and no 0 either."""
    found: dict[str, float] = {
        "processes": sample.processes,
        "threads": sample.threads,
        "cpu_percent": sample.cpu_percent,
    }
    memory = {"rss_bytes": sample.rss_bytes, "uss_bytes": sample.uss_bytes}
    return found | {
        name: value if sample.processes else math.nan
        for name, value in memory.items()
        if value is not None
    }


def why_untold(sample: Sampled) -> str:
    """Return why a sample has something that could not be told."""
    return UNCOUNTED if sample.processes else IDLE
