"""How far this lab can be trusted on this box: its rate of false verdicts and the differences that it can see, measured."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace as changed
from statistics import fmean, median
from typing import Any

import msgspec

from tuilab.judging import calibration_file, stats
from tuilab.judging.calibration_file import Calibration, Trials, load
from tuilab.judging.evidence import GPU, Evidence, gather_evidence
from tuilab.judging.ratio import judge_ratio
from tuilab.judging.units import units_of
from tuilab.record import events, presence
from tuilab.record.summary import RunSummary
from tuilab.record.verdicts import Verdict
from tuilab.text import percent, plural, show

GROUP = 6  # processes that make one trial, as many as a run has repeats
USUAL_MINUTES = {"cpu": 2.0, "cuda": 5.0}  # that a calibration takes
_BOUNDS = (1.0, 1.03, 2.0)  # of the claims that are tried: no difference, one as large as the margin, and a large one


def assess(summary: RunSummary) -> Calibration:
    """Return what the trials of a calibration run amount to, within one process and over several, judged as a run is."""
    arms = [race.arms for writer, race in summary.races if writer == summary.races[0][0]]
    claims = [events.ClaimDeclared(text="", over=over, under=under, op="at_least", bound=1.0) for over, under, *_ in arms]
    luck = _luck(summary, claims)
    alone, groups = (list(_trials(summary, claims, size, luck)) for size in (1, GROUP))
    ways = {
        "within one process": _assess(alone, len(alone) // max(1, len(claims))),
        f"over {GROUP} processes": _assess(groups, GROUP * len(groups) // max(1, len(claims))),
    }
    return Calibration(ways, luck=luck)


def in_words(assessment: Mapping[str, Trials]) -> list[str]:
    """Return one line for each way of judging."""
    return [
        f"{show(where, 100)}: {plural(trials.false, 'false verdict')} in {plural(trials.trials, 'trial')}{_of(trials)} "
        f"without a difference; "
        f"an injected 5 % delay was detected in {trials.seen} of {trials.delays}; "
        f"smallest detectable difference: {_effect(trials)}"
        for where, trials in assessment.items()
        if trials.trials
    ]


def luck_in_words(luck: float | None) -> str:
    """Return how far off one process is by itself, and what that is for."""
    off = "n/a (too few processes), 5 % is assumed" if luck is None else f"about {percent(luck)}"
    return f"variation between processes, by which --quick widens its intervals: {off}"


def kept_in_words() -> list[str]:
    """Return what is kept of this box and of each of its GPUs, a line each; where nothing is, that."""
    lines = _kept(load())
    for uuid, kept in calibration_file.gpus().items():
        lines += [f"{kept.name or 'a GPU'} ({show(uuid, 60)}):", *(f"  {line}" for line in _kept(kept))]
    return lines or ["this machine is not calibrated yet; run `tuilab calibrate` (2 minutes)"]


def kept_as_fields() -> dict[str, Any]:
    """Return what is kept of this box and of each of its GPUs for a JSON document; None where the box was never calibrated."""
    cpu = load()
    gpus = [{"uuid": uuid, "name": kept.name, **_fields(kept)} for uuid, kept in calibration_file.gpus().items()]
    return {"host": presence.host_name(), "cpu": _fields(cpu) if cpu.ways else None, "gpus": gpus}


def _fields(kept: Calibration) -> dict[str, Any]:
    return {"wall_s": kept.wall_s, "luck": kept.luck, "ways": msgspec.to_builtins(kept.ways)}


def _kept(kept: Calibration) -> list[str]:
    lines = in_words(kept.ways)
    return [*lines, *([luck_in_words(kept.luck)] if lines else [])]


def beside_verdicts(summary: RunSummary) -> str:
    """Return what the calibration of this box says of verdicts like those of a run; empty when it has none about time."""
    if not any(claim.declared for claim in summary.claims.values()):
        return ""
    where = "within one process" if summary.run is None or summary.run.repeats < GROUP else f"over {GROUP} processes"
    gpus = {race.uuid: "" for _, race in summary.races if race.device == "cuda"}
    told = [_on_gpu(where, uuid) for uuid in gpus]
    if not gpus or any(race.device != "cuda" for _, race in summary.races):
        told.append(_line(where, load()) or "n/a, this machine is not calibrated yet; run `tuilab calibrate`")
    return "; ".join(told)


def _on_gpu(where: str, uuid: str) -> str:
    """Return what the calibration of a GPU says of verdicts that were reached there."""
    if not uuid:
        return f"n/a, torch does not report the UUID of this {GPU}, which its calibration needs"
    known = load(uuid)
    if line := _line(where, known):
        return f"on {known.name or 'its GPU'}, {line}"
    return f"n/a, this {GPU} is not calibrated yet; run `tuilab calibrate --device cuda`"


def _line(where: str, known: Calibration) -> str:
    return next(iter(in_words({where: known.ways[where]} if where in known.ways else {})), "")


def _of(trials: Trials) -> str:
    return f" of {plural(trials.processes, 'process', 'processes')}" if trials.processes else ""


def _luck(summary: RunSummary, claims: list[events.ClaimDeclared]) -> float | None:
    """Return the standard deviation of what a process says of identical arms, of the kind of work where that is largest.

    None where there are too few processes.
    """
    variances: dict[str, list[float]] = {}
    for claim in claims:
        if found := gather_evidence(claim, summary):
            processes = units_of(changed(found, is_single_process=False), found.rounds).values
            if len(processes) >= GROUP:
                variances.setdefault(_kind(claim.over), []).append(stats.spread(processes) ** 2)
    return math.sqrt(max(map(fmean, variances.values()))) if variances else None


def _kind(arm: str) -> str:
    """Return the kind of work of an arm that is called like `left memory 4`."""
    return arm.partition(" ")[2].rpartition(" ")[0]


def _trials(
    summary: RunSummary, claims: list[events.ClaimDeclared], size: int, luck: float | None = None
) -> Iterator[Evidence]:
    """Yield the evidence of every race in every group of so many processes."""
    for claim in claims:
        writers = [writer for writer, race in summary.differences if claim.over in race.arms]
        for start in range(0, len(writers) - size + 1, size):
            if found := gather_evidence(claim, summary, writers[start : start + size]):
                yield changed(found, is_single_process=size == 1, process_sd=luck, failed_repeats=0)


def _assess(trials: list[Evidence], processes: int) -> Trials:
    """Count trials with a false verdict, and how often the known delay was seen."""
    delays = [changed(trial, rounds=trial.delayed, marks=[]) for trial in trials if trial.delayed]
    effects = [found.smallest_effect for trial in trials if (found := judge_ratio(_at_least(1.0), trial)).smallest_effect]
    return Trials(
        trials=len(trials),
        false=sum(any(_are_false(trial)) for trial in trials),
        delays=len(delays),
        seen=sum(judge_ratio(_at_least(1.0), delay).verdict == Verdict.SUPPORTED for delay in delays),
        smallest_effect=median(effects) if effects else None,
        processes=processes,
    )


def _are_false(trial: Evidence) -> Iterator[bool]:
    """Say of claims in either direction whether their verdicts are false where there is no difference."""
    for bound in _BOUNDS:
        for claim in (_at_least(bound), msgspec.structs.replace(_at_least(1 / bound), op="at_most")):
            wrong = {Verdict.REFUTED} if bound == 1 else {Verdict.SUPPORTED, Verdict.WEAKER}
            yield judge_ratio(claim, trial).verdict in wrong


def _at_least(bound: float) -> events.ClaimDeclared:
    return events.ClaimDeclared(text="", over="left", under="right", op="at_least", bound=bound)


def _effect(trials: Trials) -> str:
    """Return the smallest difference in words; there is none where every trial was too short to tell."""
    return "n/a" if trials.smallest_effect is None else f"about {percent(trials.smallest_effect)}"
