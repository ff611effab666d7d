"""Count how often verdicts about time are wrong on simulated machines with a known true ratio.

    python -m benchmarks.simulated_verdicts [COUNT]

The machines disturb a comparison in a known way. They follow docs/method.md and nothing else, so
that they are independent of the rule, and of the simulation in the tests. A fair machine treats
both arms alike in the long run, a one-sided machine does not.

For each machine and question, COUNT runs (default 200) become records. They are judged as the
records of a real run are. The lines of a question are the mean of the fair machines, the worst fair
machine, and each one-sided machine.
"""

import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean

import numpy as np
import numpy.typing as npt

from benchmarks.pairs import Row
from benchmarks.pairs import line as row_line
from tuilab.judging.judge_run import judge
from tuilab.record import events
from tuilab.record.summary import RunSummary
from tuilab.record.summary_parts import Block, Claim, Worker
from tuilab.record.verdicts import DECISIONS, Verdict

FULL = {"runs": 200}
TINY = {"runs": 1}

Numbers = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.int64]

OVER = 0  # the numerator of the ratio
UNDER = 1  # the denominator
AGAIN = 2  # the A/A control
DELAYED = 3  # the injected 5 % delay
ENTRANTS = 4

CYCLES = 8  # of two rounds each
BLOCKS_OF_CYCLE = 1 + 2 * ENTRANTS  # the first block is not timed
LOOPS = 1000  # calls of the upper arm in a block
BLOCK_S = 0.010  # the length of a block on a CPU
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
        """Return the arm whose function each block calls: controls call that of the base."""
        return np.where(self.entrants >= AGAIN, self.base, self.entrants)

    @property
    def rounds(self) -> Indices:
        """Return the round of each block; the untimed block counts for the round after it."""
        _, blocks = self.shape
        cycle, place = np.divmod(np.arange(blocks), BLOCKS_OF_CYCLE)
        return 2 * cycle + (place > ENTRANTS)

    @property
    def is_timed(self) -> Flags:
        """Return whether each block is timed."""
        _, blocks = self.shape
        return np.arange(blocks) % BLOCKS_OF_CYCLE > 0

    def per_process(self) -> Numbers:
        """Return a normal value for each process, the same in all of its blocks."""
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
    """The changes of the time of each block."""

    slowdown: Numbers  # natural logarithm; CPU time and wall time grow alike
    away: Numbers  # time off the core, in blocks: only wall time grows
    tick: float = 0.0  # of the clock, in blocks
    arms_wait: bool = False  # for a lock or a disk, now and then: then CPU time is no measure
    effect: float = 0.0  # what this adds to the true logarithm of the ratio over/under


@dataclass(frozen=True)
class Machine:
    """A machine, and how it disturbs the blocks that it runs."""

    name: str
    disturb: Callable[[Timeline], Disturbance]


def draw_timeline(random: np.random.Generator, processes: int, base: int) -> Timeline:
    """Draw the orders of the rounds: each second round mirrors the round before it."""
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
    )


def autocorrelated(line: Timeline) -> Disturbance:
    """Let the speed wander by 8 %, with a correlation of 0.9 from one block to the next."""
    disturbance = quiet(line)
    processes, blocks = line.shape
    correlation = 0.9
    innovation_sd = 0.08 * np.sqrt(1 - correlation**2)
    state = 0.08 * line.random.standard_normal(processes)
    for block in range(blocks):
        disturbance.slowdown[:, block] += state
        innovation = line.random.standard_normal(processes)
        state = correlation * state + innovation_sd * innovation
    return disturbance


def two_states(line: Timeline, leave: float) -> Flags:
    """Return for each block one of two states, which changes with the probability `leave`."""
    processes, _ = line.shape
    first = line.random.random((processes, 1)) < 0.5
    changes = line.random.random(line.shape) < leave
    has_changed = np.cumsum(changes, axis=1) % 2 == 1
    state: Flags = first ^ has_changed
    return state


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


