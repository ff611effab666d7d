"""nn.DataParallel copies the weights to every GPU in each forward and computes in threads of one process: take DDP.

DataParallel keeps the net on the first GPU. Each forward copies all weights to the others and runs the copies in threads that
share a GIL: with many small operators they mostly wait for each other. In DistributedDataParallel (DDP) each GPU has a process
and weights of its own, sent once, when DDP is made. After that only gradients travel. The copies are thrown away after forward,
with all that it has set on them. Their weights are no leaves, so no parameters: `next(self.parameters())` raises StopIteration
in forward. Here torch makes the copies as for GPUs, but on the CPU, and they run one after another.
## Predict
The weights of a net are 1 MiB. In 10 training steps on 4 GPUs, how many MiB of weights does nn.DataParallel copy to other GPUs?
## Look for
- [copied] in 10 training steps on 4 GPUs DataParallel copies 30 MiB of weights, and 30 more in 10 forwards without a backward
- [ddp] DDP sends 1 MiB of weights when it is made, 10 MiB of gradients in the steps, and nothing in the forwards
- [lost] a number that each forward raises by 1 is 0 after 20 forwards of DataParallel, and 20 with DDP
- [parameters] in forward a copy of DataParallel has 0 parameters, a net in DDP its 4
- [pass] with less than two GPUs nn.DataParallel copies nothing, and calls the net itself once
- [gpus] with more, a forward copies 1 MiB to each but the first, and there are as many calls, and threads, as GPUs
- [threads] two times ten forwards of 64 small layers take twice as long in two threads as in two processes
## Try next
`--replicas 2`: one copy in each forward. refutes: copied
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 25,
https://www.toymoban.com/news/detail-808122.html: take DDP. Ours: all counts.
"""

import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from threading import current_thread
from unittest.mock import patch

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel, replicate
from torch.utils._python_dispatch import TorchDispatchMode

from tuilab import Lab

STEPS, TWO, MIB = 10, [16, 16], 2**20  # TWO: rows
COPIER, COPY = sys.modules["torch.nn.parallel.replicate"], "_broadcast_coalesced_reshape"  # a function has the module's name
SMALL = nn.Sequential(*[nn.Linear(32, 32) for _ in range(64)])  # many small operators


class Net(nn.Sequential):  # 1 MiB
    def __init__(self):
        super().__init__(*[nn.Linear(256, 256, bias=False) for _ in range(4)])
        self.calls, self.seen = 0, []  # the list is that of the copies, too

    def forward(self, x):  # (rows, 256)
        self.calls += 1
        self.seen.append((current_thread().name, len(list(self.parameters()))))
        return super().forward(x)


class Wire(TorchDispatchMode):  # sums up what a rank hands over; of whole numbers are sizes and orders
    sent = 0

    def __torch_dispatch__(self, f, types, args=(), kwargs=None):
        if f.name() in ("c10d::broadcast_", "c10d::allreduce_"):
            self.sent += sum(x.nbytes for x in args[0] if x.is_floating_point())
        return f(*args, **(kwargs or {}))


def train(lab, arm, forward, moved):  # yields the MiB that have moved, before a step and after each
    yield moved() / MIB
    for step in lab.steps(2 * STEPS, arm):
        y = (forward if step < STEPS else torch.no_grad()(forward))(torch.randn(64, 256))
        if y.requires_grad:
            y.sum().backward()
        lab.log(step + 1, arm=arm, moved_bytes=moved())
        yield moved() / MIB


def forward(rows):  # in a thread or a process, ten times: to hand the word over to a process and back is to be little of it
    return sum(SMALL(torch.ones(rows, 32)).sum().item() for _ in range(10))


def run(
    lab: Lab,
    replicas: int = 4,  # of DataParallel, 2..64
    all_gpus: bool = False,  # ask nn.DataParallel itself, which takes every GPU of the box
) -> None:
    processes, threads = ProcessPoolExecutor(2, get_context("fork")), ThreadPoolExecutor(2)
    list(processes.map(forward, TWO))  # it forks while this process has one thread

    @lab.once
    def exact():
        lab.axes("moved_bytes", x="step, then forwards alone", y="weights and gradients so far")
        copied, torchs = [], getattr(COPIER, COPY)

        def copies(tensors, devices, detach):
            copied.append(sum(x.nbytes for x in tensors) * (len(devices) - 1))  # the first device has them
            if tensors and not tensors[0].is_cpu:
                return torchs(tensors, devices, detach)
            return [[x.clone() if number else x.view_as(x) for x in tensors] for number in range(len(devices))]

        def as_on_gpus(x):  # what nn.DataParallel does
            return torch.cat([*map(Net.__call__, replicate(net, range(replicas)), x.chunk(replicas))])

        with patch.object(COPIER, COPY, copies):
            net, real = Net(), nn.DataParallel(Net(), None if all_gpus or torch.accelerator.device_count() < 2 else [0])
            moved = [*train(lab, "DataParallel", as_on_gpus, lambda: sum(copied))]
            copied.clear()
            real.to(real.src_device_obj if real.device_ids else "cpu")(torch.randn(64, 256))
        with lab.group(), Wire() as wire:
            ddp = DistributedDataParallel(Net())
            sent = [*train(lab, "DDP", ddp, lambda: wire.sent)]
        lab.claim("copied", [moved[STEPS], moved[-1] - moved[STEPS]], equals=[30, 30], answers=moved[STEPS])
        lab.claim("ddp", [sent[0], sent[STEPS] - sent[0], sent[-1] - sent[STEPS]], equals=[1, 10, 0])
        lab.claim("lost", [net.calls, ddp.module.calls], equals=[0, 20])
        lab.claim("parameters", [max(owned for _, owned in seen) for seen in (net.seen, ddp.module.seen)], equals=[0, 4])
        count, seen = len(real.device_ids), real.module.seen
        got = [sum(copied) / MIB, len(seen), len({thread for thread, _ in seen})]
        lab.claim("pass", [*got, real.module.calls], equals=[0, 1, 1, 1], lacks="" if count < 2 else "a box without GPUs")
        lacks = "" if count > 1 else "--all-gpus" if torch.accelerator.device_count() > 1 else "a second GPU"
        lab.claim("gpus", got, equals=[count - 1, count, count], lacks=lacks)

    lab.stage("threads and processes")
    lab.claim_ratio("threads", "in_threads/in_processes", at_least=2, cores=2)
    arms = {"in_threads": lambda: [*threads.map(forward, TWO)], "in_processes": lambda: [*processes.map(forward, TWO)]}
    lab.race(**arms, seconds=0.5)
    threads.shutdown(), processes.shutdown()
