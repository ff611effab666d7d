"""Use all cores for one program alone, and give each of several programs a share.

A program that is alone on a machine wants all cores. A program that runs next to other ranks,
loader workers or other users gets slower with each thread that has no core. The variable
`OMP_NUM_THREADS` decides, and it is easy to set too late or not at all.

torch splits an operator over threads with OpenMP. By default it takes one thread for each core that
it may use, whether or not another program uses that core. OpenMP reads `OMP_NUM_THREADS` when it
is loaded. After `import torch` a change has no effect on the running process, but the programs
that it starts inherit the new value. A running process changes its own number with
`torch.set_num_threads`. A large matrix product gains from more threads. A small product has
nothing to share.

The threads wait for each other at the end of every operator. They spin, which means that each
waiting thread keeps its core busy in a loop. If another program takes one core, the thread on that
core stops, and all others spin until it runs again. A product of microseconds then takes
milliseconds. Two ranks with a thread for every core do this to each other, so torchrun sets
`OMP_NUM_THREADS` for its ranks if you did not.

The chart of the crowd shows a small product with one thread and with all, alone and with a busy
program on each core. Its times depend on the scheduler and differ from run to run, so no claim is
made about them.

In practice: leave `OMP_NUM_THREADS` unset for one program that has the machine for itself.
Otherwise set it before Python starts, as in `OMP_NUM_THREADS=4 python train.py`: the number of
cores divided by the number of processes. This lesson also races the numbers between one and all,
and `tuilab advise` recommends such a number if it is surely faster than all.
## Predict
torchrun starts two ranks, and OMP_NUM_THREADS is not set. How many threads has a rank?
## Look for
- [one-thread] with OMP_NUM_THREADS=1 torch has one thread
- [too-late] set after the import, OMP_NUM_THREADS=2 and then 1 leave torch its number; programs
  that are started then have 2 threads and 1 thread
- [by-hand] without OMP_NUM_THREADS a program has at least one thread for each core, and at most one
  for each hardware thread
- [torchrun] under torchrun the first of two ranks has one thread
- [matmul] for one program alone a large matrix product takes at least 1.5 times as long with one
  thread as with all
## Try next
`--threads 2`: the variable asks for two threads, and torchrun leaves a variable that you set.
refutes: one-thread, torchrun
`--size 32`: such a product is too small to share. The claim about the large product is REFUTED, or
there is NO MEANINGFUL DIFFERENCE.
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 15,
https://www.toymoban.com/news/detail-808122.html: OMP_NUM_THREADS, without numbers. Ours: when the
variable is read, the ranks, the crowd and the numbers.
"""

import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import torch
from torch.utils.benchmark import Timer

from tuilab import Lab

SIZES = (32, 128, 512)
LATE_NUMBERS = [2, 1]  # one of them is not the number that torch has
ASK_TORCH = [sys.executable, "-c", "import torch; print(torch.get_num_threads())"]


def log_speeds(lab):
    threads = torch.get_num_threads()
    for size in SIZES:
        timer = Timer("a @ a", globals={"a": torch.rand(size, size)}, num_threads=threads)
        seconds = timer.blocked_autorange(min_run_time=0.02).median
        lab.log(size, gflop_per_s=2e-9 * size**3 / seconds)


def count_threads(lab):
    return torch.get_num_threads()


def count_threads_and_log(lab):
    log_speeds(lab)
    return torch.get_num_threads()


def change_the_variable(lab):
    """Set OMP_NUM_THREADS to 2 and then to 1, after torch is imported.

    Return the threads of torch before, its threads after each change, and those of a program that
    is started after each change.
    """
    before = count_threads_and_log(lab)
    kept = []
    started = []
    for number in LATE_NUMBERS:
        os.environ["OMP_NUM_THREADS"] = str(number)
        program = subprocess.run(ASK_TORCH, capture_output=True, text=True, check=True)
        kept.append(torch.get_num_threads())
        started.append(int(program.stdout))
    return before, kept, started


def multiply(a, threads):  # (size, size)
    torch.set_num_threads(threads)  # what OMP_NUM_THREADS does, from inside the process
    product = a @ a
    torch.set_num_threads(1)  # the number that tuilab starts with
    return product


