"""A trainer that needs no torch and no time: it marks the steps of a training whose times are made up."""

from pathlib import Path

TRAINER = '''"""Marks made-up steps, as the watcher marks those of torch."""
import argparse, json, math, os, random, sys, time

from _tuilab_watch import layout
from _tuilab_watch.ring import Ring

options = argparse.ArgumentParser()
options.add_argument("--step-ms", type=float, default=10.0)
options.add_argument("--luck", type=float, default=0.0)  # of this process: a standard deviation of logs
options.add_argument("--seed", type=int, default=-1)  # of what it learns; -1: always the same, -2: never
options.add_argument("--steps", type=int, default=60)
options.add_argument("--code", type=int, default=0)
options.add_argument("--backwards", type=int, default=1)  # a step
options.add_argument("--acc", default="0.5")
options.add_argument("--cpu-ms", type=float, default=0.0)  # of a step, of the thread that makes it; 0: not read
options.add_argument("--others-ms", type=float, default=0.0)  # and of the other threads
options.add_argument("--asleep-ms", type=float, default=0.0)  # in which that thread wants no core
options.add_argument("--workers", action="store_true")  # of a DataLoader
options.add_argument("--parts", default="data backward optimizer")  # that are seen of a step
given = options.parse_args()

if after := os.environ.get("FAILS_AFTER"):
    with open(os.path.join(os.path.dirname(__file__), "processes"), "a+") as runs:
        runs.write("x")
        runs.seek(0)
        if len(runs.read()) > int(after):
            raise RuntimeError("the disk is gone")

lot = random.Random(os.environ.get("LOT", "") + str(os.getpid()))
ring = Ring(os.environ["TUILAB_WATCH"])
ring.text(layout.HELLO, json.dumps({"pid": os.getpid(), "torch": "2.99", "python": "3.99", "threads": 1}))
ring.text(layout.NAME, "SGD\\noptimizer 1", 1)
now, luck = time.monotonic_ns(), math.exp(lot.gauss(0, given.luck))
learned = random.Random(given.seed if given.seed > -2 else os.getpid())
for step in range(given.steps):
    took = int(given.step_ms * luck * 1e6 * (3 if step < 2 else 1))
    if "data" in given.parts:
        flags = layout.FROM_WORKERS if given.workers else 0
        ring.mark(layout.WAITED, now, now + took // 5, 0.0, 0, 0, flags)
    for _ in range(1, given.backwards):
        ring.mark(layout.WENT_BACK, now + took // 4, now + took // 4, 0.0, 0, 0, 1)
    if "forward" in given.parts:
        ring.mark(layout.WENT_FORWARD, now + took * 3 // 10, now + took * 4 // 10)
    root = 1 / (1 + step) + learned.random() / 20
    if "backward" in given.parts:
        ring.mark(layout.WENT_BACK, now + took // 2, now + took * 8 // 10, root, 0, 0, 1)
    if given.cpu_ms:
        thread_ns = int((step + 1) * given.cpu_ms * luck * 1e6)
        process_ns = thread_ns + int((step + 1) * given.others_ms * 1e6)
        delayed_ns = (step + 1) * (given.step_ms - given.asleep_ms - given.cpu_ms) * 1e6
        waits = 1 + step if given.asleep_ms else 1
        ring.mark(layout.USED, thread_ns, process_ns, delayed_ns, waits, 1)
    if "optimizer" in given.parts:
        ring.mark(layout.STEPPED, now + took * 9 // 10, now + took, 0.0, 0, 1)
    now += took
print(f"step {given.steps}/{given.steps} acc {given.acc}")
sys.exit(given.code)
'''


def write_trainer(folder: Path) -> str:
    """Write the trainer and return its path."""
    path = folder / "train.py"
    path.write_text(TRAINER)
    return str(path)
