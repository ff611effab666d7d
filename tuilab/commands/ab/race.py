"""Run one repeat of a comparison between the arms of a command.

Each arm runs in a fresh process. The order of the arms is drawn by lot for each pair of repeats:
the second repeat of a pair uses the order of the first in reverse. The first arm runs once more as
its own A/A control. If steps are timed, the time of an arm is the mean of its steady steps.
"""

import os
import time
from hashlib import sha256
from pathlib import Path
from statistics import fmean

from tuilab.commands.ab.arm_amount import ArmAmount, measured, name_of, unit_of
from tuilab.commands.ab.step_time import cpu_of, helpers_of, slowest, steady_of
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
from tuilab.commands.watched import ROOT, Lane
from tuilab.engine.messages import CommandOrder, WorkerResult
from tuilab.lab.races.sensors import SensorCounts, Sensors, is_robbed
from tuilab.record import events
from tuilab.record.finding_words import PROCESSES
from tuilab.record.journal.writer import Writer
from tuilab.record.order import order_of_round

# `rest_s` includes the forward and logging.
_NAMES = {
    DATA: "data_s",
    BACKWARD: "backward_s",
    OPTIMIZER: "optimizer_s",
    REST: "rest_s",
}


def race(
    command: CommandOrder, repeat: int, run_dir: Path, writer: str, journal: Writer
) -> tuple[WorkerResult, int]:
    """Run every arm once, and the first once more; return the worker's result and the exit code."""
    names = [arm.name for arm in command.arms]
    _declare(command, names, journal)
    settled: list[bool] = []
    learned: dict[str, list[float]] = {}
    dtypes: dict[str, str] = {}
    accounts: dict[str, dict[str, float]] = {}
    with Sensors() as sensors:
        for slot, number in enumerate(
            order_of_round(seed_of(run_dir.name), repeat, len(names) + 1)
        ):
            control: events.Control = "same" if number == len(names) else ""
            arm = command.arms[0 if control else number]
            told_as = f"{arm.name} {events.AGAIN}" if control else arm.name
            journal.append(events.Progressed(done=slot, total=len(names) + 1, unit=PROCESSES))
            readings_before, began = sensors.read(), time.perf_counter_ns()
            try:
                ended = run_watched(
                    command, run_dir / f"marks-{writer}-{slot}", journal, arm, told_as
                )
            except CannotStart as problem:
                return WorkerResult(error=f"arm {arm.name}: {problem}"), problem.code
            counts, took_ns = sensors.read().since(readings_before), time.perf_counter_ns() - began
            amount = measured(command.measure, ended)
            if failure := how_it_ended(ended, is_seen=False) or amount.lacks:
                return WorkerResult(error=f"arm {arm.name}: {failure}"), abs(ended.code) or 1
            settled.append(amount.is_settled)
            learned[told_as] = ended.watched.first_roots()
            dtypes[told_as] = ended.watched.dtype()
            journal.append(_block(arm.name, slot, control, amount, ended, counts, took_ns))
            if not control:
                accounts[arm.name] = account_of(ended)
    done = events.RaceFinished(
        arms=names, is_settled=all(settled), learned=learned, dtypes=dtypes, accounts=accounts
    )
    journal.append(done)
    return WorkerResult(), 0


def seed_of(run: str) -> int:
    """Return the seed for the order of a run's arms: a hash of its name, which was drawn by lot."""
    return int.from_bytes(sha256(run.encode()).digest()[:4], "big")


def _declare(command: CommandOrder, names: list[str], journal: Writer) -> None:
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
        threads=0,
        device="process",
        loops=dict.fromkeys(names, 1),
        base=names[0],
        has_instances=True,
    )
    started.guard = ROOT if command.has_guard and command.watch == "all" else ""
    started.measure, started.unit = name_of(command.measure), unit_of(command.measure)
    journal.append(started)


def _block(
    arm: str,
    slot: int,
    control: events.Control,
    amount: ArmAmount,
    ended: CommandEnd,
    counts: SensorCounts,
    took_ns: int,
) -> events.BlockTimed:
    steps = max((lane.count for lane in ended.watched.lanes.values()), default=0) or 1
    block = events.BlockTimed(
        arm=arm,
        round=0,
        slot=slot,
        loops=1,
        wall_ns=amount.amount,
        cpu_ns=round(ended.cpu_s / steps * 1e9),
        control=control,
    )
    if amount.cpu:
        block.thread_ns, block.cpu_ns, block.waited_ns = (
            amount.cpu.thread_ns,
            amount.cpu.whole_ns,
            amount.cpu.waited_ns,
        )
        block.steps, block.disturbed_steps = amount.cpu.steps, amount.cpu.disturbed_steps
        block.helped_by = helpers_of(ended)
    block.pressure_us, block.steal_ticks, block.throttled = (
        counts.pressure_us,
        counts.steal_ticks,
        counts.throttled,
    )
    block.is_disturbed = bool(counts.throttled) or is_robbed(
        counts.steal_ticks, took_ns, os.cpu_count() or 1
    )
    return block


def account_of(ended: CommandEnd) -> dict[str, float]:
    """Return the account of an arm: seconds and counts per step, and totals.

    If several processes step, the values per step are those of the slowest process. A part that was
    not seen is left out.
    """
    whole = {"cpu_s": ended.cpu_s, "peak_bytes": float(ended.peak_bytes)}
    lane = slowest(ended)
    return {**_of_steps(lane), **whole} if lane else whole


def _of_steps(lane: Lane) -> dict[str, float]:
    steady = steady_of(lane)
    assert steady is not None
    steps = [step for step in lane.last if step.took_ns][-steady.count :]
    account = {"step_s": steady.step_s, "steps": float(steady.count)}
    if cpu := cpu_of(lane, steady):
        account["step_cpu_s"] = cpu.whole_ns / 1e9
    lacks = lacking(lane.steps)
    parts = [parts_of(step) for step in steps]
    for part in parts:
        part[REST] += part[FORWARD] + part[LOGGING]
    for name, words in _NAMES.items():
        if name not in lacks:
            account[words] = fmean(part[name] for part in parts) / 1e9
    counts = {"backwards": "backwards", "optimized": "optimizer_steps", "skipped": "skipped_steps"}
    for name, words in counts.items():
        account[words] = fmean(getattr(step, name) for step in steps)
    return account
