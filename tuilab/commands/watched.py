"""Record what the processes of a command mark and print: curves, and where a step's time goes.

A mark is an event, such as a step, that the watcher in a process writes to a file. A lane has the
steps and curves of one process. An arm is a variant of a command in a comparison; the curves of a
lane have a label that is also called arm.
"""

import math
import time
from array import array
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from tuilab.commands.alarm_watch import Alarms
from tuilab.commands.cpu.contention import Contention
from tuilab.commands.cpu.core_time import CoreTimes
from tuilab.commands.cpu.core_use import granted_cores
from tuilab.commands.cpu.helpers import Helpers
from tuilab.commands.facts import device_use
from tuilab.commands.facts.exchange import GradientExchange, MeanStep
from tuilab.commands.facts.memory_shortage import Shortage, read_shortages, records_of
from tuilab.commands.facts.rank_order import describe_ranks
from tuilab.commands.facts.treated import (
    ProcessTreatments,
    TreatedReport,
    merge_reports,
    switched_off,
)
from tuilab.commands.marks import Mark, MarkedProcess, MarksFolder
from tuilab.commands.next_step import Loading, loading_of
from tuilab.commands.output.scan_numbers import NumberScanner
from tuilab.commands.process_tree import ProcessTree
from tuilab.commands.step_blocks import STEPS_ALONE, OpenBlock
from tuilab.commands.step_parts import (
    BACKWARD,
    curves_of,
    lacking,
    mean_length_ns,
    shares_of,
    steady,
)
from tuilab.commands.step_sentences import optimizer_name, root_name, story_of
from tuilab.commands.steps import Step, Steps
from tuilab.commands.tune.planning.machine import read_bf16_instructions
from tuilab.commands.tune.script_facts import ScriptFacts
from tuilab.commands.watcher._tuilab_treat import FIRST_TREATED_STEP
from tuilab.commands.watcher._tuilab_watch import layout
from tuilab.commands.why_no_steps import failure_of_watcher, why_unseen
from tuilab.engine.messages import CommandOrder
from tuilab.judging.learning import COMPARED_VALUES
from tuilab.record import events
from tuilab.record.journal.writer import Writer
from tuilab.text.display import join, plural, show
from tuilab.text.words import size

_ACCOUNT_S = 2.0  # between two records of where the time goes, and of the number of steps
_LARGEST = 2**62  # a larger number does not fit into an integer of a record
_KEPT = 5_000  # of the last steps, to compute where the time goes
# Marks that are no part of a step.
_ASIDE = (layout.LOGGED, layout.HELD, layout.COLLECTED, layout.SCRIPT_ENDED)


class Recorded(NamedTuple):
    """How many steps of a process a stream has already, and until when."""

    steps: int = 0
    until_ns: int = 0


_NOTHING = Recorded()


class Lane:
    """One process that makes steps, with its own curves and its own account.

    If there are several ranks, each rank has a lane.
    """

    def __init__(self, process: MarkedProcess, arm: str, recorded: Recorded = _NOTHING) -> None:
        self.process = process
        self.arm = arm
        self.steps = Steps()
        self.last: deque[Step] = deque(maxlen=_KEPT)
        # For an arm in a race: the times of all steps but the first, and their CPU times.
        self.times_s = array("d")
        self.core_times = CoreTimes()
        self.open_block = OpenBlock(arm)
        self.helpers = Helpers(process.pid)
        self.roots: list[float] = []  # the first values that went backward
        # The first ones from the step on at which a tuning treats the model.
        self.treated_roots: list[float] = []
        self.counted: list[events.StepCounted] = []
        self.count, self.until_ns = recorded
        self.is_chosen = False  # whether the user chose which optimizer ends a step