def stalls(line: Timeline, share: float, arms_wait: bool = False) -> Disturbance:
    """Take the core away from this share of the blocks, for a heavy-tailed time."""
    disturbance = quiet(line)
    is_stalled = line.random.random(line.shape) < share
    length = 0.1 * (1 + line.random.pareto(1.1, line.shape))
    disturbance.away = np.where(is_stalled, length, 0)
    disturbance.arms_wait = arms_wait
    return disturbance


def position(line: Timeline) -> Disturbance:
    """Take 5 % longer in the first place of each round, and 2 % longer in the second place."""
    disturbance = quiet(line)
    _, blocks = line.shape
    place = (np.arange(blocks) % BLOCKS_OF_CYCLE - 1) % ENTRANTS
    costs = np.array([0.05, 0.02, 0.0, 0.0])
    disturbance.slowdown += costs[place]
    return disturbance


def process_variation(line: Timeline, culprit: int) -> Disturbance:
    """Let one arm vary by 5 % from process to process, and the other arm by 1 %."""
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
    """Let the blocks of one arm vary by 20 %, and those of the other arm by 1 %."""
    disturbance = quiet(line)
    sds = np.where(line.arms == culprit, 0.20, 0.01)
    disturbance.slowdown += sds * line.random.standard_normal(line.shape)
    return disturbance


def correlated_arms(line: Timeline) -> Disturbance:
    """Let each process vary by 15 %, and each round by 15 %, the same for both arms."""
    disturbance = quiet(line)
    rounds = line.rounds
    of_rounds = 0.15 * line.random.standard_normal((line.shape[0], 2 * CYCLES))
    disturbance.slowdown += 0.15 * line.per_process() + of_rounds[:, rounds]
    return disturbance


def slow_process(line: Timeline) -> Disturbance:
    """Make one process of six 50 % slower and noisier, the same for both arms."""
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


def hypervisor_steal(line: Timeline, is_reported: bool) -> Disturbance:
    """Let the hypervisor take 20 to 60 % of the time in bursts of four blocks.

    If the hypervisor reports the stolen time, the kernel leaves it out of CPU time. Otherwise no
    sensor can see it.
    """
    disturbance = quiet(line)
    processes, blocks = line.shape
    is_burst = np.zeros(line.shape, bool)
    state = line.random.random(processes) < 0.2
    for block in range(blocks):
        chance = np.where(state, 0.25, 0.0625)
        state = state ^ (line.random.random(processes) < chance)
        is_burst[:, block] = state
    share = np.where(is_burst, line.random.uniform(0.2, 0.6, line.shape), 0)
    if is_reported:
        disturbance.away = share / (1 - share)
    else:
        disturbance.slowdown -= np.log(1 - share)
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
    """Slow down by 4 % each block that runs directly after a block of one arm."""
    disturbance = quiet(line)
    is_after = np.zeros(line.shape, bool)
    is_after[:, 1:] = line.arms[:, :-1] == culprit
    disturbance.slowdown += np.log(1.04) * is_after
    return disturbance


def warm_up(line: Timeline, culprit: int) -> Disturbance:
    """Begin one arm 30 % slower in half of the processes; that fades within about 6 rounds."""
    disturbance = quiet(line)
    has_warm_up = line.random.random((line.shape[0], 1)) < 0.5
    extra = np.log1p(0.30 * np.exp(-line.rounds / 6))
    is_hit = has_warm_up & (line.arms == culprit)
    disturbance.slowdown += np.where(is_hit, extra, 0)
    return disturbance


def cold_caches(line: Timeline, culprit: int, share: float) -> Disturbance:
    """Preempt this share of the blocks; those of one arm then take 8 % more CPU time."""
    disturbance = quiet(line)
    is_preempted = line.random.random(line.shape) < share
    length = line.random.uniform(0.15, 1.0, line.shape)
    disturbance.away = np.where(is_preempted, length, 0)
    is_hit = is_preempted & (line.arms == culprit)
    disturbance.slowdown += np.where(is_hit, np.log(1.08), 0)
    return disturbance


