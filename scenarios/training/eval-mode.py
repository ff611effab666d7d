"""Call model.eval() to evaluate: torch.no_grad() does not switch off dropout.

`torch.no_grad()` and `model.eval()` are often taken for the same thing, because evaluation code
usually has both. They do different jobs. `no_grad` stops autograd from recording a graph, which
saves memory and time. All layers compute the same as before. `model.eval()` changes the layers
that behave differently in training: dropout stops dropping, and batch norm uses its running
statistics instead of the statistics of the batch. It does not stop autograd.

If `eval()` is missing, three things go wrong. Two passes over the same input differ, because
dropout draws again. The output of a row depends on the other rows of its batch, because batch
norm uses their mean. And every forward moves the running statistics of batch norm, also under
`no_grad`: the validation data leaks into the model that is saved.

A batch of one row fails with an error, but only if the batch norm sees one value per channel. If
`train()` is missing after the evaluation, no error is raised either: the net then trains without
dropout and on frozen statistics.

In practice: write `model.eval()` and `with torch.no_grad():` (or `torch.inference_mode()`) around
each evaluation, and `model.train()` at the start of each epoch. In a test, evaluate one batch
twice and compare the outputs bit for bit.
## Predict
A net with dropout evaluates 64 rows twice under no_grad, without eval(). How many rows differ?
## Look for
- [rows-differ] without eval(), two passes of a net with dropout and batch norm differ in 64 of 64
  rows, although no_grad is on
- [eval-same] with eval(), two passes are the same bit for bit
- [alone] with eval(), a row alone gives its output in the batch to 1e-5
- [not-alone] without eval(), a row together with a copy of itself gives another output than in
  the batch: the two differ by 0.01 or more
- [moved] a forward under no_grad without eval() changes the running mean of the batch norm, and a
  forward with eval() does not
- [leak] after 100 batches shifted by 5, evaluated under no_grad without eval(), the running mean of
  the input has moved by 4.9 or more
- [one-row] without eval(), a batch of one row raises a ValueError
- [records] with eval() and without no_grad, the output still has a graph behind it
## Try next
`--no-dropout`: batch norm alone gives the same output twice for the same batch.
refutes: rows-differ
`--norm layer`: layer norm uses no other rows and keeps no statistics. refutes: not-alone, moved,
leak, one-row
## Source
PyTorch documentation, "Locally disabling gradient computation" in the notes on autograd,
https://docs.pytorch.org/docs/stable/notes/autograd.html: evaluation mode is not a mechanism to
disable gradient computation. Ours: the claims.
"""

from typing import Literal

import torch
from torch import nn

from tuilab import Lab

ROWS = 64
WIDTH = 32


def build_net(dropout, norm, device):
    norms = {"batch": nn.BatchNorm1d, "layer": nn.LayerNorm}
    layers = [norms[norm](WIDTH), nn.Linear(WIDTH, WIDTH), nn.ReLU()]
    if dropout:
        layers.append(nn.Dropout(0.5))
    layers.append(nn.Linear(WIDTH, 8))
    return nn.Sequential(*layers).to(device)


@torch.no_grad()
def evaluate(net, x):  # (rows, 32) -> (rows, 8)
    return net(x)


def count_different_rows(first, second):
    return (first != second).any(1).sum().item()


def running_mean(net):
    """Return the running mean of the first layer; zeros for a layer that keeps none."""
    mean = getattr(net[0], "running_mean", None)
    if mean is None:
        return torch.zeros(WIDTH)
    return mean.clone()


def is_moved_by_forward(net, x):
    before = running_mean(net)
    evaluate(net, x)
    return not torch.equal(before, running_mean(net))


def claim_repeated_passes(lab, net, x):
    net.train()
    different = count_different_rows(evaluate(net, x), evaluate(net, x))
    lab.claim("rows-differ", different, equals=ROWS, unit="rows", answers=True)
    net.eval()
    lab.claim("eval-same", torch.equal(evaluate(net, x), evaluate(net, x)))
    lab.claim("records", net(x).requires_grad)


def claim_other_rows(lab, net, x):
    net.eval()
    alone = evaluate(net, x[:1])
    in_batch = evaluate(net, x)[:1]
    lab.claim("alone", (alone - in_batch).abs().max(), at_most=1e-5)

    net.train()
    for layer in net:
        if isinstance(layer, nn.Dropout):
            layer.eval()  # only the norm is left in training mode
    with_a_copy = evaluate(net, x[[0, 0]])[:1]
    in_batch = evaluate(net, x)[:1]
    lab.claim("not-alone", (with_a_copy - in_batch).abs().max(), at_least=0.01)
    error = lab.raises(evaluate, net, x[:1])
    lab.claim("one-row", error.partition(":")[0], equals="ValueError")


def claim_running_statistics(lab, net, x):
    net.train()
    is_moved_in_training = is_moved_by_forward(net, x)
    net.eval()
    is_moved_in_eval = is_moved_by_forward(net, x)
    lab.claim("moved", [is_moved_in_training, is_moved_in_eval], equals=[True, False])

    lab.axes("mean", x="evaluated batch", y="running mean of the first channel")
    before = running_mean(net)
    for arm in ("eval()", "without eval()"):
        net.train(arm == "without eval()")
        for batch in lab.steps(100, f"evaluating other data, {arm}"):
            shifted = 5 + torch.randn(ROWS, WIDTH).to(x)
            evaluate(net, shifted)
            lab.log(batch, arm=arm, mean=running_mean(net)[0])
    moved_by = (running_mean(net) - before).mean()
    lab.claim("leak", moved_by, at_least=4.9)


def run(
    lab: Lab,
    dropout: bool = True,  # a dropout layer in the net
    norm: Literal["batch", "layer"] = "batch",  # the kind of the norm
) -> None:
    device = lab.device()
    net = build_net(dropout, norm, device)
    x = torch.randn(ROWS, WIDTH).to(device)
    lab.stage("two passes")
    claim_repeated_passes(lab, net, x)
    lab.stage("other rows")
    claim_other_rows(lab, net, x)
    claim_running_statistics(lab, net, x)
