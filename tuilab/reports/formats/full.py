"""Everything that is known of runs as one JSON document, with every raw measurement; report.schema.json describes it.

It is written piece by piece: what a run of ten million numbers takes of memory is what one of a hundred thousand does.
"""

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tuilab import __version__
from tuilab.record.encoding import spell_out
from tuilab.reports.advice.advice_document import variable
from tuilab.reports.advice.winner import choose
from tuilab.reports.document import document
from tuilab.reports.gaps import gaps
from tuilab.reports.samples import Piece, pieces
from tuilab.reports.subject import Subject
from tuilab.runs import command_line

SCHEMA = "tuilab.report/2"


def schema() -> str:
    """Return the JSON Schema of the document."""
    return Path(__file__).with_name("report.schema.json").read_text()


def render(subjects: Sequence[Subject]) -> Iterator[str]:
    """Yield the document: for each run what `tuilab run --json` has, how to repeat it, its source, and `samples`."""
    yield f'{{\n"schema": "{SCHEMA}",\n"tuilab": "{__version__}",\n"runs": ['
    for at, subject in enumerate(subjects):
        told = json.dumps(_run(subject), indent=1, allow_nan=False).removesuffix("\n}")
        yield f'{"," if at else ""}\n{told},\n "samples": ['
        for number, piece in enumerate(pieces(subject.run_dir, subject.word)):
            yield f"{',' if number else ''}\n  {_sampled(piece, subject.summary.first_t)}"
        yield "\n ]\n}"
    yield "\n]\n}\n"


def _run(subject: Subject) -> dict[str, Any]:
    (told,) = document([(subject.summary, subject.state, subject.run_dir)], 0)["runs"]
    more: dict[str, Any] = spell_out(_more(subject))
    return {**told, **more, "path": subject.path}


def _more(subject: Subject) -> dict[str, Any]:
    summary, run = subject.summary, subject.summary.run
    return {
        "command": command_line.rerun_words(run, summary.planned_repeats) if run else None,
        "started_wall_ns": run.wall_ns if run else None,
        "repeats": summary.planned_repeats if run else None,
        "variables": [variable(raced, choose(summary, raced)) for raced in summary.settings.values()],
        "earlier": dict(subject.before),
        "declared": [_declared(claim.declared) for claim in summary.claims.values() if claim.declared],
        "sweep": {"id": run.sweep.id, "point": run.sweep.point} if run and run.sweep else None,
        "gaps": gaps(subject),
        "notes": [{"wall_s": when, "text": text} for when, text in subject.notes.texts],
        "tags": subject.notes.tags,
        "lesson": subject.scenario.lesson,
        "source": subject.source or None,
        "images": [
            {"title": i.title, "arm": i.arm, "step": i.step, "rows": i.rows, "cols": i.cols, "low": i.low, "high": i.high,
             "cells": i.cells}
            for i in summary.images.values()
        ],
        "artifacts": [{"name": a.name, "bytes": a.bytes_total, "sha256": a.sha256} for a in summary.artifacts],
    }  # fmt: skip


def _declared(claim: Any) -> dict[str, Any]:
    fields = ("text", "over", "under", "op", "bound", "margin", "confidence", "cores")
    return {"key": claim.key or None, **{name: getattr(claim, name) for name in fields}}


def _sampled(piece: Piece, first_t: int) -> str:
    """Return a piece as an object of words and columns; a column of notes only where there are any."""
    words = {"kind": piece.kind, "name": piece.name, "arm": piece.arm, "writer": piece.writer}
    numbers = {
        "place": _spelled(piece.places),
        "time_s": [(t - first_t) / 1e9 for t in piece.times],
        "value": spell_out(piece.values) if any(piece.notes) else _spelled(piece.values),  # a gap is null, and has a note
        **({"note": piece.notes} if any(piece.notes) else {}),
    }
    return f"{json.dumps(words).removesuffix('}')}, {msgspec.json.encode(numbers).decode()[1:]}"


def _spelled(column: list[Any]) -> list[Any]:
    """Return a column as JSON has it; mostly there is nothing in it that has to be spelled, and no look at each is needed."""
    return column if math.isfinite(sum(column)) else spell_out(column)
