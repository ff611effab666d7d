"""The result of runs as one JSON document, for programs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tuilab.judging.prediction import find_answer, rate_prediction
from tuilab.record.blocks import Measure, counted, in_order, measure_of, scale_of
from tuilab.record.digest import digest_of
from tuilab.record.encoding import spell_out
from tuilab.record.events import BarsShown, ClaimMeasured, TableShown, VerdictReached
from tuilab.record.gpus.own_gpus import own_gpus
from tuilab.record.parts import Claim, Neighbours
from tuilab.record.series import Series
from tuilab.record.summary import RunSummary
from tuilab.record.timing.clocks import cpu_times
from tuilab.record.told import why_not_judged

SCHEMA = "tuilab.result/1"


def document(runs: Sequence[tuple[RunSummary, str, Path]], exit_code: int) -> dict[str, Any]:
    """Return the document for runs given as (summary, state, folder); non-finite numbers are spelled as strings."""
    spelled: dict[str, Any] = spell_out(
        {"schema": SCHEMA, "exit_code": exit_code, "runs": [_run(summary, state, path) for summary, state, path in runs]}
    )
    return spelled


def _run(summary: RunSummary, state: str, run_dir: Path) -> dict[str, Any]:
    run, measure = summary.run, measure_of(summary)
    return {
        "run": run_dir.name,
        "path": str(run_dir),
        "scenario": run.scenario if run else None,
        "topic": run.topic if run else None,
        "title": run.title if run else None,
        "params": run.params if run else {},
        "changed": run.changed if run else [],
        "state": state,
        "reason": summary.reason,
        "box_lacks": summary.box_lacks,
        "node": run.node if run else "",
        "ranks": {str(one.rank): one.node for one in summary.ranks.values()},
        "retry_of": run.retry_of if run else "",
        "elapsed_s": summary.elapsed_s,
        "claims": [_claim(claim, summary) for claim in summary.claims.values()],
        "answer": _answer(summary),
        "axes": [{"metric": a.metric, "x": a.x, "y": a.y, "log": a.log} for a in summary.axes.values()],
        "series": [_series(series) for series in summary.series.values()],
        "races": [_race(writer, arm, blocks, measure) for (writer, arm), blocks in in_order(summary).items()],
        "memory": [{"name": m.name, "arm": m.arm, "values": m.values} for m in summary.memory],
        "resources": [_series(series) for series in summary.resources.values()],
        "gpus": _gpus(summary),
        "texts": [{"title": text.title, "text": text.text} for text in summary.texts],
        **_figures(summary),
        "alerts": [{"what": one.what, "text": one.text, "arm": one.arm} for one in summary.alerts],
        "unavailable": {**summary.unavailable, **summary.left_out},
        "environment": summary.environment,
        "failure": _failure(summary),
        "leftovers": summary.leftovers,
        "record": {
            "records": summary.records,
            "corrupt": summary.damage.corrupt_count,
            "missing": summary.damage.missing_count,
            "lost": summary.damage.lost_count,
            "unknown": summary.damage.unknown_count,
            "digest": digest_of(run_dir, state),
        },
    }


def _answer(summary: RunSummary) -> dict[str, Any]:
    """Return the answer to the lesson's question, by which claim, and what was predicted."""
    found = find_answer(summary.claims.values())
    predicted = summary.run.prediction if summary.run else None
    near = rate_prediction(predicted, found.value) if found and predicted is not None else None
    measured = {"value": found.value, "claim": found.claim.key or None} if found else {"value": None, "claim": None}
    return {**measured, "predicted": predicted, "nearness": near}


def _gpus(summary: RunSummary) -> list[dict[str, Any]]:
    """Return the GPUs of the box, which of them are the run's, and who else was seen on those."""
    own = {gpu.nvmls for gpu in own_gpus(summary)}
    return [
        {
            "uuid": gpu.uuid,
            "index": gpu.index,
            "name": gpu.name,
            "bytes": gpu.bytes_total,
            "is_own": gpu.uuid in own,
            "others": _others(summary, gpu.uuid),
        }
        for gpu in summary.gpus.values()
    ]


