"""What it costs a training to be watched: microseconds of a step, and whole runs of the trainers of examples/, beside peers.

    python benchmarks/watching.py [steps] [trainers] [--tiny] [--json FILE] [--traceml COMMAND] [--torchwatch COMMAND]

steps: one process takes short blocks of steps with the hooks in and out, in an order drawn anew for each round. A busy box only
ever adds time, so that the fast tenth of each is compared; each line is of several processes, with the least and the most.
trainers: each way to run one in a fresh process, in an order that the next round mirrors: the milliseconds of a step that the
trainer prints itself, and the processor time of all that it took, what watches included. A ratio is of two runs of one round.
"""

import argparse
import ctypes
import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import termios
import time
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve()
CHECKOUT = HERE.parent.parent
TRAINERS = ("train_cnn", "train_gpt", "train_lightning")
WAYS = ("steps", "all")
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
STUCK_S = 600.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help="steps, trainers; both, unless said")
    parser.add_argument("--tiny", action="store_true", help="so small that the figures mean nothing")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--rounds", type=int, default=6, help="of runs of the trainers")
    parser.add_argument("--steps", type=int, default=100, help="of a trainer")
    parser.add_argument("--traceml", default="traceml", metavar="COMMAND")
    parser.add_argument("--torchwatch", default="torchwatch", metavar="COMMAND")
    given = parser.parse_args()
    if given.tiny:
        given.rounds, given.steps = 1, 4
    found: dict[str, Any] = {"tuilab.benchmarks.watching": 1, "is_tiny": given.tiny, "cores": len(os.sched_getaffinity(0))}
    if "steps" in (given.parts or ["steps"]):
        found["steps"] = steps(is_tiny=given.tiny)
    if "trainers" in (given.parts or ["trainers"]):
        found["trainers"], found["left_out"] = trainers(given)
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")


# ---- microseconds of a step


def steps(*, is_tiny: bool) -> list[dict[str, Any]]:
    """Print and return what watching costs a short and a long step, in each way to watch."""
    rows = []
    for how in WAYS:
        words = [sys.executable, str(HERE.with_name("watched_step.py")), how, *(["--tiny"] if is_tiny else [])]
        taken = [json.loads(subprocess.check_output(words)) for _ in range(1 if is_tiny else 5)]
        for name in taken[0]:
            rows.append({"watch": how, "step": name, "processes": len(taken), **spread([one[name] for one in taken])})
            row = rows[-1]
            print(f"--watch {how:5} {name:5} step of {row['bare_us']['median']:7.1f} us: "
                  f"{told(row['cost_us'])} us, {row['cost_us']['median'] / row['bare_us']['median']:.2%}; "
                  f"by its own clock {told(row['own_us'])} us", flush=True)  # fmt: skip
    return rows


def spread(taken: list[dict[str, float]]) -> dict[str, dict[str, float]]:
    return {key: summed([one[key] for one in taken]) for key in taken[0]}


def summed(values: list[float]) -> dict[str, float]:
    return {"median": median(values), "least": min(values), "most": max(values)}


def told(of: dict[str, float]) -> str:
    return f"{of['median']:.2f} [{of['least']:.2f}, {of['most']:.2f}]"


# ---- whole runs


