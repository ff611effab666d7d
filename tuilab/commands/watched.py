"""Record what the processes of a command mark and print: curves, and where a step's time goes."""

import time
from array import array
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tuilab.commands.alarm_watch import Alarms
from tuilab.commands.cpu.contention import Contention
from tuilab.commands.cpu.core_time import CoreTimes
from tuilab.commands.cpu.core_use import granted_cores
from tuilab.commands.cpu.helpers import Helpers
from tuilab.commands.marks import Mark, MarkedProcess, MarksFolder
from tuilab.commands.next_step import Loading, loading_of
from tuilab.commands.output.scan_numbers import NumberScanner
from tuilab.commands.process_tree import Ran
from tuilab.commands.step_parts import curves_of, lacking, shares_of
from tuilab.commands.step_sentences import optimizer_name, story_of
from tuilab.commands.steps import BACKWARDS, Step, Steps
from tuilab.commands.watcher._tuilab_watch import layout
from tuilab.commands.why_no_steps import failure_of_watcher, why_unseen
from tuilab.engine.messages import CommandOrder
from tuilab.judging.learning import COMPARED_VALUES
from tuilab.record import events
from tuilab.record.journal.writer import Writer
from tuilab.text.display import join, plural, show
from tuilab.text.words import size

_TELL_S = 2.0  # between two records of where the time goes, and of the number of steps
_KEPT = 5_000  # of the last steps, to compute where the time goes
_ASIDE = (layout.LOGGED, layout.HELD, layout.SCRIPT_ENDED)  # marks that are no part of a step
ROOT = "backward root"


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
        self.times_s = array("d")  # of all steps but the first
        # For an arm in a race: the CPU times of the steps that have a time in `times_s`.
        self.core_times = CoreTimes()
        self.helpers = Helpers(process.pid)
        self.roots: list[float] = []  # the first values that went backward
        self.count, self.until_ns = recorded
        self.is_chosen = False  # whether the user chose which optimizer ends a step


