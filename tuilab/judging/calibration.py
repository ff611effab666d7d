"""How far this lab can be trusted on this box: its rate of false verdicts and the differences that it can see, measured."""

import math
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace as changed
from statistics import fmean, median
from typing import Annotated

import msgspec

from tuilab import places
from tuilab.errors import CannotRecord
from tuilab.files import Unusable, json_as, read_small, replace
from tuilab.judging import stats
from tuilab.judging.evidence import Evidence, gather
from tuilab.judging.ratio import judge_ratio
from tuilab.judging.units import units_of
from tuilab.record import events, presence
from tuilab.record.summary import RunSummary
from tuilab.record.verdicts import Verdict
from tuilab.text import plural, show

GROUP = 6  # processes that make one trial, as many as a run has repeats
_LIMIT = 1024 * 1024
_BOUNDS = (1.0, 1.03, 2.0)  # of the claims that are tried: no difference, one as large as the margin, and a large one
_Number = Annotated[float, msgspec.Meta(ge=0, lt=1e11)]


class Trials(msgspec.Struct, frozen=True):
    """What the trials of one way of judging amount to."""

    trials: int
    false: int
    delays: int
    seen: int
    smallest_effect: float | None = None
    processes: int = 0  # that all the trials were made of: those of one process share its luck


class Calibration(msgspec.Struct, frozen=True):
    """The last assessment of a box, by the way of judging; nothing where it was never calibrated."""

    ways: dict[str, Trials] = {}
    wall_s: float | None = None  # since 1970
    luck: float | None = None  # how far off a process is by itself: the standard deviation of its mean, in logs


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


def save(ways: Mapping[str, Trials], luck: float | None = None) -> None:
    """Keep the assessment of this box; a folder shared by several boxes has one each.

    One that was too short to tell the luck of a process leaves what an earlier one told of it.
    """
    luck = load().luck if luck is None else luck
    numbers = {"wall_s": time.time(), **({} if luck is None else {"luck": luck})}
    ours = msgspec.json.encode({**numbers, **ways})
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
        found = json_as(dict[str, Trials | _Number])(bytes(kept)) if kept else {}
        ways = {way: one for way, one in found.items() if isinstance(one, Trials)}
        numbers = {name: one for name, one in found.items() if not isinstance(one, Trials)}
        return Calibration(ways, numbers.get("wall_s"), numbers.get("luck"))
    return Calibration()


def in_words(assessment: Mapping[str, Trials]) -> list[str]:
    """Return one line for each way of judging."""
    return [
        f"{show(where, 100)}: {plural(trials.false, 'false verdict')} in {plural(trials.trials, 'trial')}{_of(trials)} "
        f"without a difference; "
        f"a delay of 5 % was seen in {trials.seen} of {trials.delays}; "
        f"the smallest difference it can see is {_effect(trials)}"
        for where, trials in assessment.items()
        if trials.trials
    ]


def luck_in_words(luck: float | None) -> str:
    """Return how far off one process is by itself, and what that is for."""
    off = "n/a from so few, 5 % is taken" if luck is None else f"about {100 * luck:.2g} %"
    return f"how far off a process is by itself, by which --quick widens its intervals: {off}"


def beside_verdicts(summary: RunSummary) -> str:
    """Return what the calibration of this box says of verdicts like those of a run; empty when it has none about time."""
    if not any(claim.declared for claim in summary.claims.values()):
        return ""
    where = "within one process" if summary.run is None or summary.run.repeats < GROUP else f"over {GROUP} processes"
    ways = load().ways
    lines = in_words({where: ways[where]} if where in ways else {})
    return lines[0] if lines else "n/a, this box was never calibrated: tuilab calibrate"


def _of(trials: Trials) -> str:
    return f" of {plural(trials.processes, 'process', 'processes')}" if trials.processes else ""


def _luck(summary: RunSummary, claims: list[events.ClaimDeclared]) -> float | None:
    """Return the standard deviation of what a process says of identical arms, of the kind of work where that is largest.

    None where there are too few processes.
    """
    variances: dict[str, list[float]] = {}
    for claim in claims:
        if found := gather(claim, summary):
            processes = units_of(changed(found, is_single=False), found.rounds).values
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
            if found := gather(claim, summary, writers[start : start + size]):
                yield changed(found, is_single=size == 1, luck=luck, failed_repeats=0)


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
    return "n/a" if trials.smallest_effect is None else f"about {100 * trials.smallest_effect:.2g} %"


def _read() -> dict[str, msgspec.Raw]:
    """Return what is kept of each box; of a file of no use nothing, and the next calibration makes a new one."""
    with suppress(Unusable):
        return read_small(places.calibration_file(), json_as(dict[str, msgspec.Raw]), _LIMIT)
    return {}
