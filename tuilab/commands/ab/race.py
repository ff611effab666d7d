"""Run one repeat of a comparison between the arms of a command.

An arm is a variant of the command, and runs in a fresh process. The order of the arms is drawn by
lot for each pair of repeats: the second repeat of a pair uses the order of the first in reverse.
The first arm runs once more as its own A/A control. If steps are timed, the time of an arm is the
mean of its steady steps.
"""

import os
import time
from hashlib import sha256
from pathlib import Path
from statistics import fmean

from tuilab.commands.ab.arm_amount import ArmAmount, amount_of, name_of, unit_of
from tuilab.commands.ab.step_time import cpu_of, helpers_of, most_steps, slowest, steady_of
from tuilab.commands.run_command import CommandEnd, how_it_ended, run_watched
from tuilab.commands.start_command import CannotStart
from tuilab.commands.step_parts import (
    BACKWARD,
    DATA,
    FORWARD,
    LOGGING,
    OPTIMIZER,
    REST,
    lacking,
    parts_of,
)
from tuilab.commands.step_sentences import ROOT
from tuilab.commands.watched import Lane
from tuilab.engine.messages import CommandOrder, WorkerResult
from tuilab.lab.races.sensors import SensorCounts, Sensors, is_robbed
from tuilab.record import events
from tuilab.record.finding_words import PROCESSES
from tuilab.record.journal.writer import Writer
from tuilab.record.order import order_of_round

# `rest_s` includes the forward and logging.
_PARTS = {
    DATA: "data_s",
    BACKWARD: "backward_s",
    OPTIMIZER: "optimizer_s",
    REST: "rest_s",
}


def race(
    command: CommandOrder, repeat: int, run_dir: Path, writer: str, journal: Writer
) -> tuple[WorkerResult, int]:
    """Run every arm once, and the first once more; return the worker's result and the exit code.

    Each arm is recorded as one block when it has ended. If an arm fails or cannot be measured, the
    rest does not run, and the result has the reason.
    """
    names = [arm.name for arm in command.arms]
    processes = len(names) + 1
    _declare(command, names, journal)
    settled: list[bool] = []
    learned: dict[str, list[float]] = {}
    dtypes: dict[str, str] = {}
    accounts: dict[str, dict[str, float]] = {}
    order = order_of_round(seed_of(run_dir.name), repeat, processes)
    with Sensors() as sensors:
        for slot, number in enumerate(order):
            # The last number means the A/A control, which runs the first arm again.
            is_control = number == len(names)
            arm = command.arms[0] if is_control else command.arms[number]
            label = f"{arm.name} {events.AGAIN}" if is_control else arm.name
            journal.append(events.Progressed(done=slot, total=processes, unit=PROCESSES))
            marks = run_dir / f"marks-{writer}-{slot}"
            readings_before = sensors.read()
            began_ns = time.perf_counter_ns()
            try:
                ended = run_watched(command, marks, journal, arm, label)
            except CannotStart as problem:
                return WorkerResult(error=f"arm {arm.name}: {problem}"), problem.code
            counts = sensors.read().since(readings_before)
            took_ns = time.perf_counter_ns() - began_ns
            amount = amount_of(command.measure, ended)
            failure = how_it_ended(ended, is_seen=False) or amount.lacks
            if failure:
                return WorkerResult(error=f"arm {arm.name}: {failure}"), abs(ended.code) or 1
            settled.append(amount.is_settled)
            learned[label] = ended.watched.first_roots()
            dtypes[label] = ended.watched.dtype()
            block = make_block(arm.name, slot, amount, ended)
            if is_control:
                block.control = "same"
            add_sensor_counts(block, counts, took_ns)
            journal.append(block)
            if not is_control:
                accounts[arm.name] = account_of(ended)
    finished = events.RaceFinished(
        arms=names, is_settled=all(settled), learned=learned, dtypes=dtypes, accounts=accounts
    )
    journal.append(finished)
    return WorkerResult(), 0


