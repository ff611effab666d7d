"""Bind a process to one node, and its threads and its memory stay together.

A box with several sockets has memory at each of them, a node, and a core reaches its own node's memory faster. A page gets its
place when it is first written, near the core that writes it: an empty tensor has none yet. If left alone, the scheduler moves
threads between the cores while the memory stays. `numactl` binds before the program starts: `--cpunodebind` or `--physcpubind`
its cores, `--membind` its pages. Check it instead of hoping: the kernel tells the core that runs a step, and in
/proc/self/numa_maps the policy and the node of every page. torch takes a thread for each core it may use. With one node there
is no far memory and nothing to gain: binding then only keeps two programs out of each other's way.
## Predict
How many threads does torch take when its process is bound to a single core?
## Look for
- [one-thread] torch bound to one core takes one thread
- [one-core] every step of the bound process ends on that core
- [first-touch] a new large tensor has no page in memory; with its first half written it has the pages of that half alone
- [pages] the kernel keeps every page of a bound tensor on the node of that core
- [far-memory] a sum over far memory takes at least 1.2 times as long as over near
## Try next
`--bind none`: torch takes every core, and the kernel promises nothing. refutes: one-thread, pages
`--bind node`: what the source means: a thread for each core of the node, and the pages stay; refutes: one-thread
`--touch all`: all is written at once, and every page has its place. refutes: first-touch
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 14,
https://www.toymoban.com/news/detail-808122.html: numactl --cpunodebind=N --membind=N. Ours: how to see what it did, the first
touch, and the race between near and far.
"""

import ctypes
import os
import shutil
import subprocess
import time
from mmap import PAGESIZE
from pathlib import Path
from typing import Literal

import torch

from tuilab import Lab

SYS = Path("/sys/devices/system")


def work(lab, steps, mb):
    """Multiply, noting how many cores are busy so far and where each step ends; return what this process was given."""
    data = torch.ones(mb << 18)  # mb MiB, written: now its pages exist
    a, libc, ran_on = torch.rand(512, 512), ctypes.CDLL(None), []
    wall, cpu = time.perf_counter(), time.process_time()
    for step in range(steps):
        a @ a
        ran_on.append(libc.sched_getcpu())
        lab.log(step, cores_busy=(time.process_time() - cpu) / (time.perf_counter() - wall), core=ran_on[-1])
    return torch.get_num_threads(), sorted(set(ran_on)), *home_of(data)


def home_of(tensor):
    """Return the kernel's policy for a tensor's memory and the nodes of its pages. A line of numa_maps:
    7fcd92529000 bind:0 anon=12829 dirty=12829 N0=12829 kernelpagesize_kB=4"""
    if not Path("/proc/self/numa_maps").exists():
        return "unknown", []
    maps = [line.split() for line in Path("/proc/self/numa_maps").read_text().splitlines()]
    _, policy, *fields = max((m for m in maps if int(m[0], 16) <= tensor.data_ptr()), key=lambda m: int(m[0], 16))
    return policy, [int(field[1:].partition("=")[0]) for field in fields if field[0] == "N"]


def resident(tensor):
    """Return the share of a tensor's whole pages that are in memory."""
    first, last = -(-tensor.data_ptr() // PAGESIZE), (tensor.data_ptr() + tensor.nbytes) // PAGESIZE
    pages = (ctypes.c_ubyte * (last - first))()
    ctypes.CDLL(None).mincore(ctypes.c_void_p(first * PAGESIZE), ctypes.c_size_t(len(pages) * PAGESIZE), pages)
    return sum(page & 1 for page in pages) / len(pages)


def tensor_on(node, mb):
    libnuma = ctypes.CDLL("libnuma.so.1")
    libnuma.numa_alloc_onnode.restype = ctypes.c_void_p
    address = libnuma.numa_alloc_onnode(ctypes.c_size_t(mb << 20), node)
    return torch.frombuffer((ctypes.c_float * (mb << 18)).from_address(address), dtype=torch.float32).fill_(1)


def run(
    lab: Lab,
    bind: Literal["core", "node", "none"] = "core",  # what the bound process is bound to
    touch: Literal["half", "all"] = "half",  # how much of a new tensor is written
    steps: int = 300,  # steps of each process, 1..100000 (quick 100)
    mb: int = 128,  # size of the tensors in MiB, 32..4096 (quick 32)
) -> None:
    nodes = [n for n in range(1024) if (SYS / f"node/node{n}").exists()] or [0]
    core = max(os.sched_getaffinity(0))
    node = next((n for n in nodes if (SYS / f"cpu/cpu{core}/node{n}").exists()), 0)
    cannot_bind = "numactl"
    if shutil.which("numactl"):
        done = subprocess.run(["numactl", f"--membind={node}", "true"], capture_output=True, text=True)
        cannot_bind = f"a numactl that may bind ({(done.stderr.splitlines() or ['it failed'])[0]})" if done.returncode else ""
    cpus = SYS / f"node/node{node}/cpulist"
    cores = {"core": str(core), "node": cpus.read_text().strip() if cpus.exists() else f"0-{core}", "none": ""}
    binding = {"core": f"--physcpubind={core}", "node": f"--cpunodebind={node}"}.get(bind)
    prefix = ["numactl", binding, f"--membind={node}"] if not cannot_bind else ["taskset", "--cpu-list", cores[bind]]
    no_tool = "" if not binding or shutil.which(prefix[0]) else "numactl or taskset (Debian: util-linux)"

    @lab.once
    def exact():
        for arm, words in (("free", ["env"]), ("bound", ["env"] if no_tool or not binding else prefix)):  # env changes nothing
            lab.stage(" ".join([arm, *words]))
            threads, ran_on, policy, homes = lab.arm(arm, work, steps, mb, prefix=words)()
            lab.text(f"threads: {threads}; ran on cores {ran_on}; pages on nodes {homes}, policy {policy}", title=arm)
        lab.claim("one-thread", threads, equals=1, answers=True, lacks=no_tool)
        lab.claim("one-core", ran_on, equals=[core], lacks=no_tool)
        is_kept = policy.startswith("bind") and homes == [node]
        half, other = (tensor := torch.empty(mb << 18)).chunk(2)
        shares = [resident(tensor), resident((half if touch == "half" else tensor).fill_(1)[: len(half)]), resident(other)]
        lab.claim("first-touch", shares, equals=[0, 1, 0], tolerance=0.15)  # a huge page may lie on the border
        lab.claim("pages", is_kept, lacks=cannot_bind)

    far_nodes = [] if cannot_bind else [n for n in nodes if n != node and home_of(tensor_on(n, 1))[1] == [n]]
    lacks = "" if far_nodes else "two nodes with memory"
    lab.claim_ratio("far-memory", "far/near", at_least=1.2, lacks=lacks)
    if not far_nodes:
        return
    lab.stage(f"node {far_nodes[-1]}, seen from core {core}, against node {node}")
    os.sched_setaffinity(0, {core})
    lab.race(far=lambda: tensor_on(far_nodes[-1], mb).sum, near=lambda: tensor_on(node, mb).sum, factories=True, same=0.0)
