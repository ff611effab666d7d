"""End the processes of a run without hurting others, and mark them so that they can be found.

The mark is an environment variable with the name of the run. A signal is sent through a pidfd that
was opened before the start time was compared, if the system has pidfds. Functions raise OSError if
the system does not answer (no descriptor left, a sandbox).

A supervisor can do more. It is a subreaper, so every orphan of the run becomes its child, and only
it can reap its children. Until then their pids are not reused, and a plain kill hits no other
process. So it can end a run without /proc: the children of a killed process become its own
children, until none is left.

Some processes fork and end all the time (a storm), and are gone before a list of them has been
read. Therefore processes are suspended as soon as they are seen, until no new ones appear, and then
killed.
"""

import contextlib
import ctypes
import functools
import os
import signal
import time
from collections.abc import Callable, Container, Iterable, Iterator
from pathlib import Path

from tuilab.engine.slow_exits import is_exiting, why_it_stays
from tuilab.record.presence import (
    GONE,
    LOOKS,
    MARK,
    descendants,
    marked,
    search,
    start_time,
    stat_fields,
)
from tuilab.text.display import plural

SPARE = "spare".ljust(120, ".")  # the mark of a process without a run: room for any name

PATIENCE_S = 5.0  # for a killed process to go
_EXIT_S = (
    45.0  # for the kernel to free its resources; with everything else this stays below a minute
)
_STORM_S = 60.0  # for processes that fork and end all the time: only they take longer than a minute
_TRACKER_S = 1.0  # for the resource tracker, which works when the others are gone
_TRACKER = b"multiprocessing.resource_tracker"  # Python's own process that removes shared memory
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def send(pid: int, start: int, number: int) -> bool:
    """Signal the process with this pid and start time; return False if it is gone.

    Without a pidfd (an old kernel, a sandbox, no descriptor left), the pid is signalled right after
    the start time was compared: in that moment it can hardly be reused. Raises OSError if the
    process cannot be signalled.
    """
    handle = None
    with contextlib.suppress(OSError, OverflowError):
        handle = os.pidfd_open(pid)
    try:
        if start_time(pid) != start:
            return False
        if handle is None or not _send_through(handle, number):
            os.kill(pid, number)
    except ProcessLookupError:
        return False
    finally:
        if handle is not None:
            os.close(handle)
    return True


def _send_through(handle: int, number: int) -> bool:
    """Signal through a pidfd; return False if that is not allowed here."""
    try:
        signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        raise
    except OSError:
        return False
    return True


def living(spare: Iterable[int] = ()) -> list[int]:
    """Return the living descendants of this process (a subreaper), except `spare` and theirs.

    An empty list is certain. Where /proc cannot be read, only children of this process are
    returned: when they end, their own children become its children.
    """
    spared = set(spare)
    try:
        # Two walks, because one may miss a child whose parent ends meanwhile.
        return _living(spared) or _living(spared)
    except OSError:
        children = [child for child in _own_children() if child not in spared]
        return [child for child in children if not _has_ended(child)]


def reap() -> bool:
    """Reap the dead children of this process; return False, because there is no hurry.

    The result makes it a `tend` of `end_descendants`.
    """
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    return False


def end_descendants(
    grace_s: float,
    spare: Iterable[int] = (),
    tend: Callable[[], bool] = reap,
    tell: Callable[[list[str]], None] = lambda _: None,
) -> list[str]:
    """End the descendants of this process (a subreaper), except `spare` and theirs.

    They get SIGTERM, some time, then SIGKILL. `tend` is called while waiting: it must reap dead
    children, and returns True to skip the rest of the time. `tell` gets the names of processes
    whose exit takes long. Returns the names of processes that could not be ended.
    """
    spared = set(spare)
    deadline = time.monotonic() + grace_s
    signalled: set[int] = set()
    while time.monotonic() < deadline:
        if not _is_any_left(spared):
            return []
        for pid in living(spared):
            if pid not in signalled:
                _signal_now(pid, signal.SIGTERM)
                signalled.add(pid)
        if tend():
            break
        time.sleep(0.02)
    trackers = {pid for pid in living(spared) if _is_resource_tracker(pid)}
    if trackers:
        _kill_descendants(spared | trackers, tend)
        deadline = time.monotonic() + _TRACKER_S
        while _is_any_left(spared) and time.monotonic() < deadline:
            tend()
            time.sleep(0.02)
    deadline = time.monotonic() + _EXIT_S
    _kill_descendants(spared, tend)
    if _exiting(spared):
        tell(names_of(lambda: _exiting(spared)))
    while _exiting(spared) and time.monotonic() < deadline:
        tend()
        time.sleep(0.02)
    return names_of(lambda: living(spared))


