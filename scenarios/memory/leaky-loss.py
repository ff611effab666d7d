"""Add up detached losses: a sum of live losses keeps the graph of every step.

A loop often adds up the loss of each step, for example `total += loss`, to print the mean of an
epoch. `loss` is a tensor with a graph behind it, so `total` is one as well. The graph of the sum
contains the graphs of all steps. Backward frees the tensors that the operators saved, but the
nodes stay. If a step only evaluates and never goes backward, the saved tensors stay as well. Memory grows in each step, until the process or the GPU
is out of memory, often after hours.

The experiment counts the nodes of the graph that can be reached from the sum, and the bytes that
this graph keeps alive. Nodes are counted by walking `grad_fn.next_functions`. The bytes are those
of the tensors that the operators saved for backward, counted by `saved_tensors_hooks`.

In practice: write `total += loss.detach()` on a GPU, and read it once at the end of the epoch.
`total += loss.item()` also cuts the graph, but waits for the GPU in each step. Detach the losses
and outputs that you keep in lists as well. Evaluate under `torch.no_grad()`.
## Predict
50 losses of a net with three linear layers are added up with total += loss. How many nodes does
the graph of the sum have?
## Look for
- [nodes] the graph of the sum of 50 losses has 506 nodes
- [detached] the sum of 50 detached losses has 0 nodes, and the sum of 50 losses with .item() has 0
- [grows] each further step adds 10 nodes to the graph of the sum
- [kept] 50 evaluated losses that never go backward keep the activations of 50 batches: at least
  50 times the bytes that one batch keeps
- [backward-frees] if each step goes backward before the loss is added, the sum keeps 0 bytes of
  saved tensors, but its graph still has 506 nodes
- [no-grad] under torch.no_grad() the sum has 0 nodes
- [same-value] the sum of detached losses is the same number as the sum of losses
## Try next
`--cut`: every loss is detached before it is added. refutes: nodes, grows, kept,
backward-frees
## Source
PyTorch documentation, "Frequently Asked Questions", "My model reports cuda runtime error(2): out of
memory", https://docs.pytorch.org/docs/stable/notes/faq.html: don't accumulate history across your
training loop. Ours: the counts.
"""

import torch
import torch.nn.functional as F
from torch import nn

from tuilab import Lab

BATCHES = 50
ROWS = 64
WIDTH = 32


class KeptTensors:
    """Counts the bytes of the tensors that are saved for backward and still alive."""

    def __init__(self):
        self.bytes = 0

    def __enter__(self):
        self.hooks = torch.autograd.graph.saved_tensors_hooks(self.pack, self.unpack)
        self.hooks.__enter__()
        return self

    def __exit__(self, *exception):
        self.hooks.__exit__(*exception)

    def pack(self, tensor):
        return SavedTensor(tensor, self)

    def unpack(self, saved):
        return saved.tensor


class SavedTensor:
    """A tensor that autograd saved; the counter is told when autograd lets go of it."""

    def __init__(self, tensor, counter):
        self.tensor = tensor.detach()  # an output would keep its own graph alive
        self.counter = counter
        self.size = tensor.numel() * tensor.element_size()
        counter.bytes += self.size

    def __del__(self):
        self.counter.bytes -= self.size


def count_nodes(tensor):
    """Return how many nodes can be reached from a tensor."""
    seen = set()
    waiting = [tensor.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        for next_node, _ in node.next_functions:
            waiting.append(next_node)
    return len(seen)


def build_net(device):
    layers = [nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(WIDTH, 1)).to(device)


def make_batches(device):
    batches = []
    for _ in range(BATCHES):
        x = torch.randn(ROWS, WIDTH).to(device)
        batches.append((x, x.sum(1, keepdim=True)))  # (64, 32), (64, 1)
    return batches


def add_up(lab, arm, net, batches, detach, goes_backward=False):
    """Return the sum of the losses, its nodes and its kept bytes after each batch."""
    node_counts = []
    byte_counts = []
    total = torch.zeros((), device=batches[0][0].device)
    with KeptTensors() as kept:
        for number in lab.steps(len(batches), arm):
            x, y = batches[number]
            loss = F.mse_loss(net(x), y)
            if goes_backward:
                loss.backward()
            total = total + (loss.detach() if detach else loss)
            del loss
            node_counts.append(count_nodes(total))
            byte_counts.append(kept.bytes)
            lab.log(number, arm=arm, nodes=node_counts[-1], kept_bytes=kept.bytes)
    return total, node_counts, byte_counts


def run(
    lab: Lab,
    cut: bool = False,  # detach each loss before it is added
) -> None:
    device = lab.device()
    lab.axes("nodes", x="batch", y="nodes behind the sum")
    lab.axes("kept_bytes", x="batch", y="saved tensors")
    net = build_net(device)
    batches = make_batches(device)

    total, nodes, kept = add_up(lab, "total += loss", net, batches, cut)
    lab.claim("nodes", nodes[-1], equals=506, unit="nodes", answers=True)
    lab.claim("grows", nodes[-1] - nodes[-2], equals=10, unit="nodes")
    lab.claim("kept", kept[-1] / max(kept[0], 1), at_least=BATCHES)
    del total

    detached, detached_nodes, _ = add_up(lab, "total += loss.detach()", net, batches, True)
    items = sum(F.mse_loss(net(x), y).item() for x, y in batches)
    item_nodes = count_nodes(torch.as_tensor(items))
    lab.claim("detached", [detached_nodes[-1], item_nodes], equals=[0, 0], unit="nodes")

    arm = "backward, then total += loss"
    total, nodes, kept = add_up(lab, arm, net, batches, cut, goes_backward=True)
    lab.claim("backward-frees", [kept[-1], nodes[-1]], equals=[0, 506])
    lab.claim("same-value", torch.equal(total.detach(), detached))

    with torch.no_grad():
        total, nodes, _ = add_up(lab, "no_grad", net, batches, False)
    lab.claim("no-grad", nodes[-1], equals=0, unit="nodes")
