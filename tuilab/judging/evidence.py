"""What was measured for a claim about two arms, gathered from the summary: all that a verdict may look at."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import chain
from statistics import median

from tuilab.judging import learning
from tuilab.judging.held_back import held_back, stretch
from tuilab.judging.measure import Measure, choose, host_bound_share, step_s
from tuilab.record import events
from tuilab.record.blocks import first_counted, tick_ns
from tuilab.record.parts import Block
from tuilab.record.summary import RunSummary

MIN_UNITS = 6  # that an interval needs
BOX, GPU = "box", "GPU"  # what was calibrated: a box for what runs on its CPU
_CORES_SHARE = 0.8  # of the cores that a claim needs must have been free
_Pair = tuple[list[Block], list[Block]]  # of the arm above the line and of the one below it, in one process
_Marks = tuple[dict[int, bool], dict[int, bool]]  # of the same: by round, whether a block was disturbed


@dataclass(frozen=True)
class Evidence:
    """Log ratios by process (one process a repeat), in the order of the repeats, and what the controls saw.

    Every list of `rounds`, `same` and `delayed` holds one value a round: the log of how many times longer the upper arm took
    than the lower one.
    """

    rounds: list[list[float]]  # the two arms of the claim
    same: list[list[float]] = field(default_factory=list)  # control: an arm against itself
    delayed: list[list[float]] = field(default_factory=list)  # control: an arm with a known delay against itself
    delay: float = 0.05  # that delay, as a share of a step
    needs_delay: bool = True  # "no difference" is said only where it was seen; of commands the first control carries that
    measure: Measure = "wall"
    is_single: bool = True  # no more than one process was to measure this: its rounds are the units
    luck: float | None = None  # how far off such a process is by itself: a standard deviation; None: not known
    place: str = BOX  # where that is measured
    least: float = 0.0  # that a log ratio varies by because the clock ticks: a standard deviation
    is_one_draw: bool = False  # a curve ended at one value in every process of an arm, as one seed makes it
    marks: list[list[int]] = field(default_factory=list)  # by round: 1 the upper arm alone was disturbed, -1 the lower one
    disturbed_share: float = 0.0  # of the blocks, by the sensors alone
    unwatched_share: float = 0.0  # of the blocks on a GPU: whether its clocks were held down is not known
    strange_share: float = 0.0  # of the blocks on a GPU: whether others used it is not known
    observer_share: float = 0.0  # of a step, spent on recording
    difference: str = ""  # how the two arms differ in what they computed
    unguarded: str = ""  # why that cannot be told, where they are to do the same
    failed_repeats: int = 0  # repeats that ended before they had measured this
    unsettled_repeats: int = 0  # repeats in which the times still drifted when the warm-up ended
    lacks: str = ""  # what the box did not give while this was measured
    host_bound: dict[str, float] = field(default_factory=dict)  # share that the GPU worked, by such arm


def gather(claim: events.ClaimDeclared, summary: RunSummary, among: Collection[str] | None = None) -> Evidence | None:
    """Return the evidence for a claim so far, from the workers that are named or from all; None while there is none."""
    whole = _whole(claim, summary)
    writers = [name for name in whole if among is None or name in among]
    pairs = [
        (first_counted(summary.blocks[name, claim.over]), first_counted(summary.blocks[name, claim.under])) for name in writers
    ]
    if not any(above and below for above, below in pairs):
        return None
    races = [race for writer, race in summary.races if writer in writers and _has_both(claim, race.arms)]
    same, delayed = (_controls(claim, summary, writers, control) for control in ("same", "delayed"))
    marks, unwatched_share, strange_share = _marks(claim, summary, writers, pairs)
    disturbed_share = _disturbed_share(marks)
    learns_otherwise, unguarded = learning.difference(claim, summary)
    is_of_commands = bool(summary.run and summary.run.command)
    measure = choose([*_arms(pairs), *_arms(same), *_arms(delayed)], {race.device for race in races}, disturbed_share)
    return Evidence(
        rounds=[log_ratios(*pair, measure) for pair in pairs],
        same=[log_ratios(*pair, measure) for pair in same],
        delayed=[log_ratios(*pair, measure) for pair in delayed],
        delay=next((race.delay for race in races if race.delay), 0.05),
        needs_delay=not is_of_commands,
        measure=measure,
        is_single=summary.run is None or (summary.run.repeats == 1 and not is_of_commands),
        luck=_luck(summary, races),
        place=GPU if any(race.device == "cuda" for race in races) else BOX,
        least=_least(pairs) if any(race.device == "process" and not race.measure for race in races) else 0.0,
        is_one_draw=_is_one_draw(races, pairs),
        marks=[[above[turn] - below[turn] for turn in above if turn in below] for above, below in marks],
        disturbed_share=disturbed_share,
        unwatched_share=unwatched_share,
        strange_share=strange_share,
        observer_share=_observer_share(claim, summary, writers),
        difference=_difference(claim, summary) or learns_otherwise,
        unguarded=unguarded,
        failed_repeats=_failed_repeats(summary, whole),
        unsettled_repeats=_unsettled_repeats(claim, summary, writers),
        lacks=_lacks(claim, summary),
        host_bound=_host_bound(claim, summary, writers, pairs),
    )


def is_finite(evidence: Evidence) -> bool:
    """Say whether every time was a number: to leave out what is not would choose among the measurements."""
    return all(map(math.isfinite, chain(*evidence.rounds, *evidence.same, *evidence.delayed)))


def log_ratios(over: Sequence[Block], under: Sequence[Block], measure: Measure = "wall") -> list[float]:
    """Return the log ratio of two arms in every round that has both, of blocks that count."""
    below = {block.round: step_s(block, measure) for block in under}
    return [math.log(step_s(block, measure) / below[block.round]) for block in over if block.round in below]


def _host_bound(
    claim: events.ClaimDeclared, summary: RunSummary, writers: Sequence[str], pairs: Sequence[_Pair]
) -> dict[str, float]:
    races = [race for writer, race in summary.differences if writer in writers and _has_both(claim, race.arms)]
    found = {}
    for arm, blocks in zip((claim.over, claim.under), _arms(pairs), strict=True):
        share = host_bound_share(blocks, [race.gpu_ns[arm] for race in races if arm in race.gpu_ns])
        if share is not None:
            found[arm] = share
    return found


def _luck(summary: RunSummary, races: Sequence[events.RaceStarted]) -> float | None:
    """Return how far off a process is by itself; what was measured of the CPU tells nothing of a GPU."""
    if any(race.device == "cuda" for race in races):
        return next((race.luck for race in races if race.luck is not None), None)
    return summary.run.luck if summary.run else None


def _has_both(claim: events.ClaimDeclared, arms: Collection[str]) -> bool:
    return {claim.over, claim.under} <= set(arms)


def _whole(claim: events.ClaimDeclared, summary: RunSummary) -> list[str]:
    """Return the workers that have run the race of a claim to its end, in the order of their repeats.

    Half a race has half a cycle of its order, and a repeat that was stopped with the run is no part of any look.
    """
    raced = {writer for writer, race in summary.differences if _has_both(claim, race.arms)}
    timed = {name for name in raced if {(name, claim.over), (name, claim.under)} <= summary.blocks.keys()}
    return [name for name in _repeats(summary) if name in timed and not summary.workers[name].is_stopped]


def _repeats(summary: RunSummary) -> list[str]:
    """Return the workers of the repeats in their order."""
    known = {name: worker.started for name, worker in summary.workers.items() if worker.started and not worker.started.arm}
    return sorted(known, key=lambda name: known[name].repeat)


def _controls(claim: events.ClaimDeclared, summary: RunSummary, writers: Sequence[str], control: str) -> list[_Pair]:
    """Return the blocks of a control, and of the arm that it is made from, in the race that had both arms of the claim."""
    found = []
    for writer, race in summary.races:
        blocks = first_counted(summary.controls.get((writer, race.base, control), []))
        if writer in writers and _has_both(claim, race.arms) and blocks:
            found.append((blocks, first_counted(summary.blocks.get((writer, race.base), []))))
    return found


def _arms(pairs: Sequence[_Pair]) -> list[list[Block]]:
    """Return the blocks of all processes of the arms above the line, and those below it; none where there are none."""
    return [[block for arm in arms for block in arm] for arms in zip(*pairs, strict=True)]


def _marks(
    claim: events.ClaimDeclared, summary: RunSummary, writers: Sequence[str], pairs: Sequence[_Pair]
) -> tuple[list[_Marks], float, float]:
    """Return which blocks the sensors marked, by process, arm and round, and the shares of which those of a GPU know nothing.

    Those of the CPU marked them as they ran, those of the GPU are looked up afterwards.
    """
    races = {writer: race for writer, race in summary.races if _has_both(claim, race.arms)}
    blocks = [
        (block, stretch(summary, writer, races[writer], block) if writer in races else None)
        for writer, pair in zip(writers, pairs, strict=True)
        for block in chain(*pair)
    ]
    seen = held_back(summary, [one for _, one in blocks if one])
    found = iter(seen)
    marks = iter([block.is_disturbed | (one is not None and next(found).is_held_back) for block, one in blocks])
    count = max(len(seen), 1)
    return (
        [
            ({block.round: next(marks) for block in above}, {block.round: next(marks) for block in below})
            for above, below in pairs
        ],
        sum(not one.is_watched for one in seen) / count,
        sum(not one.are_others_known for one in seen) / count,
    )


def _disturbed_share(marks: Sequence[_Marks]) -> float:
    every = [mark for above, below in marks for mark in (*above.values(), *below.values())]
    return sum(every) / len(every) if every else 0.0


def _least(pairs: Sequence[_Pair]) -> float:
    """Return how much a log ratio varies at least, by the tick of the clock that arms in processes of their own read."""
    times = [[block.wall_ns for block in blocks] for blocks in _arms(pairs)]
    return tick_ns(chain(*times)) * math.hypot(*(1 / median(of_arm) for of_arm in times))


def _is_one_draw(races: Sequence[events.RaceStarted], pairs: Sequence[_Pair]) -> bool:
    """Say whether a curve ended at the same value in all processes of an arm: one draw, however many they are."""
    is_of_curves = any(race.measure and not race.unit for race in races)
    return is_of_curves and len(pairs) > 1 and all(len({block.wall_ns for block in arm}) == 1 for arm in _arms(pairs))


def _observer_share(claim: events.ClaimDeclared, summary: RunSummary, writers: Sequence[str]) -> float:
    """Return the greatest share of a block that recording took."""
    blocks = [block for name in writers for arm in (claim.over, claim.under) for block in summary.blocks[name, arm]]
    record_ns = max((race.record_ns for _, race in summary.differences), default=0)
    return max((block.records * record_ns / block.wall_ns for block in blocks if block.wall_ns), default=0.0)


def _difference(claim: events.ClaimDeclared, summary: RunSummary) -> str:
    """Return how the two arms differ in what they compute, or nothing: a faster arm must do the same work.

    The arms are held against the first one in their order, as far as the first that differs: those before it do the same.
    """
    for _, race in summary.differences:
        if race.is_same is False and _has_both(claim, race.arms):
            first = race.arms[0]
            same = [name for name in race.arms if race.difference == f"{name} does not compute what {first} does"]
            alike = race.arms[: race.arms.index(same[0])] if same else []
            if not _has_both(claim, alike):
                return race.difference
    return ""


def _failed_repeats(summary: RunSummary, whole: Collection[str]) -> int:
    ended = [summary.workers[name] for name in _repeats(summary) if name not in whole]
    return len([worker for worker in ended if worker.exited and not worker.is_stopped])


def _unsettled_repeats(claim: events.ClaimDeclared, summary: RunSummary, writers: Sequence[str]) -> int:
    return sum(
        race.is_settled is False and writer in writers and _has_both(claim, race.arms) for writer, race in summary.differences
    )


def _lacks(claim: events.ClaimDeclared, summary: RunSummary) -> str:
    """Return what the box did not give: cores that others used."""
    got = min(summary.cores.get(claim.cores, []), default=None)
    if claim.cores and got is not None and got < _CORES_SHARE * claim.cores:
        return f"{claim.cores} busy processes got {got:.1f} cores between them: the box is too busy or too small"
    return ""