def kill_descendants_once() -> None:
    """Send SIGKILL to the descendants of this process (a subreaper) that live now.

    They may start others meanwhile, so the caller repeats it until its own child has ended.
    """
    for pid in living():
        _signal_now(pid, signal.SIGKILL)


def interrupt_descendants(
    patience_s: float, watching: Container[int], spare: Iterable[int], tend: Callable[[], bool]
) -> None:
    """Interrupt the descendants of this process as Ctrl-C does, and wait: a training may save then.

    Processes in `watching`, and those that ignore SIGINT, get SIGTERM. Processes that begin later,
    for example to save, are left alone. The wait ends after `patience_s`, or when `tend` returns
    True. Call `end_descendants` with the same `tend` next: it ends what is left.
    """
    spared = set(spare)
    for pid in living(spared):
        if pid in watching or ignores(pid, signal.SIGINT):
            _signal_now(pid, signal.SIGTERM)
        else:
            _signal_now(pid, signal.SIGINT)
    deadline = time.monotonic() + patience_s
    while _is_any_left(spared) and not tend() and time.monotonic() < deadline:
        time.sleep(0.02)


def ignores(pid: int, number: int) -> bool:
    """Say whether a process ignores a signal: shells start background commands without SIGINT.

    False if its status cannot be read.
    """
    with contextlib.suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("SigIgn:"):
                ignored = int(line.split()[1], 16)
                return bool(ignored >> (number - 1) & 1)
    return False


def _kill_descendants(spared: set[int], tend: Callable[[], bool]) -> None:
    """Kill until no descendant is left, or until the rest has not gone for PATIENCE_S.

    Each new process restarts that time, for at most _STORM_S: on a busy machine, this process
    seldom runs while they fork.
    """
    storm_deadline = time.monotonic() + _STORM_S
    deadline = time.monotonic() + PATIENCE_S
    killed: set[int] = set()
    while _is_any_left(spared) and time.monotonic() < min(deadline, storm_deadline):
        suspended = _suspend_descendants(spared, deadline)
        if not killed.issuperset(suspended):
            deadline = time.monotonic() + PATIENCE_S
        killed.update(suspended)
        for pid in suspended:
            _signal_now(pid, signal.SIGKILL)
        tend()
        time.sleep(0.02)


def _is_resource_tracker(pid: int) -> bool:
    """Say whether a process is the resource tracker, which must outlive the others to clean up."""
    with contextlib.suppress(OSError):
        return _TRACKER in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def _exiting(spared: set[int]) -> list[int]:
    return [pid for pid in living(spared) if is_exiting(pid)]


def _is_any_left(spared: set[int]) -> bool:
    """Say whether this process has descendants other than `spared`; zombies count."""
    if living(spared):
        return True
    if spared:
        return False
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True  # a walk may miss processes that come and go, but a wait does not


def _suspend_descendants(spared: set[int], deadline: float) -> list[int]:
    """Suspend all descendants except `spared`, until no new ones appear; return all of them.

    After `deadline`, return those that were found so far.
    """
    held: dict[int, None] = {}
    while time.monotonic() < deadline:
        count = len(held)
        for pid in _in_sight(spared):
            if pid not in held:
                _signal_now(pid, signal.SIGSTOP)
                held[pid] = None
        if len(held) == count:
            break
    return list(held)


def _in_sight(spared: set[int]) -> Iterator[int]:
    """Yield the descendants as they are found, perhaps twice.

    If /proc cannot be read, only children of this process are found.
    """
    with contextlib.suppress(OSError):
        yield from [child for child in _own_children() if child not in spared]
    with contextlib.suppress(OSError):
        yield from descendants(os.getpid(), spared)


def names_of(find: Callable[[], list[int]]) -> list[str]:
    """Return the names of the processes that `find` returns and that still live.

    `find` is called up to five times, as long as all that it found has ended. If it never finds a
    living process, the only name is a sentence about processes that come and go.
    """
    for _ in range(5):
        pids = find()
        if not pids:
            return []
        names = []
        for pid in pids:
            name = _name_with_reason(pid)
            if _is_alive(pid):  # checked last: a name of a process that ended meanwhile is empty
                names.append(name)
        if names:
            return names
    return [f"{plural(len(pids), 'process', 'processes')} that started others and ended, on and on"]


