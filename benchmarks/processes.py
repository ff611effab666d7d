"""Starts what is measured, in a session and with folders of its own, and tells what it took with all that it left behind."""

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
_OURS = (
    "PYTHON",
    "XDG_",
    "TUILAB_",
    "WANDB_",
    "TRACKIO_",
)  # variables of the user's that would change what is measured
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER


def environment(place: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return an environment whose folders are all below one."""
    usual = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
    own = {
        "HOME": str(place),
        "TUILAB_ROOT": str(place / "runs"),
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
    }
    quiet = {
        "WANDB_MODE": "offline",
        "WANDB_SILENT": "true",
        "HF_HUB_OFFLINE": "1",
        "TRACKIO_DIR": str(place / "trackio"),
    }
    return {**usual, **own, **quiet, **(more or {})}


def command(name: str) -> str:
    """Return the path of a program, of this environment first."""
    found = which(name, path=f"{Path(PYTHON).parent}:{os.environ['PATH']}")
    if found is None:
        raise Missing(f"no command {name}; {INSTALL}")
    return found


def keep_children() -> None:
    """What a supervisor or a peer leaves behind becomes our child: it is waited for, and counted, too."""
    ctypes.CDLL(None).prctl(_SUBREAPER, 1)


def cost(
    words: list[str],
    place: Path,
    more: Mapping[str, str] | None = None,
    *,
    ends_with: tuple[int, ...] = (0,),
) -> dict[str, float]:
    """Return the milliseconds of a command, and those of processors of all that it started."""
    with counted() as taken:
        output(words, place, more, ends_with=ends_with)
    return {"ms": 1e3 * taken["s"], "processor ms": 1e3 * taken["processor s"]}


def output(
    words: list[str],
    place: Path,
    more: Mapping[str, str] | None = None,
    *,
    ends_with: tuple[int, ...] = (0,),
) -> str:
    """Return what a command prints; one that does not end as it should is told with its last words."""
    done = subprocess.run(
        words, cwd=place, env=environment(place, more), stdin=subprocess.DEVNULL, capture_output=True, text=True,
        errors="replace", timeout=STUCK_S, start_new_session=True,
    )  # fmt: skip
    if done.returncode not in ends_with:
        raise RuntimeError(
            f"{' '.join(words)} ended with {done.returncode}: {(done.stderr or done.stdout)[-500:].strip()}"
        )
    return done.stdout


def of_peer(way: Callable[[], dict[str, float]]) -> Callable[[], dict[str, float]]:
    """Return a way to measure a peer: one that fails is missing, and ends nothing."""

    def measured() -> dict[str, float]:
        try:
            return way()
        except Missing:
            raise
        except Exception as problem:
            raise Missing(f"it failed: {' '.join(str(problem).split())[-300:]}") from problem

    return measured


@contextlib.contextmanager
def counted() -> Iterator[dict[str, float]]:
    """Fill in the seconds of what is done here, and those of processors of the children that it had."""
    taken: dict[str, float] = {}
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    yield taken
    taken["s"] = time.perf_counter() - began
    reap()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    taken["processor s"] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def reap() -> None:
    """Wait for all that is left of what was started."""
    deadline = time.monotonic() + STUCK_S
    with contextlib.suppress(ChildProcessError):
        while time.monotonic() < deadline:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.01)
        raise RuntimeError(f"something that was started has not ended for {STUCK_S:g} s")
