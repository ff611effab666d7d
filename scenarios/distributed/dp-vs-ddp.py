"""Use DistributedDataParallel: nn.DataParallel copies all weights in every forward.

nn.DataParallel needs one line and no launcher, so it is still in many scripts. It keeps the net on
the first GPU. Each forward copies all weights to the other GPUs and runs the copies in threads of
one process. These threads share the GIL of Python. If a net has many small operators, the threads
mostly wait for each other.

In DistributedDataParallel (DDP) each GPU has a process and weights of its own. The weights are sent
once, when DDP is created. After that only gradients travel.

DataParallel throws its copies away after each forward, with everything that forward has set on
them. The weights of a copy are no leaves of the graph, so they are no parameters:
`next(self.parameters())` raises StopIteration in forward. Without a GPU, torch creates the copies
here as it does for GPUs, but on the CPU, and they run one after another.

In practice: start `torchrun --nproc-per-node=gpu train.py`. In the script call
`dist.init_process_group()`, use the GPU of `LOCAL_RANK`, wrap the net in
`DistributedDataParallel(net, device_ids=[local_rank])`, and give the loader a
`DistributedSampler`.
## Predict
The weights of a net are 1 MiB. In 10 training steps on 4 GPUs, how many MiB of weights does
nn.DataParallel copy to other GPUs?
## Look for
- [copied] on 4 GPUs nn.DataParallel copies 30 MiB of weights in 10 training steps of a net of
  1 MiB, and 30 MiB more in 10 forwards
- [ddp] DDP sends 1 MiB of weights when it is created, 10 MiB of gradients in 10 steps, and 0 in 10
  forwards
- [lost] a number that each of 20 forwards raises by 1 is 0 after nn.DataParallel, and 20 after DDP
- [parameters] in forward a copy of nn.DataParallel has 0 parameters, and a net in DDP has its 4
- [pass] with fewer than two GPUs, nn.DataParallel copies nothing and calls the net itself once
- [gpus] with n GPUs, a forward of nn.DataParallel copies n - 1 MiB, and makes n calls in n threads
- [threads] forwards of 64 small layers take at least 2 times as long in two threads as in two
  processes
## Try next
`--replicas 2`: one copy in each forward. refutes: copied
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 25,
https://www.toymoban.com/news/detail-808122.html: use DDP, because processes do not share a GIL.
Ours: all counts.
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

STEPS = 10  # of training, and as many forwards after them
MIB = 2**20
SMALL_NET = nn.Sequential(*[nn.Linear(32, 32) for _ in range(64)])  # many small operators
FORWARDS = 10  # of the small net in a call, so that starting the call is little of it
TWO_INPUTS = [16, 16]  # rows of each

# torch.nn.parallel.replicate is a function, and hides the module of the same name.
REPLICATE_MODULE = sys.modules["torch.nn.parallel.replicate"]
COPY_FUNCTION = "_broadcast_coalesced_reshape"  # it copies the weights to the other GPUs


class Net(nn.Sequential):
    """A net of 1 MiB that counts its calls, and lists the thread and the parameters of each."""

    def __init__(self):
        super().__init__(*[nn.Linear(256, 256, bias=False) for _ in range(4)])
        self.calls = 0
        self.visits = []  # copies of the net share this list

    def forward(self, x):  # (rows, 256)
        self.calls += 1
        self.visits.append((current_thread().name, len(list(self.parameters()))))
        return super().forward(x)


class SentBytes(TorchDispatchMode):
    """Adds up the bytes of weights and gradients that a rank sends."""

    def __init__(self):
        super().__init__()
        self.total = 0

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        if operator.name() in ("c10d::broadcast_", "c10d::allreduce_"):
            for tensor in args[0]:
                if tensor.is_floating_point():  # whole numbers are sizes and orders
                    self.total += tensor.nbytes
        return operator(*args, **(kwargs or {}))


class WeightCopier:
    """Takes the place of torch's function that copies weights, and adds up the copied bytes."""

    def __init__(self):
        self.total = 0
        self.original = getattr(REPLICATE_MODULE, COPY_FUNCTION)

    def __call__(self, tensors, devices, detach):
        tensor_bytes = sum(tensor.nbytes for tensor in tensors)
        self.total += tensor_bytes * (len(devices) - 1)  # the first device has the weights
        if tensors and not tensors[0].is_cpu:
            return self.original(tensors, devices, detach)
        copies = [[tensor.view_as(tensor) for tensor in tensors]]
        for _ in devices[1:]:
            copies.append([tensor.clone() for tensor in tensors])
        return copies


