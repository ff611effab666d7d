"""The helpers of a run: the sampler, which is restarted when it dies, and the judge."""

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

SAMPLER_SILENCE_S = 10.0  # a sampler without a heartbeat for so long is killed
SAMPLER_END_S = 2.0  # its last readings are not worth more time
SAMPLER_STARTS = 4  # the first and three more
JUDGE_PATIENCE_S = 60.0  # from the request to the verdicts
REST_PATIENCE_S = 20.0  # for reading the unread marks of a command
JUDGE_SLOW_S = 5.0  # after so long the record says what the run waits for
_DISMISSED = "dismissed"
_CLAIM = b'"claim_'  # in every record of a claim
_LACK = b'"box_lacked"'  # it decides every declared claim
_RACE = b'"race_started"'
_LAST_MARKS = "the last marks of the command"
_CHUNK = 1024 * 1024  # bytes of a stream that are searched at a time
_CALLED_OFF = "not waited for, because the run was stopped"


def has_claims(run_dir: Path) -> bool:
    """Say whether there may be claims to judge; True if the journal cannot be read."""
    return _has_records(run_dir, _CLAIM, _LACK)


def has_races(run_dir: Path) -> bool:
    """Say whether something may have been timed; True if the journal cannot be read."""
    return _has_records(run_dir, _RACE)


def _has_records(run_dir: Path, *marks: bytes) -> bool:
    """Say whether the stream of a worker contains one of these byte strings.

    True also if the journal cannot be read, so that nothing is left unjudged by mistake.
    """
    try:
        streams = [name for name in os.listdir(run_dir / "journal") if name.startswith("worker")]
        return any(_contains_any(run_dir / "journal" / name, marks) for name in streams)
    except OSError:
        return True


def _contains_any(stream: Path, marks: tuple[bytes, ...]) -> bool:
    """Say whether a file contains one of the byte strings; raise OSError if it cannot be read."""
    longest = max(len(mark) for mark in marks)
    with open(open_regular(stream), "rb") as file:
        previous_end = b""
        while True:
            chunk = file.read(_CHUNK)
            if not chunk:
                return False
            text = previous_end + chunk
            if any(mark in text for mark in marks):
                return True
            previous_end = chunk[-longest:]  # a mark may lie across two chunks