def trainers(given: argparse.Namespace) -> tuple[list[dict[str, Any]], list[str]]:
    """Print and return what each way to run a trainer costs, and what was left out."""
    ctypes.CDLL(None).prctl(SUBREAPER, 1)  # what a supervisor leaves behind is waited for, and counted, too
    ways, left_out = ways_to_run(given)
    rows = []
    for trainer in TRAINERS[:1] if given.tiny else TRAINERS:
        if trainer == "train_lightning" and find_spec("lightning") is None:
            left_out.append(f"{trainer}: needs lightning, pip install lightning")
            continue
        taken: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
        for number in range(given.rounds):
            for way in list(ways)[:: -1 if number % 2 else 1]:
                taken[way].append(run(ways[way], trainer, given.steps))
        for way, runs in taken.items():
            row: dict[str, Any] = {"trainer": trainer, "way": way, **spread(runs)}
            for key in ("step_ms", "cpu_s"):
                row[f"{key}_ratio"] = summed([one[key] / bare[key] for one, bare in zip(runs, taken["bare"], strict=True)])
            rows.append(row)
            print(f"{trainer:15} {way:16} {row['step_ms']['median']:6.1f} ms a step, {told(row['step_ms_ratio'])} of bare; "
                  f"processor {row['cpu_s']['median']:5.1f} s, {told(row['cpu_s_ratio'])} of bare", flush=True)  # fmt: skip
    for what in left_out:
        print(f"left out: {what}")
    return rows, left_out


def ways_to_run(given: argparse.Namespace) -> tuple[dict[str, list[str]], list[str]]:
    """Return the words before the path of a trainer; SCRIPT stands for that and its own words, and of TraceML its form."""
    ways = {"bare": [sys.executable, "SCRIPT"], "bare again": [sys.executable, "SCRIPT"]}  # what differs there is chance
    for how in ("nothing", *WAYS):
        ours = [sys.executable, "-m", "tuilab", "exec", "--quiet", "--watch", how, "--", sys.executable, "SCRIPT"]
        ways[f"--watch {how}"] = ours
    left_out = []
    for name, words in (("traceml", ["run", "ARGS"]), ("torchwatch", ["run", "--", "sh", "-c", "SHELL"])):
        if (command := shutil.which(getattr(given, name))) is None:
            left_out.append(f"{name}: no command {getattr(given, name)}; --{name} names one")
        else:
            ways[name] = [command, *words]
    return ways, left_out


def run(words: list[str], trainer: str, steps: int) -> dict[str, float]:
    """Run a trainer once in a folder of its own; return what a step took, as it prints that, and the processor time of all."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        script, own = str(CHECKOUT / "examples" / f"{trainer}.py"), ["--steps", str(steps), "--device", "cpu"]
        python = str(Path(words[0]).with_name("python")) if "SHELL" in words else ""
        forms = {"SCRIPT": [script, *own], "ARGS": [script, "--args", *own],
                 "SHELL": [f"{python} {script} {' '.join(own)} | tee printed"]}  # fmt: skip
        command = [one for word in words for one in forms.get(word, [word])]
        path = f"{Path(words[0]).parent}:{os.environ['PATH']}"
        env = {**os.environ, "TUILAB_ROOT": f"{folder}/runs", "PATH": path, "TERM": "xterm-256color"}
        before = os.times()
        printed = in_terminal(command, folder, env) if python else piped(command, folder, env)
        reap()
        after = os.times()
        found = re.findall(r"([\d.]+) ms a step", printed)
        if not found:
            raise SystemExit(f"{' '.join(command)} did not tell its step:\n{printed[-2000:]}")
        cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
        return {"step_ms": float(found[-1]), "cpu_s": cpu_s}


def piped(command: list[str], folder: str, env: dict[str, str]) -> str:
    """Run it in a session of its own, as all that watch do: Linux shares the cores among sessions, and ours has other work."""
    done = subprocess.run(
        command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", timeout=STUCK_S, start_new_session=True,
    )  # fmt: skip
    return done.stdout


def in_terminal(command: list[str], folder: str, env: dict[str, str]) -> str:
    """Run what needs a terminal, and end it once the trainer has."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(ours, (40, 120))
    printed, end = Path(folder) / "printed", time.monotonic() + STUCK_S
    with subprocess.Popen(
        command, cwd=folder, env=env, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
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


def reap() -> None:
    """Wait for all that a run has left."""
    try:
        while True:
            os.wait()
    except ChildProcessError:
        return


if __name__ == "__main__":
    main()
