"""How far this lab can be trusted on this box: its rate of false verdicts and the differences that it can see, measured."""

import json
import os
import time
from contextlib import suppress
from statistics import median
from typing import Any

from tuilab import places
from tuilab.files import read_regular
from tuilab.judging.evidence import Evidence, gather
from tuilab.judging.ratio import judge_ratio
from tuilab.record import events, presence
from tuilab.record.summary import RunSummary
from tuilab.record.verdicts import Verdict

GROUP = 6  # processes that make one trial, as many as a run has repeats
_LIMIT = 1024 * 1024
_FALSE = {Verdict.SUPPORTED, Verdict.WEAKER}


def assess(summary: RunSummary) -> dict[str, Any]:
    """Return what the trials of a calibration run amount to, within one process and over several."""
    races = [race for writer, race in summary.races if writer == summary.races[0][0]]
    evidence = [gather(_claim(race.arms[0], race.arms[1]), summary) for race in races]
    whole = [found for found in evidence if found is not None]
    return {
        "within one process": _assess([Evidence([r], [s], [d]) for e in whole for r, s, d in _rows(e)]),
        f"over {GROUP} processes": _assess([trial for found in whole for trial in _groups(found)]),
    }


def save(assessment: dict[str, Any]) -> None:
    """Keep the assessment of this box; a folder shared by several boxes has one each."""
    known = _read()
    known[presence.host_name()] = {"wall_s": time.time(), **assessment}
    path = places.calibration_file()
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    temporary = f"{path}.{os.getpid()}"
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "w") as file:
        json.dump(known, file, indent=1)
    os.replace(temporary, path)


def load() -> dict[str, Any]:
    """Return the last assessment of this box; empty when it was never calibrated."""
    found = _read().get(presence.host_name())
    return found if isinstance(found, dict) else {}


def in_words(assessment: dict[str, Any]) -> list[str]:
    """Return one line for each way of judging."""
    lines = []
    for where, trials in assessment.items():
        if isinstance(trials, dict) and trials.get("trials"):
            lines.append(
                f"{where}: {trials['false']} false verdicts in {trials['trials']} trials without a difference; "
                f"a delay of 5 % was seen in {trials['seen']} of {trials['delays']}; "
                f"the smallest difference it can see is about {100 * trials['smallest_effect']:.2g} %"
            )
    return lines


def beside_verdicts(summary: RunSummary) -> str:
    """Return what the calibration of this box says of verdicts like those of a run; empty when it has none about time."""
    if not any(claim.declared for claim in summary.claims.values()):
        return ""
    where = "within one process" if summary.run is None or summary.run.repeats < GROUP else f"over {GROUP} processes"
    trials = load().get(where)
    if not isinstance(trials, dict) or not trials.get("trials"):
        return "n/a, this box was never calibrated: tuilab calibrate"
    return in_words({where: trials})[0]


def _claim(over: str, under: str) -> events.ClaimDeclared:
    return events.ClaimDeclared(text="", over=over, under=under, op="at_least", bound=1.03)


def _rows(evidence: Evidence) -> list[tuple[list[float], list[float], list[float]]]:
    return list(zip(evidence.rounds, evidence.same, evidence.delayed, strict=False))


def _groups(evidence: Evidence) -> list[Evidence]:
    rows = _rows(evidence)
    groups = [rows[start : start + GROUP] for start in range(0, len(rows) - GROUP + 1, GROUP)]
    return [Evidence([r for r, _, _ in group], [s for _, s, _ in group], [d for _, _, d in group]) for group in groups]


def _assess(trials: list[Evidence]) -> dict[str, Any]:
    """Count false verdicts in either direction, and how often the known delay was seen."""
    mirrored = [Evidence([[-x for x in row] for row in trial.rounds], trial.same, trial.delayed) for trial in trials]
    delays = [Evidence(trial.delayed, trial.same, trial.delayed) for trial in trials if trial.delayed]
    claim = _claim("left", "right")
    effects = [found.smallest_effect for trial in trials if (found := judge_ratio(claim, trial)).smallest_effect is not None]
    return {
        "trials": len(trials),
        "false": sum(
            judge_ratio(claim, one).verdict in _FALSE or judge_ratio(claim, other).verdict in _FALSE
            for one, other in zip(trials, mirrored, strict=True)
        ),
        "delays": len(delays),
        "seen": sum((judge_ratio(claim, delay).low or 0.0) > 1 for delay in delays),
        "smallest_effect": median(effects) if effects else None,
    }


def _read() -> dict[str, Any]:
    with suppress(OSError, ValueError):
        known = json.loads(read_regular(places.calibration_file(), _LIMIT))
        if isinstance(known, dict):
            return known
    return {}