class Watched:
    """Record one command while it runs; if there is an `arm`, all records belong to that arm."""

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
        self._ran = Ran(pid)
        self._contention = Contention(pid)
        self._alarms = Alarms(pid, self._contention, journal)
        self._marks = MarksFolder(marks) if marks else None
        self._printed = printed
        self._journal = journal
        self._arm = arm
        self._recorded = recorded  # by arm
        self._told_at = time.monotonic()
        self._is_total_told = False
        self._printed_count: dict[str, int] = {}
        self._held_count = -1
        self.lanes: dict[int, Lane] = {}
        self.last: dict[str, float] = {}  # the last value of each curve
        self.why_blind = ""  # why there is no folder for marks

    def turn(self, *, is_last: bool = False) -> None:
        """Record what is new."""
        if self._marks:
            for process, marks in self._marks.read(is_last=is_last):
                self._take(process, marks, is_last=is_last)
        self._take_printed(is_last=is_last)
        if not is_last:
            self._look()
        if time.monotonic() - self._told_at > _TELL_S:
            self._told_at = time.monotonic()
            self._tell_parts()
            self._tell_count()

    def finish(self, code: int) -> None:
        """Record what is left, and the account of the whole command."""
        self.turn(is_last=True)
        for lane in self.lanes.values():
            self._record_steps(lane, lane.steps.finish())
        self._tell_parts()
        self._tell_count()
        self._tell_story(code)
        self._tell_printed()

    def take_rest(self) -> None:
        """Record what is left of a command whose worker was killed."""
        self.turn(is_last=True)
        for lane in self.lanes.values():
            self._record_steps(lane, lane.steps.finish())
        if self._marks:
            self._tell_losses(self._marks)

    def first_roots(self) -> list[float]:
        """Return the first values that went backward, in the process that stepped first."""
        return next((lane.roots for lane in self.lanes.values()), [])

    def dtype(self) -> str:
        """Return the coarsest dtype in which the process that stepped first was seen to compute."""
        return next(
            (str(lane.process.hello.get("dtype", "float32"))[:20] for lane in self.lanes.values()),
            "float32",
        )

    def why_unseen(self) -> str:
        """Return why no step was seen."""
        lanes = [lane.steps for lane in self.lanes.values()]
        return (
            why_unseen(self._marks, self._ran, lanes)
            if self._marks
            else self.why_blind or "nothing was watched"
        )

    def _look(self) -> None:
        """Check what no mark shows."""
        if self._marks and not any(process.has_torch for process in self._marks.processes.values()):
            self._ran.look()
        for lane in self.lanes.values():
            lane.helpers.look()
        if not self._arm:  # nobody watches a race for alerts
            self._alarms.turn()

    # ---- what the processes mark

    def _take(self, process: MarkedProcess, marks: list[Mark], *, is_last: bool) -> None:
        self._alarms.hear(process.pid)
        for mark in marks:
            if mark.kind == layout.HELD:
                self._alarms.hold(process.pid, mark.began)
        self._record_logged(process, [mark for mark in marks if mark.kind == layout.LOGGED])
        self._record_held(process, [mark for mark in marks if mark.kind == layout.HELD])
        if all(mark.kind in _ASIDE for mark in marks):
            self._take_end(process, marks)
            return
        lane = self._lane(process)
        self._choose(lane)
        self._record_steps(lane, lane.steps.take(marks))
        self._take_end(process, marks)

    def _take_end(self, process: MarkedProcess, marks: list[Mark]) -> None:
        """Note that the script of a process has ended; after that, a missing step is no stall."""
        for mark in marks:
            if mark.kind == layout.SCRIPT_ENDED and process.pid in self.lanes:
                self._alarms.leave(process.pid, self.lanes[process.pid].arm, mark.began)

    def _lane(self, process: MarkedProcess) -> Lane:
        if process.pid not in self.lanes:
            arm = self._name_of(process)
            self.lanes[process.pid] = Lane(process, arm, self._recorded.get(arm, _NOTHING))
            if arm not in self._recorded:
                self._record_process(process)
        return self.lanes[process.pid]

    def _name_of(self, process: MarkedProcess) -> str:
        """Return the name of the lane of a process.

        The name is kept in a file next to the marks. Otherwise it would be unknown to a later
        reader, because the first marks of the process may have been read long ago.
        """
        assert self._marks is not None
        kept = f"{process.pid}.lane"
        if (text := self._marks.said(kept)) is not None:
            return text
        name = f"rank {process.rank}" if process.is_of_several else ""
        if not name and self.lanes:
            name = f"process {len(self.lanes) + 1}"
        arm = " ".join(filter(None, (self._arm, name)))
        with suppress(OSError), (self._marks.folder / kept).open("x") as file:
            file.write(arm)
        return arm

    def _record_process(self, process: MarkedProcess) -> None:
        hello = process.hello
        facts = {
            "version": str(hello.get("torch", "n/a"))[:100],
            "threads": hello.get("threads", "n/a"),
            "python": str(hello.get("python", "n/a"))[:100],
        }
        self._journal.append(events.EnvironmentRecorded(part="torch", facts=facts))

    def _choose(self, lane: Lane) -> None:
        if self._command.step_of and lane.steps.ends_with is None:
            name = self._command.step_of.lower()
            for number, words in lane.process.names.items():
                if name in words.lower().split("\n"):
                    lane.steps.choose(number)
                    lane.is_chosen = True

    def _record_steps(self, lane: Lane, steps: list[Step]) -> None:
        steps = [step for step in steps if step.ended > lane.until_ns]
        if steps:
            self._contention.step()
        if not self._arm:
            self._alarms.step(
                lane.process.pid, lane.arm, steps, lambda owner: self._root_name(lane, owner)
            )
        lacks = lacking(lane.steps) if steps else {}
        for step in steps:
            values = {self._root_name(lane, owner): value for owner, value in step.roots.items()}
            values |= curves_of(step, lacks)
            if values:
                self._log(events.Logged(s=lane.count, v=values, a=lane.arm, at=step.ended))
            lane.count += 1
            lane.roots += [*step.roots.values()][: COMPARED_VALUES - len(lane.roots)]
            if step.took_ns:
                lane.times_s.append(step.took_ns / 1e9)
            if step.core_time and self._arm:
                lane.core_times.add(len(lane.times_s), step.core_time)
        lane.last.extend(steps)

    def _root_name(self, lane: Lane, owner: int) -> str:
        if len(lane.steps.counts) < 2 or owner == BACKWARDS:
            return ROOT
        return f"{ROOT} of {optimizer_name(lane.process, owner)}"

    def _record_logged(self, process: MarkedProcess, marks: list[Mark]) -> None:
        for mark in marks:
            name, _, source = process.names.get(mark.name, "").partition("\n")
            if (
                self._recorded
                and mark.began <= self._recorded.get(self._arm_of(process), _NOTHING).until_ns
            ):
                continue
            if not name:
                process.unnamed += 1
                continue
            step = layout.float_of(mark.ended) if mark.number else mark.ended
            values = {f"{name} ({source})": mark.value}
            whole = int(step) if abs(step) < 2**62 else 0
            place = None if whole == step else float(step)
            self._log(
                events.Logged(s=whole, v=values, a=self._arm_of(process), at=mark.began, x=place)
            )

    def _arm_of(self, process: MarkedProcess) -> str:
        return self.lanes[process.pid].arm if process.pid in self.lanes else self._arm

    def _log(self, record: events.Logged) -> None:
        self.last |= record.v
        self._journal.append(record)

    def _record_held(self, process: MarkedProcess, marks: list[Mark]) -> None:
        """Record the memory that torch holds on a GPU; as a curve if the GPU has no UUID."""
        for mark in marks:
            uuid = process.names.get(mark.name, "").partition("\n")[0]
            allocated, reserved = max(mark.began, 0), max(mark.ended, 0)
            if uuid:
                peak = int(mark.value) if 0 <= mark.value < 2**62 else 0
                self._journal.append(events.GpuHeld(uuid, allocated, reserved, peak))
            else:
                number = self._held_count = self._held_count + 1
                values = {
                    "gpu_allocated_bytes": float(allocated),
                    "gpu_reserved_bytes": float(reserved),
                }
                self._journal.append(events.Logged(s=number, v=values, a=self._arm))

    # ---- what is printed

    def _take_printed(self, *, is_last: bool) -> None:
        if self._printed.is_heard():
            self._alarms.hear()
        for name, value in self._printed.values(is_last=is_last):
            number = self._printed_count[name] = self._printed_count.get(name, -1) + 1
            self._log(events.Logged(s=number, v={f"{name} (printed)": value}, a=self._arm))
        if (progress := self._printed.progress(is_last=is_last)) and not self._arm:
            self._is_total_told = True
            self._journal.append(
                events.Progressed(done=progress.done, total=progress.total, unit=progress.unit)
            )

    def _tell_count(self) -> None:
        """Record how many steps were made, unless the command prints its own progress.

        If there are several ranks, the steps of the first rank count.
        """
        count = next((lane.count for lane in self.lanes.values()), 0)
        if count and not self._is_total_told and not self._arm:
            self._journal.append(events.Progressed(done=count, total=0))

    # ---- accounts

    def _tell_parts(self) -> None:
        """Record where the time of a step goes.

        Arms of a race are left out, because their account at the end of each repeat has it.
        """
        for lane in self.lanes.values():
            if not self._arm and (shares := shares_of(lane.last, lacking(lane.steps))):
                of = f" of {lane.arm}" if lane.arm else ""
                names, values = [*shares], [round(share, 1) for share in shares.values()]
                self._journal.append(
                    events.BarsShown(
                        title=f"where a step goes{of}", names=names, values=values, unit="%"
                    )
                )

    def _tell_story(self, code: int) -> None:
        if self._marks is None:
            return
        for lane in self.lanes.values():
            if not self._arm and (story := self._story_of(lane)):
                self._journal.append(events.TextShown(text=story, title=lane.arm or "steps"))
        if any(lane.count for lane in self.lanes.values()) and not self._arm:
            self._tell_contention()
        why_unseen = ""
        if self._marks.is_gone:
            what = "the command, from some point on"
            self._journal.append(
                events.Unavailable(what=what, reason="the folder with its marks was removed")
            )
        elif not any(lane.count for lane in self.lanes.values()):
            why_unseen = self.why_unseen()
            self._journal.append(events.Unavailable(what="steps", reason=why_unseen))
        self._tell_losses(self._marks, why_unseen)
        self._tell_step_of()

    def _tell_losses(self, marks: MarksFolder, why_unseen: str = "") -> None:
        """Record what each process could not write: marks, names of values, or anything at all."""
        for process in marks.processes.values():
            what = f"marks of process {process.pid}"
            failure = failure_of_watcher(process)
            if failure and failure != why_unseen:
                self._journal.append(events.Unavailable(what=what, reason=failure))
            if process.lost:
                reason = f"{plural(process.lost, 'mark')} could not be written: the disk was full"
                self._journal.append(events.Unavailable(what=what, reason=reason))
            if process.unnamed:
                why = "the disk was full, or there were more than 60,000 names"
                if self._recorded:
                    why = "the watching process had read them, and was killed"
                reason = f"the names of {plural(process.unnamed, 'value')} were lost: {why}"
                self._journal.append(events.Unavailable(what=what, reason=reason))

    def _loading_of(self, lane: Lane) -> Loading | None:
        """Return how the process of a lane loads its data.

        The number of processes that load data includes those of the other training processes.
        """
        other_hellos = [other.process.hello for other in self.lanes.values() if other is not lane]
        shared = self._contention
        return loading_of(
            lane.process.hello,
            other_hellos,
            granted_cores(len(shared.usable)),
            is_starved=shared.is_starved_by_others(),
            are_idle=shared.are_cores_idle(),
        )

    def _tell_contention(self) -> None:
        """Record how long the command waited for cores, and whether this made its steps longer."""
        if core_waits := self._contention.in_training():
            self._journal.append(core_waits)
        if sentences := self._contention.sentences():
            self._journal.append(events.TextShown(text="\n".join(sentences), title="machine"))

    def _story_of(self, lane: Lane) -> str:
        loading = self._loading_of(lane)
        return "\n".join(story_of(lane.process, lane.steps, lane.last, loading, lane.helpers.cores))

    def _tell_step_of(self) -> None:
        """Record that no optimizer has the name in --step-of, and which optimizers stepped."""
        name = self._command.step_of
        if not name or not self.lanes or any(lane.is_chosen for lane in self.lanes.values()):
            return
        there = {
            optimizer_name(lane.process, number)
            for lane in self.lanes.values()
            for number in lane.steps.counts
        }
        reason = (
            f"no optimizer that stepped is named {show(name, 60)}; optimizers:"
            f" {join(sorted(there)) or 'none'}"
        )
        self._journal.append(events.Unavailable(what="--step-of", reason=reason))

    def _tell_printed(self) -> None:
        for name, count in self._printed.found.items():
            if name in self._printed.given_up:
                reason = (
                    f"stopped after {plural(count, 'value')}: its pattern took too long on a line"
                )
                self._journal.append(events.Unavailable(what=f"{name} (printed)", reason=reason))
            elif not count:
                what = (
                    "took too long on a line"
                    if name in self._printed.slow
                    else "did not match any line"
                )
                self._journal.append(
                    events.Unavailable(what=f"{name} (printed)", reason=f"its pattern {what}")
                )
        if passed_over := self._printed.passed_over:
            reason = f"{size(passed_over)} came faster than tuilab could read them"
            self._journal.append(
                events.Unavailable(what="some of the printed values", reason=reason)
            )
