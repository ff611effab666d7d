"""Start loader workers by fork, and by forkserver if they hang or use the GPU.

Python can start a worker in three ways. Each way has its own surprise: a worker that hangs, a file
that runs twice, or seconds of imports.

A fork is a copy of the process as it is: its memory, its modules and its open files. It starts at
once. But the other threads are not copied, and their work is never finished. A lock that another
thread holds stays locked for ever. OpenMP waits for threads that are not there. So if torch has run
an operator with 2 threads, a forked child hangs at its own first operator with 2 threads. Workers
of a DataLoader call `torch.set_num_threads(1)` first, so they are safe until somebody sets more
threads in them. CUDA notices that it was forked, and raises an error.

`spawn` starts a new Python. It runs your file again and gets the dataset as a pickle. A pickle
cannot hold a lambda, and changes that the main process has made since are not in the file. Each
worker loads torch again. A `forkserver` is a process without threads, which forks on request. It
loads torch once for all workers after `multiprocessing.set_forkserver_preload(["torch"])`. It also
runs your file in each worker. It is the default on Linux from Python 3.14 on; older versions fork.
The lanes show a start of each kind.

In practice: put the code that starts training under `if __name__ == "__main__":`, and use named
functions in place of lambdas. Then every way works. If a worker hangs, pass
`multiprocessing_context="forkserver"` to the DataLoader. Use the GPU in the training process, and
not in the dataset.
## Predict
Four workers start: the first is forked, the second is spawned, and two come from a forkserver.
How many of the four run your file from the top?
## Look for
- [memory] a forked worker sees a variable that its parent has set since, and the other three see
  the value in the file
- [file] 3 of the 4 workers run the file again: the spawned worker and both from the forkserver
- [lock] a lock that the parent holds at the start stays locked in the forked worker, and is free in
  the other three
- [lambda] the DataLoader takes a lambda if it forks, and raises an error with spawn and forkserver
- [private] the spawned worker has at least twice the private bytes of each of the others
- [hang] if the parent used 2 threads, a forked child with 2 threads hangs in an operator for 2 s,
  and a child with 1 finishes
- [cuda] after its parent used a GPU, a forked child that uses the GPU gets a RuntimeError
## Try next
`--first spawn`: no worker is forked. refutes: memory, file, lock, lambda, private
`--no-preload`: each worker of the forkserver loads torch, and has the bytes for itself.
refutes: private
`--threads 1`: OpenMP has started no thread, and the child finishes. refutes: hang
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 1,
https://www.toymoban.com/news/detail-808122.html: workers are processes. Ours: how they start.
"""

import multiprocessing
import os
import re
import threading
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

import torch
from torch.utils.data import DataLoader

from tuilab import Lab

FILE_RUN_BY = os.getpid()  # the process that runs this file; a fork keeps the number of its parent
FORK = multiprocessing.get_context("fork")
LOCK = threading.Lock()
ROLLUP = Path("/proc/self/smaps_rollup")
PATIENCE_S = 2  # for a child that should hang
LIMIT_S = 30  # for a child that should finish
setting = "of the file"


class View(NamedTuple):
    """What a worker sees at its start."""

    setting: str
    runs_file: bool
    is_locked: bool
    private_bytes: int


def count_private_bytes():
    kib = re.findall(r"Private_(?:Clean|Dirty): +(\d+) kB", ROLLUP.read_text())
    return 1024 * sum(int(number) for number in kib)


def look_around(connection):
    """Send what this worker sees."""
    runs_file = os.getpid() == FILE_RUN_BY
    is_locked = not LOCK.acquire(timeout=0.1)  # the parent releases its own lock at once
    connection.send(tuple(View(setting, runs_file, is_locked, count_private_bytes())))


def start_worker(method):
    """Start a worker while this process holds the lock, and return what the worker sees."""
    context = multiprocessing.get_context(method)
    receiver, sender = context.Pipe()
    process = context.Process(target=look_around, args=(sender,), daemon=True)
    with LOCK:
        process.start()
    view = View(*receiver.recv())
    process.join()
    return view