def slow_blocks(line: Timeline, culprit: int) -> Disturbance:
    """Double the time of a fifth of the blocks of one arm, and preempt 15 % of all blocks.

    The slow blocks belong to the arm, so they change its true time.
    """
    disturbance = quiet(line)
    is_slow = (line.random.random(line.shape) < 0.2) & (line.arms == culprit)
    disturbance.slowdown += np.where(is_slow, np.log(2), 0)
    is_preempted = line.random.random(line.shape) < 0.15
    length = line.random.uniform(0.15, 1.0, line.shape)
    disturbance.away = np.where(is_preempted, length, 0)
    disturbance.effect = sign(culprit) * 0.2 * np.log(2)
    return disturbance


def seldom_slow_process(line: Timeline, culprit: int) -> Disturbance:
    """Make one arm 30 % slower in one process of twelve.

    The slow processes belong to the arm, so they change its true time.
    """
    disturbance = quiet(line)
    is_slow = line.random.random((line.shape[0], 1)) < 1 / 12
    is_hit = is_slow & (line.arms == culprit)
    disturbance.slowdown += np.where(is_hit, np.log(1.3), 0)
    disturbance.effect = sign(culprit) * np.log(1.3) / 12
    return disturbance


# ---- all machines


def fair_machines() -> list[Machine]:
    return [
        Machine("quiet", quiet),
        Machine("AR(1) 8 %", autocorrelated),
        Machine("bimodal turbo", bimodal_turbo),
        Machine("cron job", cron_job),
        Machine("stalls in 3 %", partial(stalls, share=0.03)),
        Machine("stalls in 25 %", partial(stalls, share=0.25)),
        Machine("stalls in 25 %, arms wait", partial(stalls, share=0.25, arms_wait=True)),
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
        Machine("hypervisor steal", partial(hypervisor_steal, is_reported=True)),
        Machine("hidden steal", partial(hypervisor_steal, is_reported=False)),
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
    return machines


# ---- the questions


@dataclass(frozen=True)
class Plan:
    """How a run is carried out."""

    name: str
    analyses: tuple[int, ...]  # numbers of processes after which the run is judged
    process_sd: float | None = None  # as `tuilab calibrate` measured it; None: never calibrated

    @property
    def processes(self) -> int:
        return self.analyses[-1]


@dataclass(frozen=True)
class Question:
    """A claim, and the true ratio of its arms."""

    plan: Plan
    operator: events.Operator
    bound: float
    true_ratio: float
    wrong: frozenset[Verdict]  # the verdicts that are false for this ratio

    @property
    def name(self) -> str:
        words = self.operator.replace("_", " ")
        return f"{self.plan.name}, {words} {self.bound:g}, true {self.true_ratio:.4g}"

    @property
    def base(self) -> int:
        """Return the arm that the controls repeat: the first arm within 1.4 times the fastest."""
        return OVER if self.true_ratio <= ABOUT_AS_FAST else UNDER


ABOUT_AS_FAST = 1.4
SIX = Plan("six repeats", (6,))
QUICK = Plan("quick", (1,))
CALIBRATED = Plan("quick, calibrated at 2 %", (1,), process_sd=0.02)
BUDGET = Plan("budget", (6, 8, 12, 16, 24, 40))
CLAIMS: list[tuple[events.Operator, float]] = [
    ("at_most", 1.1),
    ("at_least", 1.3),
    ("at_least", 100.0),
]


def list_questions() -> list[Question]:
    """Return the claims of each plan: at the bound, on its right side, and for equal arms."""
    questions = []
    for plan in (SIX, QUICK, CALIBRATED, BUDGET):
        for operator, bound in CLAIMS:
            # A ratio that equals the bound is on neither side, so every decision is wrong.
            questions.append(Question(plan, operator, bound, bound, DECISIONS))
        for operator, bound in CLAIMS:
            for factor in (1.05, 2.0):
                right = Verdict.REFUTED if operator == "at_most" else Verdict.SUPPORTED
                wrong = DECISIONS - {right}
                questions.append(Question(plan, operator, bound, factor * bound, wrong))
        no_difference = frozenset({Verdict.NO_DIFFERENCE})
        questions.append(Question(plan, "at_least", 1.3, 1.03, no_difference))
    return questions


# ---- from disturbances to records


@dataclass(frozen=True)
class Times:
    """The timed blocks of many processes: arrays of process and block."""

    entrants: Indices
    rounds: Indices  # of a block, alike in all processes
    wall_ns: Indices
    thread_ns: Indices
    is_disturbed: Flags
    loops: list[int]  # of an entrant
    waits: int  # of each block


def measure(machine: Machine, line: Timeline, true_ratio: float) -> Times:
    """Return the times that a comparison on this machine measures."""
    disturbance = machine.disturb(line)
    work_ratio = true_ratio / np.exp(disturbance.effect)
    loops = [LOOPS, round(LOOPS * work_ratio)]
    loops += [loops[line.base], loops[line.base]]
    work = np.ones(ENTRANTS)
    work[UNDER] = loops[UNDER] / (LOOPS * work_ratio)  # calls are whole
    work[AGAIN] = work[line.base]
    work[DELAYED] = 1.05 * work[line.base]

    cpu = work[line.entrants] * np.exp(disturbance.slowdown)
    wall = cpu + disturbance.away
    is_disturbed = disturbance.away > MARKED_SHARE * wall
    if disturbance.tick:
        cpu = read_clock(line, cpu, disturbance.tick)
        wall = read_clock(line, wall, disturbance.tick)

    timed = line.is_timed
    return Times(
        entrants=line.entrants[:, timed],
        rounds=line.rounds[timed],
        wall_ns=to_ns(wall[:, timed]),
        thread_ns=to_ns(cpu[:, timed]),
        is_disturbed=is_disturbed[:, timed],
        loops=loops,
        waits=int(disturbance.arms_wait),
    )


def read_clock(line: Timeline, lengths: Numbers, tick: float) -> Numbers:
    """Return lengths as a coarse clock shows them; each begins at a random moment of a tick."""
    begin = line.random.uniform(0, tick, lengths.shape)
    return tick * np.floor((begin + lengths) / tick)


def to_ns(blocks: Numbers) -> Indices:
    """Return lengths in nanoseconds, from lengths in blocks."""
    return np.rint(blocks * BLOCK_S * 1e9).astype(np.int64)


def start_run(question: Question) -> RunSummary:
    """Return the record of a run that has just begun."""
    identity = events.Identity(host="", boot="", pid=1, start=1)
    plan = question.plan
    started = events.RunStarted(
        format=1,
        run="",
        scenario="",
        topic="",
        title="",
        source_sha256="",
        params={},
        wall_ns=0,
        supervisor=identity,
        tuilab="",
        repeats=plan.processes,
        luck=plan.process_sd,
    )
    if len(plan.analyses) > 1:
        started.looks = list(plan.analyses)
    declared = events.ClaimDeclared(
        text="claim", over="over", under="under", op=question.operator, bound=question.bound
    )
    claims = {"claim": Claim(text="claim", declared=declared)}
    return RunSummary(run=started, claims=claims)


def add_process(summary: RunSummary, times: Times, process: int, repeat: int, base: int) -> None:
    """Add the blocks of one process to the record of a run, as one repeat."""
    writer = f"worker-{repeat}"
    worker_started = events.WorkerStarted(writer=writer, pid=1, start=1, repeat=repeat)
    worker_exited = events.WorkerExited(writer=writer, code=0)
    summary.workers[writer] = Worker(started=worker_started, exited=worker_exited)

    arms = ["over", "under"]
    loops = {"over": times.loops[OVER], "under": times.loops[UNDER]}
    started = events.RaceStarted(
        arms=arms, threads=1, device="cpu", loops=loops, base=arms[base], delay=0.05
    )
    summary.races.append((writer, started))

    blocks: list[list[Block]] = [[] for _ in range(ENTRANTS)]
    measured = zip(
        times.entrants[process].tolist(),
        times.rounds.tolist(),
        times.wall_ns[process].tolist(),
        times.thread_ns[process].tolist(),
        times.is_disturbed[process].tolist(),
        strict=True,
    )
    for entrant, round_number, wall_ns, thread_ns, is_disturbed in measured:
        calls = times.loops[entrant]
        block = Block(
            round=round_number,
            step_s=wall_ns / calls / 1e9,
            is_disturbed=is_disturbed,
            wall_ns=wall_ns,
            loops=calls,
            cpu_ns=thread_ns,
            thread_ns=thread_ns,
            waits=times.waits,
        )
        blocks[entrant].append(block)
    summary.blocks[writer, "over"] = blocks[OVER]
    summary.blocks[writer, "under"] = blocks[UNDER]
    summary.controls[writer, arms[base], "same"] = blocks[AGAIN]
    summary.controls[writer, arms[base], "delayed"] = blocks[DELAYED]
    summary.differences.append((writer, events.RaceFinished(arms=arms, is_same=True)))


# ---- verdicts


def count_verdicts(machine: Machine, question: Question, runs: int) -> Counter[str]:
    """Return how many runs on a machine end with each verdict."""
    subject = f"{machine.name}, {question.name}"
    random = np.random.default_rng(zlib.crc32(subject.encode()))
    processes = question.plan.processes
    line = draw_timeline(random, runs * processes, question.base)
    times = measure(machine, line, question.true_ratio)
    verdicts: Counter[str] = Counter()
    for run in range(runs):
        verdict = run_verdict(question, times, first_process=run * processes)
        verdicts[verdict] += 1
    return verdicts


def run_verdict(question: Question, times: Times, first_process: int) -> str:
    """Return the verdict of a run whose user stops it at the first decision."""
    summary = start_run(question)
    verdict = ""
    measured = 0
    for processes in question.plan.analyses:
        for repeat in range(measured, processes):
            add_process(summary, times, first_process + repeat, repeat, question.base)
        measured = processes
        (judgement,) = judge(summary)
        verdict = judgement.verdict
        if verdict in DECISIONS:
            break
    return verdict


def share_of(verdicts: Counter[str], words: frozenset[Verdict]) -> float:
    """Return the share of some verdicts among all, in percent."""
    count = sum(verdicts[word] for word in words)
    return 100 * count / verdicts.total()


# ---- the table


def rows(place: Path, *, runs: int) -> Iterator[Row]:
    """Yield the rows of each question."""
    for question in list_questions():
        counts = {}
        for machine in fair_machines():
            counts[machine.name] = count_verdicts(machine, question, runs)
        yield from summarise(question, counts)
        for machine in one_sided_machines():
            verdicts = count_verdicts(machine, question, runs)
            wrong = share_of(verdicts, question.wrong)
            yield Row(f"{question.name}: {machine.name}, wrong", f"% of {runs}", [wrong])


def summarise(question: Question, counts: dict[str, Counter[str]]) -> Iterator[Row]:
    """Yield the rows of the fair machines: the mean, and the worst machine with its name."""
    wrong = {}  # shares in percent, by the name of the machine
    decided = {}
    runs = 0
    for name, verdicts in counts.items():
        wrong[name] = share_of(verdicts, question.wrong)
        decided[name] = share_of(verdicts, DECISIONS)
        runs += verdicts.total()
    worst = max(wrong, key=lambda name: wrong[name])
    slowest = min(decided, key=lambda name: decided[name])
    unit = f"% of {runs}"
    yield Row(f"{question.name}: wrong", unit, [fmean(wrong.values())], goal="at most 5 %")
    yield Row(f"{question.name}: wrong at most", f"%, {worst}", [wrong[worst]], goal="at most 8 %")
    yield Row(f"{question.name}: decided", unit, [fmean(decided.values())])
    yield Row(f"{question.name}: decided at least", f"%, {slowest}", [decided[slowest]])


def main(words: Sequence[str]) -> None:
    runs = int(words[0]) if words else FULL["runs"]
    for row in rows(Path(), runs=runs):
        print(row_line(row), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
