"""Threads of a rank: its share of the cores at most; torchrun gives one, and all cores for each of them stop them all.

Ranks on one box compute at the same time, and wait for each other at the end of each step. How many threads does each get?
torchrun sets OMP_NUM_THREADS=1 where you set nothing and there are several ranks: safe, and on a box with more cores than
ranks most of them idle in whatever a rank does on the CPU: an optimizer there, transforms, a loss on the host. A thread for
every core is what a program takes that knows of no other: threads wait by spinning, each for one that has no core just then,
as omp-threads shows. In between lies the share: cores divided by ranks, or less where the work is too small to be spread.

Here ranks are processes that multiply when they are told to, and a step ends with the last of them. They call
`torch.set_num_threads`, which is OMP_NUM_THREADS from inside. One of the numbers between one and the share may be the best:
they race each other, and `tuilab advise --ranks 8` tells which one won in a run with `--ranks 8`, if that was surely not 1.
On GPUs ranks do little on the CPU, and loader workers want cores as well: then it is the wrong race for you.
## Predict
Two ranks share the box. How many times as long does a step take if each has a thread for every core, and not for its share?
## Look for
- [two-a-core] a thread for every core in each of two ranks is two threads a core
- [crowd] with a thread for every core in each rank a step takes at least 1.5 times as long as with its share
- [share] with one thread in each rank a step takes at least 1.5 times as long as with its share
## Try next
`--ranks 1`: the share is all there is, and torchrun sets nothing. refutes: two-a-core
`--size 64`: a matmul of microseconds has nothing to share, and the crowd shows all the more.
## Source
Today's practice, after the source of torchrun, https://github.com/pytorch/pytorch/blob/main/torch/distributed/run.py: it sets
OMP_NUM_THREADS to 1 and says that it should be tuned. Ours: the race.
"""

import multiprocessing
import os
from contextlib import contextmanager
from pathlib import Path

import torch

from tuilab import Lab


def rank(pipe, size):
    a = torch.ones(size, size) / size
    while threads := pipe.recv():  # the threads of the next step; 0 ends it
        torch.set_num_threads(threads)
        pipe.send(((a @ a).sum().item(), torch.get_num_threads()))


@contextmanager
def start(count, size):
    """Start ranks; give a function that lets all make a step: it returns what they computed, and on how many threads."""
    fork = multiprocessing.get_context("fork")
    pipes, processes = [], []
    for _ in range(count):
        ours, theirs = fork.Pipe()
        pipes.append(ours)
        processes.append(fork.Process(target=rank, args=(theirs, size), daemon=True))
        processes[-1].start()

    def step(threads):
        for pipe in pipes:
            pipe.send(threads)
        sums, counts = zip(*(pipe.recv() for pipe in pipes), strict=True)
        return torch.tensor(sums), sum(counts)

    try:
        yield step
    finally:
        for process in processes:
            process.kill()
            process.join()


def siblings(cpu):
    """The CPUs that are the same core."""
    known = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
    return known.read_text() if known.exists() else str(cpu)


def run(
    lab: Lab,
    ranks: int = 2,  # on this box, 1..512
    size: int = 384,  # rows and columns of the matrix of each, 1..4096 (quick 256)
) -> None:
    cores = len({siblings(cpu) for cpu in os.sched_getaffinity(0)})
    lab.needs(cores > 1, "a second core")
    share = max(1, cores // ranks)
    counts = sorted({1, *(2**k for k in range(share.bit_length()) if 2**k < share), share, cores})
    names = {1: "one", share: "share"} | ({cores: "every"} if cores > share else {})
    arms = {names.get(count, f"{count} threads"): count for count in counts}
    with start(ranks, size) as step:

        @lab.once
        def exact():
            lab.stage("threads")
            found = {arm: step(count)[1] for arm, count in arms.items()}
            for count, total in zip(counts, found.values(), strict=True):
                lab.log(count, threads_a_core=total / cores)
            lab.claim("two-a-core", step(cores)[1] / cores, equals=2)

        lab.stage("a step of all ranks")
        lacks = "" if ranks > 1 else "ranks that share cores"
        lab.claim_ratio("crowd", "every/share", at_least=1.5, cores=2, lacks=lacks, answers=True)
        lacks = "" if share > 1 else "a second core for each rank"
        lab.claim_ratio("share", "one/share", at_least=1.5, cores=2, lacks=lacks)
        lab.advise(
            "OMP_NUM_THREADS", {count: arm for arm, count in arms.items()}, default=1 if ranks > 1 else cores, ranks=ranks,
            about=f"steps of {ranks} ranks that multiply matrices of {size} x {size} on the CPU", cores=cores,
            against="loader workers of each rank want cores, too; none ran here",
        )  # fmt: skip
        lab.race(**{arm: lambda n=n: step(n)[0] for arm, n in arms.items()}, same=1e-3, seconds=0.2)
