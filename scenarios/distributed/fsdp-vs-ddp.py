"""Use FSDP if a rank cannot hold the model and its optimizer; it sends more.

In DDP each rank holds everything. With Adam in float32 that is 4 bytes for a parameter, 4 for its
gradient, and 8 for the two means of Adam. (It is 4 more without `gradient_as_bucket_view`.) Ranks
cannot share that memory, so more GPUs do not fit a larger model.

FSDP cuts every tensor along its first dimension, and each of N ranks holds an Nth of all four.
Forward gathers the weights of a layer when it needs them, and frees them after the layer. Backward
gathers them again. Its reduce-scatter then leaves each rank its part of the summed gradient.
`fully_shard` gathers together what one call was made for, so call it for the layers first and then
for the model. If it is called for the model alone, it gathers all weights at once. It then frees
them only after backward, which is the default for the outermost module.
`reshard_after_forward=False` does the same for a layer. An optimizer that was created before
`fully_shard` holds the old parameters.

The price is paid on the wire. In a ring, a rank sends (N - 1) / N of the bytes for a gather or a
reduce-scatter. It sends twice that for an all-reduce. So an all-reduce counts as two transfers
here, and a gather or a reduce-scatter as one. The lesson measures the calls of a step, and the
bytes that a rank writes for one call. The backend for CPUs, gloo, does not follow the count,
because its reduce-scatter is an all-reduce inside. NCCL has a real one. On NVSwitch NCCL can add
inside the switch (NVLS), which makes an all-reduce cheaper. The GPU claim turns NVLS off.

In practice: stay with DDP while a rank can hold the model and its optimizer. Then call
`fully_shard(layer)` for each transformer block, `fully_shard(model)` last, and create the optimizer
after that. Set `reshard_after_forward=False` if there is memory for all weights.
## Predict
4 MiB of parameters, Adam, FSDP on 2 ranks: how many MiB does a rank hold between two steps?
## Look for
- [ddp] with DDP and 4 MiB of parameters, each rank holds 16 MiB
- [fsdp] with FSDP on 2 ranks it holds half as much of parameters, of gradients and of Adam's means
- [same] after 3 steps the weights of all forms are within 1e-5 of the weights of DDP
- [wire] if an all-reduce counts as 2 transfers and others as 1, a step sends each parameter 2 times
  with DDP and 3 times with FSDP
- [kept] in the same count it is 2 times if FSDP keeps gathered weights until backward, and if
  fully_shard is called for the model alone
- [unit] the largest transfer is 1 MiB with a call of fully_shard for each layer, and 4 MiB with one
  call for the model
- [ring] to all-reduce a tensor, each of n ranks writes 2(n - 1)/n times its bytes; to gather it,
  (n - 1)/n times
- [gloo] to reduce-scatter a tensor, each of n ranks of gloo also writes 2(n - 1)/n times its bytes
- [late] an optimizer that was created before fully_shard changes no weight
- [gpu-ring] on two GPUs without NVLS, an all-reduce of 256 MiB takes at least 1.5 times as long as
  a gather of 256 MiB
## Try next
`--keep`: less on the wire, but all weights are held between forward and backward. refutes: wire
`--ranks 4`: each rank holds a quarter. refutes: fsdp
## Source
Today's practice: `torch.distributed.fsdp.fully_shard`,
https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html, after "ZeRO: Memory
Optimizations Toward Training Trillion Parameter Models", https://arxiv.org/abs/1910.02054. Ours:
the bytes.
"""

import time
from functools import partial
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel
from torch.utils._python_dispatch import TorchDispatchMode

from tuilab import Lab

LAYERS = 4
WIDTH = 512  # the weight of a layer is 1 MiB
STEPS = 3
MIB = 2**20
WEIGHT_OF = {"allreduce": 2, "allgather": 1, "reduce_scatter": 1}  # transfers that a call counts as
FORMS = ("DDP", "FSDP", "FSDP, kept", "FSDP, whole", "FSDP, default")
SENT = 4 * MIB  # bytes of the tensor whose transfers are measured
GPU_NUMBERS = 64 * MIB  # float32 numbers, 256 MiB
GPU_CALLS = 20
TORCHRUN = ("torchrun", "--standalone", "--local-addr", "127.0.0.1", "--nproc-per-node", "2")
PROCESS_IO = Path("/proc/self/io")  # Linux counts here what this process writes, also to sockets

# torch 2.13 renamed both.
all_gather = getattr(dist, "all_gather_single", dist.all_gather_into_tensor)
reduce_scatter = getattr(dist, "reduce_scatter_single", dist.reduce_scatter_tensor)


