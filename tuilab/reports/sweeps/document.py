"""A sweep as a JSON document."""

from collections.abc import Sequence
from typing import Any

from tuilab.record.events import Scalar
from tuilab.reports.reported_run import ReportedRun
from tuilab.reports.result import DocumentPart, VerdictWord
from tuilab.reports.sweeps.points import curve_ends
from tuilab.reports.sweeps.swept import Along, PointClaim, Swept, sweep_of


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
    """clock that judged: wall, or cpu if other processes disturbed the run; null: nothing was timed"""


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


def sweep_document(swept: Swept, subjects: Sequence[ReportedRun], exit_code: int) -> SweepDocument:
    """Return what is known of a sweep."""
    runs = [_run(subject) for subject in subjects if sweep_of(subject)]
    claims = [_claim(claim) for claim in swept.claims]
    return SweepDocument(
        int(exit_code), swept.id, swept.sweep.values, runs, claims, list(swept.missing)
    )


def _run(subject: ReportedRun) -> SweptRun:
    """Return the run of a point; where its curves ended only of a command, as those of a scenario are its own affair."""
    run = subject.summary.run
    last = curve_ends(subject.summary) if run and run.command else {}
    return SweptRun(
        subject.run_dir.name, str(subject.run_dir), dict(subject.point), subject.state, last
    )


def _claim(claim: Along) -> SweptClaim:
    points = [_point(told) for told in claim.told]
    return SweptClaim(
        claim.text, claim.about, claim.told[0].claim.key or None, list(claim.holds), points
    )


def _point(told: PointClaim) -> SweptPoint:
    names = SweptPoint.__struct_fields__
    fields: dict[str, Any] = {name: getattr(told.claim, name, None) for name in names}
    if told.claim.confidence is None:  # nothing was timed
        fields["measure"] = None
    return SweptPoint(**{**fields, "point": dict(told.point), "id": told.id, "holds": told.holds})
