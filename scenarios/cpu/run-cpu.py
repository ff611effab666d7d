"""Start several small instances with cores of their own, not one for all cores.

A server answers requests with a small model on a CPU. One process may use all cores, or several
processes (instances) may share them. The source advises one instance for each socket.

An instance on all cores splits every operator over all cores, and its threads wait for each other
after each operator. Between two operators runs Python, on one core. Two instances with half
of the cores wait for fewer threads, and their Python runs at the same time. The smaller the
operators are, the more this matters. It raises throughput, the number of batches in a second. A
single batch may take longer.

torch has a launcher for this: `python -m torch.backends.xeon.run_cpu --ninstances 2
--ncores-per-instance 1 script.py` starts a script twice. It sets `OMP_NUM_THREADS` for each
process, unless it is set already. numactl binds the cores and the memory of a process. If it does
not work, taskset binds the cores alone.

The launcher has three limits. It does not ask which CPUs it may use itself. It counts cores, and
uses their numbers as numbers of CPUs. On many machines in a cloud, CPUs 0 and 1 are two hardware
threads of core 0. And it preloads jemalloc, tcmalloc or libiomp5 only if the name of the file ends
in `.so`. It looks in /usr/lib, in /usr/local/lib and in `lib` of $CONDA_PREFIX, $VIRTUAL_ENV and
~/.local. The libjemalloc.so.2 of Debian gives a warning instead. In this lesson an empty file
replaces the library.

In practice: to serve a small model, start one instance for each socket, or several for each, and
give each its own cores. Look up the CPUs with `lscpu --extended`, and pass a single CPU of each
core, as in `--core-list 0,2`. For training, use a rank for each socket in place of an instance.
## Predict
CPUs 0 and 1 are one core, 2 and 3 are another. The launcher starts two instances with one core
each. On how many cores do they run?
## Look for
- [throughput] for the same batches, one instance on all cores of a socket takes at least 1.2 times
  as long as two on half of the cores
- [sockets] for the same batches, one instance on all sockets takes at least 1.2 times as long as an
  instance on each socket
- [lanes] two instances with one core each run on CPUs 0 and 1
- [threads] the launcher gives each instance with one core OMP_NUM_THREADS=1
- [memory] numactl also binds the memory of each instance to a node
- [taskset] without numactl, taskset binds two instances to the same CPUs 0 and 1
- [set-before] an OMP_NUM_THREADS of 3 that is set before the launcher starts is 3 in each instance
- [limits] a launcher that may use only the last CPU starts its first instance on CPU 0
- [siblings] if lscpu lists CPUs 0 and 1 as a single core, two instances with one core each run on
  1 core
- [found] both instances have a libjemalloc.so of $VIRTUAL_ENV/lib in LD_PRELOAD
- [debian] no instance has a libjemalloc.so.2 of $VIRTUAL_ENV/lib in LD_PRELOAD
## Try next
`--instances 1`: the launcher starts one process, on CPU 0. refutes: lanes
`--library libjemalloc.so.2`: the name of the file in Debian. refutes: found
`--width 2048`: each operator is large enough for all cores, so two instances gain little. The claim
about throughput is REFUTED, or there is NO MEANINGFUL DIFFERENCE.
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tips 14 to 17,
https://www.toymoban.com/news/detail-808122.html: an instance for each socket raises throughput.
The launcher makes the settings of those tips. Ours: the race and the tests of the launcher.
"""

import json
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import torch
from torch import nn

from tuilab import Lab

BATCHES = 8  # for each instance, in a call of a race
WIDTHS = (64, 128, 256, 512, 1024)

INSTANCE = """import json, os, time
start = time.monotonic()
while time.monotonic() < start + 0.2:
    pass
cpus = sorted(os.sched_getaffinity(0))
threads = os.environ.get("OMP_NUM_THREADS", "")
preload = os.environ.get("LD_PRELOAD", "")
line = json.dumps([cpus, threads, preload, start, time.monotonic()])
os.write(1, f"{line}\\n".encode())  # one write: the instances share a pipe
"""
TWO_THREADS_A_CORE = [  # CPU, core, socket and node, as `lscpu --parse` prints them
    "0,0,0,0",
    "1,0,0,0",
    "2,1,0,0",
    "3,1,0,0",
]
UNSET = ("OMP_NUM_THREADS", "LD_PRELOAD", "CONDA_PREFIX", "MALLOC_CONF")  # of the user's shell
LAUNCHER = [
    *(sys.executable, "-m", "torch.backends.xeon.run_cpu"),
    *("--disable-iomp", "--enable-jemalloc", "--ncores-per-instance=1"),
]


