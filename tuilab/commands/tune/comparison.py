"""One repeat of a comparison in a tuning: every arm once, and the base twice, in fresh processes.

The order of the processes is drawn by lot. A treatment whose process fails is out; the others go
on.
"""

import time
from typing import NamedTuple

from tuilab.commands.ab.arm_amount import step_time
from tuilab.commands.ab.race import account_of, add_sensor_counts, make_block, seed_of
from tuilab.commands.run_command import was_stopped
from tuilab.commands.start_command import CannotStart
from tuilab.commands.step_sentences import ROOT
from tuilab.commands.tune import limits
from tuilab.commands.tune.session import TuningSession
from tuilab.commands.tune.trial import Trial
from tuilab.engine.messages import CommandArm, WorkerResult
from tuilab.lab.races.sensors import Sensors
from tuilab.record import events
from tuilab.record.order import order_of_round


class RacedArm(NamedTuple):
    """An arm of a comparison; the claims are about it and other arms."""

    arm: CommandArm
    learns: events.Learning
    claims: list[events.ClaimDeclared]


class Round:
    """One repeat of a stage; `turn` counts the repeats of that stage."""

    def __init__(self, session: TuningSession, stage: str, arms: list[RacedArm], turn: int) -> None:
        assert session.summary.tuning.plan is not None
        self._session = session
        self._stage = stage
        self._arms = [RacedArm(CommandArm(name=limits.BASE), "same", []), *arms]
        self._turn = turn
        self._plan = session.summary.tuning.plan
        self._result = events.RaceFinished(arms=[], is_settled=True)

    def run(self) -> tuple[WorkerResult, int]:
        """Run the processes; return the result and the exit code.

        If the unchanged script fails, that is an error, and the tuning ends.
        """
        session = self._session
        session.enter(self._stage)
        names = [raced.arm.name for raced in self._arms]
        self._declare(names)
        processes = len(names) + 1
        failed: set[str] = set()
        order = order_of_round(seed_of(session.run_dir.name), self._turn, processes)
        with Sensors() as sensors:
            for slot, number in enumerate(order):
                # The last number means the A/A control, which runs the base again.
                is_control = number == len(names)
                raced = self._arms[0] if is_control else self._arms[number]
                session.report_progress(slot, processes, self._stage)
                try:
                    trial = self._run_arm(raced, slot, sensors, is_control=is_control)
                except CannotStart as problem:
                    return WorkerResult(error=str(problem)), problem.code
                if was_stopped():
                    return WorkerResult(), 0
                if trial.outcome and raced.arm.name == limits.BASE:
                    error = f"the unchanged script: {trial.why}"
                    return WorkerResult(error=error), abs(trial.ended.code) or 1
                if trial.outcome:
                    failed.add(raced.arm.name)
                    self._end_treatment(raced, trial)
        session.report_progress(processes, processes, self._stage)
        self._result.arms = [name for name in names if name not in failed]
        session.journal.append(self._result)
        return WorkerResult(), 0

    def _declare(self, names: list[str]) -> None:
        """Record the claims, and that the comparison begins."""
        session = self._session
        for raced in self._arms:
            for claim in raced.claims:
                session.journal.append(claim)
        session.journal.append(
            events.RaceStarted(
                arms=names,
                threads=0,  # each arm decides that itself
                device=events.OWN_PROCESS,
                loops=dict.fromkeys(names, 1),
                base=limits.BASE,
                has_instances=True,
                guard=ROOT,
                stage=self._stage,
                learns={raced.arm.name: raced.learns for raced in self._arms},
            )
        )

    def _run_arm(self, raced: RacedArm, slot: int, sensors: Sensors, *, is_control: bool) -> Trial:
        """Run one process, and record what it measured, if it measured anything."""
        session = self._session
        name = raced.arm.name
        label = f"{name} {events.AGAIN}" if is_control else name
        before = sensors.read()
        began_ns = time.perf_counter_ns()
        trial = session.run(
            raced.arm,
            steps=self._plan.steps,
            limit_s=session.limit_s(self._plan.process_s),
            label=label,
        )
        if trial.outcome or was_stopped():
            return trial
        counts = sensors.read().since(before)
        amount = step_time(trial.ended)
        block = make_block(name, slot, amount, trial.ended)
        if is_control:
            block.control = "same"
        add_sensor_counts(block, counts, time.perf_counter_ns() - began_ns)
        session.journal.append(block)
        watched = trial.ended.watched
        self._result.learned[label] = watched.first_treated_roots()
        self._result.dtypes[label] = watched.dtype()
        if not is_control:
            self._result.accounts[name] = account_of(trial.ended)
        if not amount.is_settled:
            self._result.is_settled = False
        return trial

    def _end_treatment(self, raced: RacedArm, trial: Trial) -> None:
        """Record that a treatment is out of the comparison, and that its claims have no verdict."""
        session = self._session
        name = raced.arm.name
        session.journal.append(
            events.TreatmentTried(
                arm=name, outcome=trial.outcome, why=trial.why, peak_bytes=trial.peak_bytes or None
            )
        )
        for claim in raced.claims:
            session.record_not_testable(claim.text, claim.key, trial.outcome, trial.why)
