"""Measure how reliable verdicts about time are on a machine, and describe the result.

A calibration run races arms that do the same work, and arms with an injected delay. The verdicts
on them show how often tuilab reports a false difference, and which differences it detects.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean, median
from typing import Any

import msgspec

from tuilab.judging import calibration_file, stats
from tuilab.judging.calibration_file import Calibration, Trials, load
from tuilab.judging.evidence import GPU, Evidence, gather_evidence
from tuilab.judging.intervals import make_units
from tuilab.judging.ratio import judge_ratio
from tuilab.record import events, presence
from tuilab.record.summary import RunSummary
from tuilab.record.verdicts import Verdict
from tuilab.text.display import percent, plural, show

USUAL_MINUTES = {"cpu": 2.0, "cuda": 5.0}  # that a calibration takes, by device
_GROUP = 6  # processes of one trial, as many as a run has repeats
_WITHIN_ONE = "within one process"
_OVER_SEVERAL = f"over {_GROUP} processes"
# Bounds of the tried claims: no difference, a difference as large as the margin, a large one.
_BOUNDS = (1.0, 1.03, 2.0)


# ---- the assessment of a calibration run


def assess(summary: RunSummary) -> Calibration:
    """Return the calibration that a run measured: within one process, and over several.

    A trial is a race, judged once for each process and once for each group of six processes.
    """
    claims = []
    for writer, race in summary.races:
        if writer == summary.races[0][0]:  # every process has the same races
            over, under, *_ = race.arms
            claims.append(_make_claim(over, under, "at_least", 1.0))
    process_sd = _measure_process_sd(summary, claims)
    singles = list(_make_trials(summary, claims, 1, process_sd))
    groups = list(_make_trials(summary, claims, _GROUP, process_sd))
    claim_count = max(1, len(claims))
    trials_of_method = {
        _WITHIN_ONE: _count_verdicts(singles, len(singles) // claim_count),
        _OVER_SEVERAL: _count_verdicts(groups, _GROUP * len(groups) // claim_count),
    }
    return Calibration(trials_of_method, process_sd=process_sd)


def _measure_process_sd(
    summary: RunSummary, claims: Sequence[events.ClaimDeclared]
) -> float | None:
    """Return the standard deviation between processes, of the log ratio of two equal arms.

    It is that of the kind of work for which it is largest. None if there are too few processes.
    """
    variances: dict[str, list[float]] = {}
    for claim in claims:
        evidence = gather_evidence(claim, summary)
        if evidence is None:
            continue
        evidence = replace(evidence, is_single_process=False)  # makes each process one unit
        units = make_units(evidence, evidence.rounds)
        if len(units.values) >= _GROUP:
            kind = _kind_of_work(claim.over)
            variances.setdefault(kind, []).append(stats.sample_sd(units.values) ** 2)
    if not variances:
        return None
    largest_mean = max(map(fmean, variances.values()))
    return math.sqrt(largest_mean)


def _kind_of_work(arm: str) -> str:
    """Return the kind of work in the name of an arm, such as `memory` in `left memory 4`."""
    _, _, kind_and_number = arm.partition(" ")
    kind, _, _ = kind_and_number.rpartition(" ")
    return kind


def _make_trials(
    summary: RunSummary,
    claims: Sequence[events.ClaimDeclared],
    group_size: int,
    process_sd: float | None,
) -> Iterator[Evidence]:
    """Yield the evidence of every race in every group of so many processes."""
    for claim in claims:
        writers = [writer for writer, race in summary.differences if claim.over in race.arms]
        for start in range(0, len(writers) - group_size + 1, group_size):
            evidence = gather_evidence(claim, summary, writers[start : start + group_size])
            if evidence is not None:
                yield replace(
                    evidence,
                    is_single_process=group_size == 1,
                    process_sd=process_sd,
                    failed_repeats=0,  # the other processes are trials of their own
                )


def _count_verdicts(trials: Sequence[Evidence], processes: int) -> Trials:
    """Count the trials with a false verdict, and those in which the injected delay was detected.

    `processes` is the number of different processes in all trials.
    """
    no_difference = _make_claim("left", "right", "at_least", 1.0)
    false_count = 0
    delay_count = 0
    detected_count = 0
    effects = []
    for trial in trials:
        if _has_false_verdict(trial):
            false_count += 1
        if effect := judge_ratio(no_difference, trial).smallest_effect:
            effects.append(effect)
        if trial.delayed:
            delay_count += 1
            # The marks belong to the rounds of the claim, not to those of the control.
            delayed = replace(trial, rounds=trial.delayed, marks=[])
            if judge_ratio(no_difference, delayed).verdict == Verdict.SUPPORTED:
                detected_count += 1
    return Trials(
        trials=len(trials),
        false=false_count,
        delays=delay_count,
        seen=detected_count,
        smallest_effect=median(effects) if effects else None,
        processes=processes,
    )


def _has_false_verdict(trial: Evidence) -> bool:
    """Return whether a claim about equal arms gets a false verdict, in either direction."""
    for bound in _BOUNDS:
        false_verdicts = {Verdict.SUPPORTED, Verdict.WEAKER}
        if bound == 1:  # true for equal arms
            false_verdicts = {Verdict.REFUTED}
        at_least = _make_claim("left", "right", "at_least", bound)
        at_most = _make_claim("left", "right", "at_most", 1 / bound)
        for claim in (at_least, at_most):
            if judge_ratio(claim, trial).verdict in false_verdicts:
                return True
    return False


def _make_claim(over: str, under: str, op: events.Operator, bound: float) -> events.ClaimDeclared:
    # Nobody reads the text of such a claim, because its verdict is only counted.
    return events.ClaimDeclared(text="", over=over, under=under, op=op, bound=bound)


# ---- descriptions


def describe_trials(trials_of_method: Mapping[str, Trials]) -> list[str]:
    """Return a line for each method that was tried."""
    lines = []
    for method, trials in trials_of_method.items():
        if trials.trials:
            lines.append(_describe_method(method, trials))
    return lines


def _describe_method(method: str, trials: Trials) -> str:
    """Return what the trials of a method showed: false verdicts, and what was detected."""
    false_verdicts = f"{plural(trials.false, 'false verdict')} in {plural(trials.trials, 'trial')}"
    if trials.processes:
        false_verdicts += f" of {plural(trials.processes, 'process', 'processes')}"
    effect = "n/a"  # every trial was too short to detect anything
    if trials.smallest_effect is not None:
        effect = f"about {percent(trials.smallest_effect)}"
    return (
        f"{show(method, 100)}: {false_verdicts} without a difference; "
        f"an injected 5 % delay was detected in {trials.seen} of {trials.delays}; "
        f"smallest detectable difference: {effect}"
    )


def describe_process_sd(process_sd: float | None) -> str:
    """Return the variation between processes, and what it is for."""
    variation = "n/a (too few processes), 5 % is assumed"
    if process_sd is not None:
        variation = f"about {percent(process_sd)}"
    return f"variation between processes, by which --quick widens its intervals: {variation}"


def describe_saved() -> list[str]:
    """Return the saved calibrations of this machine and its GPUs, or that there are none."""
    lines = _describe_calibration(load())
    for uuid, calibration in calibration_file.load_gpus().items():
        lines.append(f"{calibration.name or 'a GPU'} ({show(uuid, 60)}):")
        for line in _describe_calibration(calibration):
            lines.append(f"  {line}")
    if not lines:
        lines.append("this machine is not calibrated yet; run `tuilab calibrate` (2 minutes)")
    return lines


def _describe_calibration(calibration: Calibration) -> list[str]:
    """Return the lines about a calibration; none if it has no trials."""
    lines = describe_trials(calibration.trials_of_method)
    if lines:
        lines.append(describe_process_sd(calibration.process_sd))
    return lines


def export_saved() -> dict[str, Any]:
    """Return the saved calibrations of this machine and its GPUs as fields of a JSON document."""
    cpu = load()
    gpus = []
    for uuid, calibration in calibration_file.load_gpus().items():
        gpus.append({"uuid": uuid, "name": calibration.name, **_export(calibration)})
    return {
        "host": presence.host_name(),
        "cpu": _export(cpu) if cpu.trials_of_method else None,
        "gpus": gpus,
    }


def _export(calibration: Calibration) -> dict[str, Any]:
    """Return the fields of a calibration; `luck` and `ways` are the names that the document has."""
    return {
        "wall_s": calibration.wall_s,
        "luck": calibration.process_sd,
        "ways": msgspec.to_builtins(calibration.trials_of_method),
    }


def describe_trust(summary: RunSummary) -> str:
    """Return what the saved calibrations say about verdicts like those of a run.

    Empty if the run has no claim about times.
    """
    if not any(claim.declared for claim in summary.claims.values()):
        return ""
    method = _OVER_SEVERAL
    if summary.run is None or summary.run.repeats < _GROUP:
        method = _WITHIN_ONE
    gpu_uuids = []
    has_cpu_race = not summary.races
    for _, race in summary.races:
        if race.device != "cuda":
            has_cpu_race = True
        elif race.uuid not in gpu_uuids:
            gpu_uuids.append(race.uuid)
    parts = [_describe_trust_in_gpu(method, uuid) for uuid in gpu_uuids]
    if has_cpu_race:
        line = _describe_one_method(method, load())
        parts.append(line or "n/a, this machine is not calibrated yet; run `tuilab calibrate`")
    return "; ".join(parts)


def _describe_trust_in_gpu(method: str, uuid: str) -> str:
    """Return the calibration of the GPU with this UUID of torch, or why there is none."""
    if not uuid:
        return f"n/a, torch does not report the UUID of this {GPU}, which its calibration needs"
    calibration = load(uuid)
    if line := _describe_one_method(method, calibration):
        return f"on {calibration.name or 'its GPU'}, {line}"
    return f"n/a, this {GPU} is not calibrated yet; run `tuilab calibrate --device cuda`"


def _describe_one_method(method: str, calibration: Calibration) -> str:
    """Return the line of one method, or an empty string if it was not tried."""
    trials = calibration.trials_of_method.get(method)
    if trials is None or not trials.trials:
        return ""
    return _describe_method(method, trials)
