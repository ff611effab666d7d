"""How the processes of a run are ended without hurting an innocent one, and what a process of a run does to be found.

A signal goes through a pidfd that was opened before the start time was compared, where the system has that. A system that does
not answer (no descriptor left, a sandbox) raises OSError.

Below a supervisor more is certain. It is a subreaper, so every orphan of the run becomes its child, and nobody else can reap a
child of its own: until it does, the pid stays with that child, alive or not, and a plain kill hits no other process. So it can
end all of a run without asking /proc anything: what it kills hands its children up to it, until none is left.

Processes that start others and end, on and on, are gone before a list of them is read to its end. So what is to be killed is
suspended first, each on sight, until no more of them come: what is suspended starts no other.
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

SPARE = "spare".ljust(
    120, "."
)  # the mark of a process that waits for its run: there is room for the name of any

PATIENCE_S = 5.0  # with what is killed and does not go
_EXIT_S = 45.0  # with what is going, while the kernel frees what it held: a minute with all that comes before and after
_STORM_S = 60.0  # with what starts others while it is killed: only a storm makes an end take longer than a minute
_CLEARS_S = 1.0  # for what clears away when the others are gone
_CLEARS = b"multiprocessing.resource_tracker"  # in the command line of what does: Python's own, which removes shared memory
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def send(pid: int, start: int, number: int) -> bool:
    """Signal the process that had `pid` and started at `start`; return False when it is gone, OSError when it cannot be done.

    Where there is no pidfd (an old kernel, a sandbox, no descriptor left) the pid is signalled right after the start time was
    compared: for it to be another process by then, every other pid must have been used in that moment.
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
    """Signal through a pidfd; return False where that is not allowed here, for a plain kill to find out why."""
    try:
        signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        raise
    except OSError:
        return False
    return True


def living(spare: Iterable[int] = ()) -> list[int]:
    """Return what lives below this process (a subreaper), but for `spare` and below; nothing means that there is nothing.

    Where /proc does not tell, it is this process's own children: when they end, theirs become its own.
    """
    spared = set(spare)
    try:
        return _living(spared) or _living(
            spared
        )  # one walk may miss a child whose parent ends meanwhile
    except OSError:
        return [child for child in _own_children() if child not in spared and not _has_ended(child)]


def reap() -> bool:
    """Reap the dead children of this process; there is no hurry."""
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
    """End everything below this process (a subreaper): SIGTERM, a grace, SIGKILL until none is left; not `spare` and below.

    `tend` is called while waiting, must reap the dead, and says whether to skip what is left of the grace. `tell` is called
    with the names of what is going and takes long. Returns the names of those that could not be ended.
    """
    spared = set(spare)
    deadline = time.monotonic() + grace_s
    asked: set[int] = set()
    while time.monotonic() < deadline:
        if not _is_any_left(spared):
            return []
        for pid in living(spared):
            if pid not in asked:
                _signal_now(pid, signal.SIGTERM)
                asked.add(pid)
        if tend():
            break
        time.sleep(0.02)
    if clearing := set(filter(_clears_away, living(spared))):
        _kill_descendants(spared | clearing, tend)
        deadline = time.monotonic() + _CLEARS_S
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


def interrupt_descendants(
    patience_s: float, watching: Container[int], spare: Iterable[int], tend: Callable[[], bool]
) -> None:
    """Ask what lives below this process to end as Ctrl-C does, for a training may save then; wait for it, but not for ever.

    Those that are `watching` and what ignores Ctrl-C are asked as ever. What begins later, as to save, is left alone. `tend` is
    as of `end_descendants`, which is to be called next.
    """
    spared = set(spare)
    for pid in living(spared):
        _signal_now(
            pid, signal.SIGTERM if pid in watching or ignores(pid, signal.SIGINT) else signal.SIGINT
        )
    deadline = time.monotonic() + patience_s
    while _is_any_left(spared) and not tend() and time.monotonic() < deadline:
        time.sleep(0.02)


def ignores(pid: int, number: int) -> bool:
    """Say whether a process ignores a signal, as what a shell has put into the background does Ctrl-C."""
    with contextlib.suppress(OSError, StopIteration, ValueError):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        ignored = next(line for line in lines if line.startswith("SigIgn:"))
        return bool(int(ignored.split()[1], 16) >> (number - 1) & 1)
    return False


