"""Simulated runs that differ in all that a verdict about time may depend on.

The times come from benchmarks/simulated_verdicts.py. Then each run is changed in one or several
ways: repeats fail, blocks are disturbed, a control is missing, the arms are commands, and so on.
Everything is drawn from fixed seeds, so that each run is the same in every process.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from statistics import fmean

import msgspec
import numpy as np

from benchmarks.simulated_verdicts import (
    add_process,
    draw_timeline,
    fair_machines,
    list_questions,
    measure,
    one_sided_machines,
    start_run,
)
from tuilab.record import events
from tuilab.record.summary import RunSummary
from tuilab.record.summary_parts import Block, Claim, GpuState, Worker

REPEATS = (6, 8, 9, 12)  # of runs with several repeats
GPU = "abc"


@dataclass
class Change:
    """A run that is changed, and what the change is drawn from."""

    run: RunSummary
    draw: random.Random

    def blocks(self) -> Iterator[list[Block]]:
        return chain(self.run.blocks.values(), self.run.controls.values())

    def blocks_of(self, arm: str) -> list[list[Block]]:
        return [blocks for (_, name), blocks in self.run.blocks.items() if name == arm]

    def controls_of(self, control: str) -> list[list[Block]]:
        return [blocks for (_, _, name), blocks in self.run.controls.items() if name == control]

    def declare(self, name: str, claim: events.ClaimDeclared) -> None:
        self.run.claims[name] = Claim(text=name, declared=msgspec.structs.replace(claim, text=name))

    def declared(self) -> events.ClaimDeclared:
        claim = self.run.claims["claim"].declared
        assert claim is not None
        return claim

    def start_races(self, **fields: object) -> None:
        """Let the races begin with other facts."""
        races = [
            (worker, msgspec.structs.replace(race, **fields)) for worker, race in self.run.races
        ]
        self.run.races[:] = races

    def finish_races(self, **fields: object) -> None:
        """Let the races end with other facts."""
        races = [
            (worker, msgspec.structs.replace(race, **fields))
            for worker, race in self.run.differences
        ]
        self.run.differences[:] = races


def simulated_runs(count: int) -> Iterator[RunSummary]:
    """Yield so many runs: machines and questions in turn, two of three runs with changes."""
    machines = fair_machines() + one_sided_machines()
    questions = list_questions()
    draw = random.Random(7)
    for number in range(count):
        question = questions[7 * number % len(questions)]
        processes = 1 if question.plan.processes == 1 else draw.choice(REPEATS)
        line = draw_timeline(np.random.default_rng(number), processes, question.base)
        times = measure(machines[number % len(machines)], line, question.true_ratio)
        run = start_run(question)
        for repeat in range(processes):
            add_process(run, times, repeat, repeat, question.base)
        if draw.random() < 2 / 3:
            for change in draw.sample(CHANGES, draw.choice([1, 1, 2, 3])):
                change(Change(run, draw))
        yield run


# ---- times


def scale(block: Block, factor: float) -> None:
    """Let a block take so many times as long, by every clock."""
    block.step_s *= factor
    block.wall_ns = max(1, round(block.wall_ns * factor))
    if block.thread_ns:
        block.thread_ns = max(1, round(block.thread_ns * factor))
        block.cpu_ns = max(1, round(block.cpu_ns * factor))


def shrink(blocks: list[Block], share: float, center: float) -> None:
    """Leave so much of the variation of some blocks, around another mean."""
    mean = fmean(block.step_s for block in blocks)
    for block in blocks:
        scale(block, center / block.step_s * (1 + share * (block.step_s - mean) / mean))


def vary_less(change: Change) -> None:
    share = change.draw.choice([0.1, 0.5])
    for blocks in change.run.blocks.values():
        if blocks:
            shrink(blocks, share, fmean(block.step_s for block in blocks))


def bring_close(change: Change) -> None:
    """Bring the arms close to each other or to the margin, with little variation."""
    ratio = change.draw.choice([1.0, 1.003, 0.995, 1.015, 1.08, 0.9])
    share = change.draw.choice([0.05, 0.2, 0.5])
    under = list(chain(*change.blocks_of("under")))
    if not under:
        return
    center = fmean(block.step_s for block in under)
    for blocks in change.blocks():
        if blocks:
            shrink(blocks, share, center)
    for block in chain(*change.blocks_of("over")):
        scale(block, ratio)
    for block in chain(*change.controls_of("delayed")):
        scale(block, 1.05)


def drift(change: Change) -> None:
    """Let the upper arm become slower in the course of a race, in all processes or in some."""
    step = change.draw.choice([0.0005, 0.001, 0.003, 0.01])
    share = change.draw.choice([1.0, 0.3])
    for blocks in change.blocks_of("over"):
        if change.draw.random() < share:
            for block in blocks:
                scale(block, 1 + step * block.round)


def slow_down_some_blocks(change: Change) -> None:
    blocks = change.draw.choice(change.blocks_of("over"))
    factor = change.draw.choice([1.1, 1.5, 4.0, 1e-5])
    for block in change.draw.sample(blocks, min(len(blocks), change.draw.choice([1, 99]))):
        scale(block, factor)


def bias_a_control(change: Change) -> None:
    factor = 1 + change.draw.choice([0.005, 0.01, 0.02, 0.05, 0.1])
    for block in chain(*change.controls_of("same")):
        scale(block, factor)


def hide_the_delay(change: Change) -> None:
    factor = 1 - change.draw.choice([0.01, 0.025, 0.05])
    for block in chain(*change.controls_of("delayed")):
        scale(block, factor)


# ---- blocks


def disturb(change: Change) -> None:
    shares = [(0.02, 0.02), (0.1, 0.1), (0.2, 0.2), (0.5, 0.5), (0.05, 0.6), (0.4, 0.1), (1.0, 1.0)]
    over, under = change.draw.choice(shares)
    for arm, share in (("over", over), ("under", under)):
        for block in chain(*change.blocks_of(arm)):
            block.is_disturbed = change.draw.random() < share


def keep_few_rounds(change: Change) -> None:
    rounds = change.draw.choice([2, 3, 4])
    for blocks in change.blocks():
        blocks[:] = [block for block in blocks if block.round < rounds]


def lose_blocks(change: Change) -> None:
    for blocks in change.blocks():
        blocks[:] = [block for block in blocks if change.draw.random() < 0.8]


def add_warm_up(change: Change) -> None:
    for blocks in change.run.blocks.values():
        for block in blocks[:3]:
            block.is_warmup = True
        if change.draw.random() < 0.5 and len(blocks) > 5:
            blocks[4].is_rerun = True


def lose_thread_time(change: Change) -> None:
    for block in chain(*change.blocks()):
        block.thread_ns = None


def wait_by_itself(change: Change) -> None:
    share = change.draw.choice([0.05, 0.3])
    for block in chain(*change.blocks()):
        block.waits = int(change.draw.random() < share)


def use_other_threads(change: Change) -> None:
    factor = change.draw.choice([1.005, 1.02])
    for block in chain(*change.blocks()):
        block.cpu_ns = int((block.thread_ns or 0) * factor)


# ---- repeats


def fail_repeats(change: Change) -> None:
    """Let repeats fail: some after their race was measured, some before."""
    workers = change.run.workers
    failed = change.draw.sample(sorted(workers), min(len(workers), change.draw.choice([1, 2, 3])))
    for name in failed:
        workers[name].exited = events.WorkerExited(writer=name, code=1)
    change.run.differences[:] = [
        (worker, race) for worker, race in change.run.differences if worker not in failed
    ]
    if change.draw.random() < 0.5:
        name = f"worker-{len(workers)}"
        started = events.WorkerStarted(writer=name, pid=1, start=1, repeat=len(workers))
        workers[name] = Worker(started=started, exited=events.WorkerExited(writer=name, code=3))


def stop_a_repeat(change: Change) -> None:
    name = change.draw.choice(sorted(change.run.workers))
    change.run.workers[name].is_stopped = True


def plan_more_repeats(change: Change) -> None:
    assert change.run.run is not None
    repeats = len(change.run.workers)
    if repeats > 1:
        change.run.run.repeats = change.draw.choice([repeats, repeats + 1, repeats + 3, 12, 40])
    change.run.is_budget_spent = change.draw.random() < 0.3


def calibrate(change: Change) -> None:
    assert change.run.run is not None
    change.run.run.luck = change.draw.choice([None, 0.003, 0.01, 0.03, 0.1])


def lose_controls(change: Change) -> None:
    control = change.draw.choice(["same", "delayed"])
    keys = [key for key in change.run.controls if key[2] == control]
    for key in change.draw.sample(keys, min(len(keys), change.draw.choice([1, 99]))):
        del change.run.controls[key]


def compute_something_else(change: Change) -> None:
    change.finish_races(is_same=False, difference="under does not compute what over does")


def record_much(change: Change) -> None:
    change.finish_races(record_ns=change.draw.choice([10_000, 40_000, 60_000]), is_settled=False)
    records = change.draw.choice([0, 1, 3])
    for block in chain(*change.blocks()):
        block.records = records


# ---- claims


def claim_more(change: Change) -> None:
    for number in range(change.draw.choice([1, 2, 4])):
        over, under = change.draw.choice([("over", "under"), ("under", "over")])
        op: events.Operator = change.draw.choice(["at_least", "at_most"])
        bound = change.draw.choice([0.9, 1.0, 1.02, 1.05, 1.1, 1.3, 2.0, 100.0])
        margin = change.draw.choice([0.03, 0.03, 0.1])
        claim = events.ClaimDeclared(
            text="", over=over, under=under, op=op, bound=bound, margin=margin
        )
        change.declare(f"claim-{number}", claim)


def claim_otherwise(change: Change) -> None:
    claim = change.declared()
    bound = change.draw.choice([claim.bound, -1.0, 0.0, 1.0])
    confidence = change.draw.choice([0.9, 0.99, 0.5, 1.0, 0.3])
    margin = change.draw.choice([0.03, 0.0, 0.5])
    change.declare(
        "claim", msgspec.structs.replace(claim, bound=bound, confidence=confidence, margin=margin)
    )


def claim_late(change: Change) -> None:
    change.run.claims["claim"].is_late = True


def need_cores(change: Change) -> None:
    change.declare("claim", msgspec.structs.replace(change.declared(), cores=4))
    change.run.cores[4] = [change.draw.choice([3.1, 3.3, 3.9])]


# ---- other kinds of arms


def race_commands(change: Change) -> None:
    """Let the arms be commands, with one block a process."""
    assert change.run.run is not None
    change.run.run.command = ["python"]
    change.start_races(device="process", delay=0.0)
    for key in [key for key in change.run.controls if key[2] == "delayed"]:
        del change.run.controls[key]
    disturbed = change.draw.choice([0.01, 0.04, 0.06, 0.3, 0.9])
    waited = change.draw.choice([0.0, 0.004, 0.008, 0.02])
    whole = change.draw.choice([1.0, 1.0, 1.008, 1.03])
    helper = change.draw.choice(["", "", "", "", "2 workers"])
    for blocks in change.blocks():
        del blocks[1:]
        for block in blocks:
            block.steps = 100
            block.disturbed_steps = min(100, round(100 * disturbed * change.draw.uniform(0.5, 1.5)))
            block.thread_ns = block.thread_ns or block.wall_ns
            block.cpu_ns = round(block.thread_ns * whole)
            block.waited_ns = round(block.thread_ns * waited)
            block.helped_by = helper
    slower = change.draw.choice([1.0, 1.0, 1.04, 1.2])
    for block in chain(*change.blocks_of("under")):
        block.wall_ns = round(block.wall_ns * slower)


def race_a_third_arm(change: Change) -> None:
    """Let the base be a third arm, which is in no claim."""
    base_of_worker = {worker: race.base for worker, race in change.run.races}
    for worker, base in base_of_worker.items():
        blocks = change.run.blocks.get((worker, base), [])
        change.run.blocks[worker, "third"] = [replace(block) for block in blocks]
        for control in ("same", "delayed"):
            controlled = change.run.controls.pop((worker, base, control), None)
            if controlled is not None:
                change.run.controls[worker, "third", control] = controlled
    change.start_races(arms=["over", "under", "third"], base="third")
    change.finish_races(arms=["over", "under", "third"])


def race_curves(change: Change) -> None:
    """Let the arms be judged by the last value of a curve."""
    assert change.run.run is not None
    change.run.run.command = ["python"]
    change.start_races(device="process", measure="loss", guard=change.draw.choice(["", "loss"]))
    has_one_seed = change.draw.random() < 0.5
    for blocks in change.run.blocks.values():
        del blocks[1:]
        for block in blocks:
            if has_one_seed:
                block.wall_ns = 1000
                block.step_s = 1e-6
    learned = {"over": [1.0, 0.5], "under": [1.0, change.draw.choice([0.5, 0.501, 0.9])]}
    dtypes = {"over": "float32", "under": change.draw.choice(["float32", "bfloat16"])}
    change.finish_races(learned=learned, dtypes=dtypes)


def race_on_a_gpu(change: Change) -> None:
    """Let the race run on a GPU, whose clocks are read in the middle of most blocks."""
    change.start_races(device="cuda", luck=change.draw.choice([None, 0.01]), uuid=GPU)
    change.finish_races(gpu_ns={"over": 1000, "under": 500_000})
    submitted = change.draw.choice([0.3, 0.3, 0.99])
    throttled = change.draw.choice([0.0, 0.05, 0.2, 0.5])
    now = 0
    for block in chain(*change.run.blocks.values()):
        block.submitted_ns = round(block.wall_ns * submitted)
        now += 2 * block.wall_ns + 1000
        block.t = now
        if change.draw.random() < 0.95:
            is_throttled = change.draw.random() < throttled
            change.run.gpu_states.append(
                _gpu_state(change.draw, now - block.wall_ns // 2, is_throttled=is_throttled)
            )


def _gpu_state(draw: random.Random, at: int, *, is_throttled: bool) -> GpuState:
    if not is_throttled:
        return GpuState(at, f"GPU-{GPU}", throttle_mask=0, sm_mhz=1000.0, foreign_percent=0.0)
    return GpuState(
        at,
        f"GPU-{GPU}",
        throttle_mask=draw.choice([0x4, 0x8, 0x20]),
        sm_mhz=draw.choice([500.0, 930.0, 1000.0]),
        foreign_percent=draw.choice([None, 0.0, 0.0, 30.0]),
    )


CHANGES: list[Callable[[Change], None]] = [
    *[bring_close] * 4,
    *[bias_a_control, race_a_third_arm, race_commands] * 3,
    *[claim_more, disturb, drift, hide_the_delay, race_on_a_gpu, vary_less] * 2,
    add_warm_up,
    calibrate,
    claim_late,
    claim_otherwise,
    compute_something_else,
    fail_repeats,
    keep_few_rounds,
    lose_blocks,
    lose_controls,
    lose_thread_time,
    need_cores,
    plan_more_repeats,
    race_curves,
    record_much,
    slow_down_some_blocks,
    stop_a_repeat,
    use_other_threads,
    wait_by_itself,
]
