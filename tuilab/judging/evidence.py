"""What was measured for a claim about two arms, gathered from the summary: all that a verdict may look at."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from tuilab.judging.held_back import held_back
from tuilab.record import events
from tuilab.record.blocks import counted
from tuilab.record.summary import Block, RunSummary

MIN_UNITS = 6  # that an interval needs
_CORES_SHARE = 0.8  # of the cores that a claim needs must have been free


@dataclass(frozen=True)
class Evidence:
    """Log ratios by process (one process a repeat), in the order of the repeats, and what the controls saw.

    Every list holds one value a round: the log of how many times longer the upper arm took than the lower one.
    """

    rounds: list[list[float]]  # the two arms of the claim
    same: list[list[float]] = field(default_factory=list)  # control: an arm against itself
    delayed: list[list[float]] = field(default_factory=list)  # control: an arm with a known delay against itself
    delay: float = 0.05  # that delay, as a share of a step
    disturbed_share: float = 0.0  # of the blocks, by the sensors alone
    observer_share: float = 0.0  # of a step, spent on recording
    difference: str = ""  # how the two arms differ in what they computed
    failed_repeats: int = 0  # repeats that ended before they had measured this
    lacks: str = ""  # what the box did not give while this was measured


def gather(claim: events.ClaimDeclared, summary: RunSummary, among: Collection[str] | None = None) -> Evidence | None:
    """Return the evidence for a claim so far, from the workers that are named or from all; None while there is none."""
    known = [name for name in _repeats(summary) if among is None or name in among]
    writers = [name for name in known if {(name, claim.over), (name, claim.under)} <= summary.blocks.keys()]
    rounds = [log_ratios(summary.blocks[name, claim.over], summary.blocks[name, claim.under]) for name in writers]
    if not any(rounds):
        return None
    blocks = [block for name in writers for block in _blocks(claim, summary, name)]
    return Evidence(
        rounds=rounds,
        same=_controls(claim, summary, writers, "same"),
        delayed=_controls(claim, summary, writers, "delayed"),
        delay=next((race.delay for _, race in summary.races if race.delay), 0.05),
        disturbed_share=_disturbed_share(claim, summary, writers),
        observer_share=_observer_share(blocks, summary),
        difference=_difference(claim, summary),
        failed_repeats=_failed_repeats(summary, writers),
        lacks=_lacks(claim, summary),
    )


def units_of(rounds: Sequence[Sequence[float]]) -> tuple[list[float], str]:
    """Return the rounds of a single process, or of several the mean of each: values of one process are not independent."""
    measured = [values for values in rounds if values]
    if len(measured) == 1:
        return list(measured[0]), "rounds"
    return [fmean(values) for values in measured], "repeats"


def is_finite(evidence: Evidence) -> bool:
    """Say whether every time was a number: to leave out what is not would choose among the measurements."""
    every = [*evidence.rounds, *evidence.same, *evidence.delayed]
    return all(math.isfinite(value) for values in every for value in values)


def log_ratios(over: Sequence[Block], under: Sequence[Block]) -> list[float]:
    """Return the log ratio of two arms in every round that has both."""
    above, below = _by_round(over), _by_round(under)
    return [math.log(step_s / below[number]) for number, step_s in above.items() if number in below]


def _by_round(blocks: Sequence[Block]) -> dict[int, float]:
    return {block.round: block.step_s for block in counted(blocks)}


def _repeats(summary: RunSummary) -> list[str]:
    """Return the writers of the repeats in their order; before a supervisor's record is seen, in that of their names."""
    known = {name: worker.started for name, worker in summary.workers.items() if worker.started and not worker.started.arm}
    unknown = {writer for writer, _ in summary.blocks} - summary.workers.keys()
    return sorted(known, key=lambda name: known[name].repeat) + sorted(unknown)


def _controls(claim: events.ClaimDeclared, summary: RunSummary, writers: Sequence[str], control: str) -> list[list[float]]:
    """Return the log ratios of a control in the race that had both arms of the claim."""
    found = []
    for writer, race in summary.races:
        blocks = summary.controls.get((writer, race.base, control))
        if writer in writers and {claim.over, claim.under} <= set(race.arms) and blocks:
            found.append(log_ratios(blocks, summary.blocks[writer, race.base]))
    return [logs for logs in found if logs]


def _blocks(claim: events.ClaimDeclared, summary: RunSummary, writer: str) -> list[Block]:
    return [*summary.blocks[writer, claim.over], *summary.blocks[writer, claim.under]]


def _disturbed_share(claim: events.ClaimDeclared, summary: RunSummary, writers: Sequence[str]) -> float:
    """Return the share of the blocks that sensors marked: those of the CPU as it ran, those of the GPU looked up afterwards."""
    every = [block for name in writers for block in _blocks(claim, summary, name)]
    first = [block for block in every if not block.is_warmup and not block.is_rerun]
    slowed = held_back(summary, first) if _is_on_gpu(claim, summary) else [False] * len(first)
    marks = [block.is_disturbed or is_slowed for block, is_slowed in zip(first, slowed, strict=True)]
    return sum(marks) / len(marks) if marks else 0.0


def _is_on_gpu(claim: events.ClaimDeclared, summary: RunSummary) -> bool:
    return any(race.device == "cuda" and {claim.over, claim.under} <= set(race.arms) for _, race in summary.races)


def _observer_share(blocks: Sequence[Block], summary: RunSummary) -> float:
    """Return the greatest share of a block that recording took."""
    record_ns = max((race.record_ns for _, race in summary.differences), default=0)
    return max((block.records * record_ns / block.wall_ns for block in blocks if block.wall_ns), default=0.0)


def _difference(claim: events.ClaimDeclared, summary: RunSummary) -> str:
    """Return how the two arms differ in what they compute, or nothing: a faster arm must do the same work."""
    for _, race in summary.differences:
        if race.is_same is False and {claim.over, claim.under} <= set(race.arms):
            return race.difference
    return ""


def _failed_repeats(summary: RunSummary, writers: Sequence[str]) -> int:
    ended = [name for name in _repeats(summary) if name in summary.workers and summary.workers[name].exited]
    return len([name for name in ended if name not in writers])


def _lacks(claim: events.ClaimDeclared, summary: RunSummary) -> str:
    """Return what the box did not give: cores that others used."""
    got = min(summary.cores.get(claim.cores, []), default=None)
    if claim.cores and got is not None and got < _CORES_SHARE * claim.cores:
        return f"{claim.cores} busy processes got {got:.1f} cores between them: the box is too busy or too small"
    return ""
