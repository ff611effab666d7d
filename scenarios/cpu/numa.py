"""Bind a process to a node: its threads and its memory stay together.

A machine with several sockets has memory at each socket. A socket and its memory are a node, and a
core reaches the memory of its own node faster than that of another. If a training process is left
alone, the scheduler moves its threads between cores, and its tensors stay behind.

A page of memory gets its node when it is first written: the node of the core that writes it. An
empty tensor has no page yet. So the thread that fills a tensor decides where it is. `numactl` binds
a process before it starts. `--cpunodebind` or `--physcpubind` sets its cores, and `--membind` the
node of its pages. torch counts the cores that it may use when it starts.

A binding is easy to check. The kernel reports the core that runs a step (sched_getcpu). Its file
/proc/self/numa_maps lists the policy and the nodes of all pages. With a single node there is no far
memory, so a binding only keeps two programs off each other's cores.

In practice: on a machine with several nodes, start one process for each node, as in
`numactl --cpunodebind=0 --membind=0 python train.py`. `lscpu` shows the nodes. Let the bound
process make its own tensors. Do not bind from inside after large tensors are filled.
## Predict
How many threads does torch take when its process is bound to a single core?
## Look for
- [one-thread] torch has 1 thread in a process that is bound to a single core
- [one-core] every step of the bound process ends on the core that it is bound to
- [first-touch] a new tensor has no page in memory; once its first half is written, all pages of the
  first half are in memory, and none of the second
- [pages] all pages of a tensor of the bound process are on the node of its core, with the policy
  bind
- [far-memory] a sum over memory of another node takes at least 1.2 times as long as over memory of
  the same node
## Try next
`--bind none`: torch takes every core, and the kernel promises no node. refutes: one-thread, pages
`--bind node`: as in the source, torch has a thread for each core of the node, and the pages stay.
refutes: one-thread
`--touch all`: the whole tensor is written at once, so every page is in memory. refutes: first-touch
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 14,
https://www.toymoban.com/news/detail-808122.html: numactl --cpunodebind=N --membind=N. Ours: how to
check a binding, the first touch, and the race between near and far memory.
"""

import ctypes
import os
import shutil
import subprocess
import time
from functools import partial
from mmap import PAGESIZE
from pathlib import Path
from typing import Literal

import torch

from tuilab import Lab

SYSTEM = Path("/sys/devices/system")
NUMA_MAPS = Path("/proc/self/numa_maps")
PARTS = 16  # of the tensor whose pages are counted while it is written


def multiply_and_watch(lab, steps, mb):
    """Multiply, and show which core ends each step and how many cores are busy.

    Return the threads of torch, these cores, and where the pages of a tensor are.
    """
    data = torch.ones(mb << 18)  # mb MiB, written, so its pages exist
    a = torch.rand(512, 512)
    kernel = ctypes.CDLL(None)
    cores = set()
    first_start = time.perf_counter()
    first_cpu_s = time.process_time()
    for step in range(steps):
        start = time.perf_counter()
        a @ a
        core = kernel.sched_getcpu()
        end = time.perf_counter()
        cores.add(core)
        busy = (time.process_time() - first_cpu_s) / (end - first_start)
        lab.log(step, cores_busy=busy)
        lab.span(f"core {core}", start, end, "step")
    policy, nodes = memory_of(data)
    return torch.get_num_threads(), sorted(cores), policy, nodes


def memory_of(tensor):
    """Return the kernel's policy for the memory of a tensor, and the nodes of its pages.

    A line of numa_maps begins with an address, and ends before that of the next line:
    7fcd92529000 bind:0 anon=12829 dirty=12829 N0=12829 kernelpagesize_kB=4
    """
    if not NUMA_MAPS.exists():
        return "unknown", []
    fields = []
    for line in NUMA_MAPS.read_text().splitlines():
        address = int(line.split()[0], 16)
        if address <= tensor.data_ptr():
            fields = line.split()
    nodes = []
    for field in fields[2:]:
        if field.startswith("N"):
            nodes.append(int(field[1:].partition("=")[0]))
    return fields[1], nodes


