"""Read values from the GPU every 20 or 100 steps: each read makes the CPU wait.

The CPU queues work for the GPU and continues, many operators ahead. But the CPU must stop if Python
needs a number from the GPU: for `.item()`, an `if` or a `print`. It must also stop for a shape that
depends on values, as in `x[mask]`. The CPU then waits until all work that is queued on the stream
is done. During that time the CPU queues nothing, so the GPU runs out of work.

The lesson uses three detectors. On any device it counts the operators that read a value:
`aten._local_scalar_dense`, `aten.nonzero`, and indexing with a mask. A tensor on the device "meta"
has a shape but no values. So code that reads a value raises an error on meta. On a GPU,
`torch.cuda.set_sync_debug_mode("warn")` makes torch itself warn about most waits. The first
detector does not see `.cpu()` and `.tolist()`, which call no operator on a CPU, and `print`, which
hides its operators. Backward searches for the positions of a boolean mask again, so indexing with a
mask also waits in backward. `GradScaler.step()` waits as well, unless the optimizer is fused.

A copy to the GPU also makes the CPU wait: `x.to(device)`, `x.cuda()`, and a tensor that is made
from a list. With `non_blocking=True` the CPU continues at once, if the memory of `x` is pinned. In
the other direction `non_blocking=True` is dangerous: the numbers may not be there yet when Python
reads them.

In practice: multiply the losses by the mask instead of indexing with the mask, and divide their sum
by `mask.sum()`. This needs finite losses, because 0 * inf is nan (lesson where-nan). Add up losses
and hits in tensors on the GPU, and read the sums every 20 or 100 steps. Detach each loss before you
add it: otherwise the sum keeps the graph of every step alive. Load with `pin_memory=True`, and copy
with `.to(device, non_blocking=True)`. To find the waits of your own loop, run one step under
`torch.cuda.set_sync_debug_mode("warn")`.
## Predict
A step takes the masked rows of output and target, asserts that the loss is not NaN, and calls
backward. Then it adds loss and hits to Python numbers. How many times does the CPU wait for the GPU
in this step?
## Look for
- [read] each of nine calls reads a value once: item, float, if, nonzero, x[mask], where(mask), and
  range(i), x[i] and x[:i] with a tensor i
- [blind] on a CPU .cpu(), .tolist() and print call no operator that reads a value
- [meta] a tensor on meta raises an error for each of nine calls that read a value, for .cpu() and
  for .tolist(), but not for print
- [free] detach, x[index], where with three arguments, masked_fill and x[mask] = 0 work on meta, so
  they read no value
- [copy] x.to(device) and x.to(dtype, device) each make 1 copy that waits; non_blocking=True and
  zeros(device=) make none
- [step] a step with 2 masks, an if and 2 reads waits 6 times, because backward needs a mask again
- [epoch] 100 steps with 6 waits each wait 600 times; a loop that adds up in tensors and reads every
  20 steps waits 5 times
- [same] a loop that reads in each step and a loop that adds up in tensors give the same losses to
  1e-5 and the same hits
- [graph] the graph behind the sum of 100 losses has at least 500 nodes
- [detached] the sum of 100 detached losses has no graph behind it
- [gpu] on a GPU torch warns of print and of exactly those calls that raise an error on meta
- [gpu-copy] on a GPU torch warns of .to(device), pinned or not, and of a tensor from a list, but
  not of a pinned copy with non_blocking=True
- [gpu-step] on a GPU torch warns at least 6 times in a step with 2 masks, an if and 2 reads
- [gpu-mended] on a GPU torch gives 0 warnings in a step that multiplies by the mask and adds up in
  a tensor
## Try next
`--every 1`: the loop that adds up reads once in every step. It waits 100 times, and the other loop
600 times. refutes: epoch
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 20,
https://www.toymoban.com/news/detail-808122.html: a list of calls that wait. Ours: the detectors,
the counts, and the two loops.
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from tuilab import Lab

STEPS = 100

READS = {  # calls that need one value, or the positions of a mask
    ".item()": lambda x: x[0].item(),
    "float()": lambda x: float(x[0]),
    "if": lambda x: bool(x[0] > 0),
    "range(i)": lambda x: range(x.argmax()),
    "x[i]": lambda x: x[x.argmax()],
    "x[:i]": lambda x: x[: x.argmax()],
    "x.nonzero()": lambda x: x.nonzero(),
    "x[mask]": lambda x: x[x > 0],
    "where(mask)": lambda x: torch.where(x > 0),
}
BLIND = {  # calls that wait as well, but that no operator shows on a CPU
    ".cpu()": lambda x: x.cpu(),
    ".tolist()": lambda x: x.tolist(),
    "print": lambda x: str(x),
}
FREE = {  # calls that wait for nothing
    "detach": lambda x: x.detach(),
    "where(mask, x, 0)": lambda x: torch.where(x > 0, x, 0),
    "x[index]": lambda x: x[x.argmax()[None]],
    "masked_fill": lambda x: x.masked_fill(x > 0, 0),
    "x[mask] = 0": lambda x: set_to_zero(x.clone()),
}
CALLS = {**READS, **BLIND, **FREE}
COPIES = {  # calls that bring a tensor to another device
    ".to(device)": lambda x, device: x.to(device),
    ".to(dtype, device)": lambda x, device: x.to(dtype=torch.float64, device=device),
    "non_blocking": lambda x, device: x.to(device, non_blocking=True),
    "zeros(device=)": lambda x, device: torch.zeros(64, device=device),
}
GPU_COPIES = {
    ".to(device)": lambda x, device: x.to(device),
    "pinned": lambda x, device: x.pin_memory().to(device),
    "list": lambda x, device: torch.tensor([1.0, 2.0], device=device),
    "pinned, non_blocking": lambda x, device: x.pin_memory().to(device, non_blocking=True),
}


def set_to_zero(x):
    x[x > 0] = 0


class WaitCounter(TorchDispatchMode):
    """Counts the operators for which the CPU would wait if the tensors were on a GPU."""

    READING = ("aten._local_scalar_dense.default", "aten.nonzero.default")
    INDEXING = (
        "aten.index.Tensor",
        "aten.index_put.default",
        "aten._index_put_impl_.default",
    )

    def __init__(self):
        super().__init__()
        self.waits = 0

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        name = str(operator)
        if name in self.READING:
            self.waits += 1
        if name in self.INDEXING:
            for index in args[1]:
                if index is not None and index.dtype == torch.bool:
                    self.waits += 1
        return operator(*args, **(kwargs or {}))


class CopyCounter(TorchDispatchMode):
    """Counts the copies to another device that make the CPU wait."""

    def __init__(self):
        super().__init__()
        self.copies = 0

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = operator(*args, **kwargs)
        if str(operator) == "aten._to_copy.default":
            has_moved = result.device != args[0].device
            if has_moved and not kwargs.get("non_blocking"):
                self.copies += 1
        return result


def count_copies(function, *args):
    with CopyCounter() as counter:
        function(*args)
    return counter.copies


def count_waits(function, *args):
    with WaitCounter() as counter:
        function(*args)
    return counter.waits


def count_warnings(lab, device, function, *args):
    """Return how often torch warns that a call waited for the GPU."""
    module = torch.get_device_module(device)  # torch.cuda

    def call():
        module.set_sync_debug_mode("warn")
        function(*args)
        module.set_sync_debug_mode("default")

    count = 0
    for warning in lab.warns(call):
        if "synchronizing CUDA" in warning:
            count += 1
    return count


def naive_step(net, x, y, mask, totals):  # (64, 16), (64,), (64,), (2,)
    output = net(x)[mask]  # (rows of the mask, 8); wait 1, and once more in backward
    target = y[mask]  # wait 2
    loss = F.cross_entropy(output, target)
    assert not loss.isnan()  # wait 3
    loss.backward()  # wait 4: the positions of the mask again
    hits = (output.argmax(1) == target).sum()
    totals[0] += loss.item()  # wait 5
    totals[1] += hits.item()  # wait 6
    return loss


def mended_step(net, x, y, mask, totals):
    output = net(x)  # (64, 8)
    losses = F.cross_entropy(output, y, reduction="none")  # (64,)
    loss = (losses * mask).sum() / mask.sum()
    loss.backward()
    hits = ((output.argmax(1) == y) & mask).sum()
    totals += torch.stack([loss.detach(), hits])  # a NaN shows when the totals are read


def train(lab, name, step, data, totals, every):
    """Train for 100 steps and read the totals after every `every` steps; 0 is never."""
    device = data[0].device
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 8)).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with WaitCounter() as counter:
        for number in lab.steps(STEPS, name):
            step(net, *data, totals)
            optimizer.step()
            optimizer.zero_grad()
            if every > 0 and (number + 1) % every == 0:
                float(totals[0])  # one wait, for a log
            lab.log(number, arm=name, waits=counter.waits)
    return net, counter.waits


def run(
    lab: Lab,
    every: int = 20,  # steps from one read of the mended loop to the next, 1..100
) -> None:
    device = lab.device()
    lacks = "" if device.type == "cuda" else "a CUDA device"

    lab.stage("three detectors")
    x = torch.randn(64, device=device)
    counts = {}
    refused = {}
    warnings = {}
    rows = []
    for name, call in CALLS.items():
        counts[name] = count_waits(call, x)
        refused[name] = lab.raises(call, x.to("meta")) != ""
        warnings[name] = "n/a"
        if not lacks:
            warnings[name] = count_warnings(lab, device, call, x)
        rows.append((name, counts[name], refused[name], warnings[name]))
    head = ("call", "counted", "meta refuses", "a GPU warns")
    lab.table("who sees the wait", rows, head=head)

    lab.claim("read", [counts[name] for name in READS], equals=[1] * 9)
    lab.claim("blind", [counts[name] for name in BLIND], equals=[0] * 3)
    accepted = [name for name in {**READS, **BLIND} if not refused[name]]
    lab.claim("meta", accepted, equals=["print"])
    lab.claim("free", [name for name in FREE if refused[name]], equals=[])
    warned = [name for name in CALLS if warnings[name]]
    lab.claim("gpu", warned, equals=[*READS, *BLIND], lacks=lacks)

    lab.stage("copies")
    on_cpu = torch.randn(64)
    copies = []
    for call in COPIES.values():
        copies.append(count_copies(call, on_cpu, "meta"))
    lab.claim("copy", copies, equals=[1, 1, 0, 0])
    if lacks:
        lab.claim("gpu-copy", lacks=lacks)
    else:
        warned = []
        for name, call in GPU_COPIES.items():
            if count_warnings(lab, device, call, on_cpu, device):
                warned.append(name)
        lab.claim("gpu-copy", warned, equals=[".to(device)", "pinned", "list"])

    lab.axes("waits", x="steps", y="waits so far")
    inputs = torch.randn(64, 16, device=device)
    labels = torch.randint(8, (64,), device=device)
    mask = torch.rand(64, device=device) < 0.75
    data = (inputs, labels, mask)

    read = [0, 0]  # sum of losses and hits, in Python
    added = torch.zeros(2, device=device)  # the same, in a tensor
    net, naive_waits = train(lab, "naive", naive_step, data, read, every=0)
    _, mended_waits = train(lab, "mended", mended_step, data, added, every)
    lab.claim("step", count_waits(naive_step, net, *data, [0, 0]), equals=6, answers=True)
    lab.claim("epoch", [naive_waits, mended_waits], equals=[600, 5])
    is_loss_same = abs(added[0].item() / read[0] - 1) <= 1e-5
    are_hits_same = added[1].item() == read[1]
    lab.claim("same", is_loss_same and are_hits_same)

    losses = []
    for _ in range(STEPS):
        losses.append(naive_step(net, *data, [0, 0]))
    detached = [loss.detach() for loss in losses]
    lab.claim("graph", lab.count(sum, losses).nodes, at_least=500)
    lab.claim("detached", lab.count(sum, detached).nodes, equals=0)

    if lacks:
        lab.claim("gpu-step", lacks=lacks)
        lab.claim("gpu-mended", lacks=lacks)
        return
    naive_warnings = count_warnings(lab, device, naive_step, net, *data, [0, 0])
    mended_warnings = count_warnings(lab, device, mended_step, net, *data, added)
    lab.claim("gpu-step", naive_warnings, at_least=6)
    lab.claim("gpu-mended", mended_warnings, equals=0)
