"""The attendants of a run: the sampler, which is started again when it dies, and the judge, which is asked when it is time."""

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from tuilab.engine import processes
from tuilab.engine.children import Children
from tuilab.engine.spawn import Child, has_rest, spawn_judge, spawn_rest, spawn_sampler
from tuilab.record import events
from tuilab.record.journal.writer import Writer
from tuilab.storage.files import open_regular

SAMPLER_SILENCE_S = 10.0
SAMPLER_END_S = 2.0  # nobody waits for its readings any more
SAMPLER_STARTS = 4  # the first and three more
JUDGE_PATIENCE_S = 60.0
REST_PATIENCE_S = 20.0
JUDGE_SLOW_S = 5.0  # then it is told what the run waits for
_DISMISSED = "dismissed"
_CLAIM = b'"claim_'  # in every record of a claim
_LACK = b'"box_lacked"'  # decides every claim that was announced
_RACE = b'"race_started"'
_LAST_MARKS = "the last marks of the command"
_PORTION = 1024 * 1024
_CALLED_OFF = "not waited for, because the run was stopped"


def has_claims(run_dir: Path) -> bool:
    """Say whether there may be something to judge; where that cannot be looked at, the judge finds out."""
    return _has_records(run_dir, _CLAIM, _LACK)


def has_races(run_dir: Path) -> bool:
    """Say whether something may have been timed; where that cannot be looked at, it may."""
    return _has_records(run_dir, _RACE)


def _has_records(run_dir: Path, *marks: bytes) -> bool:
    try:
        streams = [name for name in os.listdir(run_dir / "journal") if name.startswith("worker")]
        return any(_is_any_in(run_dir / "journal" / name, marks) for name in streams)
    except OSError:
        return True


def _is_any_in(stream: Path, marks: tuple[bytes, ...]) -> bool:
    longest = max(map(len, marks))
    with open(open_regular(stream), "rb") as file:
        end = b""
        while portion := file.read(_PORTION):
            seen = end + portion
            if any(mark in seen for mark in marks):
                return True
            end = portion[-longest:]
    return False


