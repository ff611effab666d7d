"""Run a command to its end, and watch it: once for a run of a command, repeatedly for a race.

If the watching fails, the command still runs undisturbed.
"""

import contextlib
import math
import os
import select
import shlex
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from subprocess import Popen
from types import FrameType
from typing import NamedTuple

from tuilab.commands.arms import command_of
from tuilab.commands.command_failure import StderrTail, failure_of, lost_rank_of
from tuilab.commands.output.pass_on import Passing
from tuilab.commands.output.scan_numbers import NumberScanner
from tuilab.commands.start_command import start, treating_variables
from tuilab.commands.watched import Watched
from tuilab.commands.watcher._tuilab_watch.counting import COUNT
from tuilab.commands.watcher._tuilab_watch.out_of_memory import HISTORY
from tuilab.engine.messages import CommandArm, CommandOrder, LeftProcess
from tuilab.engine.processes import ended_by, kill_descendants_once, name_of, printing_into
from tuilab.record import events
from tuilab.record.journal.writer import Writer
from tuilab.scrub import words_for_record
from tuilab.text.display import show

_TURN_S = 0.05  # between two readings of the marks
_AS_IT_IS = CommandArm(name="")  # the command without any change, in a run without arms
_stopped: list[int] = []  # the signals that asked this process to stop


class CommandEnd(NamedTuple):
    """How a command ended, and what it took."""

    code: int  # negative: a signal
    cpu_s: float  # of the command, and of all processes that it waited for
    peak_bytes: int  # resident, of its largest process
    watched: Watched
    # The last line of the stream on which a command prints why it failed; empty after a traceback.
    last_line: str = ""
    lost_rank: str = ""  # under torchrun: which rank a signal ended
    left_processes: Sequence[LeftProcess] = ()
    failure: events.ScenarioFailed | None = None  # that it printed
    is_over_time: bool = False  # it was killed, because it had reached its limit
    elapsed_s: float = 0.0


def stay_when_stopped() -> None:
    """Let this process outlive a stop: SIGTERM is only noted from now on.

    The stop reaches the command as well. This process stays, to keep what the command marks and
    prints until its end.
    """

    def stay(number: int, frame: FrameType | None) -> None:
        _stopped.append(number)

    signal.signal(signal.SIGTERM, stay)


def was_stopped() -> bool:
    """Return whether this process was asked to stop."""
    return bool(_stopped)


def run_watched(
    command: CommandOrder,
    marks: Path,
    journal: Writer,
    arm: CommandArm = _AS_IT_IS,
    label: str = "",
    *,
    last_step: int = 0,
    has_facts: bool = False,
    limit_s: float | None = None,
    may_fail: bool = False,
) -> CommandEnd:
    """Run a command, or an arm of it, to its end; raise CannotStart if it cannot be started.

    What the processes mark, and the failure that they print, are recorded; `label` is the arm that
    the records belong to. The folder `marks` is made and removed. Descriptors that only the command
    needs are closed here.

    The treatments of the arm are applied. If there is a `last_step`, each process ends after so
    many steps of an optimizer. `has_facts` says whether the processes report facts about the
    training. After `limit_s`, the command is killed with all its processes; this process must be a
    subreaper then. With `may_fail`, a failure is returned, but not recorded as the failure of the
    run.
    """
    began = time.monotonic()
    is_watched = command.watch != "nothing"
    why_blind = _make_folder(marks) if is_watched else ""
    if why_blind:  # the command matters more than its marks, so it runs without being watched
        is_watched = False
        journal.append(events.Unavailable(what="steps", reason=why_blind))
    watched_marks = marks if is_watched else None
    # The variables of the arm come last: whoever writes an arm knows best.
    variables = treating_variables(arm.treatments, last_step, has_facts=has_facts)
    variables.update(arm.env)
    if command.has_memory_history:
        variables[HISTORY] = "1"
    if command.watch == "all" and not label:  # a race measures its arms, and counts nothing
        variables[COUNT] = "1"
    try:
        child = start(
            command_of(arm, command.words),
            watched_marks,
            command.watch,
            variables,
            command.folder,
            stdin=command.stdin,
            is_joined=command.is_joined,
            umask=command.umask,
            others=command.others,
        )
        for descriptor in command.handed_over:
            os.close(descriptor)
        printed = NumberScanner(command.metrics)
        stderr_tail = StderrTail()
        streams = _pass_on(child, command.outputs, printed, stderr_tail)
        watched = Watched(command, watched_marks, printed, journal, label, child.pid)
        watched.why_blind = why_blind
        deadline = began + limit_s if limit_s else math.inf
        followed = _follow(child, Turns(watched.turn, journal), deadline)
        code = followed.code
        _finish(streams, journal)
        left_processes = _find_left_processes(child)
        watched.is_ended_early = may_fail and was_stopped()
        Turns(watched.finish, journal).take()
        failure = None
        if code and not followed.is_over_time:
            failure = failure_of(stderr_tail.text(), command.words, command.folder)
        if failure:
            failure.hint = _describe_arm(arm, command) if label else ""
            if not may_fail:
                journal.append(failure)
    finally:
        if is_watched:
            shutil.rmtree(marks, ignore_errors=True)
    watched.record_lost_story()
    return CommandEnd(
        code,
        followed.cpu_s,
        followed.peak_bytes,
        watched,
        last_line="" if failure else stderr_tail.last_line(),
        lost_rank=lost_rank_of(stderr_tail.text()) if code else "",
        left_processes=left_processes,
        failure=failure,
        is_over_time=followed.is_over_time,
        elapsed_s=time.monotonic() - began,
    )


