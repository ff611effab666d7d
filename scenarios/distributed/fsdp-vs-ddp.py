"""FSDP holds an Nth of parameters, gradients and optimizer in each of N ranks, for half as much again on the wire.

DDP has all in every rank: with Adam in float32 4 bytes for a parameter, 4 for its gradient and 8 for two means (4 more without
`gradient_as_bucket_view`). FSDP cuts every tensor along its first dimension, and each rank keeps its part of all four. Forward
gathers the weights of a layer when it comes to it and frees them behind it. Backward gathers them again, and its reduce-scatter
leaves each rank its part of the sum. DDP's all-reduce is a reduce-scatter and an all-gather, so here it counts as two
transfers. The calls and their bytes are measured, that count is a model: a ring of N ranks moves (N - 1) / N of it. FSDP
gathers twice and scatters once. `reshard_after_forward=False` keeps what forward has gathered until backward. Then
it is twice, too, and all weights are there meanwhile. What is gathered together is what one `fully_shard` was called for: the
layers first, then the model. Called for the model alone it gathers all at once, and does not free it until backward: of the
outermost module that is the default. An optimizer that was made before holds the old parameters.
## Predict
4 MiB of parameters, Adam, FSDP on 2 ranks: how many MiB does a rank hold between two steps?
## Look for
- [ddp] with DDP each rank holds 16 MiB, four times the parameters
- [fsdp] with FSDP it holds half as much, of parameters, of gradients and of Adam's means
- [same] after 3 steps the weights of all forms end within 1e-5 of those of DDP
- [wire] in a step DDP all-reduces each parameter once, which counts as 2; FSDP gathers it twice and scatters it once: 3
- [kept] the count is 2 if FSDP keeps what forward has gathered, as it does by default if it is called for the model alone
- [unit] with a call for each layer the largest transfer is 1 MiB, with one for the model 4 MiB
- [late] an optimizer that was made before fully_shard changes no weight
## Try next
`--keep`: less on the wire, and all weights are there between forward and backward. refutes: wire
`--ranks 4`: each holds a quarter. refutes: fsdp
## Source
Today's practice: `torch.distributed.fsdp.fully_shard`, https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html,
after "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", https://arxiv.org/abs/1910.02054. Ours: the
bytes.
"""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel
from torch.utils._python_dispatch import TorchDispatchMode

from tuilab import Lab

LAYERS, WIDTH, STEPS, MIB = 4, 512, 3, 2**20  # the weight of a layer is 1 MiB
TIMES = {"allreduce": 2, "allgather": 1, "reduce_scatter": 1}  # that each byte goes over the wire


class Wire(TorchDispatchMode):  # notes what the ranks tell each other: the operator and the bytes of the whole tensor
    def __init__(self):
        super().__init__()
        self.told = []

    def __torch_dispatch__(self, f, types, args=(), kwargs=None):
        for name in TIMES:
            if f.namespace == "c10d" and name in f.name():
                tensors = args[0] if name == "allreduce" else args[:2]  # of the others the output and the input: one is whole
                self.told.append((name, max(tensor.nbytes for tensor in tensors)))
        return f(*args, **(kwargs or {}))


def build_net():
    torch.manual_seed(0)
    return nn.Sequential(*[layer for _ in range(LAYERS) for layer in (nn.Linear(WIDTH, WIDTH, bias=False), nn.GELU())])


def shard(net, parts, frees=None):  # after forward; None: as fully_shard itself does
    for part in parts:
        fully_shard(part, mesh=init_device_mesh("cpu", (dist.get_world_size(),)), reshard_after_forward=frees)
    return net


def flat(weights):
    return torch.cat([(w.full_tensor() if isinstance(w, DTensor) else w).detach().flatten() for w in weights])


def train(net, optimizer):
    """Return what a rank holds after a step, what a step moves, and the weights in the end."""
    for step in range(STEPS):
        x = torch.randn(dist.get_world_size(), 4, WIDTH, generator=torch.Generator().manual_seed(step))
        optimizer.zero_grad()
        with Wire() as wire:
            net(x[dist.get_rank()]).square().mean().backward()
        optimizer.step()
    means = [mean for state in optimizer.state.values() for mean in state.values() if mean.ndim]  # not the number of steps
    kinds = [*net.parameters()], [weight.grad for weight in net.parameters()], means
    held = [sum((x.to_local() if isinstance(x, DTensor) else x).nbytes for x in tensors) for tensors in kinds]
    return held, wire.told, flat(net.parameters())


def train_all(lab, keep):
    """Train in every form; return what it holds and moves, and how far its weights end from those of DDP and of the start."""
    nets = {"DDP": DistributedDataParallel(build_net(), gradient_as_bucket_view=True)}
    nets |= {form: shard(net := build_net(), [net], frees) for form, frees in (("FSDP, whole", True), ("FSDP, default", None))}
    nets["FSDP"] = shard(net := build_net(), [*net[::2], net], not keep)  # each layer, and the model for what is left
    nets["FSDP, kept"] = shard(net := build_net(), [*net[::2], net], False)
    optimizers = {form: torch.optim.Adam(net.parameters()) for form, net in nets.items()}
    optimizers["late"] = torch.optim.Adam((net := build_net()).parameters())
    nets["late"] = shard(net, [net])
    found = {form: train(net, optimizers[form]) for form, net in nets.items()}
    others = found["DDP"][2], flat(build_net().parameters())
    return {form: [*rest, *(torch.dist(end, other).item() for other in others)] for form, (*rest, end) in found.items()}


def run(
    lab: Lab,
    ranks: int = 2,  # processes; of 3, 5, 6 or 7 the last one holds padding, 2..8
    keep: bool = False,  # until backward what forward has gathered
) -> None:
    forms = lab.ranks(ranks, train_all, keep)[-1]
    lab.axes("moved_bytes", x="transfer of a step", y="moved so far")
    moved = dict.fromkeys(("DDP", "FSDP", "FSDP, kept", "FSDP, whole", "FSDP, default"), 0)
    for form in moved:
        for number, (name, nbytes) in enumerate(forms[form][1], 1):
            moved[form] += TIMES[name] * nbytes / MIB
            lab.span(name, moved[form] - TIMES[name] * nbytes / MIB, moved[form], "moves", arm=form, unit="MiB")
            lab.log(number, arm=form, moved_bytes=moved[form] * MIB)
    held, largest = forms["DDP"][0], [max(nbytes for _, nbytes in forms[form][1]) for form in ("FSDP", "FSDP, whole")]
    lab.bars("a rank between two steps", {form: sum(forms[form][0]) for form in moved}, unit="B")
    lab.claim("ddp", sum(held), equals=4 * LAYERS * MIB, unit="B")
    lab.claim("fsdp", part := forms["FSDP"][0], equals=[nbytes / 2 for nbytes in held], unit="B", answers=sum(part) / MIB)
    lab.claim("same", max(forms[form][2] for form in moved), at_most=1e-5)
    lab.claim("wire", [moved["DDP"] / LAYERS, moved["FSDP"] / LAYERS], equals=[2, 3], tolerance=0.05)
    lab.claim("kept", [moved["FSDP, kept"] / LAYERS, moved["FSDP, default"] / LAYERS], equals=[2, 2], tolerance=0.05)
    lab.claim("unit", [nbytes / MIB for nbytes in largest], equals=[1, LAYERS], tolerance=0.05, unit="MiB")
    lab.claim("late", [forms["late"][3], forms["DDP"][3] > 0.001], equals=[0, True])