def _name_with_reason(pid: int) -> str:
    reason = why_it_stays(pid)
    if not reason:
        return name_of(pid)
    return f"{name_of(pid)} ({reason})"


def _is_alive(pid: int) -> bool:
    """Say whether a process lives; True if unknown."""
    try:
        return start_time(pid) is not None
    except OSError:
        return True


def open_mark() -> Callable[[str], None]:
    """Return a function that changes the mark of this process from SPARE to the name of a run.

    Other processes see the environment in the memory where exec put it, not in `os.environ`. So the
    mark is overwritten in place, and forked processes show it, too. Raises OSError if it would not
    show.
    """
    getenv = ctypes.CDLL(None).getenv
    getenv.restype = ctypes.c_void_p
    place = getenv(MARK.encode())
    stat = stat_fields(os.getpid()) or []
    begin = 0  # of the environment in the memory of this process
    end = 0
    if len(stat) > 48:
        begin = int(stat[47])
        end = int(stat[48])
    if os.environ.get(MARK) != SPARE or not begin <= place < end - len(SPARE):
        raise OSError("the mark of this process cannot be changed")

    def change_mark(run: str) -> None:
        ctypes.memmove(place, run.encode().ljust(len(SPARE), b"\0"), len(SPARE))
        os.environ[MARK] = run

    return change_mark


def end_marked(run: str, grace_s: float = 1.0) -> list[str]:
    """End the processes that a dead supervisor left behind; return the names of those that stay.

    The processes with the mark of the run get SIGTERM, `grace_s` seconds, then SIGKILL. The
    resource tracker of Python is killed last. Processes of another user are not signalled, but
    named.
    """
    for pid, start in _left_of(run):
        _send_if_allowed(pid, start, signal.SIGTERM, signal.SIGCONT)
    deadline = time.monotonic() + grace_s
    while _left_of(run) and time.monotonic() < deadline:
        time.sleep(0.02)
    deadline = time.monotonic() + _STORM_S
    if any(_is_resource_tracker(pid) for pid, _ in _left_of(run)):
        _kill_marked(run, deadline, _is_resource_tracker)
        cleared_by = time.monotonic() + _TRACKER_S
        while _left_of(run) and time.monotonic() < cleared_by:
            time.sleep(0.02)
    _kill_marked(run, deadline, lambda pid: False)
    return names_left(run)


def _kill_marked(run: str, deadline: float, is_spared: Callable[[int], bool]) -> None:
    """Kill the processes with the mark of a run, except spared ones, until none is left.

    They are suspended first, so that they cannot fork. Give up at the deadline, or if the same
    processes are left for PATIENCE_S. New processes restart this time, because on a busy machine
    this loop seldom runs while they do.
    """
    previous: list[tuple[int, int]] = []
    while time.monotonic() < deadline:
        remaining = [(pid, start) for pid, start in _left_of(run) if not is_spared(pid)]
        if not remaining:
            break
        if remaining != previous:
            previous = remaining
            unchanged_since = time.monotonic()
        elif time.monotonic() > unchanged_since + PATIENCE_S:
            break
        suspend_by = min(deadline, time.monotonic() + PATIENCE_S)
        for pid, start in _suspend_marked(run, suspend_by, is_spared):
            _send_if_allowed(pid, start, signal.SIGKILL)
        time.sleep(0.02)


def names_left(run: str) -> list[str]:
    """Return the names of the processes with the mark of a run."""
    return names_of(lambda: [pid for pid, _ in _left_of(run)])


def _left_of(run: str) -> list[tuple[int, int]]:
    """Return pid and start time of the processes with the mark of a run.

    If they come and go too fast to be seen, one entry stands for them: pid 0, which nothing can
    signal, and a start time that differs in each call, so that callers see a change.
    """
    try:
        return marked(run)
    except BlockingIOError:
        return [(0, time.monotonic_ns())]


