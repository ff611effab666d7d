"""A wrong path in LD_PRELOAD leaves torch on libgomp, and the program succeeds: ask the process which OpenMP it runs on.

torch splits an operator over threads by calls such as GOMP_parallel. Its wheels bring libgomp, the OpenMP of GCC, for that.
libiomp5, Intel's, has the same names: where LD_PRELOAD loads it first, torch's calls go there. libgomp is loaded as well, so a
list of loaded files does not tell which of them works; the address of a function does. Of a path that is not there the
linker says "ignored", and goes on (tuilab looks: an arm with such a path fails). Then KMP_BLOCKTIME means nothing: libgomp does
not read it.

KMP_BLOCKTIME is how many ms a thread without work spins before it sleeps, 200 of itself. With 0 a call has two sleeps: one
of the thread that waits for work, and one of the main thread that waits for its end. The kernel counts them. libgomp does the
same under OMP_WAIT_POLICY=passive. A sleep costs a call to the kernel and a start; to spin takes a core from other programs.
## Predict
Two threads share each operator. Under OMP_WAIT_POLICY=passive, how many sleeps does a call cost?
## Look for
- [own] without LD_PRELOAD torch calls the GOMP_parallel of libgomp
- [ignored] of a path that is not there the linker says "ignored", and a program without the library ends with 0
- [passive] under OMP_WAIT_POLICY=passive a call on two threads costs two sleeps
- [no-kmp] libgomp under KMP_BLOCKTIME=0 has none
- [iomp] with libiomp5 loaded first torch calls the GOMP_parallel of libiomp5
- [both] libgomp is loaded all the same
- [settings] KMP_SETTINGS=1 makes libiomp5 tell its settings, a KMP_BLOCKTIME of 200 among them
- [blocktime] libiomp5 under KMP_BLOCKTIME=0: two sleeps a call
## Try next
`--policy active`: threads that wait spin. refutes: passive
`--preload libm.so.6`: a library that is there. refutes: ignored
`--blocktime 1`: a millisecond is longer than what lies between two operators. refutes: blocktime
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 16,
https://www.toymoban.com/news/detail-808122.html: LD_PRELOAD of libiomp5, KMP_AFFINITY and KMP_BLOCKTIME=1, without numbers.
Ours: which library it is, and the count of sleeps.
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

READ = ["LD_PRELOAD", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "OMP_PROC_BIND", "OMP_PLACES", "KMP_BLOCKTIME", "KMP_LIBRARY"]


class Place(ctypes.Structure):  # what dladdr tells of an address
    _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("symbol", ctypes.c_char_p), ("at", ctypes.c_void_p)]


def library_of(name):
    """Return the file that a function of this process is in."""
    place, process = Place(), ctypes.CDLL(None)
    process.dladdr(ctypes.cast(getattr(process, name), ctypes.c_void_p), ctypes.byref(place))
    return Path(place.file.decode()).name


def work(lab, calls=300):
    """Return whose GOMP_parallel torch calls, whether libgomp is loaded, and how often threads slept for each call."""
    torch.set_num_threads(2)
    a = torch.rand(1 << 16)  # two times the least that a thread is given
    a + a  # the first call starts the second thread
    slept, began = [], time.perf_counter()
    for _ in range(calls):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
        a + a
        slept.append(resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - before)
    call_us = (time.perf_counter() - began) / calls * 1e6
    for call in range(0, calls, 10):
        lab.log(call, sleeps=sum(slept[: call + 1]))
    return library_of("GOMP_parallel"), "libgomp" in Path("/proc/self/maps").read_text(), sum(slept) / calls, call_us


def program(code, **variables):
    """Run a program of its own, as you would from a shell."""
    return subprocess.run([sys.executable, "-c", code], env={**os.environ, **variables}, capture_output=True, text=True)


def run(
    lab: Lab,
    preload: str = "/nowhere/libiomp5.so",  # LD_PRELOAD of a program
    policy: Literal["passive", "active"] = "passive",  # OMP_WAIT_POLICY of libgomp
    blocktime: int = 0,  # KMP_BLOCKTIME, in ms, 0..10000
) -> None:
    lab.needs("libgomp" in Path("/proc/self/maps").read_text(), "a torch that uses GNU OpenMP (libgomp)")

    lab.stage(f"LD_PRELOAD={preload}")
    done = program("print(open('/proc/self/maps').read())", LD_PRELOAD=preload)
    lab.text(done.stderr or "the linker says nothing", title=f"LD_PRELOAD={preload}")
    is_loaded = Path(preload).name in done.stdout
    lab.claim("ignored", ["ignored" in done.stderr, is_loaded, done.returncode], equals=[True, False, 0])

    lab.axes("sleeps", x="call", y="sleeps of both threads so far")
    folders = f"{sys.prefix}/lib", "/usr/local/lib", f"/usr/lib/{platform.machine()}-linux-gnu", "/usr/lib64", "/usr/lib"
    iomp = next((path for path in (f"{folder}/libiomp5.so" for folder in folders) if Path(path).exists()), "")
    kmp = {"KMP_BLOCKTIME": str(blocktime)}
    arms = {"libgomp, KMP_BLOCKTIME": kmp, f"libgomp, {policy}": {"OMP_WAIT_POLICY": policy}}
    if iomp:
        arms |= {"libiomp5, KMP_BLOCKTIME": {"LD_PRELOAD": iomp, **kmp}, "libiomp5": {"LD_PRELOAD": iomp}}
    found, cores = {}, [lab.effective_cores(2)]
    for arm, env in arms.items():
        lab.stage(arm)
        clean = [f"--unset={name}" for name in READ if name not in env]  # what you set does not count here
        found[arm] = lab.arm(arm, work, env=env, prefix=["env", *clean])()
        cores += [lab.effective_cores(2)] if len(cores) == 1 else []  # whose thread is off its core spins in vain, and sleeps
    head = "process", "GOMP_parallel is of", "libgomp is loaded", "sleeps a call", "us a call"
    lab.table("what torch runs on", [(arm, *row) for arm, row in found.items()], head=head)
    gomp, waits, *intel = found.values()
    lab.claim("own", gomp[0].partition("-")[0].partition(".")[0], equals="libgomp")
    lacks = "" if len(os.sched_getaffinity(0)) > 1 else "a second core"
    lab.claim("passive", waits[2], equals=2, tolerance=0.5, lacks=lacks, answers=True)
    lab.claim("no-kmp", gomp[2], equals=0, tolerance=0.5, lacks="" if min(cores) > 1.8 else "two cores that are free")
    absent = "" if iomp else "libiomp5.so (pip install intel-openmp)"
    told = program("import torch; torch.rand(512, 512).exp()", LD_PRELOAD=iomp, KMP_SETTINGS="1").stderr if iomp else ""
    lab.claim("iomp", intel[0][0] if iomp else None, equals="libiomp5.so", lacks=absent)
    lab.claim("both", intel[0][1] if iomp else None, lacks=absent)
    lab.claim("settings", "KMP_BLOCKTIME=200" in told, lacks=absent)
    lab.claim("blocktime", intel[0][2] if iomp else None, equals=2, tolerance=0.5, lacks=absent or lacks)
