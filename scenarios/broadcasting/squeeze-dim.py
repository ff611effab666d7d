"""Name the dimension that you squeeze: `x.squeeze(-1)`, not `x.squeeze()`.

A head returns (batch, 1), and `x.squeeze()` makes it (batch,). This works for every batch except a
batch of one sample. `squeeze()` drops all dimensions of size 1, so (1, 1) becomes a tensor without
dimensions. The last batch of an epoch is such a batch if one sample is left over. Then the outputs
of the epoch cannot be concatenated.

It is worse if no error is raised. Predictions (batch, length, 1) lose their last dimension, as
meant. If the length is 1, they also lose the length: (batch, 1, 1) becomes (batch,). Minus targets
(batch, 1) they make a table of each prediction with each target, and the fit learns the mean of the
targets (see broadcast-trap).

`x.squeeze(-1)` drops the last dimension if its size is 1, and no other. If the size is not 1, it
does nothing, without an error. Only an assert on the shape finds this. Reductions have the same
problem: `x.sum()` returns a number for any shape, and `x.sum(1)` raises an error if x has lost its
dimension 1.

In practice: write `x.squeeze(-1)`, and assert its shape before the loss. Name the dimension in each
sum and mean as well. Test a model once with a batch of one sample and a sequence of one token.
## Predict
Predictions have the shape (64, 1, 1), targets (64, 1). How many numbers has
predictions.squeeze() - targets?
## Look for
- [number] a tensor (1, 1) after squeeze() has no dimensions
- [batches] 65 rows (65, 1) in batches of 32 have 1, 1 and 0 dimensions after squeeze()
- [together] torch.cat raises a RuntimeError for batches that squeeze() left with 1, 1 and 0
  dimensions
- [named] after squeeze(-1) torch.cat makes (65,) of the batches of 65 rows
- [silent] squeeze(-1) leaves (3, 2) as it is, without an error
- [reduced] a sequence (1, 4, 1) after squeeze() has no dimension 1: sum(1) raises an IndexError,
  and sum() returns 4
- [table] predictions (64, length, 1) after squeeze(), minus targets (64, length), have the shape
  (64, 64)
- [slope-0] a fit of 3x + 1 to sequences of one token with squeeze() finds the slope 0
- [slope-3] a fit of 3x + 1 to the same sequences with squeeze(-1) finds the slope 3
## Try next
`--rows 64`: no sample is left over. refutes: batches, together, named
`--length 4`: only the last dimension has the size 1. refutes: table, slope-0
## Source
EffectivePyTorch, chapter "Broadcasting the good and the ugly",
https://github.com/vahidk/EffectivePyTorch: always name the dimension in reductions and in squeeze.
Ours: the last batch, the sequences of one token and the fit.
"""

import torch

from tuilab import Lab

RATE = 0.1  # of gradient descent


def naive(x):
    return x.squeeze()


def named(x):
    return x.squeeze(-1)


def error_of(lab, function, *args):
    """Return the class of the error that a call raises, or an empty text."""
    return lab.raises(function, *args).partition(":")[0]


def fit(lab, squeeze, x, target, steps):  # x (rows, length, 1), target (rows, length)
    """Fit slope and bias by gradient descent, and return the slope."""
    slope = torch.tensor(-1.0, device=x.device, requires_grad=True)
    bias = torch.tensor(0.0, device=x.device, requires_grad=True)
    for step in range(steps):
        prediction = squeeze(slope * x + bias)
        loss = (prediction - target).square().mean()
        lab.log(step, arm=squeeze.__name__, slope=slope.detach(), loss=loss.detach())
        slope_gradient, bias_gradient = torch.autograd.grad(loss, [slope, bias])
        with torch.no_grad():
            slope -= RATE * slope_gradient
            bias -= RATE * bias_gradient
    return slope.item()


def claim_last_batch(lab, rows, device):
    lab.stage("the last batch of an epoch")
    number = naive(torch.zeros(1, 1, device=device))
    lab.claim("number", list(number.shape), equals=[])

    batches = torch.randn(rows, 1, device=device).split(32)  # (32, 1) each, the last one smaller
    squeezed = [naive(batch) for batch in batches]
    squeezed_last = [named(batch) for batch in batches]
    shapes = []
    for index in range(len(batches)):
        tensors = (batches[index], squeezed[index], squeezed_last[index])
        shapes.append([str(tuple(tensor.shape)) for tensor in tensors])
    lab.table("shapes", shapes[-3:], head=("batch", "squeeze()", "squeeze(-1)"))
    lab.claim("batches", [batch.dim() for batch in squeezed], equals=[1, 1, 0])
    lab.claim("together", error_of(lab, torch.cat, squeezed), equals="RuntimeError")
    lab.claim("named", list(torch.cat(squeezed_last).shape), equals=[65])

    pair = named(torch.zeros(3, 2, device=device))
    lab.claim("silent", list(pair.shape), equals=[3, 2])
    sequence = naive(torch.ones(1, 4, 1, device=device))  # (4,)
    error = error_of(lab, sequence.sum, 1)
    lab.claim("reduced", [error, sequence.sum().item()], equals=["IndexError", 4])


def run(
    lab: Lab,
    rows: int = 65,  # samples of the epoch, 33..10000
    length: int = 1,  # of the sequences, 1..64
    steps: int = 100,  # of gradient descent, 1..10000
) -> None:
    device = lab.device()
    claim_last_batch(lab, rows, device)

    lab.axes("slope", x="step of gradient descent", y="slope that is found")
    lab.axes("loss", x="step of gradient descent", y="loss that is minimised")
    lab.stage("fitting 3x + 1")
    x = torch.linspace(-1.7, 1.7, 64 * length, device=device).view(64, length, 1)
    target = named(3 * x + 1)  # (64, length)
    difference = naive(x) - target
    lab.claim("table", list(difference.shape), equals=[64, 64], answers=difference.numel())
    lab.image("squared differences, predictions down, targets across", difference.square())
    lab.claim("slope-0", fit(lab, naive, x, target, steps), equals=0, tolerance=0.001)
    lab.claim("slope-3", fit(lab, named, x, target, steps), equals=3, tolerance=0.001)