def train(lab, arm, forward, counter):
    """Return the MiB that have moved before the first step, after training, and after forwards."""
    moved = [counter.total / MIB]
    for step in lab.steps(2 * STEPS, arm):
        x = torch.randn(64, 256)
        with torch.set_grad_enabled(step < STEPS):
            y = forward(x)
        if y.requires_grad:
            y.sum().backward()
        lab.log(step + 1, arm=arm, moved_bytes=counter.total)
        if step + 1 in (STEPS, 2 * STEPS):
            moved.append(counter.total / MIB)
    return moved


def forward_as_on_gpus(net, replicas, x):
    """Do on the CPU what nn.DataParallel does on GPUs, one copy after another."""
    outputs = []
    copies = replicate(net, range(replicas))
    for copy, part in zip(copies, x.chunk(replicas), strict=True):
        outputs.append(copy(part))
    return torch.cat(outputs)


def most_parameters(net):
    return max(parameters for _, parameters in net.visits)


def sum_small_net(rows):
    """Run in a thread or in a process."""
    total = 0.0
    for _ in range(FORWARDS):
        total += SMALL_NET(torch.ones(rows, 32)).sum().item()
    return total


def sum_in(executor):
    return list(executor.map(sum_small_net, TWO_INPUTS))


def run(
    lab: Lab,
    replicas: int = 4,  # of DataParallel, 2..64
    all_gpus: bool = False,  # ask nn.DataParallel itself, which uses every GPU of the machine
) -> None:
    processes = ProcessPoolExecutor(2, get_context("fork"))
    sum_in(processes)  # forks while this process has one thread
    threads = ThreadPoolExecutor(2)

    @lab.once
    def exact():
        lab.axes("moved_bytes", x="step, then forwards alone", y="weights and gradients so far")
        has_gpus = torch.accelerator.device_count() > 1
        copier = WeightCopier()
        with patch.object(REPLICATE_MODULE, COPY_FUNCTION, copier):
            net = Net()

            def forward(x):
                return forward_as_on_gpus(net, replicas, x)

            start, trained, ended = train(lab, "DataParallel", forward, copier)

            copier.total = 0
            device_ids = None if all_gpus or not has_gpus else [0]
            parallel = nn.DataParallel(Net(), device_ids)
            device = parallel.src_device_obj if parallel.device_ids else "cpu"
            parallel.to(device)(torch.randn(64, 256))
            copied = copier.total / MIB
        lab.claim("copied", [trained - start, ended - trained], equals=[30, 30], answers=trained)

        with lab.group(), SentBytes() as sent:
            ddp = DistributedDataParallel(Net())
            start, trained, ended = train(lab, "DDP", ddp, sent)
        lab.claim("ddp", [start, trained - start, ended - trained], equals=[1, 10, 0])
        lab.claim("lost", [net.calls, ddp.module.calls], equals=[0, 20])
        counts = [most_parameters(net), most_parameters(ddp.module)]
        lab.claim("parameters", counts, equals=[0, 4])

        gpus = len(parallel.device_ids)
        visits = parallel.module.visits
        thread_names = {thread for thread, _ in visits}
        measured = [copied, len(visits), len(thread_names)]
        lacks = "" if gpus < 2 else "a machine with fewer than two GPUs"
        lab.claim("pass", [*measured, parallel.module.calls], equals=[0, 1, 1, 1], lacks=lacks)
        lacks = ""
        if gpus < 2:
            lacks = "--all-gpus" if has_gpus else "a second GPU"
        lab.claim("gpus", measured, equals=[gpus - 1, gpus, gpus], lacks=lacks)

    lab.stage("threads and processes")
    lab.claim_ratio("threads", "in_threads/in_processes", at_least=2, cores=2)
    lab.race(
        in_threads=lambda: sum_in(threads),
        in_processes=lambda: sum_in(processes),
        seconds=0.5,
    )
    threads.shutdown()
    processes.shutdown()
