"""Reads the resources of a run's processes from a sample; an unknown value is NaN."""

import math

from tuilab.record.events import Sampled

IDLE = "nothing of the run was at work"
UNCOUNTED = "what a process that went had taken was counted nowhere"


def usage_of(sample: Sampled) -> dict[str, float]:
    """Return the numbers of a sample by name.

    If no process is at work, its memory is NaN, not 0.
    """
    usage: dict[str, float] = {
        "processes": sample.processes,
        "threads": sample.threads,
        "cpu_percent": sample.cpu_percent,
    }
    memory = {"rss_bytes": sample.rss_bytes, "uss_bytes": sample.uss_bytes}
    for name, value in memory.items():
        if value is not None:
            usage[name] = value if sample.processes else math.nan
    return usage


def why_untold(sample: Sampled) -> str:
    """Return why a value of a sample is not known."""
    return UNCOUNTED if sample.processes else IDLE