def _suspend_marked(
    run: str, deadline: float, is_spared: Callable[[int], bool]
) -> list[tuple[int, int]]:
    """Suspend the processes with the mark of a run, except spared ones; return those.

    This ends when LOOKS searches in a row found nothing new, or at `deadline`.
    """
    held: list[tuple[int, int]] = []
    passed: set[int] = set()
    looks = 0
    while looks < LOOKS and time.monotonic() < deadline:
        is_empty = True
        looks += 1
        for pid, start in search(run, passed):
            if is_spared(pid):
                passed.add(pid)
                continue
            is_empty = False
            if start is not None:
                _send_if_allowed(pid, start, signal.SIGSTOP)
                held.append((pid, start))
                passed.add(pid)
                looks = 0
        if is_empty:
            break
    return held


def _send_if_allowed(pid: int, start: int, *numbers: int) -> None:
    with contextlib.suppress(PermissionError):  # it changed its user: the caller reports it
        for number in numbers:
            send(pid, start, number)


def printing_into(pipes: Iterable[int]) -> list[int]:
    """Return the processes below the parent of this one that print into one of these pipes.

    This process and its descendants are left out. The list is empty if /proc cannot be read.
    """
    pids = []
    with contextlib.suppress(OSError):
        inodes = {os.readlink(f"/proc/self/fd/{pipe}") for pipe in pipes}
        for pid in descendants(os.getppid(), {os.getpid()}):
            if any(_link_of(pid, number) in inodes for number in (1, 2)):
                pids.append(pid)
    return pids


def _link_of(pid: int, fd: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/fd/{fd}")
    except OSError:
        return ""


def name_of(pid: int) -> str:
    """Return `1234 python train.py` for a message or a record, without secrets."""
    # imported here: `tuilab list` does not need it
    from tuilab.scrub import words_for_record

    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        if words == [""]:  # its memory is gone, and the command line with it
            words = [f"[{Path(f'/proc/{pid}/comm').read_text(errors='replace').strip()}]"]
    except GONE:
        words = ["gone"]
    except OSError as problem:
        words = [f"(its name: {problem.strerror})"]
    words[0] = os.path.basename(words[0]) or words[0]  # leaves room for its arguments
    return f"{pid} {' '.join(words_for_record(words)).strip()[:80]}"


def ended_by(number: int) -> str:
    """Return the sentence for a process that was ended by a signal of somebody else."""
    sentence = f"ended by {signal_name(number)}"
    if number == signal.SIGKILL:
        sentence += "; nobody asked for that: out of memory?"
    return sentence


def signal_name(number: int) -> str:
    """Return a name such as `SIGTERM`; most real-time signals have none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def become_subreaper() -> None:
    """Become the parent of all orphans below this process, so that no daemon can leave the run."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    with contextlib.suppress(OSError):
        _list_of_children()


def die_with_parent(parent: int) -> None:
    """Tell the kernel to kill this process when the thread that started it ends.

    If that thread has ended already, this process kills itself now.
    """
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def start_clean(parent: int) -> None:
    """Tie a forked child to its parent, and reset its signals. The child calls this before exec."""
    die_with_parent(parent)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)  # ignored signals are inherited through exec
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _living(spared: set[int]) -> list[int]:
    return [pid for pid in descendants(os.getpid(), spared) if start_time(pid) is not None]


def _has_ended(child: int) -> bool:
    """Say whether a child of this process has ended, reaped or not."""
    try:
        return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def _signal_now(pid: int, number: int) -> None:
    """Signal a descendant; errors are ignored, because the caller reports those left."""
    numbers = [number]
    if number in (signal.SIGTERM, signal.SIGINT):
        numbers.append(signal.SIGCONT)  # a suspended process could not react
    with contextlib.suppress(ProcessLookupError, PermissionError):
        try:
            start = start_time(pid)
        except OSError:
            if _has_ended(pid):
                return  # it may also be no child of this process, and such a pid may be reused
            for each in numbers:
                os.kill(pid, each)
        else:
            for each in numbers:
                if start is not None:
                    send(pid, start, each)


@functools.cache
def _list_of_children() -> int:
    """Open the list of our children once: later there may be no free descriptor."""
    return os.open(f"/proc/self/task/{os.getpid()}/children", os.O_RDONLY | os.O_CLOEXEC)


def _own_children() -> list[int]:
    """Return the children of this process, which must have only one thread; zombies count."""
    fd = _list_of_children()
    os.lseek(fd, 0, os.SEEK_SET)
    content = b""
    while True:
        chunk = os.read(fd, 65536)
        if not chunk:
            return [int(pid) for pid in content.split()]
        content += chunk
