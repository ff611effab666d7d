"""Render everything that is known of runs as one JSON document, with every raw measurement.

It is written in pieces, so that ten million numbers take no more memory than a hundred thousand.
"""

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec

from tuilab import __version__
from tuilab.record.encoding import spell_out
from tuilab.record.events import ClaimDeclared, Scalar
from tuilab.reports.advice.advice_document import ComparedVariable, compared_variable
from tuilab.reports.advice.winner import choose_value
from tuilab.reports.documents.document_part import DocumentPart
from tuilab.reports.missing_data import gaps
from tuilab.reports.reported_run import ReportedRun
from tuilab.reports.result import Key, Result, ResultRatio, document
from tuilab.reports.samples import SamplePiece, read_samples
from tuilab.runs import command_line


class ReportDeclared(ResultRatio, frozen=True):
    """A claim about time as it was declared."""

    key: Key
    text: str


class ReportSweep(DocumentPart, frozen=True):
    id: str
    point: dict[str, Scalar]


class ReportNote(DocumentPart, frozen=True):
    wall_s: float | None
    text: str


class ReportImage(DocumentPart, frozen=True):
    title: str
    arm: str
    step: int
    rows: int
    cols: int
    low: float
    high: float
    cells: str
    """base64, a byte for each cell: 0 is low, 254 high, 255 not finite"""


class ReportArtifact(DocumentPart, frozen=True):
    name: str
    bytes_total: int = msgspec.field(name="bytes")
    sha256: str


class ReportSamples(DocumentPart, omit_defaults=True, frozen=True):
    kind: Literal["logged", "block", "sampled", "timed"]
    name: str
    arm: str
    writer: str
    place: list[float]
    """where each value belongs: its step, the round of its block, or the number of its sample"""
    time_s: list[float]
    """seconds since the first record"""
    value: list[float | None]
    """the numbers; null: it could not be measured, and the note has the reason"""
    note: list[str] = []
    """timed blocks: warm-up, disturbed, rerun, and which control; gaps: why they are n/a; absent if
    there are no notes"""


class ReportedResult(Result, frozen=True):
    """A run with how to repeat it, its source, and every number that it recorded."""

    command: list[str] | None
    """command that repeats the run"""
    started_wall_ns: int | None
    """nanoseconds since 1970"""
    repeats: int | None
    variables: list[ComparedVariable]
    """variables whose values were compared, and the value that won"""
    earlier: dict[str, str]
    """by claim about time: how often it was judged on this machine before, and with which
    verdicts"""
    declared: list[ReportDeclared]
    """claims about time, as they were declared before anything was measured"""
    sweep: ReportSweep | None
    """the sweep that the run is a point of"""
    gaps: list[str]
    """what is missing or was lost, in sentences"""
    notes: list[ReportNote]
    """notes about the run"""
    tags: list[str]
    lesson: str
    source: str | None
    """source of the scenario, as it ran"""
    images: list[ReportImage]
    artifacts: list[ReportArtifact]
    samples: list[ReportSamples]
    """every number that was logged, sampled or timed, in columns; a long line is several pieces,
    one after another"""


class Report(DocumentPart, tag_field="schema", tag="tuilab.report/2", frozen=True):
    """What `tuilab report RUN... -o FILE.json` writes.

    Fields may be added. If a field changes its meaning, the number after the slash changes.
    """

    tuilab: str
    """version of tuilab that wrote the report"""
    runs: list[ReportedResult]


def render(subjects: Sequence[ReportedRun]) -> Iterator[str]:
    """Yield the document in pieces.

    Each run has the fields of `tuilab run --json`, how to repeat it, its source, and `samples`.
    """
    schema = Report.__struct_config__.tag
    yield f'{{\n"schema": "{schema}",\n"tuilab": "{__version__}",\n"runs": ['
    run_separator = ""
    for subject in subjects:
        fields = document(_make_result(subject))
        del fields["samples"]
        text = json.dumps(fields, indent=1, allow_nan=False).removesuffix("\n}")
        yield f'{run_separator}\n{text},\n "samples": ['
        run_separator = ","
        separator = ""
        for piece in read_samples(subject.run_dir, subject.word):
            yield f"{separator}\n  {_encode_samples(piece, subject.summary.first_t)}"
            separator = ","
        yield "\n ]\n}"
    yield "\n]\n}\n"


def _make_result(subject: ReportedRun) -> ReportedResult:
    """Return all that a report has of a run, with an empty list instead of the samples.

    They are written apart, because there may be too many to hold at once.
    """
    summary = subject.summary
    command = None
    started_wall_ns = None
    repeats = None
    sweep = None
    run = summary.run
    if run:
        repeats = summary.planned_repeats
        command = command_line.rerun_words(run, repeats)
        started_wall_ns = run.wall_ns
        if run.sweep:
            sweep = ReportSweep(run.sweep.id, run.sweep.point)
    variables = []
    for raced in summary.settings.values():
        variables.append(compared_variable(raced, choose_value(summary, raced)))
    declared = []
    for claim in summary.claims.values():
        if claim.declared:
            declared.append(_make_declared(claim.declared))
    images = list(summary.images.values())
    return ReportedResult(
        **msgspec.structs.asdict(subject.result),
        command=command,
        started_wall_ns=started_wall_ns,
        repeats=repeats,
        variables=variables,
        earlier=dict(subject.earlier),
        declared=declared,
        sweep=sweep,
        gaps=gaps(subject),
        notes=[ReportNote(when, text) for when, text in subject.notes.texts],
        tags=subject.notes.tags,
        lesson=subject.scenario.lesson,
        source=subject.source or None,
        images=msgspec.convert(images, list[ReportImage], from_attributes=True),
        artifacts=msgspec.convert(summary.artifacts, list[ReportArtifact], from_attributes=True),
        samples=[],
    )


def _make_declared(claim: ClaimDeclared) -> ReportDeclared:
    """Return a claim about time as it was declared; a claim of an old record has no key."""
    return ReportDeclared(
        over=claim.over,
        under=claim.under,
        op=claim.op,
        bound=claim.bound,
        margin=claim.margin,
        confidence=claim.confidence,
        cores=claim.cores,
        key=claim.key or None,
        text=claim.text,
    )


def _encode_samples(piece: SamplePiece, first_t: int) -> str:
    """Return a piece as an object of words and columns, with a column of notes if there are any."""
    words = {"kind": piece.kind, "name": piece.name, "arm": piece.arm, "writer": piece.writer}
    columns: dict[str, list[Any]] = {
        "place": _spell_column(piece.places),
        "time_s": [(t - first_t) / 1e9 for t in piece.times],
    }
    if any(piece.notes):
        columns["value"] = spell_out(piece.values)  # a missing value is None, so no sum exists
        columns["note"] = piece.notes
    else:
        columns["value"] = _spell_column(piece.values)
    # One object: the words without the brace at their end, the columns without that at their start.
    first_part = json.dumps(words).removesuffix("}")
    second_part = msgspec.json.encode(columns).decode().removeprefix("{")
    return f"{first_part}, {second_part}"


def _spell_column(column: list[Any]) -> list[Any]:
    """Return numbers as JSON has them. A finite sum shows quickly that all of them are finite."""
    if math.isfinite(sum(column)):
        return column
    spelled: list[Any] = spell_out(column)
    return spelled
