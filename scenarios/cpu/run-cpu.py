"""torch's launcher for CPUs binds each instance to cores, but takes core numbers for CPU numbers, and looks past your limits.

`python -m torch.backends.xeon.run_cpu --ninstances 2 --ncores-per-instance 1 script.py` starts a script twice. Each process
gets cores of its own and OMP_NUM_THREADS to match, so that two small programs do not wait for each other. numactl binds cores
and memory; where it does not work, taskset binds the cores alone. An OMP_NUM_THREADS that is set before stays as it is.

lscpu tells which CPU is a thread of which core. The launcher takes the first core numbers and binds to the CPUs of these
numbers. Where CPUs 0 and 1 are the two threads of core 0, as on many machines in a cloud, two instances get one core, and
another has none. Give CPUs that you have looked up: `--core-list 0,2`. Nor does it ask which CPUs its own process may use.

It preloads tcmalloc or jemalloc, and libiomp5, if it finds a file of just that name with `.so` in one of its folders: `lib` of
$CONDA_PREFIX, $VIRTUAL_ENV and ~/.local, /usr/local/lib and /usr/lib. Debian's packages call it libjemalloc.so.2, and put it
in /usr/lib/x86_64-linux-gnu: both are passed over, with a warning. A stand-in of that name is used here.
## Predict
CPUs 0 and 1 are one core, 2 and 3 another. The launcher starts two instances with one core each. On how many cores do they run?
## Look for
- [lanes] two instances with one core each run on CPUs 0 and 1
- [threads] each of them is told OMP_NUM_THREADS=1
- [memory] numactl binds their memory to a node, too
- [taskset] without numactl taskset binds them to the same CPUs
- [set-before] an OMP_NUM_THREADS of 3 that is set before stays
- [limits] a launcher that may use the last CPU alone starts its first instance on CPU 0
- [siblings] where lscpu (here a stand-in) says that CPUs 0 and 1 are one core, two instances run on one core
- [found] a libjemalloc.so in $VIRTUAL_ENV/lib is in LD_PRELOAD of both instances
- [debian] a libjemalloc.so.2 there is in none
## Try next
`--instances 1`: one process on CPU 0. refutes: lanes
`--library libjemalloc.so.2`: the name in Debian. refutes: found
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tips 14 to 17,
https://www.toymoban.com/news/detail-808122.html, whose settings this launcher makes. Ours: what it does, from its log and from
the instances.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tuilab import Lab

INSTANCE = """import json, os, time
began = time.monotonic()
while time.monotonic() < began + 0.2:
    pass
variables = [os.environ.get(name, "") for name in ("OMP_NUM_THREADS", "LD_PRELOAD")]
line = json.dumps([sorted(os.sched_getaffinity(0)), *variables, began, time.monotonic()])
os.write(1, f"{line}\\n".encode())  # in one piece: all write to one pipe
"""
TWO_THREADS_A_CORE = "0,0,0,0 1,0,0,0 2,1,0,0 3,1,0,0"  # CPU, core, socket and node, as `lscpu --parse` has them
YOURS = "OMP_NUM_THREADS", "LD_PRELOAD", "CONDA_PREFIX", "MALLOC_CONF"  # what you set does not count here
LAUNCHER = [sys.executable, "-m", "torch.backends.xeon.run_cpu", "--disable-iomp", "--enable-jemalloc"]


def launch(lab, name, instances, library, *, prefix=(), tools=None, **variables):
    """Run the launcher; return its commands, and of its instances the CPUs, the threads and whether the library is loaded.
    `tools` stand before those of the box."""
    with TemporaryDirectory() as folder:
        for tool, text in {"instance.py": INSTANCE, f"lib/{library}": "", **(tools or {})}.items():
            path = Path(folder, tool)
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            path.chmod(0o755)
        given = {name: value for name, value in os.environ.items() if name not in YOURS}
        given |= {"PATH": f"{folder}:{os.environ['PATH']}", "VIRTUAL_ENV": folder, **variables}
        sizes = [f"--ninstances={instances}", "--ncores-per-instance=1"]
        command = [*prefix, *LAUNCHER, *sizes, f"{folder}/instance.py"]
        done = subprocess.run(command, env=given, capture_output=True, text=True, timeout=100)
    commands = re.findall("INFO - ((?:numactl|taskset) .*?) /", done.stderr)
    found = sorted(json.loads(line) for line in done.stdout.splitlines())
    for index, (cpus, _, _, began, ended) in enumerate(found):
        lab.log(index, arm=name, cpu=cpus[0])
        lab.span(f"CPU {cpus[0]}", began, ended, "instance", arm=name)
    lab.text("\n".join(commands), title=name)
    return commands, [row[0] for row in found], [row[1] for row in found], [library in row[2].split("/") for row in found]


def run(
    lab: Lab,
    instances: int = 2,  # processes that are started, 1..2
    library: str = "libjemalloc.so",  # file in the virtual environment
) -> None:
    lab.needs(shutil.which("lscpu") and shutil.which("taskset"), "lscpu and taskset (Debian: util-linux)")
    allowed = os.sched_getaffinity(0)
    lab.needs({0, 1} <= allowed, "a box whose CPUs 0 and 1 may be used")
    told = subprocess.run(["lscpu", "--parse=CPU,Core"], capture_output=True, text=True).stdout
    lab.needs(len({*re.findall(r"(?m)^\d+,(\d+)", told)}) > 1, "a second core")

    lab.axes("cpu", x="instance", y="CPU that it is bound to")
    lab.stage("two instances")
    commands, cpus, threads, loaded = launch(lab, "two instances", instances, library)
    lab.claim("lanes", cpus, equals=[[0], [1]])
    lab.claim("threads", {*threads} == {"1"})
    has_numactl = commands[0].startswith("numactl")
    lab.claim("memory", all(" -m " in command for command in commands), lacks="" if has_numactl else "a numactl that may bind")
    lab.claim("found", all(loaded))

    lab.stage("without numactl, on the last CPU")
    tools = {"numactl": "#!/bin/sh\nexit 1\n"}
    under = ["taskset", "-c", str(max(allowed))]
    found = launch(lab, "on the last CPU", instances, f"{library}.2", prefix=under, tools=tools, OMP_NUM_THREADS="3")
    commands, same, threads, loaded = found
    lab.claim("taskset", same == cpus and all(command.startswith("taskset") for command in commands))
    lab.claim("limits", same[0], equals=[0])
    lab.claim("set-before", {*threads} == {"3"})
    lab.claim("debian", any(loaded), equals=False)

    lab.stage("two threads a core")
    tools = {"lscpu": f"#!/bin/sh\nprintf '%s\\n' {TWO_THREADS_A_CORE}\n"}
    _, siblings, *_ = launch(lab, "two threads a core", 2, library, tools=tools)
    core_of = dict(row.split(",")[:2] for row in TWO_THREADS_A_CORE.split())
    lab.claim("siblings", len({core_of[str(cpu)] for cpus in siblings for cpu in cpus}), equals=1, answers=True)