def seed_of(run: str) -> int:
    """Return the seed for the order of a run's arms: a hash of its name, which was drawn by lot."""
    return int.from_bytes(sha256(run.encode()).digest()[:4], "big")


def _declare(command: CommandOrder, names: list[str], journal: Writer) -> None:
    """Record the claims about the arms, and that their comparison begins."""
    for claim in command.claims:
        journal.append(
            events.ClaimDeclared(
                text=claim.text,
                key=claim.key,
                over=claim.over,
                under=claim.under,
                op="at_least",
                bound=claim.bound,
            )
        )
    started = events.RaceStarted(
        arms=names,
        threads=0,  # each arm decides that itself
        device=events.OWN_PROCESS,
        loops=dict.fromkeys(names, 1),
        base=names[0],
        has_instances=True,
    )
    if command.has_guard and command.watch == "all":
        started.guard = ROOT
    started.measure = name_of(command.measure)
    started.unit = unit_of(command.measure)
    journal.append(started)


def make_block(arm: str, slot: int, amount: ArmAmount, ended: CommandEnd) -> events.BlockTimed:
    """Return the record of one process, without the counts of the sensors."""
    steps = most_steps(ended) or 1
    block = events.BlockTimed(
        arm=arm,
        round=0,
        slot=slot,
        loops=1,
        wall_ns=amount.amount,
        cpu_ns=round(ended.cpu_s / steps * 1e9),
    )
    if amount.cpu:
        block.thread_ns = amount.cpu.thread_ns
        block.cpu_ns = amount.cpu.whole_ns
        block.waited_ns = amount.cpu.waited_ns
        block.steps = amount.cpu.steps
        block.disturbed_steps = amount.cpu.disturbed_steps
        block.helped_by = helpers_of(ended)
    return block


def add_sensor_counts(block: events.BlockTimed, counts: SensorCounts, took_ns: int) -> None:
    """Add what disturbed the process to its record: pressure, stolen time, throttling."""
    cores = os.cpu_count() or 1
    block.pressure_us = counts.pressure_us
    block.steal_ticks = counts.steal_ticks
    block.throttled = counts.throttled
    block.is_disturbed = bool(counts.throttled) or is_robbed(counts.steal_ticks, took_ns, cores)


def account_of(ended: CommandEnd) -> dict[str, float]:
    """Return the account of an arm: seconds and counts per step, and totals.

    If several processes step, the values per step are those of the slowest process. A part that was
    not seen is left out.
    """
    account: dict[str, float] = {}
    lane = slowest(ended)
    if lane:
        account |= _account_of_steps(lane)
    account["cpu_s"] = ended.cpu_s
    account["peak_bytes"] = float(ended.peak_bytes)
    return account


def _account_of_steps(lane: Lane) -> dict[str, float]:
    """Return the account of the steady steps of a process, which must have some.

    The rest includes the forward and logging. A part that was not seen is left out.
    """
    steady_steps = steady_of(lane)
    assert steady_steps is not None
    timed_steps = [step for step in lane.last if step.took_ns]
    steps = timed_steps[-steady_steps.count :]
    account = {"step_s": steady_steps.step_s, "steps": float(steady_steps.count)}
    cpu = cpu_of(lane, steady_steps)
    if cpu:
        account["step_cpu_s"] = cpu.whole_ns / 1e9
    parts_of_steps = [parts_of(step) for step in steps if step.has_parts]
    for parts in parts_of_steps:
        parts[REST] += parts[FORWARD] + parts[LOGGING]
    lacks = lacking(lane.steps)
    for part, key in _PARTS.items():
        if parts_of_steps and part not in lacks:
            account[key] = fmean(parts[part] for parts in parts_of_steps) / 1e9
    account["backwards"] = fmean(step.backwards for step in steps)
    account["optimizer_steps"] = fmean(step.optimized for step in steps)
    account["skipped_steps"] = fmean(step.skipped for step in steps)
    return account
