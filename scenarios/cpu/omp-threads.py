"""A thread for every core is right for one program that is alone; with several, give each its share.

torch spreads an operator over the cores with OpenMP, and takes a thread for each core it may use. OMP_NUM_THREADS says how
many it shall be. It is read when OpenMP is loaded: after `import torch` it is too late, and `torch.set_num_threads` is the
way. Large matmuls gain, small ones have nothing to share.

The threads wait for each other at the end of every operator, and they wait by spinning. Where another program wants the cores
too, one of them does not run just then, and all the others spin for it: a matmul of microseconds takes until the scheduler
comes round, which is milliseconds. Two ranks with a thread on every core each do that to each other, and every process that
you start by hand takes all again, whoever else is there. So torchrun sets OMP_NUM_THREADS=1 where you did not; rank-threads
races what else a rank may have. The last chart shows it: the time of a small matmul beside a busy program on each core, with
one thread and with all. It differs from run to run, as it hangs on the scheduler, so nothing is claimed about it.

The race has the numbers between one and all, too: where one of them is surely faster than all, `tuilab advise` tells.
## Predict
torchrun starts two ranks, and OMP_NUM_THREADS is not set. How many threads has a rank?
## Look for
- [one-thread] OMP_NUM_THREADS=1 leaves torch one thread
- [too-late] if it is set to another number after torch is imported, torch keeps its number, and a program started then takes it
- [by-hand] a second process that is started by hand takes a thread for each core, too
- [torchrun] under torchrun the first of two ranks has one thread
- [matmul] for one program alone one thread takes at least 1.5 times as long for a large matmul as all
## Try next
`--threads 2`: what the variable says is done, also for ranks. refutes: one-thread, torchrun
`--size 32`: too little work to share: the claim about the large matmul is REFUTED, or there is NO MEANINGFUL DIFFERENCE.
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 15,
https://www.toymoban.com/news/detail-808122.html: OMP_NUM_THREADS, without numbers. Ours: ranks, the crowd and the numbers.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import torch
from torch.utils.benchmark import Timer

from tuilab import Lab


def another(threads):
    return 2 if threads == 1 else 1


def look_around(lab):
    """Return how many threads torch has, how many after OMP_NUM_THREADS is another number, and how many a new program has."""
    threads = torch.get_num_threads()
    for size in (32, 128, 512):
        timer = Timer("a @ a", globals={"a": torch.rand(size, size)}, num_threads=threads)
        lab.log(size, gflop_per_s=2e-9 * size**3 / timer.blocked_autorange(min_run_time=0.02).median)
    os.environ["OMP_NUM_THREADS"] = str(another(threads))
    asking = [sys.executable, "-c", "import torch; print(torch.get_num_threads())"]
    started = subprocess.run(asking, capture_output=True, text=True, check=True)
    return threads, torch.get_num_threads(), int(started.stdout)


def count_threads(lab):
    return torch.get_num_threads()


def multiply(a, threads):
    torch.set_num_threads(threads)  # OMP_NUM_THREADS from inside
    product = a @ a
    torch.set_num_threads(1)  # as it was
    return product


def call_ms(a, threads, seconds=0.1):
    """The mean time of a product."""
    multiply(a, threads)  # the first one starts the threads
    calls, began = 0, time.perf_counter()
    while time.perf_counter() < began + seconds:
        multiply(a, threads)
        calls += 1
    return 1e3 * (time.perf_counter() - began) / calls


def siblings(cpu):
    """The CPUs that are the same core."""
    known = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
    return known.read_text() if known.exists() else str(cpu)


def run(
    lab: Lab,
    threads: int = 1,  # OMP_NUM_THREADS of an arm; ranks are told it if it is more than 1, 1..64
    size: int = 768,  # rows and columns of the matrix in the race, 1..4096 (quick 512)
) -> None:
    cpus = os.sched_getaffinity(0)
    every = len({siblings(cpu) for cpu in cpus})  # with MKL a thread a core, else one for each CPU

    crowd = {}

    @lab.once
    def exact():
        told = {"OMP_NUM_THREADS": str(threads)}
        lab.stage(f"OMP_NUM_THREADS={threads}")
        given, later, started = lab.arm("told", look_around, env=told)()
        lab.claim("one-thread", given, equals=1)
        lab.claim("too-late", [later, started], equals=[given, another(given)])
        lab.stage("a process more, and two ranks")
        lab.claim("by-hand", lab.arm("by hand", look_around, prefix=["env"])()[0], between=(every, len(cpus)))
        prefix = ["torchrun", "--standalone", "--nproc-per-node=2"]
        ranks = lab.arm("rank", count_threads, prefix=prefix, env=told if threads > 1 else None)
        lab.claim("torchrun", ranks(), equals=1, answers=True)
        lab.stage("in a crowd")
        a = torch.rand(256, 256)
        for others in (0, len(cpus)):
            with lab.neighbours(others):
                for name, count in ("one thread", 1), ("all threads", every):
                    crowd[name] = call_ms(a, count)
                    lab.log(others, arm=name, matmul_ms=crowd[name])

    lab.stage("one thread, some and all")
    lab.claim_ratio("matmul", "one/every", at_least=1.5, cores=2, lacks="" if every > 1 else "a second core")
    if every > 1:
        a = torch.rand(size, size)
        arms = {"one": 1} | {f"{2**k} threads": 2**k for k in range(1, every.bit_length()) if 2**k < every} | {"every": every}
        seen = ", ".join(f"{name} {ms:.3g} ms" for name, ms in crowd.items())  # by the first repeat
        against = seen and f"no other size raced; beside a busy program on each core: {seen}"
        values, about = {count: arm for arm, count in arms.items()}, f"products of {size} x {size} matrices"
        lab.advise("OMP_NUM_THREADS", values, default=every, about=about, against=against, cores=every)
        lab.race(**{arm: lambda n=n: multiply(a, n) for arm, n in arms.items()}, same=1e-3, seconds=0.3)
