"""The numbers of a run beside its claims, in words: where it ran, times of arms, memory, and what it used of the machine."""

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
from tuilab.text.display import NAME_LIMIT, plural, show, told_apart
from tuilab.text.words import seconds, size, spell_of

Row = tuple[str, str]  # a name and its value in words
_MOST_ROWS = 12  # arms, and measurements of memory


def key_numbers(summary: RunSummary) -> list[Row]:
    """Return where it was, the times of the arms, counted memory, and peaks of the process and the GPUs, as (name, value)."""
    where = (
        ("node", node_words(summary)),
        ("device", device_words(summary)),
        ("ranks", ranks_words(summary)),
    )
    places = [(name, words) for name, words in where if words]
    races = [*_race_rows(summary), *_setting_rows(summary)]
    ends = [] if races else [*ends_of_curves(summary).items()]
    return [*places, *ends, *races, *_memory_rows(summary), *_resource_rows(summary)]


def _race_rows(summary: RunSummary) -> list[Row]:
    """Return the median time of each arm, and what its first call cost where that is another matter; a table may tell more."""
    if ARMS in summary.figures:
        return []
    rows = []
    times = list(arm_times(summary).items())[:_MOST_ROWS]
    measure = measure_of(summary)
    samples = (measure.sample, "processes" if measure.sample == "process" else "")
    names = told_apart([arm for arm, _ in times], NAME_LIMIT)
    for arm, one in times:
        first = median(
            summary.first_calls.get(arm, [0.0])
        )  # which is timed on the wall clock alone
        once = ""
        if first > 3 * median(one.on(WALL)):
            once = f", the first one {seconds(first)}{' on the wall clock' if one.clock != WALL else ''}"
        rows.append(
            (
                names[arm],
                f"{time_words(one, measure)}, median of {plural(len(one.times), *samples)}{once}",
            )
        )
    return rows


def _setting_rows(summary: RunSummary) -> list[Row]:
    """Return which values of variables won; whether this run counts, `tuilab advise` says."""
    if not summary.settings or not summary.is_over or (summary.run and summary.run.quick):
        return []
    from tuilab.reports.advice.winner import describe_setting  # imported here: few runs have any

    return [describe_setting(summary, raced) for raced in summary.settings.values()]


def _memory_rows(summary: RunSummary) -> list[Row]:
    rows: dict[str, str] = {}
    for memory in summary.memory:
        values = [
            f"{show(name.removesuffix('_bytes'))} {spell_of(name)(value)}"
            for name, value in memory.values.items()
        ]
        rows[f"{memory.name} {memory.arm}".strip()] = ", ".join(values)
    names = told_apart(list(rows)[:_MOST_ROWS], NAME_LIMIT)
    return [(shown, rows[name]) for name, shown in names.items()]


def _resource_rows(summary: RunSummary) -> list[Row]:
    rows = []
    if peak := rss_peak_bytes(summary):
        waiting = summary.resources.get("waiting_bytes")
        beside = (
            f"; processes that wait for their repeat: {size(waiting.high or 0)}" if waiting else ""
        )
        counted = "RSS"
        is_command = bool(
            summary.run and summary.run.command
        )  # which a process of ours starts, and stays beside
        name = "peak memory, with tuilab" if is_command else "peak memory"
        processes = summary.resources.get("processes")
        are_several = processes is not None and (processes.high or 0) > (2 if is_command else 1)
        if are_several:
            counted = "RSS; shared pages are counted in each process"
        rows.append((name, f"{size(peak)} ({counted}){beside}"))
    return rows + gpu_rows(summary) + _held_rows(summary)


def _held_rows(summary: RunSummary) -> list[Row]:
    """Return what held the clocks of the run's GPUs down."""
    gpus = [gpu.found for gpu in own_gpus(summary) if gpu.found]
    if not gpus:
        return []
    from tuilab.drawings.gpu_strips import (
        describe_throttling,
        find_throttling,
    )  # which a run without a GPU need not wait for

    words = describe_throttling(find_throttling(summary, gpus, Throttling()))
    return [("  clocks", words)] if words else []


def rss_peak_bytes(summary: RunSummary) -> float:
    """Return the most that processes of a run had resident, as far as it was seen; 0: nothing was seen.

    Samples are of all of them, but now and then; of the largest by itself the kernel knows the most, however short it lived.
    """
    sampled = summary.resources.get("rss_bytes")
    kept = (worker.exited.rss_peak_bytes for worker in summary.workers.values() if worker.exited)
    return max([sampled.high or 0 if sampled else 0, *(one or 0 for one in kept)])
