"""How far this lab can be trusted on this box: its rate of false verdicts and the differences that it can see, measured."""

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from statistics import median
from typing import Annotated

import msgspec

from tuilab import places
from tuilab.errors import CannotRecord
from tuilab.files import Unusable, json_as, read_small, replace
from tuilab.judging.evidence import Evidence, gather
from tuilab.judging.ratio import judge_ratio
from tuilab.record import events, presence
from tuilab.record.summary import RunSummary
from tuilab.record.verdicts import Verdict
from tuilab.text import show

GROUP = 6  # processes that make one trial, as many as a run has repeats
_LIMIT = 1024 * 1024
_Seconds = Annotated[float, msgspec.Meta(ge=0, lt=1e11)]  # since 1970
_FALSE = {Verdict.SUPPORTED, Verdict.WEAKER}


class Trials(msgspec.Struct, frozen=True):
    """What the trials of one way of judging amount to."""

    trials: int
    false: int
    delays: int
    seen: int
    smallest_effect: float | None = None


class Calibration(msgspec.Struct, frozen=True):
    """The last assessment of a box, by the way of judging; nothing where it was never calibrated."""

    ways: dict[str, Trials] = {}
    wall_s: float | None = None


def assess(summary: RunSummary) -> dict[str, Trials]:
    """Return what the trials of a calibration run amount to, within one process and over several."""
    races = [race for writer, race in summary.races if writer == summary.races[0][0]]
    evidence = [gather(_claim(race.arms[0], race.arms[1]), summary) for race in races]
    whole = [found for found in evidence if found is not None]
    return {
        "within one process": _assess([Evidence([r], [s], [d]) for e in whole for r, s, d in _rows(e)]),
        f"over {GROUP} processes": _assess([trial for found in whole for trial in _groups(found)]),
    }


def save(assessment: Mapping[str, Trials]) -> None:
    """Keep the assessment of this box; a folder shared by several boxes has one each."""
    ours = msgspec.json.encode({"wall_s": time.time(), **assessment})
    every = msgspec.json.encode({**_read(), presence.host_name(): msgspec.Raw(ours)})
    path = places.calibration_file()
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        replace(path, msgspec.json.format(every, indent=1))
    except OSError as problem:
        raise CannotRecord(f"cannot keep the calibration in {show(path)}: {problem.strerror}") from problem


def load() -> Calibration:
    """Return the last assessment of this box; of a damaged one nothing."""
    kept = _read().get(presence.host_name())
    with suppress(ValueError):
        found = json_as(dict[str, Trials | _Seconds])(bytes(kept)) if kept else {}
        when = found.get("wall_s")
        ways = {way: one for way, one in found.items() if isinstance(one, Trials)}
        return Calibration(ways, None if isinstance(when, Trials) else when)
    return Calibration()


def in_words(assessment: Mapping[str, Trials]) -> list[str]:
    """Return one line for each way of judging."""
    return [
        f"{show(where, 100)}: {trials.false} false verdicts in {trials.trials} trials without a difference; "
        f"a delay of 5 % was seen in {trials.seen} of {trials.delays}; "
        f"the smallest difference it can see is {_effect(trials)}"
        for where, trials in assessment.items()
        if trials.trials
    ]


def beside_verdicts(summary: RunSummary) -> str:
    """Return what the calibration of this box says of verdicts like those of a run; empty when it has none about time."""
    if not any(claim.declared for claim in summary.claims.values()):
        return ""
    where = "within one process" if summary.run is None or summary.run.repeats < GROUP else f"over {GROUP} processes"
    ways = load().ways
    lines = in_words({where: ways[where]} if where in ways else {})
    return lines[0] if lines else "n/a, this box was never calibrated: tuilab calibrate"


def _claim(over: str, under: str) -> events.ClaimDeclared:
    return events.ClaimDeclared(text="", over=over, under=under, op="at_least", bound=1.03)


def _rows(evidence: Evidence) -> list[tuple[list[float], list[float], list[float]]]:
    return list(zip(evidence.rounds, evidence.same, evidence.delayed, strict=False))


def _groups(evidence: Evidence) -> list[Evidence]:
    rows = _rows(evidence)
    groups = [rows[start : start + GROUP] for start in range(0, len(rows) - GROUP + 1, GROUP)]
    return [Evidence([r for r, _, _ in group], [s for _, s, _ in group], [d for _, _, d in group]) for group in groups]


def _assess(trials: list[Evidence]) -> Trials:
    """Count false verdicts in either direction, and how often the known delay was seen."""
    mirrored = [Evidence([[-x for x in row] for row in trial.rounds], trial.same, trial.delayed) for trial in trials]
    delays = [Evidence(trial.delayed, trial.same, trial.delayed) for trial in trials if trial.delayed]
    claim = _claim("left", "right")
    effects = [found.smallest_effect for trial in trials if (found := judge_ratio(claim, trial)).smallest_effect is not None]
    return Trials(
        trials=len(trials),
        false=sum(
            judge_ratio(claim, one).verdict in _FALSE or judge_ratio(claim, other).verdict in _FALSE
            for one, other in zip(trials, mirrored, strict=True)
        ),
        delays=len(delays),
        seen=sum((judge_ratio(claim, delay).low or 0.0) > 1 for delay in delays),
        smallest_effect=median(effects) if effects else None,
    )


def _effect(trials: Trials) -> str:
    """Return the smallest difference in words; there is none where every trial was too short to tell."""
    return "n/a" if trials.smallest_effect is None else f"about {100 * trials.smallest_effect:.2g} %"


def _read() -> dict[str, msgspec.Raw]:
    """Return what is kept of each box; of a file of no use nothing, and the next calibration makes a new one."""
    with suppress(Unusable):
        return read_small(places.calibration_file(), json_as(dict[str, msgspec.Raw]), _LIMIT)
    return {}
