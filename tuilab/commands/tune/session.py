"""What one worker of a tuning works with: its order, the record so far, and the time that is left.

A tuning has one worker after another. Each reads the record of the run, and does the next part.
"""

import time
from pathlib import Path

import msgspec

from tuilab.commands.tune import limits
from tuilab.commands.tune.files import move_words, restore
from tuilab.commands.tune.trial import Trial, run_trial
from tuilab.engine.messages import TUNE_COPY, CommandArm, CommandOrder, TuneOrder
from tuilab.record import events
from tuilab.record.journal.writer import Writer
from tuilab.record.states import RunState
from tuilab.record.summary import RunSummary
from tuilab.record.tuning.outcomes import Outcome


class TuningSession:
    """The part of a tuning that one worker does."""

    def __init__(
        self,
        command: CommandOrder,
        run_dir: Path,
        writer: str,
        journal: Writer,
        summary: RunSummary,
    ) -> None:
        assert command.tune is not None
        self.order: TuneOrder = command.tune
        self.run_dir = run_dir
        self.journal = journal
        self.summary = summary
        self.folder = command.folder  # the user's own
        self.command = command
        if self.order.is_in_copy:
            copy = str(self.copy)
            words = move_words(command.words, command.folder, copy)
            self.command = msgspec.structs.replace(command, folder=copy, words=words)
        self._writer = writer
        self._trials = 0
        self._began_ns = _start_of(summary)

    @property
    def copy(self) -> Path:
        """The copy of the user's folder, if the script runs in one."""
        return self.run_dir / TUNE_COPY

    @property
    def elapsed_s(self) -> float:
        """How much of the budget is spent."""
        return (time.monotonic_ns() - self._began_ns) / 1e9

    @property
    def left_s(self) -> float:
        return self.order.budget_s - self.elapsed_s

    def enter(self, stage: str) -> None:
        self.journal.append(events.StageEntered(name=stage))

    def report_progress(self, done: int, total: int, stage: str) -> None:
        unit = f"processes, {stage}"
        self.journal.append(events.Progressed(done=done, total=total, unit=unit))

    def run(
        self,
        arm: CommandArm,
        *,
        steps: int,
        limit_s: float,
        label: str = "",
        wants_facts: bool = False,
    ) -> Trial:
        """Run an arm in a process of its own; raise CannotStart if that is impossible.

        In a copy, files that an earlier process has changed or deleted are first restored.
        """
        if self.order.is_in_copy:
            restore(self.folder, self.copy, self.run_dir.parent)
        marks = self.run_dir / f"marks-{self._writer}-{self._trials}"
        self._trials += 1
        return run_trial(
            self.command,
            arm,
            marks,
            self.journal,
            label=label or arm.name,
            steps=steps,
            limit_s=limit_s,
            wants_facts=wants_facts,
        )

    def record_end_of(self, treatment: events.TreatmentPlanned, outcome: str, why: str) -> None:
        """Record that a treatment has no verdict, if its outcome says why it cannot have one.

        A treatment that is not compared makes no claim.
        """
        if outcome and outcome != Outcome.NOT_COMPARED:
            self.record_not_testable(claim_text(treatment), treatment.arm, outcome, why)

    def record_not_testable(self, text: str, key: str, outcome: str, why: str) -> None:
        """Record that a claim has no verdict, because of this outcome of its treatment."""
        needs = f"{outcome}: {why}"
        self.journal.append(events.ClaimNotTestable(text=text, key=key, needs=needs))

    def limit_s(self, process_s: float) -> float:
        """Return how long a process may take, if one of the unchanged script took `process_s`."""
        overtime_s = min(limits.OVERTIME_S, limits.OVERTIME_SHARE * self.order.budget_s)
        return limits.OVERTIME_FACTOR * process_s + overtime_s


def _start_of(summary: RunSummary) -> int:
    """Return when the run began to run, on the monotonic clock; now, if that is not recorded."""
    for state in summary.states:
        if state.state == RunState.RUNNING:
            return state.t
    return time.monotonic_ns()


def arm_of(planned: events.TreatmentPlanned) -> CommandArm:
    """Return the arm that tries a treatment."""
    return CommandArm(
        name=planned.arm,
        env=planned.env,
        prefix=planned.prefix,
        treatments=planned.treatments,
    )


def claim_text(planned: events.TreatmentPlanned) -> str:
    """Return the claim of a treatment in words."""
    return f"{planned.title} is faster than the unchanged script"
