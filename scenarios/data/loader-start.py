"""A forked worker starts at once and inherits all, also what hangs it; a spawned one inherits nothing and loads torch again.

A fork is a copy of the process as it is: memory, modules, open files. Threads are not copied. What another thread was about to
do is never done: a lock that it held stays locked, and OpenMP waits for threads that are not there. So a child that is forked
after torch ran an operator with 2 threads hangs at its own first one with 2. A worker of the DataLoader is safe, as it begins
with `torch.set_num_threads(1)`; it hangs if somebody sets more in it. CUDA knows that it was forked, and raises.

`spawn` starts a new Python, which runs your file and gets the dataset as a pickle: no lambda, and nothing that was set since.
Each loads torch again. A `forkserver` has no threads, forks when it is asked, and loads torch once for all after
`multiprocessing.set_forkserver_preload(["torch"])`. Python 3.14 takes it by default on Linux, older ones fork; the DataLoader
takes another with `multiprocessing_context=`. The lanes show one start each.
## Predict
Of four workers, one forked, one spawned and two from a forkserver, how many run your file from the top?
## Look for
- [memory] a forked worker sees what its parent has set since, the other three see what the file says
- [file] three of the four run the file again: all but the forked one
- [lock] a lock that the parent held at the start stays locked in the forked one; in the others it is free
- [lambda] the DataLoader takes a lambda when it forks, and raises for spawn and forkserver
- [private] the spawned one has at least twice the private bytes of each of the others
- [hang] forked after an operator with 2 threads, a child is not through its own in 2 s; one that first sets 1 thread is
- [cuda] forked after its parent used a GPU, a child that wants to use it gets a RuntimeError
## Try next
`--first spawn`: nothing is forked from here. refutes: memory, file, lock, lambda, private
`--no-preload`: each worker of the forkserver loads torch, and has the bytes to itself. refutes: private
`--threads 1`: OpenMP has started no thread, and the child goes on. refutes: hang
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 1,
https://www.toymoban.com/news/detail-808122.html: workers are processes. Ours: the rest.
"""

import multiprocessing
import os
import re
import threading
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Literal

import torch
from torch.utils.data import DataLoader

from tuilab import Lab

LOADED_BY = os.getpid()  # who runs this file
FORK, LOCK = multiprocessing.get_context("fork"), threading.Lock()
ROLLUP = Path("/proc/self/smaps_rollup")
setting = "of the file"


def look_around(line):
    private = 1024 * sum(map(int, re.findall(r"Private_(?:Clean|Dirty): +(\d+) kB", ROLLUP.read_text())))
    is_locked = not LOCK.acquire(timeout=0.1)  # the parent releases its own at once
    line.send((setting, os.getpid() == LOADED_BY, is_locked, private))


def start_worker(method):
    context = multiprocessing.get_context(method)
    ours, theirs = context.Pipe()
    process = context.Process(target=look_around, args=(theirs,), daemon=True)
    with LOCK:
        process.start()
    seen = ours.recv()
    process.join()
    return seen


def compute(threads):
    torch.set_num_threads(threads)
    torch.ones(1 << 20).add(1)  # large enough for more than one thread


def after_openmp(threads):
    compute(threads)
    hung = []
    for of_child, patience_s in (threads, 2), (1, 30):
        child = FORK.Process(target=compute, args=(of_child,), daemon=True)
        child.start()
        child.join(patience_s)
        hung.append(child.is_alive())
        child.kill()
        child.join()
    torch.set_num_threads(1)
    return hung


def run(
    lab: Lab,
    first: Literal["fork", "spawn"] = "fork",  # how the first worker is started
    preload: bool = True,  # the forkserver loads torch
    threads: int = 2,  # of torch in the parent of the child that hangs, 1..64
) -> None:
    globals()["setting"] = "of the parent"
    lab.needs(ROLLUP.exists(), "smaps_rollup, of Linux 4.14 or newer")
    multiprocessing.set_forkserver_preload(["torch"] if preload else [])
    lab.axes("private_bytes", x="worker", y="private bytes of a worker")
    found, methods = {}, {"first": first, "spawn": "spawn", "forkserver": "forkserver", "forkserver again": "forkserver"}
    for name, method in lab.sweep(methods.items(), "starting workers"):
        began = time.monotonic()
        found[name] = start_worker(method)
        lab.span(name, began, time.monotonic(), "starts and answers")
        lab.log(len(found), private_bytes=found[name][-1])
    seen, again, locked, private = zip(*found.values(), strict=True)
    rows = [*zip(found, seen, again, locked, strict=True)]
    lab.table("inherited", rows, head=("worker", "setting", "runs the file", "locked"))
    lab.claim("memory", seen, equals=["of the parent"] + ["of the file"] * 3)
    lab.claim("file", again, equals=[False, True, True, True], answers=sum(again))
    lab.claim("lock", locked, equals=[True, False, False, False])
    lab.claim("private", private[1] / max(private[0], *private[2:]), at_least=2)

    lab.stage("a lambda, a fork after OpenMP and one after CUDA")
    warnings.filterwarnings("ignore", "Got pickle error")  # which is raised as well
    loads = partial(DataLoader, [1, 2], num_workers=1, collate_fn=lambda batch: batch)
    refused = [lab.raises(list, loads(multiprocessing_context=way)) for way in (first, "spawn", "forkserver")]
    lab.claim("lambda", [bool(problem) for problem in refused], equals=[False, True, True])
    lacks = "" if "libgomp" in Path("/proc/self/maps").read_text() else "GNU OpenMP (libgomp) in torch"
    lab.claim("hang", None if lacks else after_openmp(threads), equals=[True, False], lacks=lacks)
    device, told = lab.device(), ""
    if device.type == "cuda":
        torch.zeros(1, device=device)
        ours, theirs = multiprocessing.Pipe()
        child = FORK.Process(target=lambda: theirs.send(lab.raises(torch.zeros(1).cuda)), daemon=True)
        child.start()
        told = ours.recv()
        child.join()
    lab.claim("cuda", told.split(":")[0], equals="RuntimeError", lacks="" if told else "a CUDA device")