class TransferRecorder(TorchDispatchMode):
    """Lists the collective calls, each with the bytes of the whole tensor."""

    def __init__(self):
        super().__init__()
        self.transfers = []

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        if operator.namespace == "c10d":
            for name in WEIGHT_OF:
                if name in operator.name():
                    self.transfers.append((name, self.whole_bytes(name, args)))
        return operator(*args, **(kwargs or {}))

    def whole_bytes(self, name, args):
        if name == "allreduce":
            return max(tensor.nbytes for tensor in args[0])
        output, source = args[:2]  # one of them is a part, the other is whole
        return max(output.nbytes, source.nbytes)


def build_net():
    torch.manual_seed(0)
    layers = []
    for _ in range(LAYERS):
        layers.append(nn.Linear(WIDTH, WIDTH, bias=False))
        layers.append(nn.GELU())
    return nn.Sequential(*layers)


def shard(part, reshard):
    """Shard a module. `reshard` is reshard_after_forward; None is the default of fully_shard."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    fully_shard(part, mesh=mesh, reshard_after_forward=reshard)


def shard_by_layer(net, reshard):
    for layer in net:
        if isinstance(layer, nn.Linear):
            shard(layer, reshard)
    shard(net, reshard)  # for what is left


def build_form(form, keep):
    net = build_net()
    if form == "DDP":
        return DistributedDataParallel(net, gradient_as_bucket_view=True)
    if form == "FSDP":
        shard_by_layer(net, reshard=not keep)
    if form == "FSDP, kept":
        shard_by_layer(net, reshard=False)
    if form == "FSDP, whole":
        shard(net, reshard=True)
    if form == "FSDP, default":
        shard(net, reshard=None)
    return net


def flat_weights(net):
    parts = []
    for weight in net.parameters():
        if isinstance(weight, DTensor):
            weight = weight.full_tensor()
        parts.append(weight.detach().flatten())
    return torch.cat(parts)


def local_bytes(tensors):
    total = 0
    for tensor in tensors:
        if isinstance(tensor, DTensor):
            tensor = tensor.to_local()
        total += tensor.nbytes
    return total


def means_of(optimizer):
    means = []
    for state in optimizer.state.values():
        for value in state.values():
            if value.ndim:  # the number of steps has no dimension
                means.append(value)
    return means


def train(net, optimizer):
    """Train, and return the bytes that this rank holds and the transfers of the last step."""
    for step in range(STEPS):
        generator = torch.Generator().manual_seed(step)
        x = torch.randn(dist.get_world_size(), 4, WIDTH, generator=generator)
        optimizer.zero_grad()
        with TransferRecorder() as recorder:
            net(x[dist.get_rank()]).square().mean().backward()
        optimizer.step()
    gradients = [weight.grad for weight in net.parameters()]
    held = [local_bytes(net.parameters()), local_bytes(gradients)]
    held.append(local_bytes(means_of(optimizer)))
    return held, recorder.transfers


def train_all_forms(lab, keep):
    """Return held bytes, transfers and the distance from the weights of DDP, by form."""
    results = {}
    for form in FORMS:
        net = build_form(form, keep)
        held, transfers = train(net, torch.optim.Adam(net.parameters()))
        weights = flat_weights(net)
        if form == "DDP":
            ddp_weights = weights
        results[form] = (held, transfers, torch.dist(weights, ddp_weights).item())
    return results


def train_with_late_sharding(lab):
    """Return how far DDP moves the weights, and FSDP with an optimizer that was created before."""
    distances = []
    for form in ("DDP", "late"):
        net = build_net()
        optimizer = torch.optim.Adam(net.parameters())
        if form == "late":
            shard(net, reshard=None)
        else:
            net = DistributedDataParallel(net)
        train(net, optimizer)
        distances.append(torch.dist(flat_weights(net), flat_weights(build_net())).item())
    return distances


def written_bytes():
    for line in PROCESS_IO.read_text().splitlines():
        name, value = line.split(": ")
        if name == "wchar":
            return int(value)
    return 0


def measure_collectives(lab):
    """Return the bytes that this rank writes for one byte of a tensor, by collective."""
    ranks = dist.get_world_size()
    count = SENT // 4 // ranks * ranks
    whole = torch.ones(count)
    part = torch.ones(count // ranks)
    calls = {
        "all-reduce": partial(dist.all_reduce, whole),
        "gather": partial(all_gather, whole, part),
        "reduce-scatter": partial(reduce_scatter, part, whole),
    }
    ratios = {}
    for name, call in calls.items():
        before = written_bytes()
        call()
        ratios[name] = (written_bytes() - before) / whole.nbytes
    return ratios


def measure_all(lab, keep):
    forms = train_all_forms(lab, keep)
    distances = train_with_late_sharding(lab)
    ratios = measure_collectives(lab) if PROCESS_IO.exists() else {}
    return forms, distances, ratios


def time_collective(lab, name):
    """Return the seconds of a call with NCCL."""
    device = lab.device()
    dist.init_process_group("nccl", device_id=device)
    whole = torch.zeros(GPU_NUMBERS, device=device)
    part = torch.zeros(GPU_NUMBERS // dist.get_world_size(), device=device)
    call = partial(dist.all_reduce, whole)
    if name == "gather":
        call = partial(all_gather, whole, part)
    for _ in range(GPU_CALLS):  # the first call connects the GPUs
        call()
    torch.accelerator.synchronize()
    start = time.perf_counter()
    for _ in range(GPU_CALLS):
        call()
    torch.accelerator.synchronize()
    elapsed_s = time.perf_counter() - start
    dist.destroy_process_group()
    return elapsed_s / GPU_CALLS


def race_on_gpus(lab):
    arms = {}
    for name in ("all_reduce", "gather"):
        env = {"NCCL_NVLS_ENABLE": "0"}
        arms[name] = lab.arm(name, time_collective, name, env=env, prefix=TORCHRUN)
    race = lab.race(**arms)
    bandwidth = {}
    for name in arms:
        bandwidth[name] = 4 * GPU_NUMBERS / min(race.step_s[name])
    lab.bars("256 MiB between two GPUs, in a second", bandwidth, unit="B")


def run(
    lab: Lab,
    ranks: int = 2,  # processes; of 3, 5, 6 or 7 the last one holds padding, 2..8
    keep: bool = False,  # keep until backward what forward has gathered
) -> None:
    has_gpus = lab.device().type == "cuda" and torch.accelerator.device_count() > 1
    lacks = "" if has_gpus else "two CUDA devices"

    @lab.once
    def exact():
        lab.axes("moved_bytes", x="transfer of a step", y="sent so far, in the count")
        lab.stage(f"{ranks} ranks train")
        forms, distances, ratios = lab.ranks(ranks, measure_all, keep)[-1]
        counts = {}
        largest = {}
        held = {}
        for form, (held_bytes, transfers, _) in forms.items():
            held[form] = sum(held_bytes)
            largest[form] = max(nbytes for _, nbytes in transfers) / MIB
            moved = 0
            for number, (name, nbytes) in enumerate(transfers, 1):
                before = moved
                moved += WEIGHT_OF[name] * nbytes
                lab.span(name, before / MIB, moved / MIB, "sends", arm=form, unit="MiB")
                lab.log(number, arm=form, moved_bytes=moved)
            counts[form] = moved / (LAYERS * MIB)
        lab.bars("a rank between two steps", held, unit="B")

        parts = forms["FSDP"][0]
        halves = [nbytes / 2 for nbytes in forms["DDP"][0]]
        lab.claim("ddp", held["DDP"], equals=4 * LAYERS * MIB, unit="B")
        lab.claim("fsdp", parts, equals=halves, unit="B", answers=sum(parts) / MIB)
        lab.claim("same", max(form[2] for form in forms.values()), at_most=1e-5)
        lab.claim("wire", [counts["DDP"], counts["FSDP"]], equals=[2, 3], tolerance=0.05)
        kept = [counts["FSDP, kept"], counts["FSDP, default"]]
        lab.claim("kept", kept, equals=[2, 2], tolerance=0.05)
        sizes = [largest["FSDP"], largest["FSDP, whole"]]
        lab.claim("unit", sizes, equals=[1, LAYERS], tolerance=0.05, unit="MiB")
        ddp_distance, late_distance = distances
        lab.claim("late", [late_distance, ddp_distance > 0.001], equals=[0, True])

        if not ratios:
            lab.claim("ring", lacks=f"the file {PROCESS_IO}")
            lab.claim("gloo", lacks=f"the file {PROCESS_IO}")
            return
        share = (ranks - 1) / ranks
        measured = [ratios["all-reduce"], ratios["gather"]]
        lab.claim("ring", measured, equals=[2 * share, share], tolerance=0.02)
        lab.claim("gloo", ratios["reduce-scatter"], equals=2 * share, tolerance=0.02)

    lab.claim_ratio("gpu-ring", "all_reduce/gather", at_least=1.5, lacks=lacks)
    if not lacks:
        lab.stage("two GPUs")
        race_on_gpus(lab)