def _kill_descendants(spared: set[int], tend: Callable[[], bool]) -> None:
    """Kill until nothing is left, or until what is left has not gone for PATIENCE_S.

    Processes that were not there before are a storm. On a busy machine, we seldom run while they do: so the patience begins
    anew with each of them, for at most _STORM_S.
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


def _clears_away(pid: int) -> bool:
    """Say whether a process ends by itself when the others are gone, and removes what they leave, which would stay for good."""
    with contextlib.suppress(OSError):
        return _CLEARS in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def _exiting(spared: set[int]) -> list[int]:
    return [pid for pid in living(spared) if is_exiting(pid)]


def _is_any_left(spared: set[int]) -> bool:
    """Say whether anything is left below this process but `spared`: a walk may miss what comes and goes, a wait does not."""
    if living(spared):
        return True
    if spared:
        return False
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True  # if only the dead, which are to be reaped: the living may hide behind them


def _suspend_descendants(spared: set[int], deadline: float) -> list[int]:
    """Suspend everything below this process but `spared`, until nothing new comes; return it, near ones first."""
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
    """Yield what is below this process as it is found, its own children first; where /proc does not tell, only those."""
    with contextlib.suppress(OSError):
        yield from [child for child in _own_children() if child not in spared]
    with contextlib.suppress(OSError):
        yield from descendants(os.getpid(), spared)


def names_of(find: Callable[[], list[int]]) -> list[str]:
    """Return the names of the processes that are found, but not of those that are gone before they can be named."""
    for _ in range(5):
        if not (pids := find()):
            return []
        if names := [name for pid in pids if (name := _name_of_what_stays(pid)) and _is_there(pid)]:
            return names
    return [f"{plural(len(pids), 'process', 'processes')} that started others and ended, on and on"]


def _name_of_what_stays(pid: int) -> str:
    why = why_it_stays(pid)
    return f"{name_of(pid)} ({why})" if why else name_of(pid)


def _is_there(pid: int) -> bool:
    """Say whether a process still lives, as far as can be told."""
    try:
        return start_time(pid) is not None
    except OSError:
        return True


def open_mark() -> Callable[[str], None]:
    """Return a function that marks this process, started with SPARE, with the name of a run; OSError where it would not show.

    Others see the environment in the memory where exec put it, whatever `os.environ` says later. So the mark is overwritten
    in place, and processes that are forked from here show it too.
    """
    getenv = ctypes.CDLL(None).getenv
    getenv.restype = ctypes.c_void_p
    place = getenv(MARK.encode())
    stat = stat_fields(os.getpid()) or []
    begin, end = map(int, stat[47:49] or (0, 0))
    if os.environ.get(MARK) != SPARE or not begin <= place < end - len(SPARE):
        raise OSError("the mark of this process cannot be changed")

    def take(run: str) -> None:
        ctypes.memmove(place, run.encode().ljust(len(SPARE), b"\0"), len(SPARE))
        os.environ[MARK] = run

    return take


def end_marked(run: str, grace_s: float = 1.0) -> list[str]:
    """End the processes that a dead supervisor left behind; return the names of those that would not go."""
    for pid, start in _left_of(run):
        _send_if_allowed(pid, start, signal.SIGTERM, signal.SIGCONT)
    deadline = time.monotonic() + grace_s
    while _left_of(run) and time.monotonic() < deadline:
        time.sleep(0.02)
    deadline = time.monotonic() + _STORM_S
    if any(_clears_away(pid) for pid, _ in _left_of(run)):
        _kill_marked(run, deadline, _clears_away)
        cleared_by = time.monotonic() + _CLEARS_S
        while _left_of(run) and time.monotonic() < cleared_by:
            time.sleep(0.02)
    _kill_marked(run, deadline, lambda pid: False)
    return names_left(run)


def _kill_marked(run: str, deadline: float, is_spared: Callable[[int], bool]) -> None:
    before: list[tuple[int, int]] = []
    while (
        left := [one for one in _left_of(run) if not is_spared(one[0])]
    ) and time.monotonic() < deadline:
        if (
            left != before
        ):  # others than a moment ago: a storm, which a busy box gives us little time to catch
            before, since = left, time.monotonic()
        elif time.monotonic() > since + PATIENCE_S:
            break
        for pid, start in _suspend_marked(
            run, min(deadline, time.monotonic() + PATIENCE_S), is_spared
        ):
            _send_if_allowed(pid, start, signal.SIGKILL)
        time.sleep(0.02)


def names_left(run: str) -> list[str]:
    """Return the names of what carries the mark of `run`."""
    return names_of(lambda: [pid for pid, _ in _left_of(run)])


def _left_of(run: str) -> list[tuple[int, int]]:
    """Return (pid, start time) of what carries the mark of `run`; of a storm too fast to be looked at, one that is gone."""
    try:
        return marked(run)
    except BlockingIOError:
        return [(0, time.monotonic_ns())]


def _suspend_marked(
    run: str, deadline: float, is_spared: Callable[[int], bool]
) -> list[tuple[int, int]]:
    """Suspend everything that carries the mark of `run` and is not spared, until nothing new comes; return it."""
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
    with contextlib.suppress(
        PermissionError
    ):  # it has become another user; its name is told in the end
        for number in numbers:
            send(pid, start, number)


def printing_into(pipes: Iterable[int]) -> list[int]:
    """Return the processes beside this one, below its parent, whose stdout or stderr is one of these pipes."""
    found = []
    with contextlib.suppress(OSError):
        inodes = {os.readlink(f"/proc/self/fd/{pipe}") for pipe in pipes}
        for pid in descendants(os.getppid(), {os.getpid()}):
            if any(_link_of(pid, number) in inodes for number in (1, 2)):
                found.append(pid)
    return found


def _link_of(pid: int, fd: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/fd/{fd}")
    except OSError:
        return ""


def name_of(pid: int) -> str:
    """Return `1234 python train.py` for a message or a record, without secrets."""
    from tuilab.scrub import words_for_record  # `tuilab list` does without it

    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        if words == [""]:  # its memory is gone, where the command line was
            words = [f"[{Path(f'/proc/{pid}/comm').read_text(errors='replace').strip()}]"]
    except GONE:
        words = ["gone"]
    except OSError as problem:
        words = [f"(its name: {problem.strerror})"]
    words[0] = os.path.basename(words[0]) or words[0]  # so that there is room for what it runs
    return f"{pid} {' '.join(words_for_record(words)).strip()[:80]}"


def ended_by(number: int) -> str:
    """Return in words that a process was ended by a signal that nobody here sent."""
    hint = "; nobody asked for that: out of memory?" if number == signal.SIGKILL else ""
    return f"ended by {signal_name(number)}{hint}"


def signal_name(number: int) -> str:
    """Return `SIGTERM`; most of the real-time signals have no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def become_subreaper() -> None:
    """Become the parent of every orphan below: a daemon cannot leave the run."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    with contextlib.suppress(OSError):
        _list_of_children()


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when the thread that started it ends (or has ended by now)."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def start_clean(parent: int) -> None:
    """Tie a forked child to its parent, and undo what it inherited of signals. The child calls this before exec."""
    die_with_parent(parent)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)  # ignored signals are inherited through exec
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _living(spared: set[int]) -> list[int]:
    return [pid for pid in descendants(os.getpid(), spared) if start_time(pid) is not None]


def _has_ended(child: int) -> bool:
    """Say whether a child of this process is a zombie, or was reaped."""
    try:
        return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def _signal_now(pid: int, number: int) -> None:
    """Signal a process below this one; what cannot be signalled stays, and is named in the end."""
    numbers = (
        (number, signal.SIGCONT) if number in (signal.SIGTERM, signal.SIGINT) else (number,)
    )  # a stopped process could not act on it
    with contextlib.suppress(ProcessLookupError, PermissionError):
        try:
            start = start_time(pid)
        except OSError:
            if _has_ended(pid):
                return  # or no child of this process: only such a pid is known not to be used again
            for each in numbers:
                os.kill(pid, each)
        else:
            for each in numbers:
                if start is not None:
                    send(pid, start, each)


@functools.cache
def _list_of_children() -> int:
    """Open the kernel's list of the first thread's children for good: it can be read when nothing can be opened any more."""
    return os.open(f"/proc/self/task/{os.getpid()}/children", os.O_RDONLY | os.O_CLOEXEC)


def _own_children() -> list[int]:
    """Return the children of this process, which has one thread; zombies, too."""
    fd = _list_of_children()
    os.lseek(fd, 0, os.SEEK_SET)
    found = b""
    while more := os.read(fd, 65536):
        found += more
    return [int(pid) for pid in found.split()]
