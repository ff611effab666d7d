"""Machines that disturb a simulated race in a known way, written from docs/verdicts.md alone.

A machine is a function of a timeline: it returns how each block was disturbed. A fair machine treats
both arms alike in the long run, a one-sided machine does not. Times are in blocks: an undisturbed
block of either arm takes 1, whatever the true ratio of the arms is, because a slow arm has fewer calls.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.int64]

OVER = 0  # the arm above the line of the ratio
UNDER = 1
AGAIN = 2  # the A/A control
DELAYED = 3  # the injected 5 % delay
ENTRANTS = 4

CYCLES = 8  # of two rounds each
BLOCKS_OF_CYCLE = 1 + 2 * ENTRANTS  # the first one is not timed
BLOCK_S = 0.025  # so that 16 rounds of four blocks take about 2 seconds
MARKED_SHARE = 0.1  # of a block off its core: from here on the sensors mark it


@dataclass(frozen=True)
class Timeline:
    """The blocks of many processes in the order in which they run: arrays of process and block."""

    random: np.random.Generator
    entrants: Indices
    base: int  # the arm that the controls repeat: OVER or UNDER

    @property
    def shape(self) -> tuple[int, int]:
        processes, blocks = self.entrants.shape
        return processes, blocks

    @property
    def arms(self) -> Indices:
        """Return whose function each block calls: controls call that of the base."""
        return np.where(self.entrants >= AGAIN, self.base, self.entrants)

    @property
    def rounds(self) -> Indices:
        """Return the round of each block; the untimed block counts for the round behind it."""
        _, blocks = self.shape
        cycle, place = np.divmod(np.arange(blocks), BLOCKS_OF_CYCLE)
        return 2 * cycle + (place > ENTRANTS)

    @property
    def is_timed(self) -> Flags:
        _, blocks = self.shape
        return np.arange(blocks) % BLOCKS_OF_CYCLE > 0

    def per_process(self) -> Numbers:
        """Return a normal value for each process, alike in all of its blocks."""
        return self.random.standard_normal((self.shape[0], 1))

    def per_entrant(self, values: Numbers) -> Numbers:
        """Return for each block the value of its entrant, from an array of process and entrant."""
        return np.take_along_axis(values, self.entrants, axis=1)

    def per_arm(self, values: Numbers) -> Numbers:
        """Return for each block the value of its arm, from an array of process and arm."""
        return np.take_along_axis(values, self.arms, axis=1)

    def starts_s(self) -> Numbers:
        """Return when each block begins, by a clock that each process reads at a random moment."""
        processes, blocks = self.shape
        phase_s = self.random.uniform(0, 100, (processes, 1))
        return phase_s + BLOCK_S * np.arange(blocks)


@dataclass
class Disturbance:
    """What happens to each block."""

    slowdown: Numbers  # natural logarithm; CPU time and wall time grow alike
    away: Numbers  # time off the core, in blocks: only wall time grows
    is_stolen: Flags  # the hypervisor took time
    tick: float = 0.0  # of the clock, in blocks
    effect: float = 0.0  # by which the true logarithm of over/under differs from that of the work


@dataclass
class Machine:
    name: str
    disturb: Callable[[Timeline], Disturbance]
    is_fair: bool = True
    tags: tuple[str, ...] = field(default=())


def draw_timeline(random: np.random.Generator, processes: int, base: int) -> Timeline:
    """Draw the orders of the rounds: each second round mirrors the one before it."""
    slots = np.broadcast_to(np.arange(ENTRANTS), (processes, CYCLES, ENTRANTS))
    orders = random.permuted(slots, axis=2)
    untimed = orders[:, :, :1]
    mirrored = orders[:, :, ::-1]
    cycles = np.concatenate([untimed, orders, mirrored], axis=2)
    return Timeline(random, cycles.reshape(processes, CYCLES * BLOCKS_OF_CYCLE), base)


# ---- fair machines


def quiet(line: Timeline) -> Disturbance:
    """Add 0.5 % of noise to each block and 0.3 % to each entrant of a process."""
    processes, _ = line.shape
    block_noise = 0.005 * line.random.standard_normal(line.shape)
    placement = 0.003 * line.random.standard_normal((processes, ENTRANTS))
    return Disturbance(
        slowdown=block_noise + line.per_entrant(placement),
        away=np.zeros(line.shape),
        is_stolen=np.zeros(line.shape, bool),
    )


def autocorrelated(line: Timeline) -> Disturbance:
    """Let the speed wander: 8 %, and 0.9 of it is left one block later."""
    disturbance = quiet(line)
    _, blocks = line.shape
    kept = 0.9
    state = 0.08 * line.random.standard_normal(line.shape[0])
    for block in range(blocks):
        disturbance.slowdown[:, block] += state
        innovation = line.random.standard_normal(line.shape[0])
        state = kept * state + 0.08 * np.sqrt(1 - kept**2) * innovation
    return disturbance


def two_states(line: Timeline, leave: float) -> Flags:
    """Return a state of two for each block, which changes with this probability."""
    processes, _ = line.shape
    first = line.random.random((processes, 1)) < 0.5
    changes = line.random.random(line.shape) < leave
    return first ^ (np.cumsum(changes, axis=1) % 2 == 1)


def bimodal_turbo(line: Timeline) -> Disturbance:
    """Take 20 % longer while the turbo is off, for ten blocks on average."""
    disturbance = quiet(line)
    disturbance.slowdown += np.log(1.2) * two_states(line, leave=0.1)
    return disturbance


def cron_job(line: Timeline) -> Disturbance:
    """Share the core with a job of 150 ms that comes once a second."""
    disturbance = quiet(line)
    since_job_s = line.starts_s() % 1.0
    shared_s = np.clip(0.150 - since_job_s, 0, BLOCK_S)
    next_job_s = np.clip(since_job_s + BLOCK_S - 1.0, 0, BLOCK_S)
    disturbance.away = (shared_s + next_job_s) / BLOCK_S
    return disturbance


def stalls(line: Timeline, share: float) -> Disturbance:
    """Take the core away from this share of the blocks, for a heavy-tailed time."""
    disturbance = quiet(line)
    is_stalled = line.random.random(line.shape) < share
    length = 0.1 * (1 + line.random.pareto(1.1, line.shape))
    disturbance.away = np.where(is_stalled, length, 0)
    return disturbance


def position(line: Timeline) -> Disturbance:
    """Take 5 % longer in the first place of each round, 2 % in the second."""
    disturbance = quiet(line)
    _, blocks = line.shape
    place = (np.arange(blocks) % BLOCKS_OF_CYCLE - 1) % ENTRANTS
    costs = np.array([0.05, 0.02, 0.0, 0.0])
    disturbance.slowdown += costs[place]
    return disturbance


def process_variation(line: Timeline, culprit: int) -> Disturbance:
    """Let one arm vary by 5 % from process to process, the other one by 1 %."""
    disturbance = quiet(line)
    sds = np.full(2, 0.01)
    sds[culprit] = 0.05
    values = sds * line.random.standard_normal((line.shape[0], 2))
    disturbance.slowdown += line.per_arm(values)
    return disturbance


def memory_placement(line: Timeline) -> Disturbance:
    """Place the memory of each entrant badly in three of ten processes: 8 % slower on average."""
    disturbance = quiet(line)
    shape = (line.shape[0], ENTRANTS)
    is_bad = line.random.random(shape) < 0.3
    cost = line.random.exponential(0.08, shape)
    disturbance.slowdown += line.per_entrant(np.where(is_bad, cost, 0))
    return disturbance


def block_noise(line: Timeline, culprit: int) -> Disturbance:
    """Let the blocks of one arm vary by 20 %, those of the other one by 1 %."""
    disturbance = quiet(line)
    sds = np.where(line.arms == culprit, 0.20, 0.01)
    disturbance.slowdown += sds * line.random.standard_normal(line.shape)
    return disturbance


def correlated_arms(line: Timeline) -> Disturbance:
    """Let each process vary by 15 %, and each round by 15 %, alike for both arms."""
    disturbance = quiet(line)
    rounds = line.rounds
    of_rounds = 0.15 * line.random.standard_normal((line.shape[0], 2 * CYCLES))
    disturbance.slowdown += 0.15 * line.per_process() + of_rounds[:, rounds]
    return disturbance


def slow_process(line: Timeline) -> Disturbance:
    """Make one process of six slower by half, alike for both arms, and noisier."""
    disturbance = quiet(line)
    is_slow = line.random.random((line.shape[0], 1)) < 1 / 6
    noise = np.log(1.5) + 0.05 * line.random.standard_normal(line.shape)
    disturbance.slowdown += np.where(is_slow, noise, 0)
    return disturbance


def coarse_clock(line: Timeline) -> Disturbance:
    """Read a clock that ticks ten times a block."""
    disturbance = quiet(line)
    disturbance.tick = 0.1
    return disturbance


def thermal_ramp(line: Timeline) -> Disturbance:
    """Slow the core down by 25 % over the first half of each process."""
    disturbance = quiet(line)
    _, blocks = line.shape
    warmth = np.minimum(1.0, np.arange(blocks) / (blocks / 2))
    disturbance.slowdown += np.log(1.25) * warmth
    return disturbance


def hypervisor_steal(line: Timeline) -> Disturbance:
    """Let the hypervisor take 40 % of the time in bursts; the guest counts it as CPU time."""
    disturbance = quiet(line)
    changes = line.random.random(line.shape)
    is_burst = np.zeros(line.shape, bool)
    state = line.random.random(line.shape[0]) < 0.2
    for block in range(line.shape[1]):
        leaves = changes[:, block] < np.where(state, 0.25, 0.0625)
        state = state ^ leaves
        is_burst[:, block] = state
    share = line.random.uniform(0.2, 0.6, line.shape)
    disturbance.slowdown += np.where(is_burst, -np.log(1 - share), 0)
    disturbance.is_stolen = is_burst
    return disturbance


def busy_sibling(line: Timeline) -> Disturbance:
    """Share the core with another hardware thread half of the time: 40 % slower, and unmarked."""
    disturbance = quiet(line)
    disturbance.slowdown += np.log(1.4) * two_states(line, leave=0.05)
    return disturbance


def skewed_variation(line: Timeline, culprits: tuple[int, ...]) -> Disturbance:
    """Let arms vary from process to process by 5 %, exponentially; the mean logarithm is 0."""
    disturbance = quiet(line)
    values = np.zeros((line.shape[0], 2))
    for arm in culprits:
        values[:, arm] = 0.05 * (line.random.exponential(1, line.shape[0]) - 1)
    disturbance.slowdown += line.per_arm(values)
    return disturbance


# ---- one-sided machines


def sign(culprit: int) -> int:
    """Return 1 if a slower culprit makes the ratio larger, else -1."""
    return 1 if culprit == OVER else -1


def after_effect(line: Timeline, culprit: int) -> Disturbance:
    """Slow down by 4 % whoever runs behind one arm."""
    disturbance = quiet(line)
    is_behind = np.zeros(line.shape, bool)
    is_behind[:, 1:] = line.arms[:, :-1] == culprit
    disturbance.slowdown += np.log(1.04) * is_behind
    return disturbance


def warm_up(line: Timeline, culprit: int) -> Disturbance:
    """Begin one arm 30 % slower in half of the processes; that is gone after some 6 rounds."""
    disturbance = quiet(line)
    has_warm_up = line.random.random((line.shape[0], 1)) < 0.5
    extra = np.log1p(0.30 * np.exp(-line.rounds / 6))
    is_hit = has_warm_up & (line.arms == culprit)
    disturbance.slowdown += np.where(is_hit, extra, 0)
    return disturbance


def cold_caches(line: Timeline, culprit: int, share: float) -> Disturbance:
    """Preempt this share of the blocks; one arm pays 8 % of CPU time for each of these."""
    disturbance = quiet(line)
    is_preempted = line.random.random(line.shape) < share
    length = line.random.uniform(0.15, 1.0, line.shape)
    disturbance.away = np.where(is_preempted, length, 0)
    is_hit = is_preempted & (line.arms == culprit)
    disturbance.slowdown += np.where(is_hit, np.log(1.08), 0)
    return disturbance


def slow_blocks(line: Timeline, culprit: int) -> Disturbance:
    """Double a fifth of the blocks of one arm, which is true of it; preempt 15 % of all blocks."""
    disturbance = quiet(line)
    is_slow = (line.random.random(line.shape) < 0.2) & (line.arms == culprit)
    disturbance.slowdown += np.where(is_slow, np.log(2), 0)
    is_preempted = line.random.random(line.shape) < 0.15
    length = line.random.uniform(0.15, 1.0, line.shape)
    disturbance.away = np.where(is_preempted, length, 0)
    disturbance.effect = sign(culprit) * 0.2 * np.log(2)
    return disturbance


def seldom_slow_process(line: Timeline, culprit: int) -> Disturbance:
    """Make one arm 30 % slower in one process of twelve, which is true of it."""
    disturbance = quiet(line)
    is_slow = line.random.random((line.shape[0], 1)) < 1 / 12
    is_hit = is_slow & (line.arms == culprit)
    disturbance.slowdown += np.where(is_hit, np.log(1.3), 0)
    disturbance.effect = sign(culprit) * np.log(1.3) / 12
    return disturbance


# ---- all of them


def fair_machines() -> list[Machine]:
    return [
        Machine("quiet", quiet),
        Machine("AR(1) 8 %", autocorrelated),
        Machine("bimodal turbo", bimodal_turbo),
        Machine("cron job", cron_job),
        Machine("stalls in 3 %", partial(stalls, share=0.03)),
        Machine("stalls in 25 %", partial(stalls, share=0.25)),
        Machine("position in the round", position),
        Machine("processes 5 % / 1 %, over", partial(process_variation, culprit=OVER)),
        Machine("processes 5 % / 1 %, under", partial(process_variation, culprit=UNDER)),
        Machine("memory placement", memory_placement),
        Machine("blocks 20 % / 1 %, over", partial(block_noise, culprit=OVER)),
        Machine("blocks 20 % / 1 %, under", partial(block_noise, culprit=UNDER)),
        Machine("correlated arms 15 %", correlated_arms),
        Machine("slow process of both", slow_process),
        Machine("coarse clock", coarse_clock),
        Machine("thermal ramp", thermal_ramp),
        Machine("hypervisor steal", hypervisor_steal),
        Machine("SMT sibling", busy_sibling),
        Machine("skewed, both", partial(skewed_variation, culprits=(OVER, UNDER))),
        Machine("skewed, over", partial(skewed_variation, culprits=(OVER,))),
        Machine("skewed, under", partial(skewed_variation, culprits=(UNDER,))),
    ]


def one_sided_machines() -> list[Machine]:
    machines = []
    for culprit, side in ((OVER, "over"), (UNDER, "under")):
        machines += [
            Machine(f"after-effect 4 %, {side}", partial(after_effect, culprit=culprit)),
            Machine(f"warm-up in half, {side}", partial(warm_up, culprit=culprit)),
            Machine(f"cold caches 34 %, {side}", partial(cold_caches, culprit=culprit, share=0.34)),
            Machine(f"cold caches 60 %, {side}", partial(cold_caches, culprit=culprit, share=0.60)),
            Machine(f"slow blocks 20 %, {side}", partial(slow_blocks, culprit=culprit)),
            Machine(f"one process of 12, {side}", partial(seldom_slow_process, culprit=culprit)),
        ]
    for machine in machines:
        machine.is_fair = False
    return machines