def mean_product_ms(a, threads, seconds=0.1):
    multiply(a, threads)  # the first product starts the threads
    calls = 0
    start = time.perf_counter()
    while time.perf_counter() < start + seconds:
        multiply(a, threads)
        calls += 1
    return 1e3 * (time.perf_counter() - start) / calls


def log_the_crowd(lab, cpus, cores):
    """Time a small product alone, and with a busy program on each CPU. Return the latter times."""
    lab.axes("matmul_ms", x="busy programs", y="time of a product of 256 x 256")
    a = torch.rand(256, 256)
    times_ms = {}
    for programs in (0, cpus):
        with lab.neighbours(programs):
            times_ms = {
                "one thread": mean_product_ms(a, 1),
                "all threads": mean_product_ms(a, cores),
            }
        for name, product_ms in times_ms.items():
            lab.log(programs, arm=name, matmul_ms=product_ms)
    return times_ms


def siblings_of(cpu):
    """Return the CPUs that share a core with this CPU, as the kernel lists them."""
    path = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
    return path.read_text() if path.exists() else str(cpu)


def count_cores(cpus):
    return len({siblings_of(cpu) for cpu in cpus})


def arms_by_threads(cores):
    """Return the name of each arm by its threads: one, the powers of two between, and all."""
    arms = {1: "one"}
    threads = 2
    while threads < cores:
        arms[threads] = f"{threads} threads"
        threads *= 2
    arms[cores] = "every"
    return arms


def run(
    lab: Lab,
    threads: int = 1,  # OMP_NUM_THREADS of a program, and of the ranks if it is above 1, 1..64
    size: int = 768,  # rows and columns of the matrix in the race, 1..4096 (quick 512)
) -> None:
    cpus = os.sched_getaffinity(0)
    cores = count_cores(cpus)  # with MKL torch has a thread for each core, otherwise for each CPU
    lacks = "" if cores > 1 else "a second core"
    crowd_ms = {}

    @lab.once
    def exact():
        lab.axes("gflop_per_s", x="rows and columns", y="GFLOP/s", log="x")
        variable = {"OMP_NUM_THREADS": str(threads)}
        lab.stage(f"OMP_NUM_THREADS={threads}")
        arm = lab.arm(f"OMP_NUM_THREADS={threads}", change_the_variable, env=variable)
        before, kept, started = arm()
        lab.claim("one-thread", before, equals=1)
        expected = [[before, before], LATE_NUMBERS]
        lab.claim("too-late", [kept, started], equals=expected, lacks=lacks)

        lab.stage("a program by hand, and two ranks")
        by_hand = lab.arm("not set", count_threads_and_log, prefix=["env"])  # env changes nothing
        lab.claim("by-hand", by_hand(), between=(cores, len(cpus)))
        torchrun = ["torchrun", "--standalone", "--nproc-per-node=2"]
        rank_variable = variable if threads > 1 else None
        rank = lab.arm("rank", count_threads, prefix=torchrun, env=rank_variable)
        lab.claim("torchrun", rank(), equals=1, answers=True)

        lab.stage("in a crowd")
        crowd_ms.update(log_the_crowd(lab, len(cpus), cores))

    lab.stage("one thread, some and all")
    lab.claim_ratio("matmul", "one/every", at_least=1.5, cores=2, lacks=lacks)
    if lacks:
        return

    against = ""
    if crowd_ms:  # only the first repeat measures the crowd
        times = ", ".join(f"{name} {ms:.3g} ms" for name, ms in crowd_ms.items())
        against = f"no other size raced; with a busy program on each core: {times}"
    arms = arms_by_threads(cores)
    about = f"products of {size} x {size} matrices"
    lab.advise("OMP_NUM_THREADS", arms, default=cores, about=about, against=against, cores=cores)

    a = torch.rand(size, size)
    calls = {}
    for count, arm in arms.items():
        calls[arm] = partial(multiply, a, count)
    lab.race(**calls, same=1e-3, seconds=0.3)
