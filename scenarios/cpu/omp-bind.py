"""Bind from outside with taskset: OpenMP's variables also bind loader workers.

Threads that stay on their cores keep their caches, so guides recommend the variables of OpenMP that
bind threads. In a training process these variables also affect the DataLoader.

OMP_PROC_BIND=close binds the threads of OpenMP, the main thread included, as soon as libgomp is
loaded. Its places are the cores that the process may use. A process inherits the cores of the
thread that starts it, and the main thread starts the loader workers.

GOMP_CPU_AFFINITY takes a list of cores, such as `0-3` or `0 2 4`. The "N-M" of the source is a
placeholder. Taken literally, it sends the libgomp of torch's wheels into an endless loop while it
is loaded, so `import torch` never ends. Here the library is loaded alone, with a limit of one
second of CPU time. A busy machine does not use it up sooner.

OMP_SCHEDULE affects only loops that ask for schedule(runtime). The functions of OpenMP that
libtorch_cpu calls show that it has no such loop.

In practice: leave OMP_PROC_BIND, GOMP_CPU_AFFINITY and OMP_SCHEDULE unset. To bind a whole training
process, use `taskset --cpu-list 0-7 python train.py`: its threads and its loader workers then share
these cores.
## Predict
Under OMP_PROC_BIND=close, how many cores do two loader workers have together?
## Look for
- [proc-bind] under OMP_PROC_BIND=close two loader workers may use 1 core together
- [main] under OMP_PROC_BIND=close the main thread may use the same core as the workers, and no
  other
- [hang] under GOMP_CPU_AFFINITY="N-M" libgomp uses up 1 second of CPU time before it is loaded
- [schedule] libtorch_cpu calls 0 functions of OpenMP for loops with schedule(runtime)
## Try next
`--bind false`: the workers and the main thread may use all cores. refutes: proc-bind, main
`--cores 0`: this list names a core, so libgomp is loaded. refutes: hang
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 15,
https://www.toymoban.com/news/detail-808122.html: OMP_SCHEDULE, OMP_PROC_BIND and GOMP_CPU_AFFINITY,
without numbers. Its GOMP_CPU_AFFINITY="N-M" is no value. Ours: the effect of each variable on
loader workers and on libgomp.
"""

import mmap
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Literal

import torch
from torch.utils.data import DataLoader

from tuilab import Lab

PYTHON_WITH_LIMIT = [  # one second of CPU time
    *("sh", "-c", 'ulimit -t 1; exec "$@"', "sh"),
    *(sys.executable, "-S", "-c"),
]


def own_cores():
    return sorted(os.sched_getaffinity(0))


def cores_as_batch(items):
    """Collate a batch: the cores of the worker that loads it."""
    return own_cores()


def list_cores(lab):
    """Return the cores of the main thread, and those of two loader workers together."""
    torch.rand(256, 256) @ torch.rand(256, 256)  # starts the threads of OpenMP
    of_workers = set()
    for cores in DataLoader([0, 1], num_workers=2, collate_fn=cores_as_batch):
        of_workers.update(cores)
    of_main = own_cores()
    lab.log(0, cores=len(of_main))
    lab.log(1, cores=len(of_workers))
    return of_main, sorted(of_workers)


def load_alone(library, cores):
    """Load a library in a fresh process that does nothing else. Return how the process ends."""
    environment = {**os.environ, "GOMP_CPU_AFFINITY": cores}
    command = [*PYTHON_WITH_LIMIT, f"import ctypes; ctypes.CDLL({library!r})"]
    process = subprocess.run(command, env=environment, capture_output=True)
    if process.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return "used up its second"
    return f"exit code {process.returncode}"


def find_loaded(name):
    """Return the path of a library that this process has loaded, or an empty text."""
    match = re.search(rf"/.*{name}.*", Path("/proc/self/maps").read_text())
    return match[0] if match else ""


def find_loop_calls(library):
    """Return the names of libgomp's functions for loops in the file of a library."""
    with (
        open(library, "rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        names = set(re.findall(rb"GOMP_\w*(?:loop|runtime)\w*", content))
    return sorted(name.decode() for name in names)


def show_cores(lab, allowed, processes):
    """Show a picture with a row for each list of cores, and a column for each allowed core."""
    rows = []
    for main_cores, worker_cores in processes.values():
        for cores in (main_cores, worker_cores):
            rows.append([float(core in cores) for core in allowed])
    title = "cores that may be used: main and workers, free; main and workers, bound"
    lab.image(title, rows)


def run(
    lab: Lab,
    bind: Literal["close", "spread", "true", "false"] = "close",  # OMP_PROC_BIND
    cores: str = "N-M",  # GOMP_CPU_AFFINITY
) -> None:
    libtorch = find_loaded("libtorch_cpu[.]so")
    libgomp = find_loaded("libgomp")
    lab.needs(libtorch and libgomp, "a torch that uses GNU OpenMP (libgomp)")
    allowed = own_cores()

    lab.axes("cores", x="0 is the main thread, 1 the workers", y="cores that they may use")
    processes = {}
    for arm, value in {"free": "false", "bound": bind}.items():
        lab.stage(f"OMP_PROC_BIND={value}")
        start = lab.arm(arm, list_cores, env={"OMP_PROC_BIND": value})
        processes[arm] = start()
        main_cores, worker_cores = processes[arm]
        summary = f"the main thread may use cores {main_cores}, two workers cores {worker_cores}"
        lab.text(summary, title=arm)
    show_cores(lab, allowed, processes)
    main_cores, worker_cores = processes["bound"]
    lacks = "" if len(allowed) > 1 else "a second core"
    lab.claim("proc-bind", len(worker_cores), equals=1, lacks=lacks, answers=True)
    lab.claim("main", main_cores, equals=worker_cores[:1], lacks=lacks)

    lab.stage(f"GOMP_CPU_AFFINITY={cores}")
    ending = load_alone(libgomp, cores)
    lab.text(ending, title=f"libgomp under GOMP_CPU_AFFINITY={cores}")
    lacks = "" if "torch" in libgomp else "the libgomp of torch's own wheels"
    lab.claim("hang", ending, equals="used up its second", lacks=lacks)

    lab.stage("OMP_SCHEDULE: what torch asks of OpenMP")
    names = find_loop_calls(libtorch)
    lab.text("\n".join(names), title="the loops that torch asks OpenMP for")
    runtime_names = [name for name in names if "runtime" in name]
    lab.claim("schedule", len(runtime_names), equals=0)