class Launch(NamedTuple):
    """What the launcher did; a list has one item for each instance."""

    commands: list
    cpus: list
    threads: list  # OMP_NUM_THREADS
    is_preloaded: list


def write_files(folder, files):
    for name, text in files.items():
        path = Path(folder, name)
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)


def launch(lab, name, instances, library, *, prefix=(), tools=None, **variables):
    """Run the launcher in a folder with an empty library, and with `tools` before those of PATH."""
    with TemporaryDirectory() as folder:
        files = {"instance.py": INSTANCE, f"lib/{library}": ""}
        write_files(folder, files | (tools or {}))
        environment = dict(os.environ)
        for variable in UNSET:
            environment.pop(variable, None)
        environment["PATH"] = f"{folder}:{os.environ['PATH']}"
        environment["VIRTUAL_ENV"] = folder
        environment.update(variables)
        command = [*prefix, *LAUNCHER, f"--ninstances={instances}", f"{folder}/instance.py"]
        process = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=100
        )
    commands = re.findall("INFO - ((?:numactl|taskset) .*?) /", process.stderr)
    launched = Launch(commands, [], [], [])
    lines = [json.loads(line) for line in process.stdout.splitlines()]
    for cpus, threads, preload, start, end in sorted(lines):
        launched.cpus.append(cpus)
        launched.threads.append(threads)
        launched.is_preloaded.append(library in preload.split("/"))
        lab.span(f"CPU {cpus[0]}", start, end, "instance", arm=name)
    lab.text("\n".join(commands), title=name)
    return launched


def read_cores(allowed):
    """Return a list for each socket: one allowed CPU of each of its cores."""
    columns = "--parse=CPU,Core,Socket"
    listing = subprocess.run(["lscpu", columns], capture_output=True, text=True).stdout
    sockets = {}
    cores = set()
    for line in listing.splitlines():
        match = re.match(r"(\d+),(\d+),(\d*)", line)
        if match is None:
            continue  # a comment
        cpu, core, socket = match.groups()
        if int(cpu) in allowed and core not in cores:
            cores.add(core)
            sockets.setdefault(socket, []).append(int(cpu))
    return list(sockets.values())


def build_net(width):
    torch.manual_seed(0)
    layers = []
    for _ in range(4):
        layers += [nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*layers)


def serve(pipe, cpus, width):
    """Compute as many batches as the pipe asks for, on these CPUs with a thread for each."""
    os.sched_setaffinity(0, cpus)
    torch.set_num_threads(len(cpus))
    net = build_net(width)
    x = torch.ones(16, width)
    with torch.inference_mode():
        while True:
            for _ in range(pipe.recv()):
                output = net(x)  # (16, width)
            pipe.send(output.sum().item())


