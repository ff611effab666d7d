"""What it costs a training to be watched: of a step, and of whole runs of the trainers of examples/, beside peers.

Of a step: one process takes steps with the hooks in and out, in an order drawn anew for each round. A busy box only ever adds
time, so that the fast fiftieth of each is compared; a value is of one process. Of trainers: each way to run one in a fresh
process: the milliseconds of a step that the trainer prints itself, and the processor time of all, what watches included.
"""

import json
import os
import pty
import re
import select
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.pairs import Row, Way, in_rounds
from benchmarks.processes import (
    CHECKOUT,
    PYTHON,
    STUCK_S,
    command,
    counted,
    environment,
    of_peer,
    output,
)

FULL = {"rounds": 5, "runs": 6, "steps": 100, "trainers": 3}
TINY = {"rounds": 1, "runs": 1, "steps": 4, "trainers": 1}
TRAINERS = ("train_cnn", "train_gpt", "train_lightning")
GOALS_US = {"steps": "10", "all": "15"}  # of a step


def rows(place: Path, *, rounds: int, runs: int, steps: int, trainers: int) -> Iterator[Row]:
    for how, goal in GOALS_US.items():
        yield from rows_of_step(place, how, goal, rounds)
        yield from rows_of_step(place, how, "", rounds, is_cuda=True)
    for trainer in TRAINERS[:trainers]:
        if trainer == "train_lightning" and find_spec("lightning") is None:
            yield Row(trainer, missing="no lightning; pip install -c constraints.txt -e '.[own]'")
            continue
        ways = {f"{trainer}, {how}": way for how, way in ways_to_run(place, trainer, steps).items()}
        yield from in_rounds(ways, runs, beside=f"{trainer}, bare", is_warmed=False)


def rows_of_step(
    place: Path, how: str, goal: str, rounds: int, *, is_cuda: bool = False
) -> Iterator[Row]:
    end = f"step, --watch {how}{', on a GPU' if is_cuda else ''}"
    flags = [*(["--cuda"] if is_cuda else []), *(["--tiny"] if rounds == 1 else [])]
    first = watched_step(place, how, flags)
    if not first:
        yield Row(f"a {end}", missing="torch sees no GPU here")
        return
    taken = [first, *(watched_step(place, how, flags) for _ in range(rounds - 1))]
    for name in first:
        bare, cost, own = (
            [one[name][key] for one in taken] for key in ("bare_us", "cost_us", "own_us")
        )
        watched = [sum(both) for both in zip(bare, cost, strict=True)]
        what = f"a {name} {end}"
        yield Row(what, "us", watched, "the step alone", bare)
        yield Row(what, "us of it for the watch", cost, goal=goal)
        yield Row(what, "us by its own clock", own)


def watched_step(place: Path, how: str, flags: list[str]) -> dict[str, dict[str, float]]:
    """Return what one process found of a short step and of one of 1 ms; nothing where it has no GPU for it."""
    words = [PYTHON, "-m", "benchmarks.watched_step", how, *flags]
    found: dict[str, dict[str, float]] = json.loads(output(words, place))
    return found


def ways_to_run(place: Path, trainer: str, steps: int) -> dict[str, Way]:
    script = [
        str(CHECKOUT / "examples" / f"{trainer}.py"),
        "--steps",
        str(steps),
        "--device",
        "cpu",
    ]
    plain = [PYTHON, *script]

    def of(words: Callable[[], list[str]], started: Callable[..., str] = piped) -> Way:
        return lambda: run(place, words(), started)

    ways = {
        "bare": of(lambda: plain),
        "bare again": of(lambda: plain),
    }  # what differs there is chance
    for how in ("nothing", *GOALS_US):
        exec_ = ["exec", "--quiet", "--watch", how, "--"]
        ways[f"--watch {how}"] = of(lambda exec_=exec_: [command("tuilab"), *exec_, *plain])  # type: ignore[misc]  # bound now
    printed = f"{' '.join(plain)} | tee printed"
    ways["TraceML"] = of_peer(
        of(lambda: [command("traceml"), "run", script[0], "--args", *script[1:]])
    )
    ways["torchwatch"] = of_peer(
        of(lambda: [command("torchwatch"), "run", "--", "sh", "-c", printed], in_terminal)
    )
    return ways


def run(place: Path, words: list[str], started: Callable[..., str]) -> dict[str, float]:
    """Run a trainer once in a folder of its own; return what a step took, as it prints that, and the processor time of all."""
    with TemporaryDirectory(dir=place, ignore_cleanup_errors=True) as folder:
        env = environment(Path(folder), {"PATH": f"{Path(PYTHON).parent}:{os.environ['PATH']}"})
        with counted() as taken:
            printed = started(words, folder, env)
    found = re.findall(r"([\d.]+) ms a step", printed)
    if not found:
        raise RuntimeError(f"{' '.join(words)} did not tell its step: {printed[-500:]}")
    return {"ms a step": float(found[-1]), "processor s": taken["processor s"]}


def piped(words: list[str], folder: str, env: dict[str, str]) -> str:
    """Run it in a session of its own, as all that watch do: Linux shares the cores among sessions, and ours has other work."""
    done = subprocess.run(
        words, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", timeout=STUCK_S, start_new_session=True,
    )  # fmt: skip
    return done.stdout


def in_terminal(words: list[str], folder: str, env: dict[str, str]) -> str:
    """Run what needs a terminal, and end it once the trainer has."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(ours, (40, 120))
    printed, end = Path(folder) / "printed", time.monotonic() + STUCK_S
    with subprocess.Popen(
        words,
        cwd=folder,
        env=env,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    ) as child:
        os.close(theirs)
        while child.poll() is None and time.monotonic() < end:
            if select.select([ours], [], [], 0.2)[0]:
                os.read(ours, 65536)
            if printed.exists() and "ms a step" in printed.read_text():
                break
        child.terminate()
        os.close(ours)
    return printed.read_text() if printed.exists() else ""
