"""Name the dimension that you squeeze: otherwise batches and sequences of one lose theirs as well.

`x.squeeze()` drops every dimension of size 1. Written for the last one of (batch, 1) it works for all batches but those of
one sample, where it drops the batch as well: (1, 1) becomes a tensor without dimensions. The last batch of an epoch is such a
batch whenever one sample is left over, and the results cannot be put together.

Where nothing is refused it is worse. Predictions (batch, length, 1) lose their last dimension as meant, until the length is
1: then (batch, 1, 1) becomes (batch,). Minus targets (batch, 1) that is a table of every prediction with every target, and
the fit learns the mean of the targets (broadcast-trap tells why).

`x.squeeze(-1)` drops the last dimension if its size is 1, and no other. It has a trap of its own: where the size is not 1 it
does nothing and says nothing. `x[..., 0]` takes the first in any case; an assert on the shape is the only one of them that
complains. The same holds for reductions: `x.sum()` is a number whatever x has become, and `x.sum(1)` is refused where no
dimension 1 is left.
## Predict
Predictions have the shape (64, 1, 1), targets (64, 1). How many numbers has predictions.squeeze() - targets?
## Look for
- [number] (1, 1) without its ones has the shape ()
- [batches] 65 rows in batches of 32 come out with 1, 1 and 0 dimensions
- [together] torch.cat refuses to put them together
- [named] with squeeze(-1) they go together to (65,)
- [silent] squeeze(-1) of (3, 2) is (3, 2) still, and nothing is raised
- [reduced] sum(1) of one sequence (1, 4, 1) without its ones is refused, sum() adds them up
- [table] predictions (64, length, 1) without their ones, minus targets (64, length), have the shape (64, 64)
- [slope-0] the fit with squeeze() finds slope 0
- [slope-3] the fit with squeeze(-1) finds slope 3
## Try next
`--rows 64`: no sample is left over. refutes: batches, together, named
`--length 4`: only the last dimension has size 1. refutes: table, slope-0
## Source
EffectivePyTorch, chapter "Broadcasting the good and the ugly", https://github.com/vahidk/EffectivePyTorch: always name the
dimension in reductions and in squeeze. Ours: the last batch, the sequences of one and the fit.
"""

import torch

from tuilab import Lab


def naive(x):
    return x.squeeze()


def named(x):
    return x.squeeze(-1)


def refusal(lab, f, *args):
    """The kind of exception that a call ends with, or nothing."""
    return lab.raises(f, *args).partition(":")[0]


def fit(lab, squeeze, x, target, steps):
    """Fit slope and bias by gradient descent; x (rows, length, 1), target (rows, length)."""
    slope, bias = (torch.tensor(start, device=x.device, requires_grad=True) for start in (-1.0, 0.0))
    for step in range(steps):
        loss = (squeeze(slope * x + bias) - target).square().mean()
        lab.log(step, arm=squeeze.__name__, slope=slope.detach(), loss=loss.detach())
        gradients = torch.autograd.grad(loss, [slope, bias])
        with torch.no_grad():
            for weight, gradient in zip([slope, bias], gradients, strict=True):
                weight -= 0.1 * gradient
    return slope.item()


def run(
    lab: Lab,
    rows: int = 65,  # samples of the epoch, 33..10000
    length: int = 1,  # of the sequences, 1..64
    steps: int = 100,  # of gradient descent, 1..10000
) -> None:
    device = lab.device()
    lab.stage("the last batch of an epoch")
    lab.claim("number", list(naive(torch.zeros(1, 1, device=device)).shape), equals=[])
    batches = torch.randn(rows, 1, device=device).split(32)  # (32, 1), ..., and what is left over
    naively, by_name = ([squeeze(batch) for batch in batches] for squeeze in (naive, named))
    shown = [[str(tuple(part.shape)) for part in parts] for parts in (batches, naively, by_name)]
    lab.table("shapes", [*zip(*shown, strict=True)][-3:], head=("batch", "squeeze()", "squeeze(-1)"))
    lab.claim("batches", [part.dim() for part in naively], equals=[1, 1, 0])
    lab.claim("together", refusal(lab, torch.cat, naively), equals="RuntimeError")
    lab.claim("named", list(torch.cat(by_name).shape), equals=[65])
    lab.claim("silent", list(named(torch.zeros(3, 2, device=device)).shape), equals=[3, 2])
    sequence = naive(torch.ones(1, 4, 1, device=device))
    lab.claim("reduced", [refusal(lab, sequence.sum, 1), sequence.sum().item()], equals=["IndexError", 4])

    lab.axes("slope", x="step of gradient descent", y="slope that is found")
    lab.axes("loss", x="step of gradient descent", y="loss that is minimised")
    lab.stage("fitting 3 x + 1")
    x = torch.linspace(-1.7, 1.7, 64 * length, device=device).view(64, length, 1)
    target = (3 * x + 1)[..., 0]  # (64, length)
    difference = naive(x) - target
    lab.claim("table", list(difference.shape), equals=[64, 64], answers=difference.numel())
    lab.image("squared differences, predictions down, targets across", difference.square())
    lab.claim("slope-0", fit(lab, naive, x, target, steps), equals=0, tolerance=0.001)
    lab.claim("slope-3", fit(lab, named, x, target, steps), equals=3, tolerance=0.001)
