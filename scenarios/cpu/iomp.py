"""Ask the process which OpenMP it runs on: a wrong LD_PRELOAD path is ignored.

Guides for Intel CPUs replace torch's OpenMP by libiomp5, and set KMP variables for it. If the path
in `LD_PRELOAD` is wrong, the linker prints a line, and the program runs as before. The variables
then have no effect, and nothing in the training shows it.

torch splits an operator over threads by calls such as GOMP_parallel. Its wheels contain libgomp,
the OpenMP of GCC, for these calls. libiomp5, the OpenMP of Intel, has functions of the same names.
If `LD_PRELOAD` loads libiomp5 first, torch calls those. libgomp is loaded in both cases, so a list
of loaded files does not show which library works. The address of a function shows it.

KMP_BLOCKTIME is the time for which a thread without work spins before it sleeps, 200 ms by default.
With a time of 0 it sleeps at once, and the kernel counts its sleeps. libgomp has the same setting
under another name, OMP_WAIT_POLICY=passive. A sleep costs a call of the kernel and a start. A
thread that spins takes a core from other programs. KMP_AFFINITY binds threads to CPUs. It also
binds the main thread, and loader workers inherit the CPU of the main thread, as in omp-bind.

libgomp reads no KMP variable. The source says that libiomp5 is sometimes faster. It gives no number
and no operator, so no claim here could refute that.

In practice: keep libgomp, unless your own step is faster with libiomp5 (`tuilab ab` compares
commands). After a change of `LD_PRELOAD`, run once with `KMP_SETTINGS=1`: libiomp5 then prints its
settings when it starts, and libgomp prints nothing. Bind with taskset or numactl instead of
KMP_AFFINITY if a DataLoader has workers.
## Predict
Two threads share each operator. Under OMP_WAIT_POLICY=passive, how many sleeps does a call cost?
## Look for
- [own] without LD_PRELOAD torch calls the GOMP_parallel of libgomp
- [ignored] for a path in LD_PRELOAD that does not exist, the linker prints "ignored", and the
  program runs without the library and ends with 0
- [passive] under OMP_WAIT_POLICY=passive a call of libgomp on two threads costs 2 sleeps
- [no-kmp] under KMP_BLOCKTIME=0 a call of libgomp on two threads costs 0 sleeps
- [no-affinity] under KMP_AFFINITY=granularity=fine,compact,1,0 both threads of libgomp may use all
  CPUs of the process
- [iomp] with libiomp5 in LD_PRELOAD torch calls the GOMP_parallel of libiomp5
- [both] with libiomp5 in LD_PRELOAD libgomp is loaded as well
- [settings] under KMP_SETTINGS=1 libiomp5 prints its settings, with KMP_BLOCKTIME=200
- [blocktime] under KMP_BLOCKTIME=0 a call of libiomp5 on two threads costs 2 sleeps
- [affinity] under KMP_AFFINITY=granularity=fine,compact,1,0 the main thread of libiomp5 may use 1
  CPU, and its two threads are bound to 2 CPUs
## Try next
`--policy active`: threads that wait spin, and never sleep between two calls. refutes: passive
`--preload libm.so.6`: this library exists, so the linker loads it. refutes: ignored
`--blocktime 1`: a millisecond is longer than the time between two operators, so no thread sleeps.
refutes: blocktime
`--affinity none`: libiomp5 leaves its threads all CPUs. refutes: affinity
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 16,
https://www.toymoban.com/news/detail-808122.html: LD_PRELOAD of libiomp5, KMP_AFFINITY and
KMP_BLOCKTIME=1, without numbers. Ours: which library works, the count of sleeps and the CPUs of
each thread.
"""

import ctypes
import os
import platform
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Literal

import torch

from tuilab import Lab

OPENMP_VARIABLES = (
    "LD_PRELOAD",
    "OMP_WAIT_POLICY",
    "GOMP_SPINCOUNT",
    "OMP_PROC_BIND",
    "OMP_PLACES",
    "KMP_BLOCKTIME",
    "KMP_LIBRARY",
    "KMP_AFFINITY",
)
PRINT_MAPS = "print(open('/proc/self/maps').read())"
SHARE_AN_OPERATOR = "import torch; torch.rand(512, 512).exp()"


class SymbolInfo(ctypes.Structure):
    """What dladdr returns for an address."""

    _fields_ = [
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    ]


def library_of(name):
    """Return the name of the file that a function of this process is in."""
    process = ctypes.CDLL(None)
    address = ctypes.cast(getattr(process, name), ctypes.c_void_p)
    info = SymbolInfo()
    process.dladdr(address, ctypes.byref(info))
    return Path(info.file.decode()).name


def is_loaded(library):
    return library in Path("/proc/self/maps").read_text()


def count_sleeps():
    return resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw


def cpus_of_threads():
    """Return which CPUs the threads of this process may use, each list once."""
    sets = set()
    for thread in os.listdir("/proc/self/task"):
        sets.add(tuple(sorted(os.sched_getaffinity(int(thread)))))
    return sorted(sets)


def share_operators(lab, calls=300):
    """Return the library of GOMP_parallel, whether libgomp is loaded, and costs of a call."""
    torch.set_num_threads(2)
    a = torch.rand(1 << 16)  # two times the least that a thread is given
    a + a  # the first call starts the second thread
    cpus = cpus_of_threads()
    sleeps = 0
    start = time.perf_counter()
    for call in range(calls):
        before = count_sleeps()
        a + a
        sleeps += count_sleeps() - before
        if call % 10 == 0:
            lab.log(call, sleeps=sleeps)
    call_us = (time.perf_counter() - start) / calls * 1e6
    return {
        "library": library_of("GOMP_parallel"),
        "has_libgomp": is_loaded("libgomp"),
        "sleeps": sleeps / calls,
        "call_us": call_us,
        "main_cpus": sorted(os.sched_getaffinity(0)),
        "cpus": cpus,
    }


