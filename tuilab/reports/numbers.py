"""The numbers of a run beside its claims, in words.

They say where it ran, how long its arms (the variants that it compares) took, its memory, and how
much of the machine it used. A race is the part of a run that times the arms in turn.
"""

from statistics import median

from tuilab.record.blocks import measure_of
from tuilab.record.finding_words import (
    device_words,
    ends_of_curves,
    gpu_rows,
    node_words,
    ranks_words,
)
from tuilab.record.folding.arms_table import ARMS
from tuilab.record.gpus.own_gpus import Throttling, own_gpus
from tuilab.record.summary import RunSummary
from tuilab.record.timing.clock_words import time_words
from tuilab.record.timing.clocks import WALL, arm_times
from tuilab.text.display import NAME_LIMIT, distinct_labels, plural, show
from tuilab.text.words import formatter_of, seconds, size

Row = tuple[str, str]  # a name and its value in words
_MOST_ROWS = 12  # arms, and measurements of memory


def key_numbers(summary: RunSummary) -> list[Row]:
    """Return the numbers of a run as (name, value in words).

    These are places, times of arms, counted memory, and peaks of the processes and the GPUs. The
    ends of curves are shown if nothing raced.
    """
    rows = [
        ("node", node_words(summary)),
        ("device", device_words(summary)),
        ("ranks", ranks_words(summary)),
    ]
    rows = [(name, words) for name, words in rows if words]
    races = _race_rows(summary) + _setting_rows(summary)
    if not races:
        rows += ends_of_curves(summary).items()
    return rows + races + _memory_rows(summary) + _resource_rows(summary)


def _race_rows(summary: RunSummary) -> list[Row]:
    """Return the median time of each arm; nothing if the run shows its arms as a table.

    The first call is timed on the wall clock alone. Its time is added if it took much longer.
    """
    if ARMS in summary.figures:
        return []
    measure = measure_of(summary)
    samples = ""
    if measure.sample == "process":
        samples = "processes"
    arms = list(arm_times(summary).items())[:_MOST_ROWS]
    names = distinct_labels([arm for arm, _ in arms], NAME_LIMIT)
    rows = []
    for arm, times in arms:
        count = plural(len(times.times), measure.sample, samples)
        words = f"{time_words(times, measure)}, median of {count}"
        first_call_s = median(summary.first_calls.get(arm, [0.0]))
        if first_call_s > 3 * median(times.on(WALL)):
            words += f", the first one {seconds(first_call_s)}"
            if times.clock != WALL:
                words += " on the wall clock"
        rows.append((names[arm], words))
    return rows


def _setting_rows(summary: RunSummary) -> list[Row]:
    """Return a row for each setting whose values were timed against each other.

    It names the value that beat the default, or says that no value did, or why that is not
    decided. Quick and unfinished runs have no such rows.
    """
    if not summary.settings or not summary.is_over or (summary.run and summary.run.quick):
        return []
    # imported here: few runs race settings
    from tuilab.reports.advice.winner import describe_setting

    return [describe_setting(summary, raced) for raced in summary.settings.values()]


def _memory_rows(summary: RunSummary) -> list[Row]:
    """Return what was measured with lab.memory."""
    values_by_name: dict[str, str] = {}
    for memory in summary.memory:
        values = []
        for name, value in memory.values.items():
            values.append(f"{show(name.removesuffix('_bytes'))} {formatter_of(name)(value)}")
        values_by_name[f"{memory.name} {memory.arm}".strip()] = ", ".join(values)
    shown_names = distinct_labels(list(values_by_name)[:_MOST_ROWS], NAME_LIMIT)
    rows = []
    for name, shown_name in shown_names.items():
        rows.append((shown_name, values_by_name[name]))
    return rows


def _resource_rows(summary: RunSummary) -> list[Row]:
    """Return the peak memory of the processes, and the peaks and throttling of the GPUs.

    A user's command has one process more, because tuilab starts it. If there are several processes,
    the words say that shared pages are counted in each of them.
    """
    rows = []
    peak = rss_peak_bytes(summary)
    if peak:
        name = "peak memory"
        own_processes = 1
        if summary.run and summary.run.command:
            # a process of tuilab starts the command, and lives as long as it
            name = "peak memory, with tuilab"
            own_processes = 2
        counted = "RSS"
        processes = summary.resources.get("processes")
        if processes is not None and (processes.high or 0) > own_processes:
            counted = "RSS; shared pages are counted in each process"
        words = f"{size(peak)} ({counted})"
        waiting = summary.resources.get("waiting_bytes")
        if waiting:
            words += f"; processes that wait for their repeat: {size(waiting.high or 0)}"
        rows.append((name, words))
    return rows + gpu_rows(summary) + _throttle_rows(summary)


def _throttle_rows(summary: RunSummary) -> list[Row]:
    """Return a row with the reasons why the clocks of the run's GPUs were lowered.

    There is no row if they were not, or if the run used no GPU.
    """
    gpus = [gpu.nvml for gpu in own_gpus(summary) if gpu.nvml]
    if not gpus:
        return []
    # imported here: only runs with a GPU need it
    from tuilab.drawings.gpu_strips import describe_throttling, find_throttling

    words = describe_throttling(find_throttling(summary, gpus, Throttling()))
    if not words:
        return []
    return [("  clocks", words)]


def rss_peak_bytes(summary: RunSummary) -> float:
    """Return the largest resident memory of the processes of a run; 0 if it was never seen.

    A sample has the sum of all processes, but only at its moment. The kernel knows the peak of the
    largest process, however short it lived.
    """
    peaks = [0.0]
    sampled = summary.resources.get("rss_bytes")
    if sampled and sampled.high:
        peaks.append(sampled.high)
    for worker in summary.workers.values():
        if worker.exited:
            peaks.append(worker.exited.rss_peak_bytes or 0)
    return max(peaks)
