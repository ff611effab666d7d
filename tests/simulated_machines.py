"""Simulate machines: what may happen to the blocks of a race, and how often a verdict is then false.

    python -m tests.simulated_machines [COUNT]

prints the table of docs/method.md. Blocks are simulated one by one, in logs, many runs at once: two
arms that do the same work, and the two controls. Their order is drawn at random, and mirrored in
every other round.
"""

import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuilab.judging.evidence import Evidence
from tuilab.judging.interim_analyses import ONLY_ANALYSIS, InterimAnalysis
from tuilab.judging.ratio import reach_verdict
from tuilab.judging.significance import make_ratio_test
from tuilab.record.events import ClaimDeclared, Operator
from tuilab.record.verdicts import DECISIONS, Verdict

Numbers = NDArray[np.float64]
Effect = Callable[["Races"], None]
A, B, SAME, DELAYED = range(4)


class Races:
    """The blocks of many runs: the log of their time, their slot in the round, their place in the race.

    The shape is arms, runs, processes, rounds. A, B and the two controls are the four arms.
    """

    def __init__(self, seed: int, runs: int, processes: int, rounds: int) -> None:
        self.draw = np.random.default_rng(seed)
        pairs = self.draw.random((4, runs, processes, rounds // 2)).argsort(axis=0)
        self.slot = np.stack([pairs, 3 - pairs], axis=-1).reshape(4, runs, processes, rounds)
        self.when = self.slot + 4 * np.arange(rounds)
        self.log: Numbers = np.zeros(self.slot.shape)
        self.log[DELAYED] += math.log(1.05)

    def each(self, *axes: int) -> tuple[int, ...]:
        """Return the shape of one value for each index along some axes: 0 arms, 1 runs, 2 processes."""
        shape = [1] * self.log.ndim
        for axis in axes:
            shape[axis] = self.log.shape[axis]
        return tuple(shape)

    def at_their_time(self, series: Numbers) -> Numbers:
        """Return for every block the value of a series over the time of its process."""
        return np.take_along_axis(np.broadcast_to(series, (4, *series.shape)), self.when, axis=-1)

    @property
    def length(self) -> int:
        return int(4 * self.log.shape[-1])


# ---- what happens to blocks


def noise(size: float, freedom: float = math.inf) -> Effect:
    """Every block differs by chance."""

    def change(races: Races) -> None:
        races.log += size * _draw_tailed(races, freedom, races.log.shape)

    return change


def luck(size: float, freedom: float = math.inf) -> Effect:
    """Every arm differs by chance in every process. `size` is the spread of the ratio of two arms."""

    def change(races: Races) -> None:
        offsets = _draw_tailed(races, freedom, races.each(0, 1, 2))
        races.log += size / math.sqrt(2) * offsets

    return change


def spikes(share: float) -> Effect:
    """Some blocks take two to ten times as long."""

    def change(races: Races) -> None:
        is_slow = races.draw.random(races.log.shape) < share
        factors = races.draw.uniform(2, 10, races.log.shape)
        races.log += np.where(is_slow, np.log(factors), 0)

    return change


def states(share: float, size: float, *arms: int) -> Effect:
    """Some arms (by default all) are in a slow state in some processes."""

    def change(races: Races) -> None:
        slow = size * (races.draw.random(races.each(0, 1, 2)) < share)
        for arm in arms or range(4):
            races.log[arm] += slow[arm]

    return change


def colours(count: int, size: float) -> Effect:
    """The memory pages of each arm are placed in one of several ways, in every process anew."""

    def change(races: Races) -> None:
        colour = races.draw.integers(0, count, races.each(0, 1, 2))
        races.log += size * colour / (count - 1)

    return change


def wandering(size: float, blocks: float) -> Effect:
    """The speed of the whole process wanders. After so many blocks it has forgotten where it was."""

    def change(races: Races) -> None:
        stays = math.exp(-1 / blocks)
        shape = (*races.log.shape[1:3], races.length)
        news = math.sqrt(1 - stays**2)
        speeds: Numbers = size * news * races.draw.standard_normal(shape)
        speeds[..., 0] *= 1 / news
        for at in range(1, races.length):
            speeds[..., at] += stays * speeds[..., at - 1]
        races.log += races.at_their_time(speeds)

    return change


def frequency_steps(size: float, chance: float) -> Effect:
    """The clock steps up or down at random and stays there for a while."""

    def change(races: Races) -> None:
        shape = (*races.log.shape[1:3], races.length)
        number = (races.draw.random(shape) < chance).cumsum(axis=-1)
        levels: Numbers = np.where(races.draw.random(shape) < 0.5, size, 0.0)
        races.log += races.at_their_time(np.take_along_axis(levels, number, axis=-1))

    return change


def periodic(period: int, factor: float, *, is_locked: bool) -> Effect:
    """Another program runs every so many blocks.

    If it is locked, it begins at the same block of the race in every process of a run.
    """

    def change(races: Races) -> None:
        axes = (1,) if is_locked else (1, 2)
        phase = races.draw.integers(0, period, races.each(*axes))
        races.log += math.log(factor) * ((races.when + phase) % period == 0)

    return change


def first_slot(size: float) -> Effect:
    """The first block of each round takes longer."""

    def change(races: Races) -> None:
        races.log += size * (races.slot == 0)

    return change


def drift(size: float, power: int) -> Effect:
    """All arms become slower in the course of a race."""

    def change(races: Races) -> None:
        races.log += size * (races.when / races.length) ** power

    return change


def offset(size: float) -> Effect:
    """One of two instances of the same work takes longer, in every process alike."""

    def change(races: Races) -> None:
        races.log[[A, SAME, DELAYED]] += size

    return change


def slow_warm_up(size: float, rounds: float) -> Effect:
    """One arm begins slower. In so many rounds it loses two thirds of that."""

    def change(races: Races) -> None:
        races.log[A] += np.log1p(size * np.exp(-np.arange(races.log.shape[-1]) / rounds))

    return change


def _draw_tailed(races: Races, freedom: float, shape: tuple[int, ...]) -> Numbers:
    """Draw from Student's t, or from the normal distribution if the freedom is infinite."""
    if math.isinf(freedom):
        return races.draw.standard_normal(shape)
    return races.draw.standard_t(freedom, shape)


QUIET = noise(0.01)
MACHINES: dict[str, tuple[Effect, ...]] = {
    "quiet": (QUIET,),
    "noisy": (noise(0.1),),
    "luck of the process": (QUIET, luck(0.03)),
    "heavy tails of blocks": (noise(0.01, 2),),
    "heavy tails of processes": (QUIET, luck(0.01, 2)),
    "outliers": (QUIET, spikes(0.05)),
    "states of every instance": (QUIET, states(0.5, 0.05)),
    "page colours": (QUIET, colours(8, 0.07)),
    "a rare state of every instance": (QUIET, states(0.1, 0.2)),
    "wandering speed": (QUIET, wandering(0.1, 50)),
    "frequency steps": (QUIET, frequency_steps(0.2, 0.05)),
    "something every 100 ms": (QUIET, periodic(10, 1.5, is_locked=False)),
    "something every 8 blocks, locked": (QUIET, periodic(8, 1.5, is_locked=True)),
    "first slot slower": (QUIET, first_slot(0.05)),
    "drift": (QUIET, drift(0.3, 1)),
    "drift that grows": (QUIET, drift(0.3, 2)),
    "an instance is off by 0.2 %": (noise(0.003), offset(0.002)),
    "an instance is off by 0.5 %": (noise(0.01), luck(0.003), offset(0.005)),
    "an instance is off by 2 %": (QUIET, luck(0.005), offset(0.02)),
    "everything": (noise(0.02), luck(0.02), spikes(0.02), first_slot(0.03), drift(0.2, 2), states(0.2, 0.03)),
}  # fmt: skip


# What may happen to the processes of a race of commands. Each process is a round of its own, in an
# order that the next one mirrors.
PROCESSES: dict[str, tuple[Effect, ...]] = {
    "quiet": (QUIET,),
    "a training script": (noise(0.1),),
    "heavy tails": (noise(0.01, 2),),
    "one in ten is disturbed": (QUIET, spikes(0.1)),
    "wandering speed": (QUIET, wandering(0.1, 10)),
    "frequency steps": (QUIET, frequency_steps(0.2, 0.1)),
    "the first of each repeat is slower": (QUIET, first_slot(0.05)),
    "drift": (QUIET, drift(0.3, 1)),
}


# ---- verdicts about their runs


def simulate_runs(
    box: Sequence[Effect],
    seed: int,
    count: int,
    *,
    processes: int = 6,
    rounds: int = 16,
    ratio: float = 1.0,
    **more: Any,
) -> Iterator[Evidence]:
    """Yield the evidence of many runs. The first arm takes `ratio` times as long as the second one.

    `more` are fields of `Evidence`.
    """
    races = Races(seed, count, processes, rounds)
    for effect in box:
        effect(races)
    races.log[A] += math.log(ratio)
    # The second arm is the base: it is timed twice in a round, and the mean of both stands for it.
    claimed = races.log[A] - (races.log[B] + races.log[SAME]) / 2
    controls = races.log[[SAME, DELAYED]] - races.log[B]
    logs = np.stack([claimed, *controls])
    for above, same, delayed in zip(*logs.tolist(), strict=True):
        yield Evidence(
            above,
            same=same,
            delayed=delayed,
            is_single_process=processes == 1,
            doubled_share=1.0,
            **more,
        )


def simulate_command_runs(
    box: Sequence[Effect], seed: int, count: int, *, repeats: int = 6, ratio: float = 1.0
) -> Iterator[Evidence]:
    """Yield the evidence of races of commands: a block is a process, and there is no injected delay."""
    for evidence in simulate_runs(box, seed, count, processes=1, rounds=repeats, ratio=ratio):
        (blocks,) = evidence.rounds
        (blocks_of_control,) = evidence.same
        yield replace(
            evidence,
            rounds=[[block] for block in blocks],
            same=[[block] for block in blocks_of_control],
            delayed=[],
            needs_delay=False,
            is_single_process=False,
        )


def declare_claim(op: Operator, bound: float) -> ClaimDeclared:
    return ClaimDeclared(text="c", over="a", under="b", op=op, bound=bound)


# For each name: the bound of the claim, the true ratio, and the verdicts that would be false.
CLAIMS: dict[str, tuple[float, float, frozenset[Verdict]]] = {
    "at the bound": (1.0, 1.0, DECISIONS - {Verdict.NO_DIFFERENCE}),
    "at a large bound": (1.3, 1.3, DECISIONS),
    "not much worse, at the bound": (0.9, 0.9, DECISIONS),
    "at the edge of the margin": (2.0, 1.03, DECISIONS - {Verdict.REFUTED}),
    "just short of the bound": (1.031, 1.03, DECISIONS - {Verdict.REFUTED}),
    "no difference at all": (1.03, 1.0, frozenset({Verdict.SUPPORTED, Verdict.WEAKER})),
}


def measure_false_rates(
    box: Sequence[Effect], seed: int, count: int, **shape: Any
) -> dict[str, float]:
    """Return the share of runs with a false verdict, by claim."""
    return count_false_rates(list(simulate_runs(box, seed, count, **shape)))


def count_false_rates(evidences: Sequence[Evidence]) -> dict[str, float]:
    """Return the share of these runs with a false verdict, by claim.

    The evidence is of arms that take equally long. Each claim has a true ratio of its own.
    """
    counts: Counter[str] = Counter()
    for evidence in evidences:
        for name, (bound, ratio, false_verdicts) in CLAIMS.items():
            claim = declare_claim("at_least", bound)
            verdict = reach_simulated_verdict(claim, _scale(evidence, ratio))
            if verdict in false_verdicts:
                counts[name] += 1
    return {name: counts[name] / len(evidences) for name in CLAIMS}


def reach_simulated_verdict(
    claim: ClaimDeclared, evidence: Evidence, analysis: InterimAnalysis = ONLY_ANALYSIS
) -> Verdict:
    """Return the verdict of `judge_ratio` without its numbers and sentences, which double the time."""
    tested = make_ratio_test(claim, evidence).at_analysis(analysis, 1)
    verdict, _ = reach_verdict(claim, evidence, tested)
    return verdict


def _scale(evidence: Evidence, ratio: float) -> Evidence:
    """Return the evidence if the first arm took `ratio` times as long."""
    rounds = []
    for process in evidence.rounds:
        rounds.append([value + math.log(ratio) for value in process])
    return replace(evidence, rounds=rounds)


def main() -> None:
    """Print the rates of false verdicts, in percent."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    error_percent = 100 * math.sqrt(0.05 * 0.95 / count)
    print(f"{count} runs each; of 5 % one standard error is {error_percent:.2f} %")
    for number, name in enumerate(CLAIMS, 1):
        print(f"{number}: {name}")
    for name, box in MACHINES.items():
        print_rates(name, measure_false_rates(box, 1, count))
    print("of races of commands")
    for name, box in PROCESSES.items():
        print_rates(name, count_false_rates(list(simulate_command_runs(box, 1, count))))


def print_rates(name: str, rates: dict[str, float]) -> None:
    columns = [f"{100 * rate:5.1f}" for rate in rates.values()]
    print(f"{name:34}", *columns, flush=True)


if __name__ == "__main__":
    main()
