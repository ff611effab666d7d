"""Bind a process to one node, and its threads and its memory stay together.

A box with several sockets has memory at each of them, a node, and a core reaches its own node's sooner than the others'.
Left alone, the scheduler moves threads between the cores while the memory stays where it was first written. `numactl` binds
before the program starts: `--cpunodebind` or `--physcpubind` its cores, `--membind` its pages. Check it instead of hoping:
the kernel tells the core that runs a step, and in /proc/self/numa_maps the policy and the node of every page. torch starts a
thread for each core it may use, so bound to one core it has one. With one node there is no far memory and nothing to gain:
binding then only keeps two programs out of each other's way.

## Predict
How many threads does torch start when its process is bound to a single core?
## Look for
- [one-thread] torch bound to one core starts one thread
- [one-core] every step of the bound process runs on that core
- [pages] the kernel keeps every page of a bound tensor on the node of that core
- [no-such-node] numactl refuses a node that this box does not have
- [far-memory] a sum over far memory takes at least 1.2 times as long as over near
## Try next
`--bind none`: torch takes every core and the kernel promises nothing: the claims about threads and pages are REFUTED.
refutes: one-thread, pages
`--bind node`: threads on all cores of the node, REFUTED for the one thread, while the pages stay: what the source means.
refutes: one-thread
## Source
Tip 14 of "28 PyTorch best practices" after the official Performance Tuning Guide: numactl --cpunodebind=N --membind=N. How
to see what it did, and the race between near and far, are ours.
"""

import ctypes
import os
import shutil
import subprocess
import time
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


def tensor_on(node, mb):
    libnuma = ctypes.CDLL("libnuma.so.1")
    libnuma.numa_alloc_onnode.restype = ctypes.c_void_p
    address = libnuma.numa_alloc_onnode(ctypes.c_size_t(mb << 20), node)
    return torch.frombuffer((ctypes.c_float * (mb << 18)).from_address(address), dtype=torch.float32).fill_(1)


def why_not(*command):
    """Return what a command complains about when it fails, or nothing."""
    if not shutil.which(command[0]):
        return f"there is no {command[0]} on this box"
    done = subprocess.run(command, capture_output=True, text=True)
    return (done.stderr.partition("\n")[0] or "it failed") if done.returncode else ""


def run(
    lab: Lab,
    bind: Literal["core", "node", "none"] = "core",  # what the bound process is bound to
    steps: int = 300,  # steps of each process, 1..100000 (quick 100)
    mb: int = 128,  # size of the tensors in MiB, 1..4096 (quick 32)
) -> None:
    nodes = [n for n in range(1024) if (SYS / f"node/node{n}").exists()] or [0]
    core = max(os.sched_getaffinity(0))
    node = next((n for n in nodes if (SYS / f"cpu/cpu{core}/node{n}").exists()), 0)
    cannot_bind = why_not("numactl", f"--membind={node}", "true")
    binding = {"core": f"--physcpubind={core}", "node": f"--cpunodebind={node}"}.get(bind)
    prefix = ["numactl", binding, f"--membind={node}"] if not cannot_bind else ["taskset", "--cpu-list", str(core)]

    @lab.once
    def exact():
        for arm, words in (("free", []), ("bound", prefix if binding else [])):
            lab.stage(" ".join([arm, *words]))
            threads, ran_on, policy, homes = lab.arm(arm, work, steps, mb, prefix=words)()
            lab.text(f"threads: {threads}; ran on cores {ran_on}; pages on nodes {homes}, policy {policy}", title=arm)
        lab.claim("one-thread", threads, equals=1)
        lab.claim("one-core", ran_on, equals=[core])
        is_kept = policy.startswith("bind") and homes == [node]
        lab.claim("pages", is_kept, lacks=cannot_bind)
        refusal = why_not("numactl", f"--cpunodebind={nodes[-1] + 1}", f"--membind={nodes[-1] + 1}", "true")
        lab.text(refusal, title=f"numactl about node {nodes[-1] + 1}")
        lab.claim("no-such-node", refusal != "", lacks=cannot_bind)

    far_nodes = [] if cannot_bind else [n for n in nodes if n != node and home_of(tensor_on(n, 1))[1] == [n]]
    lab.claim_ratio(
        "far-memory",
        "far/near",
        at_least=1.2,
        lacks="" if far_nodes else "two nodes with memory",
        advises=f"LAUNCH_PREFIX=numactl --cpunodebind={node} --membind={node}",
    )
    if not far_nodes:
        return
    lab.stage(f"node {far_nodes[-1]}, seen from core {core}, against node {node}")
    os.sched_setaffinity(0, {core})
    lab.race(far=lambda: tensor_on(far_nodes[-1], mb).sum, near=lambda: tensor_on(node, mb).sum, factories=True, same=0.0)
