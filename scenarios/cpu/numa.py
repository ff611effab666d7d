"""Bind a process to one node, and its threads and its memory stay together.

A box with several sockets has a memory at each, a node, and a core reaches its own sooner than the others'. Left alone, the
scheduler moves a process between the cores while its memory stays where it was first touched. `numactl` binds both before
the program starts: `--cpunodebind` or `--physcpubind` the cores, `--membind` the pages. The kernel shows both, so this can
be checked instead of hoped for: the cores in the affinity mask, the policy and the node of every page in
/proc/self/numa_maps. torch counts the cores it may use: bound to one, it starts one thread. With one node there is no far
memory, and nothing to gain: then binding is worth its loss of cores only to keep two programs out of each other's way.

## Predict
How many threads does torch start on this box when it is bound to a single core?
## Look for
- torch bound to one core starts one thread
- every step of the bound process runs on its own core
- the kernel binds all pages of a tensor to the node of that core
- numactl refuses a node that this box does not have
- summing a tensor in far memory takes at least 1.2 times as long as in near memory
## Try next
`--bind none`: nothing is bound, and torch takes every core: the claim about one thread is REFUTED.
`--bind node`: all cores of the node: with one node, the whole box: REFUTED too, while the pages stay bound.
## Source
Tip 14 of "28 PyTorch best practices" after the official Performance Tuning Guide: numactl --cpunodebind=N --membind=N. How to
see what it did, and the race between near and far, are ours.
"""

import ctypes
import os
import shutil
import subprocess
from pathlib import Path
from typing import Literal

import torch

from tuilab import Lab


def work(lab, steps):
    """Multiply and note the core that each step ended on; return what the process was given."""
    a = torch.rand(256, 256)
    libc = ctypes.CDLL(None)
    ran_on = []
    for step in range(steps):
        for _ in range(20): a @ a
        ran_on.append(libc.sched_getcpu())
        lab.log(step, core=ran_on[-1])
    ...
