"""What is to be known before a run is read, as clauses: its device, how it ended, alarms, and what its record lacks."""

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
    """Return how a run ended, with the reason; nothing if it succeeded and no reason was recorded."""
    if state == RunState.LOST:
        return f"lost: {lost_words(summary)}"
    if not summary.is_over:
        return f"the run has not ended ({show(state)}): the result has what was recorded so far"
    if state == RunState.SUCCEEDED and (not summary.reason or summary.box_lacks):
        return ""
    return (
        f"{show(state)}: {show(summary.reason)}"
        if summary.reason
        else f"{show(state)}, without a recorded reason"
    )


def notices_of(summary: RunSummary) -> list[str]:
    """Return a clause for each thing that is to be known, but for how the run ended."""
    notices = device_notices(summary)
    if summary.run and summary.run.retry_of:
        notices.append(
            f"this is a second attempt: {show(summary.run.retry_of, 80)} was lost with its node"
        )
    if summary.box_lacks:
        notices.append(f"not testable here: {show(summary.box_lacks)}")
    if summary.leftovers:
        notices.append(leftover_words(summary))
    notices += gpu_errors(summary)
    notices += map(alert_words, summary.alerts)
    return [*notices, *damage_of(summary), *dropped_words(summary).values()]


def damage_of(summary: RunSummary) -> list[str]:
    """Return a clause for each way in which the recorded data is incomplete."""
    damage = summary.damage
    kinds = (
        (damage.corrupt_count, "line", "corrupt and left out"),
        (damage.missing_count, "record", "missing from the journal"),
        (
            damage.lost_count,
            "measured record",
            "not written: the disk refused them, or a GPU had not computed them",
        ),
        (damage.unknown_count, "record", "of a kind that this version of tuilab does not know"),
    )
    return [f"{plural(count, noun)}: {what}" for count, noun, what in kinds if count]


def as_sentence(clause: str) -> str:
    """Return a clause as a sentence of its own."""
    return f"{clause[:1].upper()}{clause[1:]}."
