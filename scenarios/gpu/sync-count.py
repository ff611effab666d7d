"""Whatever needs a value of a tensor makes the CPU wait for the GPU: a print, an if, a mask.

The CPU tells the GPU what to do and goes on, many operators ahead. It stops where Python needs a number: for `.item()`, for an
`if`, a print, and a shape that depends on values, as that of `x[mask]`. It waits until all work of its stream is done. Three
detectors. Operators that read are counted on any device: `aten._local_scalar_dense`, `aten.nonzero`, a mask as an index. A
tensor on the device "meta" has a shape and no values: what works there needs none. On a GPU torch itself warns of most, after
`torch.cuda.set_sync_debug_mode("warn")`. On a CPU `.cpu()` and `.tolist()` are no operators; a print hides its operators.
Copies from memory that is not pinned wait too, and `GradScaler`. A mask waits twice: backward looks for the places again. So
weigh with the mask, add up on the device, read seldom, and detach what is added up, or the graph of every step is kept.
## Predict
A step takes the masked rows of output and target, looks for NaN, goes backward, reads loss and hits. How often does it wait?
## Look for
- [read] each of nine calls is counted once: an item, an if, x[i] and range(i) with a tensor i, x[mask], nonzero and the like
- [blind] .cpu(), .tolist() and print call no operator that a CPU could count
- [meta] a tensor on meta refuses all of these but print
- [free] detach, x[index], where with three arguments, masked_fill and x[mask] = 0 work on meta
- [step] the step waits 6 times: for 2 masks, for a mask again in backward, for an if and 2 reads
- [epoch] in 100 steps it waits 600 times, and the loop that adds up and reads every 20 steps 5 times
- [same] both loops end with the same sum of losses to 1e-5, and the same number of hits
- [graph] the sum of 100 losses has at least 500 nodes of the graph behind it, and of detached losses none
- [gpu] on a GPU torch warns of exactly what meta refuses and of print
- [gpu-step] on a GPU it warns at least 6 times of the step, and never of the mended one
## Try next
`--every 1`: one read in every step, where the naive one has two. refutes: epoch
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 20,
https://www.toymoban.com/news/detail-808122.html: a list. Ours: the rest.
"""

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tuilab import Lab

READS = {".item()": lambda x: x[0].item(), "float()": lambda x: float(x[0]), "if": lambda x: bool(x[0] > 0)}
READS |= {"range(i)": lambda x: range(x.argmax()), "x[i]": lambda x: x[x.argmax()], "x[:i]": lambda x: x[: x.argmax()]}
READS |= {"x.nonzero()": torch.nonzero, "x[mask]": lambda x: x[x > 0], "where(mask)": lambda x: torch.where(x > 0)}
BLIND = {".cpu()": torch.Tensor.cpu, ".tolist()": torch.Tensor.tolist, "print": str}
FREE = {"detach": torch.detach, "where(mask, x, 0)": lambda x: x.where(x > 0, 0), "x[index]": lambda x: x[x.argmax()[None]]}
FREE |= {"masked_fill": lambda x: x.masked_fill(x > 0, 0), "x[mask] = 0": lambda x: x.clone().__setitem__(x > 0, 0)}


class Waits(TorchDispatchMode):  # counts what waits where there is a GPU
    count = 0

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        name = str(operator)
        if name in ("aten.index.Tensor", "aten.index_put.default", "aten._index_put_impl_.default"):
            self.count += any(index is not None and index.dtype == torch.bool for index in args[1])
        self.count += name in ("aten._local_scalar_dense.default", "aten.nonzero.default")
        return operator(*args, **(kwargs or {}))


def waits(f, *args):
    with Waits() as counted:
        f(*args)
    return counted.count


def warned(lab, f, x, *others):
    debug = torch.get_device_module(x.device).set_sync_debug_mode  # torch.cuda's
    return sum("synchronizing CUDA" in said for said in lab.warns(lambda: [debug("warn"), f(x, *others), debug("default")]))


def naive(x, y, mask, net, total):  # x (64, 16), y and mask (64,)
    output, y = net(x)[mask], y[mask]
    loss = torch.nn.functional.cross_entropy(output, y)
    assert not loss.isnan()
    loss.backward()
    total[0] += loss.item()
    total[1] += (output.argmax(1) == y).sum().item()
    return loss


def mended(x, y, mask, net, total):
    output = net(x)
    loss = (torch.nn.functional.cross_entropy(output, y, reduction="none") * mask).sum() / mask.sum()
    loss.backward()
    total += torch.stack([loss.detach(), ((output.argmax(1) == y) & mask).sum()])  # a NaN is seen when it is read


def train(lab, step, data, total, every):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 8)).to(data[0].device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with Waits() as counted:
        for number in lab.steps(100, step.__name__):
            step(*data, net, total)
            optimizer.step(), optimizer.zero_grad()
            _ = float(total[0]) if number % every == every - 1 else None
            lab.log(number, arm=step.__name__, waits=counted.count)
    return net, counted.count


def run(lab: Lab, every: int = 20) -> None:  # steps from one read of the mended loop to the next, 1..100
    device = lab.device()
    lacks = "" if device.type == "cuda" else "a CUDA device"
    lab.stage("three detectors")
    x, calls = torch.randn(64, device=device), READS | BLIND | FREE
    counts = {name: waits(call, x) for name, call in calls.items()}
    refused = {name: bool(lab.raises(call, x.to("meta"))) for name, call in calls.items()}
    warnings = {name: "n/a" if lacks else warned(lab, call, x) for name, call in calls.items()}
    rows = [[name, counts[name], refused[name], warnings[name]] for name in calls]
    lab.table("who sees the wait", rows, head=("call", "counted", "meta refuses", "a GPU warns"))
    lab.claim("read", [counts[name] for name in READS], equals=[1] * len(READS))
    lab.claim("blind", [counts[name] for name in BLIND], equals=[0] * 3)
    lab.claim("meta", [name for name in READS | BLIND if not refused[name]], equals=["print"])
    lab.claim("free", [name for name in FREE if refused[name]], equals=[])
    lab.claim("gpu", [name for name in calls if warnings[name]], equals=[*READS, *BLIND], lacks=lacks)
    lab.axes("waits", x="steps", y="waits so far")
    data = torch.randn(64, 16, device=device), torch.randint(8, (64,), device=device), torch.rand(64, device=device) < 0.75
    read, added = [0, 0], torch.zeros(2, device=device)
    (net, often), (_, seldom) = train(lab, naive, data, read, 101), train(lab, mended, data, added, every)
    lab.claim("step", waits(naive, *data, net, [0, 0]), equals=6, answers=True)
    lab.claim("epoch", [often, seldom], equals=[600, 5])
    lab.claim("same", abs(added[0].item() / read[0] - 1) <= 1e-5 and added[1].item() == read[1])
    kept = [naive(*data, net, [0, 0]) for _ in range(100)]
    nodes = [lab.count(sum, losses).nodes for losses in (kept, [loss.detach() for loss in kept])]
    lab.claim("graph", [nodes[0] >= 500, nodes[1]], equals=[True, 0])
    found = [] if lacks else [warned(lab, naive, *data, net, [0, 0]) >= 6, warned(lab, mended, *data, net, added)]
    lab.claim("gpu-step", found, equals=[True, 0], lacks=lacks)
