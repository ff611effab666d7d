"""The clauses to read before a result: the device, how the run ended, alarms, lost records."""

from tuilab.record.finding_words import (
    alert_words,
    device_notices,
    dropped_words,
    gpu_errors,
    leftover_words,
    lost_words,
)
from tuilab.record.states import RunState
from tuilab.record.summary import RunSummary
from tuilab.text.display import plural, show


def ending_of(summary: RunSummary, state: str) -> str:
    """Return how a run ended, with the reason.

    The text is empty if the run succeeded and no reason was recorded.
    """
    if state == RunState.LOST:
        return f"lost: {lost_words(summary)}"
    if not summary.is_over:
        return f"the run has not ended ({show(state)}): the result has what was recorded so far"
    if state == RunState.SUCCEEDED and (not summary.reason or summary.box_lacks):
        return ""
    if not summary.reason:
        return f"{show(state)}, without a recorded reason"
    return f"{show(state)}: {show(summary.reason)}"


def notices_of(summary: RunSummary) -> list[str]:
    """Return the clauses to read before a result, without how the run ended."""
    notices = device_notices(summary)
    if summary.run and summary.run.retry_of:
        lost_run = show(summary.run.retry_of, 80)
        notices.append(f"this is a second attempt: {lost_run} was lost with its node")
    if summary.box_lacks:
        notices.append(f"not testable here: {show(summary.box_lacks)}")
    if summary.leftovers:
        notices.append(leftover_words(summary))
    notices += gpu_errors(summary)
    notices += map(alert_words, summary.alerts)
    notices += damage_of(summary)
    notices += dropped_words(summary).values()
    return notices


def damage_of(summary: RunSummary) -> list[str]:
    """Return a clause for each way in which the recorded data is incomplete."""
    damage = summary.damage
    kinds = (
        (damage.corrupt_count, "line", "corrupt and left out"),
        (damage.unexplained_count, "record", "missing from the journal"),
        (
            damage.lost_count,
            "measured record",
            "not written: the disk refused them, or a GPU had not computed them",
        ),
        (damage.unknown_count, "record", "of a kind that this version of tuilab does not know"),
    )
    clauses = []
    for count, noun, lack in kinds:
        if count:
            clauses.append(f"{plural(count, noun)}: {lack}")
    return clauses


def as_sentence(clause: str) -> str:
    """Return a clause as a sentence of its own."""
    return f"{clause[:1].upper()}{clause[1:]}."
