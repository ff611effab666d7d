"""Selects the blocks of a race that count, by the same rule for views and for verdicts."""

from collections.abc import Iterable
from math import gcd
from typing import NamedTuple

from tuilab.record.summary import RunSummary
from tuilab.record.summary_parts import Block, Claim


def counted(blocks: Iterable[Block]) -> list[Block]:
    """Return the blocks that count: no warm-up, and of a block that was run again the second run.

    Older versions ran disturbed blocks again, and their verdicts used the second run.
    """
    by_round = {block.round: block for block in blocks if not block.is_warmup}
    return list(by_round.values())


def first_counted(blocks: Iterable[Block]) -> list[Block]:
    """Return no warm-up, and of a block that was run again the first run, as the current rule asks.

    The second run was warm, right after the first, while the block of the other arm was not. It
    also hides the waiting that an arm causes itself. So it has no evidence.
    """
    by_round = {}
    for block in reversed(list(blocks)):
        if not block.is_warmup:
            by_round[block.round] = block
    return list(by_round.values())[::-1]


def tick_ns(times_ns: Iterable[int]) -> int:
    """Return the tick of the clock of some times: the greatest power of ten that divides them all.

    An arm in a process of its own may use a clock of whole milliseconds. Six equal times then show
    little.
    """
    common = gcd(*times_ns)
    tick = 1
    while common and common % (10 * tick) == 0:
        tick *= 10
    return tick


def in_order(summary: RunSummary) -> dict[tuple[str, str], list[Block]]:
    """Return the blocks by worker and arm, in the order in which the scenario names the arms.

    The arms take turns in another order.
    """
    keys: dict[tuple[str, str], None] = {}
    for writer, race in summary.races:
        for arm in race.arms:
            keys[writer, arm] = None
    keys |= dict.fromkeys(summary.blocks)
    return {key: summary.blocks[key] for key in keys if key in summary.blocks}


def has_times(summary: RunSummary) -> bool:
    """Say whether any block counts yet; fast, because a live screen asks each time it draws."""
    for blocks in summary.blocks.values():
        for block in blocks:
            if not block.is_warmup:
                return True
    return False


class Measure(NamedTuple):
    """The quantity that the blocks of a run measure."""

    name: str = "time"
    unit: str = "s"
    of: str = "call"  # or "step"
    sample: str = "block"  # or "process"


def measure_of(summary: RunSummary) -> Measure:
    """Return the quantity by which a run compares its arms: time, or for commands maybe another."""
    measure = Measure()
    if summary.run and summary.run.command:
        measure = Measure(of="step", sample="process")
    if summary.races:
        _, race = summary.races[0]
        if race.measure:
            measure = measure._replace(name=race.measure, unit=race.unit)
    return measure


def is_on_cpu(summary: RunSummary) -> bool:
    """Say whether a verdict of a run rests on CPU times."""
    verdicts = [claim.verdict for claim in summary.claims.values() if claim.verdict]
    return any(verdict.measure == "cpu" for verdict in verdicts)


def scale_of(unit: str) -> float:
    """Return the factor from the numbers in blocks, in billionths, to the unit."""
    return 1e9 if unit == "bytes" else 1


def times_of(summary: RunSummary) -> dict[str, list[float]]:
    """Return, by arm, the wall-clock seconds of a call in every block that counts.

    If the run measured another quantity, it is returned instead. A view shows `clocks.arm_times`,
    which begin with the clock that the verdict was judged on.
    """
    times: dict[str, list[float]] = {}
    scale = scale_of(measure_of(summary).unit)
    for (_, arm), blocks in in_order(summary).items():
        times_of_arm = times.setdefault(arm, [])
        times_of_arm += [block.step_s * scale for block in counted(blocks)]
    return {arm: times_of_arm for arm, times_of_arm in times.items() if times_of_arm}


class NoiseFloor(NamedTuple):
    """The distance from 1 to the far end of the interval of an arm against itself."""

    share: float
    arm: str = ""  # empty if it is not known
    others: tuple[str, ...] = ()  # controls of further processes, if several arms are equally fast


def noise_floor(summary: RunSummary) -> NoiseFloor | None:
    """Return the widest noise floor of a run's verdicts; None if there is none."""
    widest = None
    for claim in summary.claims.values():
        noise = noise_of(claim, summary)
        if noise and noise.share and (widest is None or noise > widest):
            widest = noise
    return widest


def noise_of(claim: Claim, summary: RunSummary) -> NoiseFloor | None:
    """Return the noise floor of a claim; None if it has none.

    It is that of one arm of the race, which need not be one of the two arms of the claim.
    """
    declared = claim.declared
    verdict = claim.verdict
    if declared is None or verdict is None or verdict.noise_floor is None:
        return None
    bases: dict[str, None] = {}
    for _, race in summary.races:
        if declared.over in race.arms and declared.under in race.arms:
            bases[race.base] = None
    first, *others = bases or [""]
    return NoiseFloor(verdict.noise_floor, first, tuple(others))
