"""Everything that is known of runs as one JSON document, with every raw measurement; report.schema.json describes it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tuilab import __version__
from tuilab.record.encoding import spell_out
from tuilab.reports.advice.advice_document import variable
from tuilab.reports.advice.winner import choose
from tuilab.reports.document import document
from tuilab.reports.gaps import gaps
from tuilab.reports.samples import Sample, samples
from tuilab.reports.subject import Subject
from tuilab.runs import command_line

SCHEMA = "tuilab.report/1"


def schema() -> str:
    """Return the JSON Schema of the document."""
    return Path(__file__).with_name("report.schema.json").read_text()


def full(subjects: Sequence[Subject]) -> dict[str, Any]:
    """Return the document: for each run what `tuilab run --json` has, how to repeat it, its source, and `samples`."""
    runs = document([(one.summary, one.state, one.run_dir) for one in subjects], 0)["runs"]
    whole = [{**run, **_more(subject)} for run, subject in zip(runs, subjects, strict=True)]
    spelled: dict[str, Any] = spell_out({"schema": SCHEMA, "tuilab": __version__, "runs": whole})
    return spelled


def _more(subject: Subject) -> dict[str, Any]:
    summary, run = subject.summary, subject.summary.run
    return {
        "command": command_line.rerun_words(run, summary.planned_repeats) if run else None,
        "started_wall_ns": run.wall_ns if run else None,
        "repeats": summary.planned_repeats if run else None,
        "settings": {claim.claim_id: claim.advises for claim in summary.claims.values() if claim.advises},
        "variables": [variable(raced, choose(summary, raced)) for raced in summary.settings.values()],
        "earlier": dict(subject.before),
        "declared": [_declared(claim.declared) for claim in summary.claims.values() if claim.declared],
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
        "samples": [_sample(one, summary.first_t) for one in samples(subject.run_dir)],
    }  # fmt: skip


def _declared(claim: Any) -> dict[str, Any]:
    fields = ("text", "over", "under", "op", "bound", "margin", "confidence", "cores")
    return {"key": claim.key or None, **{name: getattr(claim, name) for name in fields}}


def _sample(one: Sample, first_t: int) -> dict[str, Any]:
    return {
        "kind": one.kind, "name": one.name, "arm": one.arm, "writer": one.writer, "place": one.place,
        "time_s": (one.t - first_t) / 1e9, "value": one.value, "note": one.note,
    }  # fmt: skip