def _find_left_processes(child: "Popen[bytes]") -> list[LeftProcess]:
    """Return the processes that still hold a pipe open into which the command printed."""
    descriptors = []
    for pipe in (child.stdout, child.stderr):
        if pipe and not pipe.closed:
            descriptors.append(pipe.fileno())
    pids = printing_into(descriptors)
    return [LeftProcess(pid, name_of(pid)) for pid in pids]


def _make_folder(marks: Path) -> str:
    """Create the folder for marks; return why that failed, or an empty string."""
    try:
        marks.mkdir(mode=0o700)
    except OSError as problem:
        cause = f"cannot create the folder for marks ({problem.strerror})"
        return f"{cause}; the command ran without being watched"
    return ""


def _describe_arm(arm: CommandArm, command: CommandOrder) -> str:
    """Return which arm failed, with the command line that runs it alone."""
    variables = [f"{name}={value}" for name, value in arm.env.items()]
    words = words_for_record([*variables, *command_of(arm, command.words)])
    return show(f"this was arm {arm.name}: {shlex.join(words)}", 500)


def _pass_on(
    child: "Popen[bytes]", outputs: Sequence[int], printed: NumberScanner, stderr_tail: StderrTail
) -> dict[str, Passing]:
    """Pass on what the command prints to the worker's own streams and to those of the client.

    The supervisor keeps the streams of the worker. A command prints why it failed at the end of
    stderr, or at the end of stdout if both are joined, so `stderr_tail` keeps that end.
    """
    last_name = "stderr" if child.stderr else "stdout"
    streams: dict[str, Passing] = {}
    for name, number, pipe in (("stdout", 1, child.stdout), ("stderr", 2, child.stderr)):
        if pipe:
            # The client may have fewer streams than the command.
            target = outputs[number - 1] if len(outputs) >= number else None
            on_data = _make_reader(printed, stderr_tail if name == last_name else None)
            streams[name] = Passing(pipe, number, target, on_data)
    return streams


def _make_reader(printed: NumberScanner, stderr_tail: StderrTail | None) -> Callable[[bytes], None]:
    """Return the function that takes the output of a stream, for its numbers and for its end.

    Without `stderr_tail`, the end is not kept.
    """
    scan = printed.add_stream()
    if stderr_tail is None:
        return scan

    def take(data: bytes) -> None:
        scan(data)
        stderr_tail.take(data)

    return take


def _finish(streams: dict[str, Passing], journal: Writer) -> None:
    """Wait until all output of the command is passed on; record where that stopped, and why."""
    for name, stream in streams.items():
        stream.finish(lambda: bool(_stopped))
        if stream.trouble:
            what = f"{name} of the command on {name} of tuilab, from some point on"
            journal.append(events.Unavailable(what=what, reason=stream.trouble))


class Turns:
    """Repeat an action while a command runs.

    If the action fails, the failure is recorded once, and the command continues without the action.
    """

    def __init__(self, act: Callable[[], None], journal: Writer) -> None:
        self._act = act
        self._journal = journal
        self._has_failed = False

    def take(self) -> None:
        """Do the action once, unless it has failed before; record the first failure."""
        if self._has_failed:
            return
        try:
            self._act()
        except Exception as problem:  # a failure of tuilab's own code must not end a training
            self._has_failed = True
            reason = f"tuilab failed to watch it: {type(problem).__name__}: {problem}"
            what = "the command, from some point on"
            self._journal.append(events.Unavailable(what=what, reason=reason[:1000]))


class _Followed(NamedTuple):
    """How a command ended that was followed to its end."""

    code: int  # negative: a signal
    cpu_s: float
    peak_bytes: int
    is_over_time: bool


def _follow(child: "Popen[bytes]", turns: Turns, deadline: float) -> _Followed:
    """Take what is new until the command ends, and reap it.

    After `deadline`, on the monotonic clock, the command and its processes are killed.
    """
    end = select.poll()
    handle = -1
    is_over_time = False
    # Old kernels and sandboxes have no pidfd. Then only the next turn notices the end.
    with contextlib.suppress(OSError):
        handle = os.pidfd_open(child.pid)
        end.register(handle, select.POLLIN)
    while True:
        began = time.monotonic()
        pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        if pid:
            break
        if began > deadline:
            is_over_time = True
            kill_descendants_once()
        turns.take()
        # Wait at least as long as the turn took, so that it uses at most half of a core.
        turn_s = time.monotonic() - began
        end.poll(1000 * max(_TURN_S, turn_s))
    if handle >= 0:
        os.close(handle)
    child.returncode = os.waitstatus_to_exitcode(status)
    cpu_s = usage.ru_utime + usage.ru_stime
    return _Followed(child.returncode, cpu_s, usage.ru_maxrss * 1024, is_over_time)


def how_it_ended(ended: CommandEnd, *, is_seen: bool) -> str:
    """Return how a command failed; an empty string if it did not fail.

    If nobody has seen its output, the sentence includes the last line that it printed.
    """
    if ended.code < 0:
        return f"the command was {ended_by(-ended.code)}"
    if ended.lost_rank:
        return f"the command ended with exit code {ended.code}: {ended.lost_rank}"
    if not ended.code:
        return ""
    failed = f"the command ended with exit code {ended.code}"
    if ended.last_line and not is_seen:
        return f"{failed}; its last line: {ended.last_line}"
    return failed
