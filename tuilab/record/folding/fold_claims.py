"""Folds the records of claims and of their verdicts."""

from collections.abc import Set
from typing import Any

from tuilab.record import events
from tuilab.record.exact_claims import holds
from tuilab.record.folding.arms_table import update_arms_table
from tuilab.record.folding.limits import keep
from tuilab.record.summary import RunSummary
from tuilab.record.summary_parts import Claim, RacedSetting


def claim_measured(summary: RunSummary, stream: str, event: events.ClaimMeasured) -> None:
    """Note a measurement.

    Times decide which is the last one and which the first that missed, not the order of reading.
    """
    claim = claim_of(summary, event)
    keep(claim.measured, event)
    claim.measured_in.add(stream)
    if claim.last is None or event.t >= claim.last.t:
        claim.last = event
    if not holds(event):
        claim.missed_in.add(stream)
        if claim.missed is None or event.t < claim.missed.t:
            claim.missed = event


def claim_declared(summary: RunSummary, stream: str, event: events.ClaimDeclared) -> None:
    """Note a declaration: the first one counts, and others that differ from it are kept.

    A declaration is late if its stream has already started a race of the arms.
    """
    claim = claim_of(summary, event)
    arms = {event.over, event.under}
    claim.is_late |= _has_raced(summary, stream, arms)
    claim.declared_in.add(stream)
    if claim.declared is None:
        claim.declared = event
    elif _terms(event) != _terms(claim.declared):
        keep(claim.others, event)


def _terms(event: events.ClaimDeclared) -> tuple[Any, ...]:
    """Return everything that must be the same if a claim is declared again."""
    return (
        event.over,
        event.under,
        event.op,
        event.bound,
        event.margin,
        event.confidence,
        event.cores,
    )


def claim_not_testable(summary: RunSummary, stream: str, event: events.ClaimNotTestable) -> None:
    claim_of(summary, event).needs = event.needs


def setting_raced(summary: RunSummary, stream: str, event: events.SettingRaced) -> None:
    """Note a record of a setting whose values were compared in a stream.

    It is late if the stream has already started the race of the values.
    """
    raced = summary.settings.setdefault((event.name, event.ranks), RacedSetting())
    arms = {candidate.arm for candidate in event.candidates if candidate.arm}
    if arms:
        raced.is_late |= _has_raced(summary, stream, arms)
    keep(raced.records, event)
    keep(raced.writers, stream)


def _has_raced(summary: RunSummary, stream: str, arms: Set[str]) -> bool:
    """Say whether a stream has started a race of these arms."""
    return any(writer == stream and arms <= set(race.arms) for writer, race in summary.races)


def question_answered(summary: RunSummary, stream: str, event: events.QuestionAnswered) -> None:
    """Note the answer; the first one counts."""
    claim = claim_of(summary, event)
    claim.answered = claim.answered or event


def verdict_reached(summary: RunSummary, stream: str, event: events.VerdictReached) -> None:
    claim_of(summary, event).verdict = event
    update_arms_table(summary)  # its first row is on the clock of the verdict


def claim_of(summary: RunSummary, event: events.AboutClaim) -> Claim:
    """Return the claim that a record is about; create it if there is none."""
    claim = summary.claims.setdefault(event.claim_id, Claim(event.text, event.key))
    claim.is_once |= event.is_once
    return claim