class Attendants:
    """A run goes on without them; what they could not do is recorded."""

    def __init__(self, run_dir: Path, journal: Writer, crew: Children) -> None:
        self._run_dir = run_dir
        self._journal = journal
        self._crew = crew
        self._sampler: Child | None = None
        self._samplers_started = 0
        self._judge: Child | None = None  # that was started ahead

    @property
    def pids(self) -> set[int]:
        """Those that stay when others are ended."""
        return {child.pid for child in (self._sampler, self._judge) if child}

    def start_sampler(self) -> None:
        stream = f"sampler-{self._samplers_started}" if self._samplers_started else "sampler"
        self._samplers_started += 1
        try:
            self._sampler = spawn_sampler(self._run_dir, stream)
        except OSError as problem:
            self._journal.append(
                events.SamplerEnded(
                    reason=f"not started: {problem.strerror}", restarts=SAMPLER_STARTS
                )
            )
        else:
            self._crew.add(self._sampler)

    def note_death(self, child: Child, *, is_stopping: bool) -> bool:
        """Take note of a death and say whether it was that of an attendant; a sampler is started again, but not for the end."""
        if child is self._judge:
            self._judge = None  # it is started again when it is wanted
        if child is not self._sampler:
            return child.writer in ("judge", "rest")
        self._sampler = None
        if child.reason != _DISMISSED:
            self._journal.append(
                events.SamplerEnded(
                    reason=child.how_it_ended(), restarts=self._samplers_started - 1
                )
            )
            if self._samplers_started < SAMPLER_STARTS and not is_stopping:
                self.start_sampler()
        return True

    def check_sampler(self) -> None:
        """Kill a sampler that has not been heard for long."""
        if (
            self._sampler
            and time.monotonic() - self._sampler.last_heard > SAMPLER_SILENCE_S
            and not self._sampler.reason
        ):
            self._sampler.kill("stopped answering")

    def await_sampler(self, is_called_off: Callable[[], bool]) -> None:
        """Let the sampler tell of the box: a run whose worker had loaded torch before may be over by then."""
        deadline = time.monotonic() + SAMPLER_END_S
        while (
            self._sampler
            and not (self._sampler.is_ready or is_called_off())
            and time.monotonic() < deadline
        ):
            self._crew.turn(0.1)

    def end_sampler(self) -> None:
        """End the sampler; one that cannot die, as where the driver of a GPU hangs, is named and left."""
        if not self._sampler:
            return
        self._sampler.kill(_DISMISSED)
        deadline = time.monotonic() + SAMPLER_END_S
        while self._sampler and time.monotonic() < deadline:
            self._crew.turn(0.1)
        if self._sampler:
            pid = self._sampler.pid
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)  # what it started: the group is its own
            reason = "could not be ended: " + ", ".join(processes.names_of(lambda: [pid]))
            self._journal.append(
                events.SamplerEnded(reason=reason, restarts=self._samplers_started - 1)
            )

    def prepare_judge(self) -> None:
        """Have the judge load before it is wanted, which takes a core for a moment; where that fails it is started then."""
        with contextlib.suppress(OSError):
            self._judge = spawn_judge(self._run_dir)
            self._crew.add(self._judge)

    def dismiss_judge(self) -> None:
        """Let a judge go that was not wanted."""
        judge, self._judge = self._judge, None
        if judge:
            judge.tell("")

    def judge(
        self,
        tell: Callable[[str], None],
        *,
        is_look: bool = False,
        is_done: bool = False,
        is_called_off: Callable[[], bool],
    ) -> bool:
        """Have the verdicts reached by a process of its own: statistics are slow to load. Say whether it did what it is to do.

        Whoever is in a hurry does not wait for it: it is ended as soon as `is_called_off` says so; `tell` is told when it is
        slow. With `is_look` it only takes a look: it did when all is decided, and where it could not, the verdicts are still to
        come. With `is_done` the run has done all that its lesson asks.
        """
        wanted = "look" if is_look else "done" if is_done else "judge"
        try:
            child = (
                None
                if is_called_off()
                else self._wait_for_judge(self._ask_judge(wanted), tell, is_called_off)
            )
            trouble = f"the judge: {child.how_it_ended() if child else _CALLED_OFF}"
        except OSError as problem:
            child, trouble = None, f"cannot start the judge: {problem.strerror}"
        is_well = child is not None and child.code == 0
        if not (is_well or is_look):
            self._journal.append(events.Unavailable(what="verdicts", reason=trouble))
        return is_well

    def read_rest(self) -> None:
        """Have what a command marked read to its end where its worker was killed before it could."""
        if not has_rest(self._run_dir):
            return
        try:
            child = spawn_rest(self._run_dir)
        except OSError as problem:
            self._journal.append(
                events.Unavailable(
                    what=_LAST_MARKS, reason=f"nothing could be started: {problem.strerror}"
                )
            )
            return
        child.deadline = child.started + REST_PATIENCE_S
        self._crew.add(child)
        while not (child.is_over or child.cannot_be_killed()):
            self._crew.turn(0.1)
        if child.code != 0:
            self._journal.append(events.Unavailable(what=_LAST_MARKS, reason=child.how_it_ended()))

    def _ask_judge(self, wanted: str) -> Child:
        """Ask the judge that was started ahead, or one that is started now."""
        judge, self._judge = self._judge, None
        if judge is None or not judge.tell(wanted):
            judge = spawn_judge(self._run_dir)
            self._crew.add(judge)
            judge.tell(wanted)
        return judge

    def _wait_for_judge(
        self, judge: Child, tell: Callable[[str], None], is_called_off: Callable[[], bool]
    ) -> Child:
        judge.started = time.monotonic()  # to do what it was loaded for
        judge.deadline = judge.started + JUDGE_PATIENCE_S
        is_told = False
        while not (judge.is_over or judge.cannot_be_killed()):
            if is_called_off() and not judge.reason:
                judge.kill(_CALLED_OFF)
            if not is_told and time.monotonic() - judge.started > JUDGE_SLOW_S:
                is_told = True
                tell("waits for its verdicts")
            self._crew.turn(0.1)
        if is_told:
            tell("")
        return judge
