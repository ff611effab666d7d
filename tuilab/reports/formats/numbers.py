"""What a run found, number by number: its claims, bars, tables, spans and sizes, beside what it measured on the way."""

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
    """One number, or a verdict without one; None is what has no place or was not found."""

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


def findings(subject: ReportedRun) -> Iterator[ReportedNumber]:
    """Yield every number of a run that is no sample, its verdicts first."""
    summary = subject.summary
    yield from map(_verdict, subject.result.claims)
    for claim in summary.claims.values():
        yield from _of_claim(claim, summary.first_t)
    yield from _answer(summary)
    for figure in summary.figures.values():
        found = _bars(figure) if isinstance(figure, BarsShown) else _cells(figure)
        yield from (one._replace(time_s=_seconds(figure, summary.first_t)) for one in found)
    yield from _spans(summary)
    yield from _sizes(summary)
    yield ReportedNumber("run", "elapsed", summary.elapsed_s, unit="s", note=subject.state)


def _verdict(claim: ResultClaim) -> ReportedNumber:
    """Return the verdict with its estimate and interval."""
    note = f"{claim.text}: {claim.evidence}" if claim.key else claim.evidence
    arms = claim.claimed.arms if claim.claimed else ""
    return ReportedNumber(
        "claim",
        claim.claim_id,
        claim.estimate,
        arms,
        low=claim.low,
        high=claim.high,
        verdict=claim.outcome,
        note=note,
    )


def _ratio(claim: Claim) -> str:
    return f"{claim.declared.over}/{claim.declared.under}" if claim.declared else ""


def _of_claim(claim: Claim, first_t: int) -> Iterator[ReportedNumber]:
    """Yield each other number that belongs to the claim."""
    name, reached, declared, arm = claim.claim_id, claim.verdict, claim.declared, _ratio(claim)
    if declared:
        yield ReportedNumber("claimed", name, declared.bound, arm, note=declared.op)
        yield ReportedNumber("claim_margin", name, declared.margin, arm)
    for measured in claim.measured:
        yield from _compared("measured", name, measured, _seconds(measured, first_t))
    for measured in claim.measured[:1]:
        yield from _compared("claimed", name, measured, None)
    for what in ("noise_floor", "smallest_effect", "confidence", "units"):
        if reached and (value := getattr(reached, what)):
            yield ReportedNumber(
                f"claim_{what}", name, value, arm, unit=reached.unit if what == "units" else ""
            )


def _compared(
    kind: str, name: str, measured: ClaimMeasured, time_s: float | None
) -> Iterator[ReportedNumber]:
    """Yield the numbers of one side of an exact claim, with their places in it."""
    side = measured.got if kind == "measured" else measured.want
    for place, value in enumerate(side.numbers):
        note = measured.op if kind == "claimed" else ""
        yield ReportedNumber(
            kind, name, value, place=place, time_s=time_s, unit=measured.unit, note=note
        )


def _answer(summary: RunSummary) -> Iterator[ReportedNumber]:
    if found := find_answer(summary.claims.values()):
        yield ReportedNumber("answer", found.claim.claim_id, found.value)
    if summary.run and summary.run.prediction is not None:
        yield ReportedNumber("predicted", "answer", summary.run.prediction)


def _bars(figure: BarsShown) -> Iterator[ReportedNumber]:
    for place, (name, value) in enumerate(zip(figure.names, figure.values, strict=True)):
        yield ReportedNumber("bar", figure.title, value, name, place=place, unit=figure.unit)


def _cells(figure: TableShown) -> Iterator[ReportedNumber]:
    """Yield the numbers of a table: the arm is the head of the column, and the words of its row stand beside each."""
    for place, row in enumerate(figure.rows):
        words = " ".join(cell for cell in row if isinstance(cell, str))
        for column, cell in enumerate(row):
            if not isinstance(cell, str):
                head = figure.head[column] if column < len(figure.head) else f"column {column + 1}"
                yield ReportedNumber("cell", figure.title, cell, head, place=place, note=words)


def _spans(summary: RunSummary) -> Iterator[ReportedNumber]:
    for (arm, writer), spans in summary.spans.items():
        for span in spans:
            length = span.ended - span.began
            yield ReportedNumber("span", span.name, length, arm, writer, span.began, None, span.began, span.ended, span.unit,
                          note=span.lane)  # fmt: skip


def _sizes(summary: RunSummary) -> Iterator[ReportedNumber]:
    for memory in summary.memory:
        for name, value in memory.values.items():
            time_s = _seconds(memory, summary.first_t)
            yield ReportedNumber(
                "memory",
                name,
                value,
                memory.arm,
                time_s=time_s,
                unit=unit_of(name),
                note=memory.name,
            )
    for arm, times in summary.first_calls.items():
        for place, seconds in enumerate(times):
            yield ReportedNumber("first_call", "first call", seconds, arm, place=place, unit="s")
    for processes, found in summary.cores.items():
        for cores in found:
            yield ReportedNumber("cores", "cores of busy processes", cores, place=processes)


def _seconds(record: Event, first_t: int) -> float:
    return (record.t - first_t) / 1e9
