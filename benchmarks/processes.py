"""Start the programs that are measured, and measure them.

Each program gets a session and folders of its own. Its cost includes the processes that it leaves
behind.
"""

import contextlib
import ctypes
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from shutil import which

from benchmarks.pairs import Missing

PYTHON = sys.executable
CHECKOUT = Path(__file__).resolve().parent.parent
INSTALL = "pip install -c constraints.txt -e '.[test,bench]'"
STUCK_S = 600.0
# A variable of the user would change the results if its name begins with one of these.
_REMOVED_PREFIXES = ("PYTHON", "XDG_", "TUILAB_", "WANDB_", "TRACKIO_")
_PR_SET_CHILD_SUBREAPER = 36


def environment(place: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return an environment whose folders are all inside one folder."""
    variables = {}
    for name, value in os.environ.items():
        if not name.startswith(_REMOVED_PREFIXES):
            variables[name] = value
    variables.update(
        {
            "HOME": str(place),
            "TUILAB_ROOT": str(place / "runs"),
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "WANDB_MODE": "offline",
            "WANDB_SILENT": "true",
            "HF_HUB_OFFLINE": "1",
            "TRACKIO_DIR": str(place / "trackio"),
        }
    )
    variables.update(extra or {})
    return variables


def find_program(name: str) -> str:
    """Return the path of a program; programs of this Python environment come first."""
    folders = f"{Path(PYTHON).parent}:{os.environ['PATH']}"
    path = which(name, path=folders)
    if path is None:
        raise Missing(f"no command {name}; {INSTALL}")
    return path


def keep_children() -> None:
    """Adopt the processes that a supervisor or a peer leaves behind.

    This process can then wait for them, and their processor time is counted.
    """
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


def time_command(
    command: list[str],
    place: Path,
    extra: Mapping[str, str] | None = None,
    *,
    ends_with: tuple[int, ...] = (0,),
) -> dict[str, float]:
    """Return the milliseconds of a command, and the processor time of all that it started."""
    with timed() as times:
        run_command(command, place, extra, ends_with=ends_with)
    return {"ms": 1e3 * times["s"], "processor ms": 1e3 * times["processor s"]}


def run_command(
    command: list[str],
    place: Path,
    extra: Mapping[str, str] | None = None,
    *,
    ends_with: tuple[int, ...] = (0,),
) -> str:
    """Return what a command prints on stdout.

    If its exit code is not in `ends_with`, the error shows the last words of the command.
    """
    done = subprocess.run(
        command,
        cwd=place,
        env=environment(place, extra),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=STUCK_S,
        start_new_session=True,
    )
    if done.returncode not in ends_with:
        printed = done.stderr or done.stdout
        last_words = printed[-500:].strip()
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {last_words}")
    return done.stdout


def as_peer(measure: Callable[[], dict[str, float]]) -> Callable[[], dict[str, float]]:
    """Return a measurement of a peer: if it fails, it is missing, and the others continue."""

    def measure_peer() -> dict[str, float]:
        try:
            return measure()
        except Missing:
            raise
        except Exception as problem:
            words = " ".join(str(problem).split())
            raise Missing(f"it failed: {words[-300:]}") from problem

    return measure_peer


@contextlib.contextmanager
def timed() -> Iterator[dict[str, float]]:
    """Time the body, and the processor time of the children that it had.

    The dict that is yielded gets the keys "s" and "processor s" when the body has ended.
    """
    times: dict[str, float] = {}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    yield times
    times["s"] = time.perf_counter() - began
    reap()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    times["processor s"] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def reap() -> None:
    """Wait until all children have ended."""
    deadline = time.monotonic() + STUCK_S
    with contextlib.suppress(ChildProcessError):
        while time.monotonic() < deadline:
            ended_pid, _ = os.waitpid(-1, os.WNOHANG)
            if ended_pid == 0:
                time.sleep(0.01)
        raise RuntimeError(f"something that was started has not ended for {STUCK_S:g} s")