class Attendants:
    """The sampler and the judge of a run, which continues without them if they fail."""

    def __init__(self, run_dir: Path, journal: Writer, children: Children) -> None:
        self._run_dir = run_dir
        self._journal = journal
        self._children = children
        self._sampler: Child | None = None
        self._samplers_started = 0
        self._judge: Child | None = None  # one that was started in advance

    @property
    def pids(self) -> set[int]:
        """The processes that stay when those of the scenario are ended."""
        return {child.pid for child in (self._sampler, self._judge) if child}

    def start_sampler(self) -> None:
        """Start a sampler, whose readings go into a journal stream of its own.

        If it cannot be started, that is recorded, and the run continues without a sampler.
        """
        stream = "sampler"
        if self._samplers_started:
            stream = f"sampler-{self._samplers_started}"
        self._samplers_started += 1
        try:
            self._sampler = spawn_sampler(self._run_dir, stream)
        except OSError as problem:
            reason = f"not started: {problem.strerror}"
            self._journal.append(events.SamplerEnded(reason=reason, restarts=SAMPLER_STARTS))
        else:
            self._children.add(self._sampler)

    def note_death(self, child: Child, *, is_stopping: bool) -> bool:
        """Handle the death of a child, and return whether it was a helper.

        The death of a sampler is recorded unless `end_sampler` killed it. The sampler is then
        restarted, unless the run is ending or SAMPLER_STARTS samplers were started already.
        """
        if child is self._judge:
            self._judge = None  # another one is started when it is needed
        if child is not self._sampler:
            return child.writer in ("judge", "rest")
        self._sampler = None
        if child.reason == _DISMISSED:
            return True
        restarts = self._samplers_started - 1
        self._journal.append(events.SamplerEnded(reason=child.how_it_ended(), restarts=restarts))
        if self._samplers_started < SAMPLER_STARTS and not is_stopping:
            self.start_sampler()
        return True

    def check_sampler(self) -> None:
        """Kill a sampler that has been silent for too long."""
        sampler = self._sampler
        if sampler is None or sampler.reason:
            return
        if time.monotonic() - sampler.last_heard > SAMPLER_SILENCE_S:
            sampler.kill("stopped answering")

    def await_sampler(self, is_called_off: Callable[[], bool]) -> None:
        """Wait until the sampler has described the machine: a short run may end earlier.

        The wait ends after SAMPLER_END_S, when the sampler dies, or when `is_called_off` returns
        True.
        """
        deadline = time.monotonic() + SAMPLER_END_S
        while self._sampler and time.monotonic() < deadline:
            if self._sampler.is_ready or is_called_off():
                return
            self._children.turn(0.1)

    def end_sampler(self) -> None:
        """Kill the sampler, and wait at most SAMPLER_END_S until it has died.

        A sampler may be unable to die, for example in a driver that hangs. That is recorded, and
        the sampler is left behind.
        """
        if not self._sampler:
            return
        self._sampler.kill(_DISMISSED)
        deadline = time.monotonic() + SAMPLER_END_S
        while self._sampler and time.monotonic() < deadline:
            self._children.turn(0.1)
        if self._sampler:
            pid = self._sampler.pid
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)  # it has a process group of its own
            reason = "could not be ended: " + ", ".join(processes.names_of(lambda: [pid]))
            self._journal.append(
                events.SamplerEnded(reason=reason, restarts=self._samplers_started - 1)
            )

    def prepare_judge(self) -> None:
        """Start the judge in advance, because loading it takes a core for a moment.

        If that fails, nothing is recorded: `judge` starts another one.
        """
        with contextlib.suppress(OSError):
            self._judge = spawn_judge(self._run_dir)
            self._children.add(self._judge)

    def dismiss_judge(self) -> None:
        """End a judge that was started in advance and is not needed."""
        judge = self._judge
        self._judge = None
        if judge:
            judge.tell("")  # an empty request: the process ends without judging

    def judge(
        self,
        tell: Callable[[str], None],
        *,
        is_look: bool = False,
        is_done: bool = False,
        is_called_off: Callable[[], bool],
    ) -> bool:
        """Compute the verdicts in a process of its own, and return whether it succeeded.

        The process is killed when `is_called_off` returns True; `tell` gets a sentence when the
        process is slow. With `is_look` nothing is written, and True means that all claims are
        decided. With `is_done` the lesson of the run counts as done. Except with `is_look`, a
        failure is recorded.
        """
        request = "judge"
        if is_look:
            request = "look"
        elif is_done:
            request = "done"
        has_succeeded = False
        reason = f"the judge: {_CALLED_OFF}"
        if not is_called_off():
            try:
                child = self._ask_judge(request)
                self._wait_for_judge(child, tell, is_called_off)
                has_succeeded = child.code == 0
                reason = f"the judge: {child.how_it_ended()}"
            except OSError as problem:
                reason = f"cannot start the judge: {problem.strerror}"
        if not has_succeeded and not is_look:
            self._journal.append(events.Unavailable(what="verdicts", reason=reason))
        return has_succeeded

    def read_rest(self) -> None:
        """Record the marks of a command that its worker, which was killed, did not read.

        A mark is an event of a training, such as a step, that the watcher in the command writes to
        a file. Another process reads them, for at most REST_PATIENCE_S. If that fails, the reason
        is recorded.
        """
        if not has_rest(self._run_dir):
            return
        try:
            child = spawn_rest(self._run_dir)
        except OSError as problem:
            reason = f"nothing could be started: {problem.strerror}"
            self._journal.append(events.Unavailable(what=_LAST_MARKS, reason=reason))
            return
        child.deadline = child.started + REST_PATIENCE_S
        self._children.add(child)
        while not (child.is_over or child.cannot_be_killed()):
            self._children.turn(0.1)
        if child.code != 0:
            self._journal.append(events.Unavailable(what=_LAST_MARKS, reason=child.how_it_ended()))

    def _ask_judge(self, request: str) -> Child:
        """Send a request to the judge that was started in advance, or to a new one."""
        judge = self._judge
        self._judge = None
        if judge is None or not judge.tell(request):
            judge = spawn_judge(self._run_dir)
            self._children.add(judge)
            judge.tell(request)
        return judge

    def _wait_for_judge(
        self, judge: Child, tell: Callable[[str], None], is_called_off: Callable[[], bool]
    ) -> None:
        """Wait until the judge has ended, or cannot be killed; its deadline is JUDGE_PATIENCE_S.

        The judge is killed when `is_called_off` returns True. If it is slow, `tell` gets a sentence
        once, and an empty string at the end.
        """
        judge.started = time.monotonic()  # its deadline begins with the request
        judge.deadline = judge.started + JUDGE_PATIENCE_S
        has_told = False
        while not (judge.is_over or judge.cannot_be_killed()):
            if is_called_off() and not judge.reason:
                judge.kill(_CALLED_OFF)
            if not has_told and time.monotonic() - judge.started > JUDGE_SLOW_S:
                has_told = True
                tell("waits for its verdicts")
            self._children.turn(0.1)
        if has_told:
            tell("")
