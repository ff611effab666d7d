"""Brings what a command's processes mark, and what it prints, into the record: curves, and where a step's time goes."""

import time
from array import array
from collections import deque
from pathlib import Path

from tuilab.commands.inside.tuilab_watch import layout
from tuilab.commands.marks import Mark, Marks, Process
from tuilab.commands.parts import curves_of, shares_of
from tuilab.commands.printed import Printed
from tuilab.commands.steps import BACKWARDS, Step, Steps
from tuilab.commands.story import optimizer_name, story_of
from tuilab.commands.unseen import why_unseen
from tuilab.engine.messages import CommandOrder
from tuilab.judging.learning import FIRST
from tuilab.record import events
from tuilab.record.journal.writer import Writer

_TELL_S = 2.0  # between two accounts of where the time goes
_KEPT = 5_000  # of the last steps, for these accounts
ROOT = "backward root"


class Lane:
    """One process that steps: its own steps, curves and account; of several ranks each has one."""

    def __init__(self, process: Process, arm: str) -> None:
        self.process = process
        self.arm = arm
        self.steps = Steps()
        self.last: deque[Step] = deque(maxlen=_KEPT)
        self.times_s = array("d")  # of all steps but the first
        self.roots: list[float] = []  # the first ones
        self.count = 0


class Watched:
    """One command while it runs; with an `arm` all that is recorded is told of that arm."""

    def __init__(self, command: CommandOrder, marks: Path | None, printed: Printed, journal: Writer, arm: str = "") -> None:
        self._command = command
        self._marks = Marks(marks) if marks else None
        self._printed = printed
        self._journal = journal
        self._arm = arm
        self._told_at = time.monotonic()
        self._printed_count: dict[str, int] = {}
        self._held_count = -1
        self.lanes: dict[int, Lane] = {}

    def turn(self, *, is_last: bool = False) -> None:
        """Record what is new."""
        if self._marks:
            for process, marks in self._marks.read(is_last=is_last):
                self._take(process, marks, is_last=is_last)
        self._take_printed()
        if time.monotonic() - self._told_at > _TELL_S:
            self._told_at = time.monotonic()
            self._tell_parts()

    def finish(self, code: int) -> None:
        """Record what is left, and the account of all."""
        self.turn(is_last=True)
        for lane in self.lanes.values():
            self._record_steps(lane, lane.steps.finish())
        self._tell_parts()
        self._tell_story(code)

    def first_roots(self) -> list[float]:
        """Return what went backward first, in the process that stepped first."""
        return next((lane.roots for lane in self.lanes.values()), [])

    def dtype(self) -> str:
        """Return the coarsest dtype that was computed in, as far as that was seen."""
        return next((str(lane.process.hello.get("dtype", "float32"))[:20] for lane in self.lanes.values()), "float32")

    def why_unseen(self) -> str:
        """Return why no step was seen."""
        return why_unseen(self._command.words, self._marks) if self._marks else "nothing was watched"

    # ---- what the processes mark

    def _take(self, process: Process, marks: list[Mark], *, is_last: bool) -> None:
        self._record_logged(process, [mark for mark in marks if mark.kind == layout.LOGGED])
        self._record_held(process, [mark for mark in marks if mark.kind == layout.HELD])
        if all(mark.kind in (layout.LOGGED, layout.HELD) for mark in marks):
            return
        lane = self._lane(process)
        self._choose(lane)
        self._record_steps(lane, lane.steps.take(marks))

    def _lane(self, process: Process) -> Lane:
        if process.pid not in self.lanes:
            name = f"rank {process.rank}" if process.hello.get("world") not in ("", "1", None) else ""
            if not name and self.lanes:
                name = f"process {len(self.lanes) + 1}"
            self.lanes[process.pid] = Lane(process, " ".join(filter(None, (self._arm, name))))
            self._record_process(process)
        return self.lanes[process.pid]

    def _record_process(self, process: Process) -> None:
        hello = process.hello
        facts = {
            "version": str(hello.get("torch", "n/a"))[:100],
            "threads": hello.get("threads", "n/a"),
            "python": str(hello.get("python", "n/a"))[:100],
        }
        self._journal.append(events.EnvironmentRecorded(part="torch", facts=facts))

    def _choose(self, lane: Lane) -> None:
        if self._command.step_of and lane.steps.ends_with is None:
            wanted = self._command.step_of.lower()
            for number, words in lane.process.names.items():
                if wanted in words.lower().split("\n"):
                    lane.steps.choose(number)

    def _record_steps(self, lane: Lane, steps: list[Step]) -> None:
        for step in steps:
            values = {self._root_name(lane, owner): value for owner, value in step.roots.items()}
            values |= curves_of(step)
            if values:
                self._journal.append(events.Logged(s=lane.count, v=values, a=lane.arm, at=step.ended))
            lane.count += 1
            lane.roots += [*step.roots.values()][: FIRST - len(lane.roots)]
            if step.took_ns:
                lane.times_s.append(step.took_ns / 1e9)
        lane.last.extend(steps)

    def _root_name(self, lane: Lane, owner: int) -> str:
        if len(lane.steps.counts) < 2 or owner == BACKWARDS:
            return ROOT
        return f"{ROOT} of {optimizer_name(lane.process, owner)}"

    def _record_logged(self, process: Process, marks: list[Mark]) -> None:
        for mark in marks:
            name, _, source = process.names.get(mark.name, "").partition("\n")
            step = layout.float_of(mark.ended) if mark.number else mark.ended
            values = {f"{name} ({source})": mark.value}
            arm = self.lanes[process.pid].arm if process.pid in self.lanes else self._arm
            whole = int(step) if abs(step) < 2**62 else 0
            place = None if whole == step else float(step)
            self._journal.append(events.Logged(s=whole, v=values, a=arm, at=mark.began, x=place))

    def _record_held(self, process: Process, marks: list[Mark]) -> None:
        """Record what torch holds on a GPU; of one that torch has no name for, as a curve."""
        for mark in marks:
            uuid = process.names.get(mark.name, "").partition("\n")[0]
            allocated, reserved = max(mark.began, 0), max(mark.ended, 0)
            if uuid:
                self._journal.append(events.GpuHeld(uuid=uuid, allocated_bytes=allocated, reserved_bytes=reserved))
            else:
                at = self._held_count = self._held_count + 1
                values = {"gpu_allocated_bytes": float(allocated), "gpu_reserved_bytes": float(reserved)}
                self._journal.append(events.Logged(s=at, v=values, a=self._arm))

    # ---- what is printed

    def _take_printed(self) -> None:
        for name, value in self._printed.values():
            at = self._printed_count[name] = self._printed_count.get(name, -1) + 1
            self._journal.append(events.Logged(s=at, v={f"{name} (printed)": value}, a=self._arm))
        if (progress := self._printed.progress()) and not self._arm:
            self._journal.append(events.Progressed(done=progress[0], total=progress[1]))

    # ---- accounts

    def _tell_parts(self) -> None:
        for lane in self.lanes.values():
            if shares := shares_of(lane.last):
                of = f" of {lane.arm}" if lane.arm else ""
                names, values = [*shares], [*shares.values()]
                self._journal.append(events.BarsShown(title=f"where a step goes{of}", names=names, values=values, unit="%"))

    def _tell_story(self, code: int) -> None:
        if self._marks is None:
            return
        for lane in self.lanes.values():
            if story := "\n".join(story_of(lane.process, lane.steps, lane.last)):
                self._journal.append(events.TextShown(text=story, title=lane.arm or "steps"))
        for process in self._marks.processes.values():
            if process.lost:
                reason = f"{process.lost} marks had no room on the disk"
                self._journal.append(events.Unavailable(what=f"marks of process {process.pid}", reason=reason))
        if not any(lane.count for lane in self.lanes.values()):
            self._journal.append(events.Unavailable(what="steps", reason=self.why_unseen()))
        for name, count in self._printed.found.items():
            if not count:
                self._journal.append(events.Unavailable(what=f"{name} (printed)", reason="its pattern was found nowhere"))