def _others(summary: RunSummary, uuid: str) -> list[dict[str, Any]]:
    found = summary.neighbours.get(uuid, Neighbours()).known.values()
    return [{"pid": one.tenant.pid, "user": one.tenant.user or None, "most_bytes": one.most_bytes} for one in found]


def _figures(summary: RunSummary) -> dict[str, Any]:
    """Return the bars, tables and spans that the scenario showed."""
    figures = summary.figures.values()
    bars = [
        {"title": one.title, "unit": one.unit, "names": one.names, "values": one.values}
        for one in figures
        if isinstance(one, BarsShown)
    ]
    tables = [{"title": one.title, "head": one.head, "rows": one.rows} for one in figures if isinstance(one, TableShown)]
    names = ("lane", "began", "ended", "name", "unit")
    spans = [
        {"arm": arm, "writer": writer, **{name: getattr(span, name) for name in names}}
        for (arm, writer), found in summary.spans.items()
        for span in found
    ]
    return {"bars": bars, "tables": tables, "spans": spans}


def _claim(claim: Claim, summary: RunSummary) -> dict[str, Any]:
    reached = claim.verdict
    measured = [_measured(one) for one in claim.measured]
    if reached is None:
        why = why_not_judged(claim, summary)
        return {"key": claim.key or None, "text": claim.text, "verdict": None, "why": why, "measured": measured}
    about = {"key": claim.key or None, "text": claim.text, "measured": measured}
    return {**verdict_fields(reached), **about, "measure": reached.measure if claim.declared else None}


def verdict_fields(reached: VerdictReached) -> dict[str, Any]:
    """Return a verdict with what it rests on; the clock is none where nothing was timed."""
    fields = ("verdict", "why", "estimate", "low", "high", "confidence", "units", "unit", "noise_floor", "smallest_effect")
    return {
        "key": reached.key or None,
        "text": reached.text,
        **{name: getattr(reached, name) for name in (*fields, "more_repeats", "rule")},
        "measure": None if reached.confidence is None else reached.measure,
        "gpu": {"uuid": reached.gpu, "name": reached.gpu_name} if reached.gpu else None,
    }


def _measured(one: ClaimMeasured) -> dict[str, Any]:
    got, want = ({"numbers": side.numbers, "words": side.words, "value": side.value} for side in (one.got, one.want))
    return {"got": got, "op": one.op, "want": want, "tolerance": one.tolerance, "unit": one.unit}


def _series(series: Series) -> dict[str, Any]:
    return {
        "name": series.name,
        "arm": series.arm,
        "writer": series.writer,
        "count": series.count,
        "last": series.last,
        "last_step": series.last_step,
        "low": series.low,
        "high": series.high,
        "not_finite": series.bad_count,
        "first_not_finite_step": series.bad[0].step if series.bad else None,
    }


def _race(writer: str, arm: str, blocks: list[Any], measure: Measure) -> dict[str, Any]:
    """Return what was measured of an arm: the time of a step, or what commands are held against each other by instead."""
    values = [block.step_s * scale_of(measure.unit) for block in counted(blocks)]
    if measure.unit == "s":
        thread_s = cpu_times(counted(blocks))
        return {"writer": writer, "arm": arm, "step_s": values, "thread_s": thread_s, "measured": None}
    measured = {"name": measure.name, "unit": measure.unit, "values": values}
    return {"writer": writer, "arm": arm, "step_s": [], "thread_s": [], "measured": measured}


def _failure(summary: RunSummary) -> dict[str, Any] | None:
    failure = summary.failure
    if failure is None:
        return None
    return {"type": failure.type, "message": failure.message, "traceback": failure.traceback, "hint": failure.hint}
