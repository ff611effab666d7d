"""A sweep as a JSON document."""

from collections.abc import Sequence

from tuilab.record.events import Scalar
from tuilab.reports.documents.document_part import DocumentPart
from tuilab.reports.reported_run import ReportedRun
from tuilab.reports.result import VerdictWord
from tuilab.reports.sweeps.points import final_values
from tuilab.reports.sweeps.sweep_summary import ClaimAlongSweep, PointClaim, SweepSummary, sweep_of


class SweptPoint(DocumentPart, frozen=True):
    """A claim at one point."""

    point: dict[str, Scalar]
    """value of each setting"""
    id: str
    """id of the run"""
    holds: bool | None
    """true: the claim holds; null: the measurement does not decide it"""
    verdict: VerdictWord | None
    why: str
    estimate: float | None
    low: float | None
    high: float | None
    confidence: float | None
    """confidence of the interval, such as 0.95"""
    units: int | None
    unit: str | None
    noise_floor: float | None
    smallest_effect: float | None
    measure: str | None
    """clock that judged: wall, or cpu if other processes disturbed the run; null: nothing was
    timed"""


class SweptClaim(DocumentPart, frozen=True):
    text: str
    """text of the claim, with {NAME} in place of the value of a setting"""
    about: str
    """values for which the numbers in the text are true, if these vary; else empty"""
    key: str | None
    holds: list[str]
    """where the claim holds: a sentence for each combination of the other settings"""
    points: list[SweptPoint]


class SweptRun(DocumentPart, frozen=True):
    run: str
    """id of the run"""
    path: str
    """absolute path"""
    point: dict[str, Scalar]
    state: str
    last: dict[str, float]
    """last value of each curve of a command"""


class SweepDocument(DocumentPart, tag_field="schema", tag="tuilab.sweep/1", frozen=True):
    """What `tuilab sweep NAME --json` prints."""

    exit_code: int
    """exit code of the command"""
    sweep: str
    """id of the sweep, for report and sweep --resume"""
    values: dict[str, list[Scalar]]
    """values of each setting"""
    runs: list[SweptRun]
    claims: list[SweptClaim]
    missing: list[str]
    """points without a result, and why"""


def sweep_document(
    summary: SweepSummary, subjects: Sequence[ReportedRun], exit_code: int
) -> SweepDocument:
    """Return the JSON document of a sweep."""
    points = [subject for subject in subjects if sweep_of(subject)]
    return SweepDocument(
        exit_code=int(exit_code),
        sweep=summary.id,
        values=summary.sweep.values,
        runs=[_swept_run(subject) for subject in points],
        claims=[_swept_claim(claim) for claim in summary.claims],
        missing=list(summary.missing),
    )


def _swept_run(subject: ReportedRun) -> SweptRun:
    """Return the run of a point. The curves of a scenario, unlike those of a command, stay out."""
    run = subject.summary.run
    last: dict[str, float] = {}
    if run and run.command:
        last = final_values(subject.summary)
    return SweptRun(
        run=subject.run_dir.name,
        path=str(subject.run_dir),
        point=dict(subject.point),
        state=subject.state,
        last=last,
    )


def _swept_claim(claim: ClaimAlongSweep) -> SweptClaim:
    """Return a claim along a sweep. All points have its key, so the first one gives it."""
    return SweptClaim(
        text=claim.text,
        about=claim.about,
        key=claim.points[0].claim.key or None,
        holds=list(claim.holds),
        points=[_swept_point(point) for point in claim.points],
    )


def _swept_point(point: PointClaim) -> SweptPoint:
    """Return a claim at one point. Without a confidence nothing was timed, so no clock is named."""
    claim = point.claim
    is_timed = claim.confidence is not None
    return SweptPoint(
        point=dict(point.point),
        id=point.id,
        holds=point.holds,
        verdict=claim.verdict,
        why=claim.why,
        estimate=claim.estimate,
        low=claim.low,
        high=claim.high,
        confidence=claim.confidence,
        units=claim.units,
        unit=claim.unit,
        noise_floor=claim.noise_floor,
        smallest_effect=claim.smallest_effect,
        measure=claim.measure if is_timed else None,
    )