def add_with_threads(threads):
    torch.set_num_threads(threads)
    torch.ones(1 << 20).add(1)  # large enough for several threads


def hangs(threads, patience_s):
    """Return whether a forked child is still in its operator after so many seconds."""
    child = FORK.Process(target=add_with_threads, args=(threads,), daemon=True)
    child.start()
    child.join(patience_s)
    is_alive = child.is_alive()
    child.kill()
    child.join()
    return is_alive


def fork_after_threads(threads):
    """Use threads, fork a child with as many threads and one with a single thread."""
    add_with_threads(threads)
    is_hanging = [hangs(threads, PATIENCE_S), hangs(1, LIMIT_S)]
    torch.set_num_threads(1)
    return is_hanging


def send_gpu_error(lab, device, sender):
    sender.send(lab.raises(partial(torch.zeros, 1, device=device)))


def fork_after_gpu(lab, device):
    """Use the GPU, and return the error of a forked child that uses it."""
    torch.zeros(1, device=device)
    receiver, sender = multiprocessing.Pipe()
    child = FORK.Process(target=send_gpu_error, args=(lab, device, sender), daemon=True)
    child.start()
    error = receiver.recv()
    child.join()
    return error


def refuses_lambda(lab, method):
    loader = DataLoader(
        [1, 2],
        num_workers=1,
        collate_fn=lambda batch: batch,  # a pickle cannot hold it
        multiprocessing_context=method,
    )
    return lab.raises(list, loader) != ""


def run(
    lab: Lab,
    first: Literal["fork", "spawn"] = "fork",  # how the first worker starts
    preload: bool = True,  # the forkserver loads torch
    threads: int = 2,  # of torch in the parent of the child that hangs, 1..64
) -> None:
    global setting
    setting = "of the parent"
    lab.needs(ROLLUP.exists(), "smaps_rollup, of Linux 4.14 or newer")
    multiprocessing.set_forkserver_preload(["torch"] if preload else [])
    lab.axes("private_bytes", x="worker", y="private bytes of a worker")
    methods = {
        "first": first,
        "spawn": "spawn",
        "forkserver": "forkserver",
        "forkserver again": "forkserver",
    }
    views = {}
    for name, method in lab.sweep(methods.items(), "starting workers"):
        began = time.monotonic()
        views[name] = start_worker(method)
        lab.span(name, began, time.monotonic(), "starts and answers")
        lab.log(len(views), private_bytes=views[name].private_bytes)

    rows = [[name, *view[:3]] for name, view in views.items()]
    lab.table("what workers see", rows, head=("worker", "setting", "runs the file", "locked"))
    settings = [view.setting for view in views.values()]
    lab.claim("memory", settings, equals=["of the parent"] + ["of the file"] * 3)
    runs_file = [view.runs_file for view in views.values()]
    lab.claim("file", runs_file, equals=[False, True, True, True], answers=sum(runs_file))
    is_locked = [view.is_locked for view in views.values()]
    lab.claim("lock", is_locked, equals=[True, False, False, False])
    others = [view.private_bytes for name, view in views.items() if name != "spawn"]
    lab.claim("private", views["spawn"].private_bytes / max(others), at_least=2)

    lab.stage("a lambda")
    warnings.filterwarnings("ignore", "Got pickle error")  # it is also raised
    refusals = [refuses_lambda(lab, method) for method in (first, "spawn", "forkserver")]
    lab.claim("lambda", refusals, equals=[False, True, True])

    lab.stage("a fork after OpenMP")
    if "libgomp" in Path("/proc/self/maps").read_text():
        lab.claim("hang", fork_after_threads(threads), equals=[True, False])
    else:
        lab.claim("hang", lacks="GNU OpenMP (libgomp) in torch")

    lab.stage("a fork after CUDA")
    device = lab.device()
    if device.type == "cuda":
        error = fork_after_gpu(lab, device)
        lab.claim("cuda", error.partition(":")[0], equals="RuntimeError")
    else:
        lab.claim("cuda", lacks="a CUDA device")
