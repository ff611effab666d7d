"""Say how far a tuning is: its stage, how many processes have ended, and the rest of its budget.

A tuning watches the script once, screens each treatment with one process, compares the promising
treatments with the unchanged script, and compares the combination of the winners.
"""

import math

from tuilab.record.events import RunStarted
from tuilab.record.states import RunState
from tuilab.record.summary import RunSummary
from tuilab.text.display import plural
from tuilab.text.words import clock

TUNE_TOPIC = "tune"  # of a run that tunes a script
WATCHING = "watching"
SCREENING = "screening"
COMPARING = "comparison"
COMBINING = "combination"


def is_tuning(summary: RunSummary) -> bool:
    """Say whether a run tunes a script of the user."""
    return summary.run is not None and tunes_script(summary.run)


def tunes_script(run: RunStarted) -> bool:
    """Say whether a run tunes a script, by its first record; a scenario may have the same topic."""
    return run.topic == TUNE_TOPIC and bool(run.command)


def stage_of(summary: RunSummary) -> str:
    """Return the stage of a tuning: watching, screening, comparison or combination."""
    tuning = summary.tuning
    if tuning.combinations:
        return COMBINING
    if summary.races:
        _, race = summary.races[-1]
        return race.stage or COMPARING
    if tuning.plan is not None:
        return SCREENING
    return WATCHING


def count_processes(summary: RunSummary) -> int:
    """Return how many processes of the script have ended, as far as their results are recorded."""
    tuning = summary.tuning
    count = tuning.tries
    if tuning.plan is not None:
        count += 2  # the process that was watched, and one whose times others are compared with
    for blocks in (*summary.blocks.values(), *summary.controls.values()):
        count += len(blocks)
    return count


def stage_words(summary: RunSummary) -> str:
    """Return the stage and the number of processes: `comparison, 31 processes`.

    A tuning that has ended is in no stage. Empty for a tuning that has not begun.
    """
    processes = plural(count_processes(summary), "process", "processes")
    if summary.is_over:
        return processes
    if summary.state == RunState.QUEUED:
        return ""
    return f"{stage_of(summary)}, {processes}"


def budget_left_s(summary: RunSummary, elapsed_s: float) -> float | None:
    """Return the seconds that are left of the budget of a tuning; None if it has no budget."""
    if summary.run is None or summary.run.budget_s is None:
        return None
    if not math.isfinite(summary.run.budget_s):  # a damaged record
        return None
    return max(summary.run.budget_s - elapsed_s, 0.0)


def budget_words(summary: RunSummary, elapsed_s: float) -> str:
    """Return how much of the budget is left, such as `6:10 of the budget left`."""
    left_s = budget_left_s(summary, elapsed_s)
    if left_s is None:
        return ""
    return f"{clock(left_s)} of the budget left"
