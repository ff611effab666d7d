"""OMP_NUM_THREADS is the OpenMP switch that works; the others pin, hang or do nothing.

torch spreads an operator over the cores with OpenMP, which reads its settings when it is loaded: after `import torch` it is
too late, so every arm here is a process of its own. OMP_NUM_THREADS says how many threads share an operator: large matmuls
gain, small ones have nothing to share, and where other programs want the cores too, threads that wait for each other can be
slower than one. OMP_PROC_BIND pins the main thread to the first core, and whatever is forked from it stays there: all your
loader workers on one core. OMP_SCHEDULE is for loops with schedule(runtime); torch has none. The list of cores in the
source, "N-M", is a placeholder; taken literally it sends the libgomp inside torch's wheels into an endless loop, and
`import torch` never ends (the libgomp of GCC 12 prints "Invalid value" and goes on). Always set a time limit.

## Predict
How many cores does a loader worker get when its process runs under OMP_PROC_BIND=close?
## Look for
- [one-thread] OMP_NUM_THREADS=1 leaves torch one thread
- [schedule] OMP_SCHEDULE does nothing: torch asks OpenMP for no loop with schedule(runtime)
- [proc-bind] OMP_PROC_BIND leaves a loader worker one core
- [hang] the list of cores in the source hangs `import torch`
- [matmul] one thread takes at least 1.5 times as long for a matmul as all
## Try next
`--bind false`: the worker gets every core there is: the claim about it is REFUTED where there is more than one.
refutes: proc-bind
`--cores 0`: a list that means something: torch is imported, and the claim about the hang is REFUTED.
refutes: hang
`--size 32`: too little work to share: the claim about the matmul is REFUTED, or there is NO MEANINGFUL DIFFERENCE.
## Source
Tip 15 of "28 PyTorch best practices" after the official Performance Tuning Guide names the four switches and no numbers;
what they do to a loader worker, to libgomp and to nothing is ours.
"""

import mmap
import os
import re
from pathlib import Path
from time import monotonic
from typing import Literal

import torch
from torch.utils.benchmark import Timer
from torch.utils.data import DataLoader

from tuilab import Lab
from tuilab.lab import ArmFailed


def look_around(lab):
    """Return what OpenMP's settings made of this process: its threads, its cores, and the cores of a loader worker."""
    threads = torch.get_num_threads()
    for size in (32, 128, 512):
        timer = Timer("a @ a", globals={"a": torch.rand(size, size)}, num_threads=threads)
        lab.log(size, gflop_per_s=2e-9 * size**3 / timer.blocked_autorange(min_run_time=0.05).median)
    (of_worker,) = DataLoader([0], num_workers=1, collate_fn=lambda _: own_cores())
    return threads, own_cores(), of_worker


def arrive(lab):
    return "torch is imported"


def own_cores():
    return sorted(os.sched_getaffinity(0))


def multiply(a, threads):
    torch.set_num_threads(threads)  # OMP_NUM_THREADS from inside
    return a @ a


def run(
    lab: Lab,
    bind: Literal["close", "spread", "true", "false"] = "close",  # OMP_PROC_BIND
    cores: str = "N-M",  # GOMP_CPU_AFFINITY
    size: int = 768,  # rows and columns of the matrix in the race, 1..4096 (quick 512)
    patience: float = 1.5,  # the hanging arm gets so many times what the others took, 1..100
) -> None:
    maps = Path("/proc/self/maps").read_text()  # which libraries this process has loaded
    libtorch, libgomp = (re.search(rf"/.*{name}.*", maps) for name in ("libtorch_cpu[.]so", "libgomp"))
    lab.needs(libtorch and libgomp, "a torch that uses GNU OpenMP (libgomp)")

    @lab.once
    def exact():
        lab.stage("OMP_SCHEDULE: what torch asks of OpenMP")
        with open(libtorch[0], "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as library:
            calls = sorted({name.decode() for name in re.findall(rb"GOMP_\w*(?:loop|runtime)\w*", library)})
        lab.text("\n".join(calls), title="the loops that torch asks OpenMP for")
        asked = sum("runtime" in name for name in calls)
        lab.claim("schedule", asked, equals=0)

        rows, began = [], monotonic()
        for name, env in (("one thread", {"OMP_NUM_THREADS": "1"}), ("bound", {"OMP_PROC_BIND": bind})):
            lab.stage(" ".join(f"{key}={value}" for key, value in env.items()))
            rows.append(lab.arm(name, look_around, env=env)())
            threads, main, worker = rows[-1]
            lab.text(f"threads: {threads}; the main one may use cores {main}, a loader worker cores {worker}", title=name)
        usual_s = (monotonic() - began) / 2
        lab.claim("one-thread", rows[0][0], equals=1)
        lab.claim("proc-bind", len(rows[1][2]), equals=1, advises="OMP_PROC_BIND=false")

        lab.stage(f"GOMP_CPU_AFFINITY={cores}")
        try:
            ending = lab.arm("hang", arrive, env={"GOMP_CPU_AFFINITY": cores}, timeout=patience * usual_s)()
        except ArmFailed as problem:
            ending = str(problem)
        lab.text(f"{ending}; the other arms took {usual_s:.1f} s each", title=f"GOMP_CPU_AFFINITY={cores}")
        lacks = "" if "torch" in libgomp[0] else "the libgomp of torch's own wheels"
        lab.claim("hang", "timed out" in ending, lacks=lacks)

    lab.stage("one thread against all")
    every = torch.get_num_threads()
    lab.claim_ratio(
        "matmul",
        "one/every",
        at_least=1.5,
        cores=2,
        lacks="" if every > 1 else "a second core",
        advises=f"OMP_NUM_THREADS={every}",
    )
    if every > 1:
        a = torch.rand(size, size)
        lab.race(one=lambda: multiply(a, 1), every=lambda: multiply(a, every), same=1e-3, seconds=0.5)
