"""The blocks of a race that count: one rule for every view that shows times, the one that the verdicts rest on."""

from collections.abc import Iterable
from math import gcd
from typing import NamedTuple

from tuilab.record.summary import RunSummary
from tuilab.record.summary_parts import Block, Claim


def counted(blocks: Iterable[Block]) -> list[Block]:
    """Return no warm-up, and of a block that was run again the second time, as the verdicts of versions that did so have it."""
    return list({block.round: block for block in blocks if not block.is_warmup}.values())


def first_counted(blocks: Iterable[Block]) -> list[Block]:
    """Return no warm-up, and of a block that was run again the first time, as the rule of this version has it.

    The second one ran warm, right after the first, against a block of the other arm that did not, and takes an arm's own
    waiting away: it says nothing.
    """
    return list(
        {block.round: block for block in reversed([*blocks]) if not block.is_warmup}.values()
    )[::-1]


def tick_ns(times_ns: Iterable[int]) -> int:
    """Return the tick of the clock that times were read from, as far as they show it: the power of ten that all are whole of.

    An arm in a process of its own may time itself by whole milliseconds; that six of them agree then says little.
    """
    common, tick = gcd(*times_ns), 1
    while common and common % (10 * tick) == 0:
        tick *= 10
    return tick


def in_order(summary: RunSummary) -> dict[tuple[str, str], list[Block]]:
    """Return the blocks by worker and arm, in the order that the scenario has them in: they take turns in another one."""
    named = [(writer, arm) for writer, race in summary.races for arm in race.arms]
    return {
        key: summary.blocks[key]
        for key in dict.fromkeys([*named, *summary.blocks])
        if key in summary.blocks
    }


def has_times(summary: RunSummary) -> bool:
    """Say whether any block counts yet, without gathering them all: a live screen asks at every turn."""
    return any(not block.is_warmup for blocks in summary.blocks.values() for block in blocks)


class Measure(NamedTuple):
    """What the blocks of a run measure: its name and unit, and of what."""

    name: str = "time"
    unit: str = "s"
    of: str = "call"
    sample: str = "block"


def measure_of(summary: RunSummary) -> Measure:
    """Return what the arms of a run are held against each other by: time, but for races of commands by something else."""
    race = summary.races[0][1] if summary.races else None
    is_of_commands = bool(summary.run and summary.run.command)
    of, sample = ("step", "process") if is_of_commands else ("call", "block")
    if race and race.measure:
        return Measure(race.measure, race.unit, of, sample)
    return Measure(of=of, sample=sample)


def is_on_cpu(summary: RunSummary) -> bool:
    """Say whether a verdict of a run rests on CPU times."""
    return any(
        claim.verdict and claim.verdict.measure == "cpu" for claim in summary.claims.values()
    )


def scale_of(unit: str) -> float:
    """Return how much what a block measured is in its unit, where the block says billionths."""
    return 1e9 if unit == "bytes" else 1


def times_of(summary: RunSummary) -> dict[str, list[float]]:
    """Return, by arm, the wall-clock seconds of a call in every block that counts; or what was measured instead.

    A view shows the times of `clocks.arm_times`, which begin with the clock that the verdict was judged on.
    """
    found: dict[str, list[float]] = {}
    scale = scale_of(measure_of(summary).unit)
    for (_, arm), blocks in in_order(summary).items():
        found.setdefault(arm, []).extend(block.step_s * scale for block in counted(blocks))
    return {arm: times for arm, times in found.items() if times}


class NoiseFloor(NamedTuple):
    """How far from 1 the interval of an arm against itself reaches, and which arm that was; empty where it is not known.

    Of arms that are about as fast each process takes its own.
    """

    share: float
    arm: str = ""
    others: tuple[str, ...] = ()  # that further processes held against themselves


def noise_floor(summary: RunSummary) -> NoiseFloor | None:
    """Return the widest noise floor that a verdict found; None where there is none."""
    found = (noise_of(claim, summary) for claim in summary.claims.values())
    return max((noise for noise in found if noise and noise.share), default=None)


def noise_of(claim: Claim, summary: RunSummary) -> NoiseFloor | None:
    """Return the noise floor of a claim: of one arm of its race, which may be none of those that the claim is about."""
    declared, reached = claim.declared, claim.verdict
    if declared is None or reached is None or reached.noise_floor is None:
        return None
    raced = (
        race
        for _, race in summary.races
        if declared.over in race.arms and declared.under in race.arms
    )
    first, *others = dict.fromkeys(race.base for race in raced) or [""]
    return NoiseFloor(reached.noise_floor, first, tuple(others))