def run_program(code, **variables):
    """Run a program as from a shell."""
    environment = {**os.environ, **variables}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def find_iomp():
    folders = (
        f"{sys.prefix}/lib",
        "/usr/local/lib",
        f"/usr/lib/{platform.machine()}-linux-gnu",
        "/usr/lib64",
        "/usr/lib",
    )
    for folder in folders:
        path = Path(folder, "libiomp5.so")
        if path.exists():
            return str(path)
    return ""


def clean_prefix(env):
    """Return words that unset the variables of the user's shell that OpenMP would read."""
    words = ["env"]
    for name in OPENMP_VARIABLES:
        if name not in env:
            words.append(f"--unset={name}")
    return words


def preload_a_path(lab, preload):
    """Claim that the linker ignores a path that does not exist."""
    program = run_program(PRINT_MAPS, LD_PRELOAD=preload)
    title = f"LD_PRELOAD={preload}"
    lab.text(program.stderr or "the linker prints nothing", title=title)
    is_ignored = "ignored" in program.stderr
    is_preloaded = Path(preload).name in program.stdout
    outcome = [is_ignored, is_preloaded, program.returncode]
    lab.claim("ignored", outcome, equals=[True, False, 0])


def show_processes(lab, processes):
    rows = []
    for arm, process in processes.items():
        cpus = " ".join(str(list(cpus)) for cpus in process["cpus"])
        row = (arm, process["library"], process["has_libgomp"], process["sleeps"])
        rows.append((*row, process["call_us"], cpus))
    head = ("process", "GOMP_parallel is of", "libgomp is loaded", "sleeps a call", "us a call")
    lab.table("what torch runs on", rows, head=(*head, "CPUs of its threads"))


def run(
    lab: Lab,
    preload: str = "/nowhere/libiomp5.so",  # LD_PRELOAD of a program
    policy: Literal["passive", "active"] = "passive",  # OMP_WAIT_POLICY of libgomp
    blocktime: int = 0,  # KMP_BLOCKTIME, in ms, 0..10000
    affinity: str = "granularity=fine,compact,1,0",  # KMP_AFFINITY
) -> None:
    lab.needs(is_loaded("libgomp"), "a torch that uses GNU OpenMP (libgomp)")
    allowed = sorted(os.sched_getaffinity(0))
    one_core = "" if len(allowed) > 1 else "a second core"

    lab.stage(f"LD_PRELOAD={preload}")
    preload_a_path(lab, preload)

    lab.axes("sleeps", x="call", y="sleeps of both threads so far")
    kmp = {"KMP_BLOCKTIME": str(blocktime), "KMP_AFFINITY": affinity}
    variables = {
        "libgomp, KMP variables": kmp,
        f"libgomp, {policy}": {"OMP_WAIT_POLICY": policy},
    }
    iomp = find_iomp()
    if iomp:
        variables["libiomp5, KMP variables"] = {"LD_PRELOAD": iomp, **kmp}
        variables["libiomp5"] = {"LD_PRELOAD": iomp}
    processes = {}
    free_cores = lab.effective_cores(2)
    for arm, env in variables.items():
        lab.stage(arm)
        start = lab.arm(arm, share_operators, env=env, prefix=clean_prefix(env))
        processes[arm] = start()
        if len(processes) == 1:  # a thread without a core spins in vain, and then sleeps
            free_cores = min(free_cores, lab.effective_cores(2))
    show_processes(lab, processes)

    gomp = processes["libgomp, KMP variables"]
    waiting = processes[f"libgomp, {policy}"]
    lab.claim("own", gomp["library"].partition("-")[0].partition(".")[0], equals="libgomp")
    lab.claim("passive", waiting["sleeps"], equals=2, tolerance=0.5, lacks=one_core, answers=True)
    busy = "" if free_cores > 1.8 else "two cores that are free"
    lab.claim("no-kmp", gomp["sleeps"], equals=0, tolerance=0.5, lacks=busy)
    lab.claim("no-affinity", gomp["cpus"], equals=[allowed], lacks=one_core)

    if not iomp:
        lacks = "libiomp5.so (pip install intel-openmp)"
        for key in ("iomp", "both", "settings", "blocktime", "affinity"):
            lab.claim(key, lacks=lacks)
        return
    with_kmp = processes["libiomp5, KMP variables"]
    lab.claim("iomp", with_kmp["library"], equals="libiomp5.so")
    lab.claim("both", with_kmp["has_libgomp"])
    program = run_program(SHARE_AN_OPERATOR, LD_PRELOAD=iomp, KMP_SETTINGS="1")
    lab.claim("settings", "KMP_BLOCKTIME=200" in program.stderr)
    sleeps = with_kmp["sleeps"]
    lab.claim("blocktime", sleeps, equals=2, tolerance=0.5, lacks=one_core)
    single_cpus = [cpus for cpus in with_kmp["cpus"] if len(cpus) == 1]
    counts = [len(with_kmp["main_cpus"]), len(single_cpus)]
    lab.claim("affinity", counts, equals=[1, 2], lacks=one_core)
