"""Give each rank its share of the cores, not a thread for every core.

When several ranks run on one machine, they compute at the same time and wait for each other at the
end of every step. How many CPU threads should each rank use? There are three obvious answers.

One thread is the choice of torchrun: it sets OMP_NUM_THREADS=1 if you start several ranks and have
not set it. This is safe. But with more cores than ranks, most cores are idle whenever a rank works
on the CPU, as in an optimizer or in transforms.

A thread for every core is the choice of a program that does not know about the others. OpenMP
threads wait by spinning: each waiting thread keeps a core busy until the others are done. Threads
of another rank need that core (omp-threads shows this).

The share is the number of cores divided by the number of ranks. If the work is too small to be
split further, even fewer threads can be best. So the numbers between one and the share also race.

Here the ranks are processes that multiply matrices on request, and a step ends when the slowest
rank is done. They call `torch.set_num_threads`, which has the same effect as OMP_NUM_THREADS.

In practice: set `OMP_NUM_THREADS` to cores divided by ranks before torchrun starts. To find a
better number, run this lesson with `--ranks N` for your number of ranks, then `tuilab advise
--ranks N`. It names a number only if it was surely faster than 1. Ranks that compute on GPUs do
little on the CPU, and their loader workers need the cores. This race does not describe such a
training.
## Predict
Two ranks share a machine. A step with a thread for every core in each rank takes how many times as
long as with its share?
## Look for
- [two-a-core] two ranks with a thread for every core put 2 threads on each core
- [crowd] with a thread for every core in each rank, a step takes at least 1.5 times as long as with
  its share
- [share] with one thread in each rank, a step takes at least 1.5 times as long as with its share
## Try next
`--ranks 1`: the share is the whole machine, and torchrun sets nothing. refutes: two-a-core
`--size 64`: a product of microseconds is too small to share, and the cost of too many threads is
even more visible.
## Source
Today's practice, after the source of torchrun,
https://github.com/pytorch/pytorch/blob/main/torch/distributed/run.py: it sets OMP_NUM_THREADS to 1
and says that it should be tuned. Ours: the race.
"""

import multiprocessing
import os
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import torch

from tuilab import Lab


def serve_steps(pipe, size):
    """Multiply once for each number of threads that arrives, and send the sum and the threads."""
    a = torch.ones(size, size) / size
    while True:
        torch.set_num_threads(pipe.recv())
        product = a @ a
        pipe.send((product.sum().item(), torch.get_num_threads()))


@contextmanager
def start_ranks(count, size):
    """Start ranks. Yield a function that makes a step of all ranks.

    The function takes the threads of each rank, and returns their sums and their threads together.
    """
    fork = multiprocessing.get_context("fork")
    pipes = []
    processes = []
    for _ in range(count):
        ours, theirs = fork.Pipe()
        process = fork.Process(target=serve_steps, args=(theirs, size), daemon=True)
        process.start()
        pipes.append(ours)
        processes.append(process)

    def make_step(threads):
        for pipe in pipes:
            pipe.send(threads)
        sums = []
        total_threads = 0
        for pipe in pipes:
            rank_sum, rank_threads = pipe.recv()
            sums.append(rank_sum)
            total_threads += rank_threads
        return torch.tensor(sums), total_threads

    try:
        yield make_step
    finally:
        for process in processes:
            process.kill()
            process.join()


def sums_of_step(make_step, threads):
    sums, _ = make_step(threads)
    return sums


def siblings_of(cpu):
    """Return the CPUs that share a core with this CPU, as the kernel lists them."""
    path = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
    return path.read_text() if path.exists() else str(cpu)


def count_cores():
    return len({siblings_of(cpu) for cpu in os.sched_getaffinity(0)})


def arms_by_threads(cores, share):
    """Return the name of each arm by the threads of a rank, from one to all cores."""
    arms = {1: "one"}
    threads = 2
    while threads < share:
        arms[threads] = f"{threads} threads"
        threads *= 2
    arms[share] = "share"
    if cores > share:
        arms[cores] = "every"
    return arms


def run(
    lab: Lab,
    ranks: int = 2,  # on this machine, 1..512
    size: int = 384,  # rows and columns of the matrix of each, 1..4096 (quick 256)
) -> None:
    cores = count_cores()
    lab.needs(cores > 1, "a second core")
    share = max(1, cores // ranks)
    arms = arms_by_threads(cores, share)
    with start_ranks(ranks, size) as make_step:

        @lab.once
        def exact():
            lab.stage("threads")
            lab.axes("threads_a_core", x="threads of each rank", y="threads on each core")
            for count in arms:
                _, total_threads = make_step(count)
                lab.log(count, threads_a_core=total_threads / cores)
            _, total_threads = make_step(cores)
            lab.claim("two-a-core", total_threads / cores, equals=2)

        lab.stage("a step of all ranks")
        lacks = "" if ranks > 1 else "ranks that share cores"
        lab.claim_ratio("crowd", "every/share", at_least=1.5, cores=2, lacks=lacks, answers=True)
        lacks = "" if share > 1 else "a second core for each rank"
        lab.claim_ratio("share", "one/share", at_least=1.5, cores=2, lacks=lacks)
        lab.advise(
            "OMP_NUM_THREADS",
            arms,
            default=1 if ranks > 1 else cores,
            about=f"steps of {ranks} ranks that multiply matrices of {size} x {size} on the CPU",
            against="loader workers of each rank also want cores; none ran here",
            ranks=ranks,
            cores=cores,
        )
        calls = {}
        for count, arm in arms.items():
            calls[arm] = partial(sums_of_step, make_step, count)
        lab.race(**calls, same=1e-3, seconds=0.2)
