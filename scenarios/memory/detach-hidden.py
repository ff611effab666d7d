"""Detach the hidden state of an RNN between batches; do not pass retain_graph=True.

A recurrent net reads a long text in pieces. The hidden state behind one piece is the start of the
next piece, so the net remembers earlier pieces. If the state is passed on as it is, its graph is
passed on as well. The second backward then goes through the graph of the first piece, whose saved
tensors are freed. It raises "Trying to backward through the graph a second time".

The message mentions `retain_graph=True`. With this argument, every backward goes through all
pieces since the beginning, and nothing is freed. If the optimizer steps after each piece, the
next backward raises another error: the old nodes saved weights that have changed since. If it
steps only at the end, there is no error, but each step takes longer and memory grows.

The cure is to pass on the numbers of the state without their graph. This is called truncated
backpropagation through time. Gradients end at the border of a piece, so the net cannot learn
dependencies that are longer than a piece.

In practice: write `hidden = hidden.detach()` before each piece. For an LSTM, detach both tensors
of the state. Make the pieces as long as the dependencies that the net should learn.
## Predict
A net reads 50 pieces with retain_graph=True and never detaches. How many times as many nodes has
the graph of the last loss as the graph of the first loss?
## Look for
- [refused] if the state is not detached, the second backward raises a RuntimeError
- [in-place] with retain_graph=True and an optimizer step after each piece, the second backward
  raises a RuntimeError about an inplace operation
- [growing] with retain_graph=True, the graph of the 50th loss has at least 30 times the nodes of
  the graph of the first loss
- [linear] with retain_graph=True, every piece after the second adds 24 nodes to the graph
- [constant] with a detached state, the graphs of the first and the 50th loss have the same number
  of nodes
- [trains] with a detached state, 50 backwards with an optimizer step after each raise no error
- [same-values] without optimizer steps, the 50 losses are the same numbers with and without
  detach
## Try next
`--cut`: the state is detached everywhere. refutes: refused, in-place, growing, linear
## Source
PyTorch documentation, `torch.Tensor.backward`,
https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html: in nearly all cases
setting retain_graph to True is not needed. Ours: the counts.
"""

import time

import torch
from torch import nn

from tuilab import Lab

PIECES = 50
LENGTH = 4  # of a piece
ROWS = 16
INPUTS = 8
WIDTH = 32


class RecurrentNet(nn.Module):
    """A recurrent net, written out so that its nodes can be counted."""

    def __init__(self):
        super().__init__()
        self.from_input = nn.Linear(INPUTS, WIDTH)
        self.from_hidden = nn.Linear(WIDTH, WIDTH)
        self.to_output = nn.Linear(WIDTH, 1)

    def forward(self, x, hidden):  # (16, 4, 8), (16, 32) -> (16, 1), (16, 32)
        for step in range(LENGTH):
            hidden = torch.tanh(self.from_input(x[:, step]) + self.from_hidden(hidden))
        return self.to_output(hidden), hidden


def count_nodes(tensor):
    """Return how many nodes of the graph can be reached from a tensor."""
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
    torch.manual_seed(0)
    return RecurrentNet().to(device)


def make_pieces(device):
    return [torch.randn(ROWS, LENGTH, INPUTS).to(device) for _ in range(PIECES)]


def train(pieces, detach, retain_graph, has_optimizer, on_piece=None):
    """Read the pieces; return the losses. `on_piece` is called with each loss and its time."""
    net = build_net(pieces[0].device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    hidden = torch.zeros(ROWS, WIDTH, device=pieces[0].device)
    losses = []
    for piece in pieces:
        began = time.perf_counter()
        if detach:
            hidden = hidden.detach()
        output, hidden = net(piece, hidden)
        loss = output.square().mean()
        loss.backward(retain_graph=retain_graph)
        if has_optimizer:
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.item())
        if on_piece is not None:
            on_piece(loss, time.perf_counter() - began)
    return losses


def train_plainly(pieces, detach):
    train(pieces, detach, retain_graph=False, has_optimizer=True)


def train_retaining(pieces, detach):
    train(pieces, detach, retain_graph=True, has_optimizer=True)


def read_and_log(lab, arm, pieces, detach, retain_graph):
    """Return the losses of all pieces, and the nodes of their graphs."""
    lab.stage(arm)
    node_counts = []

    def log_piece(loss, took_s):
        node_counts.append(count_nodes(loss))
        lab.log(len(node_counts), arm=arm, nodes=node_counts[-1], piece_ms=1000 * took_s)

    losses = train(pieces, detach, retain_graph, has_optimizer=False, on_piece=log_piece)
    return losses, node_counts


def run(
    lab: Lab,
    cut: bool = False,  # detach the state in all trainings
) -> None:
    lab.axes("nodes", x="piece", y="nodes behind the loss")
    lab.axes("piece_ms", x="piece", y="time of a piece", log="y")
    pieces = make_pieces(lab.device())

    lab.stage("two errors")
    error = lab.raises(train_plainly, pieces, cut)
    lab.claim("refused", error.partition(":")[0], equals="RuntimeError")
    error = lab.raises(train_retaining, pieces, cut)
    lab.claim("in-place", "inplace operation" in error)
    error = lab.raises(train_plainly, pieces, True)
    lab.claim("trains", error, equals="")

    losses, nodes = read_and_log(lab, "retain_graph=True", pieces, cut, retain_graph=True)
    lab.claim("growing", nodes[-1] / nodes[0], at_least=30, answers=True)
    added = sorted({nodes[number] - nodes[number - 1] for number in range(2, PIECES)})
    lab.claim("linear", added, equals=[24], unit="nodes")

    detached_losses, nodes = read_and_log(lab, "detached", pieces, True, retain_graph=False)
    lab.claim("constant", nodes[-1] - nodes[0], equals=0, unit="nodes")
    lab.claim("same-values", losses == detached_losses)
