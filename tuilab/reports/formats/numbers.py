"""List the numbers that a run found: claims, bars, tables, spans and sizes, without the samples.

An arm is one of the variants that a scenario compares, and a writer is the process that measured.
"""

from collections.abc import Iterator
from typing import NamedTuple

from tuilab.judging.prediction import find_answer
from tuilab.record.events import BarsShown, ClaimMeasured, Event, TableShown
from tuilab.record.summary import RunSummary
from tuilab.record.summary_parts import Claim
from tuilab.reports.reported_run import ReportedRun
from tuilab.reports.result import ResultClaim
from tuilab.text.words import unit_of


class ReportedNumber(NamedTuple):
    """One number, or a verdict without one. A field without a value is None or empty."""

    kind: str
    name: str
    value: float | None = None
    arm: str = ""
    writer: str = ""
    place: float | None = None
    time_s: float | None = None
    low: float | None = None
    high: float | None = None
    unit: str = ""
    verdict: str = ""
    note: str = ""


def reported_numbers(subject: ReportedRun) -> Iterator[ReportedNumber]:
    """Yield every number of a run that is not a sample, verdicts first."""
    summary = subject.summary
    for result in subject.result.claims:
        yield _make_verdict(result)
    for claim in summary.claims.values():
        yield from _list_claim_numbers(claim, summary.first_t)
    yield from _list_answers(summary)
    for figure in summary.figures.values():
        time_s = _seconds_since(summary.first_t, figure)
        if isinstance(figure, BarsShown):
            numbers = _list_bars(figure)
        else:
            numbers = _list_cells(figure)
        for number in numbers:
            yield number._replace(time_s=time_s)
    yield from _list_spans(summary)
    yield from _list_memory(summary)
    yield from _list_first_calls(summary)
    yield from _list_cores(summary)
    yield ReportedNumber("run", "elapsed", summary.elapsed_s, unit="s", note=subject.state)


# ---- claims


def _make_verdict(claim: ResultClaim) -> ReportedNumber:
    """Return the estimate of a claim with its interval and verdict; the value may be None.

    The text of the claim comes before its evidence, unless the text is the name of the number.
    """
    note = claim.evidence
    if claim.key:  # otherwise the name of the claim is its text
        note = f"{claim.text}: {note}"
    arms = ""
    if claim.claimed:
        arms = claim.claimed.arms
    return ReportedNumber(
        "claim",
        claim.claim_id,
        claim.estimate,
        arm=arms,
        low=claim.low,
        high=claim.high,
        verdict=claim.outcome,
        note=note,
    )


def _list_claim_numbers(claim: Claim, first_t: int) -> Iterator[ReportedNumber]:
    """Yield the numbers of a claim besides its verdict: what it claims, and what was measured.

    Numbers of the verdict, such as the noise floor, are left out if they are 0 or missing.
    """
    name = claim.claim_id
    arms = ""
    declared = claim.declared
    if declared:
        arms = f"{declared.over}/{declared.under}"
        yield ReportedNumber("claimed", name, declared.bound, arms, note=declared.op)
        yield ReportedNumber("claim_margin", name, declared.margin, arms)
    for measured in claim.measured:
        yield from _list_measured(name, measured, _seconds_since(first_t, measured))
    if claim.measured:
        yield from _list_wanted(name, claim.measured[0])
    verdict = claim.verdict
    if verdict is None:
        return
    for field in ("noise_floor", "smallest_effect", "confidence", "units"):
        value = getattr(verdict, field)
        if value:
            unit = ""
            if field == "units":
                unit = verdict.unit
            yield ReportedNumber(f"claim_{field}", name, value, arms, unit=unit)


def _list_measured(name: str, claim: ClaimMeasured, time_s: float) -> Iterator[ReportedNumber]:
    """Yield the numbers that a repeat measured for an exact claim."""
    for place, value in enumerate(claim.got.numbers):
        yield ReportedNumber("measured", name, value, place=place, time_s=time_s, unit=claim.unit)


def _list_wanted(name: str, claim: ClaimMeasured) -> Iterator[ReportedNumber]:
    """Yield the numbers that an exact claim states."""
    for place, value in enumerate(claim.want.numbers):
        yield ReportedNumber("claimed", name, value, place=place, unit=claim.unit, note=claim.op)


def _list_answers(summary: RunSummary) -> Iterator[ReportedNumber]:
    answer = find_answer(summary.claims.values())
    if answer:
        yield ReportedNumber("answer", answer.claim.claim_id, answer.value)
    if summary.run and summary.run.prediction is not None:
        yield ReportedNumber("predicted", "answer", summary.run.prediction)


# ---- figures


def _list_bars(figure: BarsShown) -> Iterator[ReportedNumber]:
    for place, (name, value) in enumerate(zip(figure.names, figure.values, strict=True)):
        yield ReportedNumber("bar", figure.title, value, name, place=place, unit=figure.unit)


def _list_cells(figure: TableShown) -> Iterator[ReportedNumber]:
    """Yield the numbers of a table: the arm is the head of the column, the note the row's words."""
    for place, row in enumerate(figure.rows):
        words = " ".join(cell for cell in row if isinstance(cell, str))
        for column, cell in enumerate(row):
            if isinstance(cell, str):
                continue
            head = f"column {column + 1}"
            if column < len(figure.head):
                head = figure.head[column]
            yield ReportedNumber("cell", figure.title, cell, head, place=place, note=words)


def _list_spans(summary: RunSummary) -> Iterator[ReportedNumber]:
    """Yield the length of each span, with its begin and end as interval and its lane as note."""
    for (arm, writer), spans in summary.spans.items():
        for span in spans:
            yield ReportedNumber(
                "span",
                span.name,
                span.ended - span.began,
                arm,
                writer,
                place=span.began,
                low=span.began,
                high=span.ended,
                unit=span.unit,
                note=span.lane,
            )


# ---- sizes and times of the run


def _list_memory(summary: RunSummary) -> Iterator[ReportedNumber]:
    """Yield what was measured with lab.memory; the note is the name of the measurement."""
    for memory in summary.memory:
        time_s = _seconds_since(summary.first_t, memory)
        for name, value in memory.values.items():
            yield ReportedNumber(
                "memory",
                name,
                value,
                memory.arm,
                time_s=time_s,
                unit=unit_of(name),
                note=memory.name,
            )


def _list_first_calls(summary: RunSummary) -> Iterator[ReportedNumber]:
    for arm, times in summary.first_calls.items():
        for place, seconds in enumerate(times):
            yield ReportedNumber("first_call", "first call", seconds, arm, place=place, unit="s")


def _list_cores(summary: RunSummary) -> Iterator[ReportedNumber]:
    for processes, measurements in summary.cores.items():
        for cores in measurements:
            yield ReportedNumber("cores", "cores of busy processes", cores, place=processes)


def _seconds_since(first_t: int, record: Event) -> float:
    return (record.t - first_t) / 1e9
