"""OMP_PROC_BIND puts all loader workers on one core, and the source's list of cores hangs libgomp.

OpenMP can bind its threads to cores. OMP_PROC_BIND=close binds the main thread to the first core it has as soon as libgomp is
loaded, and whatever is forked from that thread inherits its one core: each worker of a DataLoader, however many there are. Bind
from outside (taskset, numactl) instead, or not at all.

GOMP_CPU_AFFINITY wants a list of cores, `0-3` or `0 2 4`. The "N-M" of the source is a placeholder; taken literally it sends
the libgomp inside torch's wheels into an endless loop while it is loaded, so `import torch` never ends. It is the library
alone that is loaded here, as it comes, with a limit of one second of CPU time, which a busy box does not use up any sooner.

OMP_SCHEDULE is for loops that ask for schedule(runtime). The names of OpenMP's functions that libtorch_cpu calls tell that it
has no such loop.
## Predict
How many cores do two loader workers have between them when their process runs under OMP_PROC_BIND=close?
## Look for
- [proc-bind] under OMP_PROC_BIND two loader workers have one core between them
- [main] the main thread may use that core alone, too
- [hang] under the list of cores in the source libgomp is not loaded before its second is used up
- [schedule] libtorch_cpu asks OpenMP for no loop with schedule(runtime)
## Try next
`--bind false`: workers and main thread get every core there is. refutes: proc-bind, main
`--cores 0`: a list that means something; libgomp is loaded. refutes: hang
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 15,
https://www.toymoban.com/news/detail-808122.html: OMP_SCHEDULE, OMP_PROC_BIND and GOMP_CPU_AFFINITY, without numbers. Ours:
what they do to a loader worker, to libgomp, and not at all.
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

WITH_LIMIT = ["sh", "-c", 'ulimit -t 1; exec "$@"', "sh", sys.executable, "-S", "-c"]  # a second of CPU time


def look_around(lab):
    """Return the cores of the main thread, and those of two loader workers together."""
    torch.rand(256, 256) @ torch.rand(256, 256)
    of_workers = [core for cores in DataLoader([0, 1], num_workers=2, collate_fn=lambda _: own_cores()) for core in cores]
    for row, cores in enumerate((own_cores(), sorted({*of_workers}))):
        lab.log(row, cores=len(cores))
    return own_cores(), sorted({*of_workers})


def own_cores():
    return sorted(os.sched_getaffinity(0))


def how_it_loads(library, cores):
    """Say how a fresh process ends that loads a library and does nothing else."""
    environment = {**os.environ, "GOMP_CPU_AFFINITY": cores}
    done = subprocess.run([*WITH_LIMIT, f"import ctypes; ctypes.CDLL({library!r})"], env=environment, capture_output=True)
    is_over = done.returncode in (-signal.SIGXCPU, -signal.SIGKILL)
    return "used up its second" if is_over else f"exit code {done.returncode}"


def run(
    lab: Lab,
    bind: Literal["close", "spread", "true", "false"] = "close",  # OMP_PROC_BIND
    cores: str = "N-M",  # GOMP_CPU_AFFINITY
) -> None:
    maps = Path("/proc/self/maps").read_text()  # which libraries this process has loaded
    libtorch, libgomp = (re.search(rf"/.*{name}.*", maps) for name in ("libtorch_cpu[.]so", "libgomp"))
    lab.needs(libtorch and libgomp, "a torch that uses GNU OpenMP (libgomp)")
    free = own_cores()

    found = {}
    for name, value in ("free", "false"), ("bound", bind):
        lab.stage(f"OMP_PROC_BIND={value}")
        found[name] = lab.arm(name, look_around, env={"OMP_PROC_BIND": value})()
        lab.text("the main thread may use cores {}, two loader workers cores {}".format(*found[name]), title=name)
    may_use = [[float(core in cores) for core in free] for pair in found.values() for cores in pair]
    lab.image("cores that may be used: main and workers, free; main and workers, bound", may_use)
    lacks = "" if len(free) > 1 else "a second core"
    main, workers = found["bound"]
    lab.claim("proc-bind", len(workers), equals=1, lacks=lacks, answers=True)
    lab.claim("main", main, equals=workers[:1], lacks=lacks)

    lab.stage(f"GOMP_CPU_AFFINITY={cores}")
    ending = how_it_loads(libgomp[0], cores)
    lab.text(ending, title=f"libgomp under GOMP_CPU_AFFINITY={cores}")
    lacks = "" if "torch" in libgomp[0] else "the libgomp of torch's own wheels"
    lab.claim("hang", ending, equals="used up its second", lacks=lacks)

    lab.stage("OMP_SCHEDULE: what torch asks of OpenMP")
    with open(libtorch[0], "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as library:
        calls = sorted({name.decode() for name in re.findall(rb"GOMP_\w*(?:loop|runtime)\w*", library)})
    lab.text("\n".join(calls), title="the loops that torch asks OpenMP for")
    lab.claim("schedule", sum("runtime" in name for name in calls), equals=0)
