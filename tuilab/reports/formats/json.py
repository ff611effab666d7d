"""Everything that is known of runs as one JSON document, with every raw measurement.

It is written piece by piece, so a run of ten million numbers takes no more memory than one of a hundred thousand.
"""

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec

from tuilab import __version__
from tuilab.record.encoding import spell_out
from tuilab.record.events import Scalar
from tuilab.reports.advice.advice_document import ComparedVariable, variable
from tuilab.reports.advice.winner import choose
from tuilab.reports.missing_data import gaps
from tuilab.reports.reported_run import ReportedRun
from tuilab.reports.result import DocumentPart, Key, Result, ResultRatio, document
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
    kind: Literal["logged", "sampled", "timed"]
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
    """timed blocks: warm-up, disturbed, rerun, and which control; gaps: why they are n/a; absent if there are
    no notes"""


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
    """by claim about time: how often it was judged on this machine before, and with which verdicts"""
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
    """every number that was logged, sampled or timed, in columns; a long line is several pieces, one after
    another"""


class Report(DocumentPart, tag_field="schema", tag="tuilab.report/2", frozen=True):
    """What `tuilab report RUN... -o FILE.json` writes.

    Fields may be added. If a field changes its meaning, the number after the slash changes.
    """

    tuilab: str
    """version of tuilab that wrote the report"""
    runs: list[ReportedResult]


def render(subjects: Sequence[ReportedRun]) -> Iterator[str]:
    """Yield the document: for each run what `tuilab run --json` has, how to repeat it, its source, and `samples`."""
    yield f'{{\n"schema": "{Report.__struct_config__.tag}",\n"tuilab": "{__version__}",\n"runs": ['
    for number, subject in enumerate(subjects):
        fields = document(_reported(subject))
        del fields["samples"]
        text = json.dumps(fields, indent=1, allow_nan=False).removesuffix("\n}")
        yield f'{"," if number else ""}\n{text},\n "samples": ['
        for at, piece in enumerate(read_samples(subject.run_dir, subject.word)):
            yield f"{',' if at else ''}\n  {_samples(piece, subject.summary.first_t)}"
        yield "\n ]\n}"
    yield "\n]\n}\n"


def _reported(subject: ReportedRun) -> ReportedResult:
    """Return all that a report has of a run, but the samples."""
    summary, run = subject.summary, subject.summary.run
    fields = msgspec.structs.asdict(subject.result)
    repeats = summary.planned_repeats
    claims = summary.claims.values()
    return ReportedResult(
        **fields,
        command=command_line.rerun_words(run, repeats) if run else None,
        started_wall_ns=run.wall_ns if run else None,
        repeats=repeats if run else None,
        variables=[variable(raced, choose(summary, raced)) for raced in summary.settings.values()],
        earlier=dict(subject.before),
        declared=[_declared(claim.declared) for claim in claims if claim.declared],
        sweep=ReportSweep(run.sweep.id, run.sweep.point) if run and run.sweep else None,
        gaps=gaps(subject),
        notes=[ReportNote(when, text) for when, text in subject.notes.texts],
        tags=subject.notes.tags,
        lesson=subject.scenario.lesson,
        source=subject.source or None,
        images=msgspec.convert([*summary.images.values()], list[ReportImage], from_attributes=True),
        artifacts=msgspec.convert(summary.artifacts, list[ReportArtifact], from_attributes=True),
        samples=[],
    )


def _declared(claim: Any) -> ReportDeclared:
    fields = {name: getattr(claim, name) for name in ReportDeclared.__struct_fields__}
    return ReportDeclared(**{**fields, "key": claim.key or None})


def _samples(piece: SamplePiece, first_t: int) -> str:
    """Return a piece as an object of words and columns; a column of notes only if there are any."""
    words = {"kind": piece.kind, "name": piece.name, "arm": piece.arm, "writer": piece.writer}
    numbers = {
        "place": _spelled(piece.places),
        "time_s": [(t - first_t) / 1e9 for t in piece.times],
        "value": spell_out(piece.values)
        if any(piece.notes)
        else _spelled(piece.values),  # a gap is null, and has a note
    }
    if any(piece.notes):
        numbers["note"] = piece.notes
    return f"{json.dumps(words).removesuffix('}')}, {msgspec.json.encode(numbers).decode()[1:]}"


def _spelled(column: list[Any]) -> list[Any]:
    """Return a column as JSON has it; most have only finite numbers, which the sum shows without a look at each."""
    return column if math.isfinite(sum(column)) else spell_out(column)