class Watched:
    """Record one command while it runs; if there is an `arm`, all records belong to that arm.

    Call `turn` while the command runs, then `finish`. `take_rest` is for a command whose worker was
    killed; `recorded` then says what the stream has already. Without `marks`, only output is
    recorded.
    """

    def __init__(
        self,
        command: CommandOrder,
        marks: Path | None,
        printed: NumberScanner,
        journal: Writer,
        arm: str = "",
        pid: int = 0,
        recorded: Mapping[str, Recorded] = {},
    ) -> None:
        self._command = command
        self._process_tree = ProcessTree(pid)
        self._contention = Contention(pid)
        self._alarms = Alarms(pid, self._contention, journal)
        self._marks = MarksFolder(marks) if marks else None
        self._printed = printed
        self._journal = journal
        self._arm = arm
        self._recorded = recorded  # by arm
        self._accounted_at = time.monotonic()
        self._prints_progress = False
        self._progress: events.Progressed | None = None  # the latest one
        self._printed_counts: dict[str, int] = {}  # values so far, by name
        self._held_count = 0  # readings so far of memory on a GPU without a UUID
        self.lanes: dict[int, Lane] = {}
        self.last: dict[str, float] = {}  # the last value of each curve
        self.gpu_peak_bytes = 0  # most that torch held on a GPU; 0 if it held nothing there
        self.shortage: Shortage | None = None  # the last lack of memory on a GPU
        # Whether a tuning was stopped, so that it says nothing that there are no steps.
        self.is_ended_early = False
        self.why_blind = ""  # why there is no folder for marks
        self._is_story_lost = False  # the disk had no room for an account

    def turn(self, *, is_last: bool = False) -> None:
        """Record what is new: steps, values, output and alerts.

        Every 2 s, also record where the time of a step goes, and the number of steps.
        """
        if self._marks:
            for process, marks in self._marks.read(is_last=is_last):
                self._take(process, marks)
        self._take_printed(is_last=is_last)
        if not is_last:
            self._look()
        if time.monotonic() - self._accounted_at > _ACCOUNT_S:
            self._accounted_at = time.monotonic()
            self._record_parts()
            self._record_count()

    def finish(self) -> None:
        """Record what is left, and the account of the whole command.

        Call it once, after the last `turn`.
        """
        self._finish_steps()
        self._record_parts()
        self._record_count()
        self._record_story()
        self._record_shortages()
        self._record_patterns()

    def record_lost_story(self) -> None:
        """Record that the disk refused the account of the steps.

        The marks were on that disk. Once they are removed, it may have room again.
        """
        if self._is_story_lost:
            reason = f"their account could not be written: {self._journal.trouble}"
            self._record_unavailable("steps", reason)

    def take_rest(self) -> None:
        """Record what is left of a command whose worker was killed."""
        self._finish_steps()
        if self._marks:
            self._record_losses(self._marks)

    def first_roots(self) -> list[float]:
        """Return the first values that went backward, in the process that stepped first."""
        lane = self._first_lane()
        return lane.roots if lane else []

    def first_treated_roots(self) -> list[float]:
        """Return the first values that went backward in steps that a tuning treats.

        They are those of the process that stepped first. A tuning compares these values of all its
        arms, because it treats a model only after FIRST_TREATED_STEP steps.
        """
        lane = self._first_lane()
        return lane.treated_roots if lane else []

    def treated(self) -> list[TreatedReport]:
        """Return what the treatments did in all processes that stepped, or why they did nothing.

        If no process stepped, the reports are those of all processes.
        """
        return merge_reports(self._treatments())

    def switched_off(self) -> list[str]:
        """Return what the processes switched off because a tuning runs them, such as uploads."""
        return switched_off(self._treatments())

    def is_starved_by_others(self) -> bool:
        """Return whether other processes kept the command from its cores."""
        return self._contention.is_starved_by_others()

    def script_facts(self) -> ScriptFacts:
        """Return the facts about the training in the process that stepped first."""
        lane = self._first_lane()
        return lane.process.treatments.script_facts() if lane else ScriptFacts()

    def _treatments(self) -> list[ProcessTreatments]:
        processes = [lane.process for lane in self.lanes.values()]
        if not processes and self._marks:
            processes = list(self._marks.processes.values())
        return [process.treatments for process in processes]

    def dtype(self) -> str:
        """Return the coarsest dtype in which the process that stepped first was seen to compute."""
        lane = self._first_lane()
        if lane is None:
            return "float32"
        return str(lane.process.hello.get("dtype", "float32"))[:20]

    def why_unseen(self) -> str:
        """Return why no step was seen; only to be called if there was none."""
        if self._marks is None:
            return self.why_blind or "nothing was watched"
        steps_of = [lane.steps for lane in self.lanes.values()]
        return why_unseen(self._marks, self._process_tree, steps_of)

    def record_device_use(self, measure: device_use.Measure) -> None:
        """Record how much of its device the first process used; `measure` times a product.

        Call it once, after `finish`.
        """
        lane = self._first_lane()
        if lane is None or self._arm:
            return
        timed = steady(lane.last)
        step_s = fmean([step.took_ns or 0 for step in timed]) / 1e9 if timed else 0.0
        core_times = [step.core_time for step in timed if step.core_time]
        awaited = self._contention.in_training()
        why_slow = device_use.why_slow(core_times, awaited, lane.counted, len(self.lanes))
        records = device_use.records_of(
            lane.counted,
            device_use.Times(step_s, len(timed), lane.arm, why_slow),
            lane.process.counted.why_not(),
            self._command,
            measure,
        )
        for record in records:
            self._journal.append(record)

    def enter(self, stage: str) -> None:
        """Record that the run does something else, after the command has ended.

        The progress begins again in each stage, so that of the command is recorded once more.
        """
        self._journal.append(events.StageEntered(name=stage))
        if self._progress is not None:
            self._record_progress(self._progress.done, self._progress.total, self._progress.unit)

    def _finish_steps(self) -> None:
        """Read all marks that are left, and record the steps that are only found at the end."""
        self.turn(is_last=True)
        for lane in self.lanes.values():
            self._record_steps(lane, lane.steps.finish())
            block = lane.open_block.close()
            if block:
                self._journal.append(block)

    def _first_lane(self) -> Lane | None:
        return next(iter(self.lanes.values()), None)

    def _has_steps(self) -> bool:
        return any(lane.count for lane in self.lanes.values())

    def _record_unavailable(self, subject: str, reason: str) -> None:
        self._journal.append(events.Unavailable(what=subject, reason=reason))

    def _look(self) -> None:
        """Check what no mark shows."""
        if self._marks:
            processes = self._marks.processes.values()
            if not any(process.has_torch for process in processes):
                self._process_tree.look()
        for lane in self.lanes.values():
            lane.helpers.look()
        if not self._arm:  # nobody watches a race for alerts
            self._alarms.turn()

    # ---- what the processes mark

    def _take(self, process: MarkedProcess, marks: list[Mark]) -> None:
        """Record the new marks of a process: logged values, memory on a GPU, and steps.

        A process that has only logged, held memory or ended gets no lane.
        """
        self._alarms.hear(process.pid)
        logged_marks = [mark for mark in marks if mark.kind == layout.LOGGED]
        held_marks = [mark for mark in marks if mark.kind == layout.HELD]
        for mark in held_marks:
            self._alarms.hold(process.pid, mark.began)
        self._record_logged(process, logged_marks)
        self._record_held(process, held_marks)
        if all(mark.kind in _ASIDE for mark in marks):
            self._take_end(process, marks)
            return
        lane = self._lane(process)
        self._choose(lane)
        self._record_steps(lane, lane.steps.take(marks))
        self._take_end(process, marks)

    def _take_end(self, process: MarkedProcess, marks: list[Mark]) -> None:
        """Note that the script of a process has ended; after that, a missing step is no stall."""
        lane = self.lanes.get(process.pid)
        if lane is None:
            return
        for mark in marks:
            if mark.kind == layout.SCRIPT_ENDED:
                self._alarms.leave(process.pid, lane.arm, mark.began)

    def _lane(self, process: MarkedProcess) -> Lane:
        """Return the lane of a process; at the first call, make one and record its torch."""
        lane = self.lanes.get(process.pid)
        if lane is None:
            arm = self._name_of(process)
            lane = Lane(process, arm, self._recorded.get(arm, _NOTHING))
            self.lanes[process.pid] = lane
            if arm not in self._recorded:
                self._record_process(process)
        return lane

    def _name_of(self, process: MarkedProcess) -> str:
        """Return the name of the lane of a process.

        The name is kept in a file next to the marks. Otherwise it would be unknown to a later
        reader, because the first marks of the process may have been read long ago.
        """
        assert self._marks is not None
        file_name = f"{process.pid}.lane"
        kept_name = self._marks.read_text(file_name)
        if kept_name is not None:
            return kept_name
        parts = []
        if self._arm:
            parts.append(self._arm)
        if process.is_of_several:
            parts.append(f"rank {process.rank}")
        elif self.lanes:
            parts.append(f"process {len(self.lanes) + 1}")
        name = " ".join(parts)
        with suppress(OSError), (self._marks.folder / file_name).open("x") as file:
            file.write(name)
        return name

    def _record_process(self, process: MarkedProcess) -> None:
        """Record the versions of torch and Python in a process, and its number of threads."""
        hello = process.hello
        facts = {
            "version": str(hello.get("torch", "n/a"))[:100],
            "threads": hello.get("threads", "n/a"),
            "python": str(hello.get("python", "n/a"))[:100],
        }
        self._journal.append(events.EnvironmentRecorded(part="torch", facts=facts))

    def _choose(self, lane: Lane) -> None:
        """Let the optimizer that the user named end the steps of a lane."""
        if not self._command.step_of or lane.steps.ends_with is not None:
            return
        chosen_name = self._command.step_of.lower()
        for number, text in lane.process.names.items():
            if chosen_name in text.lower().split("\n"):
                lane.steps.choose(number)
                lane.is_chosen = True

    def _record_steps(self, lane: Lane, steps: list[Step]) -> None:
        """Record the curves of new steps, raise their alerts, and keep them for the account.

        Steps that the stream has already, from a worker that was killed, are skipped.
        """
        steps = [step for step in steps if step.ended > lane.until_ns]
        for step in steps:
            if lane.process.counted.is_counted(step.began, step.ended):
                step.began = None  # counting took longer, so its length says nothing about a step
                step.core_time = None
        if not self._arm:
            self._alarms.compiled(lane.arm, lane.process.compiled.take_alert())
            root = partial(root_name, lane.process, lane.steps)
            self._alarms.step(lane.process.pid, lane.arm, steps, root)
        if not steps:
            return
        self._contention.step()
        lacks = lacking(lane.steps)
        for step in steps:
            values = {}
            for owner, value in step.roots.items():
                values[root_name(lane.process, lane.steps, owner)] = value
            values |= curves_of(step, lacks)
            if values:
                self._log_step(lane, values, step.ended)
            lane.count += 1
            self._record_counted(lane, step)
            missing = COMPARED_VALUES - len(lane.roots)
            if missing:
                lane.roots += list(step.roots.values())[:missing]
            missing = COMPARED_VALUES - len(lane.treated_roots)
            if missing and lane.count > FIRST_TREATED_STEP:
                lane.treated_roots += list(step.roots.values())[:missing]
            if step.took_ns and self._arm:
                lane.times_s.append(step.took_ns / 1e9)
            if step.core_time and self._arm:
                lane.core_times.add(len(lane.times_s), step.core_time)
        lane.last.extend(steps)

    def _record_counted(self, lane: Lane, step: Step) -> None:
        """Record what was counted in the part of the run that ends with this step, if one does."""
        for record in lane.process.counted.take_finished(step.ended, lane.arm, lane.count - 1):
            lane.counted.append(record)
            self._journal.append(record)

    def _log_step(self, lane: Lane, values: dict[str, float], ended_ns: int) -> None:
        """Record the values of a step: alone, or in a long run together with other steps."""
        if lane.count < STEPS_ALONE:
            self._log(events.Logged(s=lane.count, v=values, a=lane.arm, at=ended_ns))
            return
        self.last |= values
        block = lane.open_block.add(lane.count, values, ended_ns)
        if block:
            self._journal.append(block)

    def _record_logged(self, process: MarkedProcess, marks: list[Mark]) -> None:
        """Record the values that a script or its logger logged.

        A value without a name, which was lost, is only counted. What is recorded already is
        skipped.
        """
        arm = self._arm_of(process)
        until_ns = self._recorded.get(arm, _NOTHING).until_ns
        for mark in marks:
            if self._recorded and mark.began <= until_ns:
                continue
            name, _, source = process.names.get(mark.name, "").partition("\n")
            if not name:
                process.unnamed += 1
                continue
            values = {f"{name} ({source})": mark.value}
            # A record has a whole step, and `x` if the script logged at another place.
            # If the number is 1, the step is not whole, and the end has the bits of a float.
            step = layout.float_of(mark.ended) if mark.number else mark.ended
            if not math.isfinite(step):
                continue  # the value has no place on the axis of its curve
            whole_step = 0
            if abs(step) < _LARGEST:
                whole_step = int(step)
            x = None
            if whole_step != step:
                x = float(step)
            self._log(events.Logged(s=whole_step, v=values, a=arm, at=mark.began, x=x))

    def _arm_of(self, process: MarkedProcess) -> str:
        """Return the label of the curves of a process; without a lane, the arm of the command."""
        lane = self.lanes.get(process.pid)
        return lane.arm if lane else self._arm

    def _log(self, record: events.Logged) -> None:
        self.last |= record.v
        self._journal.append(record)

    def _record_held(self, process: MarkedProcess, marks: list[Mark]) -> None:
        """Record the memory that torch holds on a GPU; as a curve if the GPU has no UUID."""
        for mark in marks:
            uuid = process.names.get(mark.name, "").partition("\n")[0]
            allocated = max(mark.began, 0)
            reserved = max(mark.ended, 0)
            peak = int(mark.value) if 0 <= mark.value < _LARGEST else 0
            self.gpu_peak_bytes = max(self.gpu_peak_bytes, peak, allocated)
            if uuid:
                self._journal.append(events.GpuHeld(uuid, allocated, reserved, peak))
                continue
            values = {
                "gpu_allocated_bytes": float(allocated),
                "gpu_reserved_bytes": float(reserved),
            }
            self._journal.append(events.Logged(s=self._held_count, v=values, a=self._arm))
            self._held_count += 1

    # ---- what is printed

    def _take_printed(self, *, is_last: bool) -> None:
        """Record the values and the progress in what was printed since the last call.

        In a comparison, the progress is left out: the worker records that of the comparison.
        """
        if self._printed.is_heard():
            self._alarms.hear()
        for name, value in self._printed.values(is_last=is_last):
            number = self._printed_counts.get(name, 0)
            self._printed_counts[name] = number + 1
            self._log(events.Logged(s=number, v={f"{name} (printed)": value}, a=self._arm))
        progress = self._printed.progress(is_last=is_last)
        if progress is not None and not self._arm:
            self._prints_progress = True
            self._record_progress(progress.done, progress.total, progress.unit)

    def _record_patterns(self) -> None:
        """Record which patterns found no value or were given up, and how much was not searched."""
        for name, count in self._printed.counts.items():
            if name in self._printed.given_up:
                values = plural(count, "value")
                reason = f"stopped after {values}: its pattern took too long on a line"
            elif count:
                continue
            elif name in self._printed.slow:
                reason = "its pattern took too long on a line"
            else:
                reason = "its pattern did not match any line"
            self._record_unavailable(f"{name} (printed)", reason)
        skipped_bytes = self._printed.skipped_bytes
        if skipped_bytes:
            reason = f"{size(skipped_bytes)} came faster than tuilab could read them"
            self._record_unavailable("some of the printed values", reason)

    # ---- accounts

    def _record_count(self) -> None:
        """Record how many steps were made, unless the command prints its own progress.

        If there are several ranks, the steps of the first rank count.
        """
        if self._prints_progress or self._arm:
            return
        lane = self._first_lane()
        if lane and lane.count:
            self._record_progress(lane.count, 0)  # a total of 0 means that it is unknown

    def _record_progress(self, done: int, total: int, unit: str = "steps") -> None:
        self._progress = events.Progressed(done=done, total=total, unit=unit)
        self._journal.append(self._progress)

    def _record_parts(self) -> None:
        """Record where the time of a step goes.

        Arms of a race are left out, because their account at the end of each repeat has it.
        """
        if self._arm:
            return
        for lane in self.lanes.values():
            shares = shares_of(lane.last, lacking(lane.steps))
            if not shares:
                continue
            title = "where a step goes"
            if lane.arm:
                title += f" of {lane.arm}"
            values = [round(share, 1) for share in shares.values()]
            self._journal.append(
                events.BarsShown(title=title, names=list(shares), values=values, unit="%")
            )
            self._record_exchange_bars(lane)

    def _record_exchange_bars(self, lane: Lane) -> None:
        """Record how much of a backward computes, exchanges gradients, or does both at once."""
        bars = lane.process.exchange.bars()
        if not bars:
            return
        title = f"backward in sampled steps of {lane.arm}"
        values = [round(milliseconds, 3) for milliseconds in bars.values()]
        self._journal.append(
            events.BarsShown(title=title, names=list(bars), values=values, unit="ms")
        )

    def _record_story(self) -> None:
        """Record the account of the whole command: its steps, its cores, and what is missing.

        An arm of a comparison gets no sentences about its steps.
        """
        if self._marks is None:
            return
        has_steps = self._has_steps()
        if not self._arm:
            for lane in self.lanes.values():
                story = self._story_of(lane)
                if story:
                    account = events.TextShown(text=story, title=lane.arm or "steps")
                    is_written = self._journal.append(account)
                    self._is_story_lost |= not is_written
            if has_steps:
                self._record_ranks()
                self.record_contention()
        no_steps_reason = ""
        if self._marks.is_gone:
            self._record_unavailable(
                "the command, from some point on", "the folder with its marks was removed"
            )
        elif not has_steps and not self.is_ended_early:
            no_steps_reason = self.why_unseen()
            self._record_unavailable("steps", no_steps_reason)
        self._record_losses(self._marks, no_steps_reason)
        self._record_missing_optimizer()

    def _record_losses(self, marks: MarksFolder, no_steps_reason: str = "") -> None:
        """Record what each process could not write: marks, names of values, or anything at all.

        A failure that is recorded already, as the reason for no steps, is left out.
        """
        for process in marks.processes.values():
            subject = f"marks of process {process.pid}"
            failure = failure_of_watcher(process)
            if failure and failure != no_steps_reason:
                self._record_unavailable(subject, failure)
            if process.lost:
                lost_marks = plural(process.lost, "mark")
                self._record_unavailable(
                    subject, f"{lost_marks} could not be written: the disk was full"
                )
            if process.unnamed:
                cause = "the disk was full, or there were more than 60,000 names"
                if self._recorded:
                    cause = "the watching process had read them, and was killed"
                values = plural(process.unnamed, "value")
                self._record_unavailable(subject, f"the names of {values} were lost: {cause}")

    def _record_shortages(self) -> None:
        """Record who held the memory of a GPU when a process could not allocate more."""
        if self._marks is None:
            return
        for pid, shortage in read_shortages(self._marks.folder):
            self.shortage = shortage
            arm = self._arm
            if pid in self.lanes:
                arm = self.lanes[pid].arm
            for record in records_of(shortage, arm):
                self._journal.append(record)

    def _loading_of(self, lane: Lane) -> Loading | None:
        """Return how the process of a lane loads its data.

        The number of processes that load data includes those of the other training processes.
        """
        other_lanes = [other for other in self.lanes.values() if other is not lane]
        return loading_of(
            lane.process.hello,
            [other.process.hello for other in other_lanes],
            granted_cores(len(self._contention.usable)),
            is_starved=self._contention.is_starved_by_others(),
            are_idle=self._contention.are_cores_idle(),
        )

    def _record_ranks(self) -> None:
        """Record which rank's backward ends last, or why the exchange was not measured."""
        lanes: dict[int, Lane] = {}
        for lane in self.lanes.values():
            process = lane.process
            is_watched = process.hello.get("mode") == "all"
            if is_watched and process.is_of_several and process.rank.isdecimal():
                lanes[int(process.rank)] = lane  # of a rank that was restarted, the last one
        if not lanes:
            return
        exchanges = {rank: lanes[rank].process.exchange for rank in sorted(lanes)}
        backward_shares = []
        for lane in lanes.values():
            shares = shares_of(lane.last, lacking(lane.steps))
            backward_shares.append(shares.get(BACKWARD, 0.0))
        mean_step = MeanStep(
            steps=max(lane.count for lane in lanes.values()),
            mean_ns=fmean(mean_length_ns(lane.last) for lane in lanes.values()),
            backward_share=fmean(backward_shares),
        )
        sentences = [*describe_ranks(exchanges, mean_step)]
        if sentences:
            self._journal.append(events.TextShown(text="\n".join(sentences), title="all ranks"))
        else:
            self._record_unavailable("exchange of gradients", _why_no_exchange(exchanges.values()))

    def record_contention(self) -> None:
        """Record how long the command waited for cores, and whether this made its steps longer."""
        core_waits = self._contention.in_training()
        if core_waits:
            self._journal.append(core_waits)
        sentences = self._contention.sentences()
        if sentences:
            self._journal.append(events.TextShown(text="\n".join(sentences), title="machine"))

    def _story_of(self, lane: Lane) -> str:
        loading = self._loading_of(lane)
        sentences = story_of(
            lane.process,
            lane.steps,
            lane.last,
            loading,
            lane.helpers.cores,
            is_starved=self._contention.is_starved(),
            has_fast_bfloat16=has_fast_bfloat16(lane.last),
        )
        return "\n".join([*sentences, *lane.process.compiled.sentences()])

    def _record_missing_optimizer(self) -> None:
        """Record that no optimizer has the name in --step-of, and which optimizers stepped."""
        chosen_name = self._command.step_of
        lanes = self.lanes.values()
        if not chosen_name or not lanes or any(lane.is_chosen for lane in lanes):
            return
        names: set[str] = set()
        for lane in lanes:
            names.update(optimizer_name(lane.process, number) for number in lane.steps.counts)
        missing = f"no optimizer that stepped is named {show(chosen_name, 60)}"
        optimizers = join(sorted(names)) or "none"
        self._record_unavailable("--step-of", f"{missing}; optimizers: {optimizers}")


def has_fast_bfloat16(steps: Iterable[Step]) -> bool:
    """Return whether the steps ran on a GPU, or the CPU multiplies bfloat16 numbers in AMX.

    Other instructions for bfloat16 are often slower than those for float32.
    """
    if any(step.is_on_gpu for step in steps):
        return True
    return "amx_bf16" in (read_bf16_instructions() or ())


def _why_no_exchange(exchanges: Iterable[GradientExchange]) -> str:
    """Return why no process measured the exchange of gradients with other ranks."""
    if any(exchange.modules for exchange in exchanges):
        return "torch sampled no step of DistributedDataParallel after the first two"
    return "only DistributedDataParallel measures it, and the script made none"