@contextmanager
def start_instances(groups, width):
    """Start an instance on each group of CPUs. Yield a function that has them share batches."""
    fork = multiprocessing.get_context("fork")
    pipes = []
    processes = []
    for cpus in groups:
        ours, theirs = fork.Pipe()
        process = fork.Process(target=serve, args=(theirs, cpus, width), daemon=True)
        process.start()
        pipes.append(ours)
        processes.append(process)

    def compute(batches):
        for pipe in pipes:
            pipe.send(batches // len(pipes))
        sums = [pipe.recv() for pipe in pipes]
        return torch.tensor(sums).mean()

    try:
        yield compute
    finally:
        for process in processes:
            process.kill()
            process.join()


def halve(cpus):
    middle = len(cpus) // 2
    return [cpus[:middle], cpus[middle:]]


def batches_per_s(compute, seconds=0.1):
    batches = 2 * BATCHES
    compute(batches)  # the first batches start the threads
    count = 0
    start = time.perf_counter()
    while time.perf_counter() < start + seconds:
        compute(batches)
        count += batches
    return count / (time.perf_counter() - start)


def log_throughput(lab, cpus):
    """Show where two instances stop being faster than one."""
    lab.axes("batches_per_s", x="width of the net", y="batches per second", log="xy")
    arms = {"one instance": [cpus], "two instances": halve(cpus)}
    for width in lab.sweep(WIDTHS, "throughput by width"):
        for arm, groups in arms.items():
            with start_instances(groups, width) as compute:
                lab.log(width, arm=arm, batches_per_s=batches_per_s(compute))


def claim_what_it_launches(lab, instances, library, allowed):
    """Start the launcher on this machine, without numactl, and with the lscpu of another one."""
    lab.stage("two instances")
    first = launch(lab, "two instances", instances, library)
    lab.claim("lanes", first.cpus, equals=[[0], [1]])
    lab.claim("threads", set(first.threads) == {"1"})
    has_numactl = first.commands[0].startswith("numactl")
    lacks = "" if has_numactl else "a numactl that may bind"
    lab.claim("memory", all(" -m " in command for command in first.commands), lacks=lacks)
    lab.claim("found", all(first.is_preloaded))

    lab.stage("without numactl, on the last CPU")
    last = launch(
        *(lab, "on the last CPU", instances, f"{library}.2"),
        prefix=["taskset", "-c", str(max(allowed))],
        tools={"numactl": "#!/bin/sh\nexit 1\n"},
        OMP_NUM_THREADS="3",
    )
    uses_taskset = all(command.startswith("taskset") for command in last.commands)
    lab.claim("taskset", uses_taskset and last.cpus == first.cpus)
    lab.claim("limits", last.cpus[0], equals=[0])
    lab.claim("set-before", set(last.threads) == {"3"})
    lab.claim("debian", any(last.is_preloaded), equals=False)

    lab.stage("two threads a core")
    listing = " ".join(TWO_THREADS_A_CORE)
    stand_in = {"lscpu": f"#!/bin/sh\nprintf '%s\\n' {listing}\n"}
    shared = launch(lab, "two threads a core", 2, library, tools=stand_in)
    core_of = dict(line.split(",")[:2] for line in TWO_THREADS_A_CORE)
    used_cores = {core_of[str(cpu)] for (cpu,) in shared.cpus}
    lab.claim("siblings", len(used_cores), equals=1, answers=True)


def race_instances(lab, arms, width):
    """Race instances on these groups of CPUs; in a call, the instances of an arm share batches."""
    batches = BATCHES * max(len(groups) for groups in arms.values())
    with ExitStack() as running:
        calls = {}
        for arm, groups in arms.items():
            compute = running.enter_context(start_instances(groups, width))
            calls[arm] = partial(compute, batches)
        lab.race(**calls, same=1e-3, seconds=0.3)


def run(
    lab: Lab,
    instances: int = 2,  # processes that the launcher starts, 1..2
    library: str = "libjemalloc.so",  # file in the virtual environment
    width: int = 256,  # of the net in the race, 8..8192
) -> None:
    has_tools = shutil.which("lscpu") and shutil.which("taskset")
    lab.needs(has_tools, "lscpu and taskset (Debian: util-linux)")
    allowed = os.sched_getaffinity(0)
    lab.needs({0, 1} <= allowed, "a machine whose CPUs 0 and 1 may be used")
    sockets = read_cores(allowed)
    cpus = max(sockets, key=len, default=[])  # one CPU of each core of the largest socket
    lab.needs(len(cpus) > 1, "a second core")

    @lab.once
    def exact():
        log_throughput(lab, cpus)
        claim_what_it_launches(lab, instances, library, allowed)

    lab.claim_ratio("throughput", "one/two", at_least=1.2, cores=2)
    lacks = "" if len(sockets) > 1 else "a second socket"
    lab.claim_ratio("sockets", "over all/on each", at_least=1.2, lacks=lacks)

    lab.stage("one instance against two")
    race_instances(lab, {"one": [cpus], "two": halve(cpus)}, width)

    if lacks:
        return
    lab.stage("one instance against one for each socket")
    all_cpus = []
    for socket_cpus in sockets:
        all_cpus += socket_cpus
    race_instances(lab, {"over all": [all_cpus], "on each": sockets}, width)