def share_in_memory(tensor):
    """Return the share of a tensor's whole pages that are in memory."""
    first = -(-tensor.data_ptr() // PAGESIZE)
    last = (tensor.data_ptr() + tensor.nbytes) // PAGESIZE
    pages = (ctypes.c_ubyte * (last - first))()
    address = ctypes.c_void_p(first * PAGESIZE)
    size = ctypes.c_size_t(len(pages) * PAGESIZE)
    ctypes.CDLL(None).mincore(address, size, pages)
    return sum(page & 1 for page in pages) / len(pages)


def log_first_touch(lab, mb):
    """Write a new tensor part by part, and show how much of it is in memory."""
    lab.axes("in_memory_percent", x="parts written, of 16", y="pages of the tensor in memory")
    tensor = torch.empty(mb << 18)
    parts = tensor.chunk(PARTS)
    lab.log(0, in_memory_percent=100 * share_in_memory(tensor))
    for number, part in enumerate(parts, start=1):
        part.fill_(1)
        lab.log(number, in_memory_percent=100 * share_in_memory(tensor))


def claim_first_touch(lab, mb, touch):
    tensor = torch.empty(mb << 18)
    first_half, second_half = tensor.chunk(2)
    before = share_in_memory(tensor)
    written = tensor if touch == "all" else first_half
    written.fill_(1)
    shares = [before, share_in_memory(first_half), share_in_memory(second_half)]
    tolerance = 0.15  # a huge page may cross the border
    lab.claim("first-touch", shares, equals=[0, 1, 0], tolerance=tolerance)


def tensor_on(node, mb):
    libnuma = ctypes.CDLL("libnuma.so.1")
    libnuma.numa_alloc_onnode.restype = ctypes.c_void_p
    address = libnuma.numa_alloc_onnode(ctypes.c_size_t(mb << 20), node)
    buffer = (ctypes.c_float * (mb << 18)).from_address(address)
    return torch.frombuffer(buffer, dtype=torch.float32).fill_(1)


def sum_on(node, mb):
    """Return a function that adds up a tensor on a node."""
    return tensor_on(node, mb).sum


def find_nodes():
    nodes = []
    for number in range(1024):
        if (SYSTEM / f"node/node{number}").exists():
            nodes.append(number)
    return nodes or [0]


def node_of(core, nodes):
    for node in nodes:
        if (SYSTEM / f"cpu/cpu{core}/node{node}").exists():
            return node
    return 0


def why_numactl_fails(node):
    """Return what this machine lacks to bind memory with numactl, or an empty text."""
    if not shutil.which("numactl"):
        return "numactl"
    command = ["numactl", f"--membind={node}", "true"]
    process = subprocess.run(command, capture_output=True, text=True)
    if process.returncode == 0:
        return ""
    lines = process.stderr.splitlines() or ["it failed"]
    return f"a numactl that may bind ({lines[0]})"


def binding_words(bind, core, node, has_numactl):
    """Return the words before a command that bind it."""
    if bind == "none":
        return ["env"]  # env changes nothing
    if has_numactl:
        place = f"--physcpubind={core}" if bind == "core" else f"--cpunodebind={node}"
        return ["numactl", place, f"--membind={node}"]
    cpus = str(core)
    if bind == "node":
        listing = SYSTEM / f"node/node{node}/cpulist"
        cpus = listing.read_text().strip() if listing.exists() else f"0-{core}"
    return ["taskset", "--cpu-list", cpus]


def find_far_node(nodes, node):
    """Return another node that has memory, or None."""
    for other in reversed(nodes):
        if other != node and memory_of(tensor_on(other, 1))[1] == [other]:
            return other
    return None


def run(
    lab: Lab,
    bind: Literal["core", "node", "none"] = "core",  # what the bound process is bound to
    touch: Literal["half", "all"] = "half",  # how much of a new tensor is written
    steps: int = 300,  # steps of each process, 1..1000 (quick 100)
    mb: int = 128,  # size of the tensors in MiB, 32..4096 (quick 32)
) -> None:
    nodes = find_nodes()
    core = max(os.sched_getaffinity(0))
    node = node_of(core, nodes)
    cannot_bind_memory = why_numactl_fails(node)
    words = binding_words(bind, core, node, has_numactl=not cannot_bind_memory)
    cannot_bind = "" if shutil.which(words[0]) else "numactl or taskset (Debian: util-linux)"

    @lab.once
    def exact():
        lab.stage("first touch")
        log_first_touch(lab, mb)
        claim_first_touch(lab, mb, touch)

        lab.axes("cores_busy", x="steps", y="cores that are busy")
        processes = {"free": ["env"], "bound": ["env"] if cannot_bind else words}
        for arm, prefix in processes.items():
            lab.stage(" ".join([arm, *prefix]))
            start = lab.arm(arm, multiply_and_watch, steps, mb, prefix=prefix)
            threads, cores, policy, homes = start()
            summary = f"threads: {threads}; cores: {cores}; nodes of its pages: {homes} ({policy})"
            lab.text(summary, title=arm)
        lab.claim("one-thread", threads, equals=1, answers=True, lacks=cannot_bind)
        lab.claim("one-core", cores, equals=[core], lacks=cannot_bind)
        is_kept = policy.startswith("bind") and homes == [node]
        lab.claim("pages", is_kept, lacks=cannot_bind_memory)

    far_node = None if cannot_bind_memory else find_far_node(nodes, node)
    lacks = "two nodes with memory" if far_node is None else ""
    lab.claim_ratio("far-memory", "far/near", at_least=1.2, lacks=lacks)
    if lacks:
        return
    lab.stage(f"node {far_node}, seen from core {core}, against node {node}")
    os.sched_setaffinity(0, {core})
    arms = {"far": partial(sum_on, far_node, mb), "near": partial(sum_on, node, mb)}
    lab.race(**arms, factories=True, same=0.0)
