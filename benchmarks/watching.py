"""Measure what watching costs a step, and whole runs of the trainers of examples/, next to peers.

For a step: one process takes steps with the hooks and without them, in an order that is drawn for
each round. A busy machine only ever adds time, so the fast fiftieth of both is compared. Each value
comes from one process.

For a trainer: each way to run it gets a fresh process. The values are the milliseconds of a step,
which the trainer prints itself, and the processor time of everything, the watching included.
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
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.pairs import Measurement, Row, in_rounds
from benchmarks.processes import (
    CHECKOUT,
    PYTHON,
    STUCK_S,
    as_peer,
    environment,
    find_program,
    run_command,
    timed,
)

FULL = {"rounds": 5, "runs": 6, "steps": 100, "trainers": 3}
TINY = {"rounds": 1, "runs": 1, "steps": 4, "trainers": 1}
TRAINERS = ("train_cnn", "train_gpt", "train_lightning")
GOALS_US = {"steps": "10", "all": "15"}  # of a step, by the value of --watch
# From a command, a folder and an environment to the printed text.
Runner = Callable[[list[str], str, dict[str, str]], str]


def rows(place: Path, *, rounds: int, runs: int, steps: int, trainers: int) -> Iterator[Row]:
    """Yield the rows of steps on the CPU and on a GPU, and then those of the trainers."""
    for how, goal in GOALS_US.items():
        yield from rows_of_step(place, how, goal, rounds)
        yield from rows_of_step(place, how, "", rounds, is_cuda=True)
    for trainer in TRAINERS[:trainers]:
        reason = why_missing(trainer, place)
        if reason:
            yield Row(trainer, missing=reason)
            continue
        measurements = make_measurements(place, trainer, steps)
        yield from in_rounds(measurements, runs, beside=f"{trainer}, bare", is_warmed=False)


# ---- a step


def rows_of_step(
    place: Path, how: str, goal: str, rounds: int, *, is_cuda: bool = False
) -> Iterator[Row]:
    """Yield the rows of a short step and of a step of 1 ms, with a value for each process."""
    flags = []
    title = f"step, --watch {how}"
    if is_cuda:
        flags.append("--cuda")
        title = f"{title}, on a GPU"
    if rounds == 1:
        flags.append("--tiny")
    first = measure_step(place, how, flags)
    if not first:
        yield Row(f"a {title}", missing="torch sees no GPU here")
        return
    results = [first]
    for _ in range(rounds - 1):
        results.append(measure_step(place, how, flags))
    for length in first:
        bare_us = [result[length]["bare_us"] for result in results]
        cost_us = [result[length]["cost_us"] for result in results]
        own_us = [result[length]["own_us"] for result in results]
        watched_us = [bare + cost for bare, cost in zip(bare_us, cost_us, strict=True)]
        subject = f"a {length} {title}"
        yield Row(subject, "us", watched_us, "the step alone", bare_us)
        yield Row(subject, "us of it for the watch", cost_us, goal=goal)
        yield Row(subject, "us by its own clock", own_us)


def measure_step(place: Path, how: str, flags: list[str]) -> dict[str, dict[str, float]]:
    """Return the results of one process for both lengths of a step; none if it lacks a GPU."""
    command = [PYTHON, "-m", "benchmarks.watched_step", how, *flags]
    results: dict[str, dict[str, float]] = json.loads(run_command(command, place))
    return results


# ---- a trainer


def why_missing(trainer: str, place: Path) -> str:
    """Return why a trainer cannot run here, and how to install what it needs; else nothing.

    Lightning also loads torchvision if that is installed. This fails if it was built for another
    build of torch.
    """
    if trainer != "train_lightning":
        return ""
    if find_spec("lightning") is None:
        return "no lightning; pip install -c constraints.txt lightning"
    try:
        run_command([PYTHON, "-c", "import lightning"], place)
    except RuntimeError as problem:
        last_line = str(problem).splitlines()[-1][-200:]
        return (
            f"lightning cannot be imported ({last_line}); install a torchvision for this build of "
            "torch, or none"
        )
    return ""


def make_measurements(place: Path, trainer: str, steps: int) -> dict[str, Measurement]:
    """Return the measurements of a trainer: alone, watched by tuilab, and watched by peers."""
    path = str(CHECKOUT / "examples" / f"{trainer}.py")
    arguments = ["--steps", str(steps), "--device", "cpu"]
    bare = [PYTHON, path, *arguments]
    measurements: dict[str, Measurement] = {
        f"{trainer}, bare": partial(run_trainer, place, bare, run_piped),
        # The difference between these two is chance.
        f"{trainer}, bare again": partial(run_trainer, place, bare, run_piped),
    }
    for how in ("nothing", *GOALS_US):
        measurements[f"{trainer}, --watch {how}"] = partial(run_watched, place, how, bare)
    traceml = partial(run_with_traceml, place, path, arguments)
    measurements[f"{trainer}, TraceML"] = as_peer(traceml)
    torchwatch = partial(run_with_torchwatch, place, bare)
    measurements[f"{trainer}, torchwatch"] = as_peer(torchwatch)
    return measurements


def run_watched(place: Path, how: str, bare: list[str]) -> dict[str, float]:
    """Run a trainer with `tuilab exec`."""
    command = [find_program("tuilab"), "exec", "--quiet", "--watch", how, "--", *bare]
    return run_trainer(place, command, run_piped)


def run_with_traceml(place: Path, path: str, arguments: list[str]) -> dict[str, float]:
    """Run a trainer with TraceML."""
    command = [find_program("traceml"), "run", path, "--args", *arguments]
    return run_trainer(place, command, run_piped)


def run_with_torchwatch(place: Path, bare: list[str]) -> dict[str, float]:
    """Run a trainer with torchwatch in a terminal; `tee` keeps what the trainer prints."""
    piped = f"{' '.join(bare)} | tee printed"
    command = [find_program("torchwatch"), "run", "--", "sh", "-c", piped]
    return run_trainer(place, command, run_in_terminal)


def run_trainer(place: Path, command: list[str], runner: Runner) -> dict[str, float]:
    """Run a trainer in a folder of its own.

    Return the time of a step that the trainer prints last, and the processor time of everything.
    """
    search_path = f"{Path(PYTHON).parent}:{os.environ['PATH']}"
    with TemporaryDirectory(dir=place, ignore_cleanup_errors=True) as folder:
        env = environment(Path(folder), {"PATH": search_path})
        with timed() as times:
            printed = runner(command, folder, env)
    step_times_ms = re.findall(r"([\d.]+) ms a step", printed)
    if not step_times_ms:
        raise RuntimeError(f"{' '.join(command)} did not tell its step: {printed[-500:]}")
    return {"ms a step": float(step_times_ms[-1]), "processor s": times["processor s"]}


def run_piped(command: list[str], folder: str, env: dict[str, str]) -> str:
    """Run a command in a session of its own, and return what it prints.

    All programs that watch a trainer make such a session. Linux shares the cores among sessions,
    and other processes run in the session of this process.
    """
    done = subprocess.run(
        command,
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=STUCK_S,
        start_new_session=True,
    )
    return done.stdout


def run_in_terminal(command: list[str], folder: str, env: dict[str, str]) -> str:
    """Run a command in a terminal, and end it when the trainer has printed its step.

    Return what the trainer has printed to the file `printed`.
    """
    our_end, their_end = pty.openpty()
    termios.tcsetwinsize(our_end, (40, 120))
    printed = Path(folder) / "printed"
    deadline = time.monotonic() + STUCK_S
    with subprocess.Popen(
        command,
        cwd=folder,
        env=env,
        stdin=their_end,
        stdout=their_end,
        stderr=their_end,
        start_new_session=True,
    ) as child:
        os.close(their_end)
        while child.poll() is None and time.monotonic() < deadline:
            readable, _, _ = select.select([our_end], [], [], 0.2)
            if readable:
                os.read(our_end, 65536)
            if printed.exists() and "ms a step" in printed.read_text():
                break
        child.terminate()
        os.close(our_end)
    if not printed.exists():
        return ""
    return printed.read_text()
