"""Check shapes before you subtract: (n, 1) and (n,) make (n, n).

Broadcasting aligns shapes from the right, takes a missing dimension for a 1 in front, and stretches every dimension of size 1.
That is what makes `x + bias` short. It also means that (n,) counts as (1, n), and never collides with a column (n, 1): they
become a table of every element with every other. A model returns (n, 1), a label file holds (n,), and the loss quietly
averages n * n differences of which only the diagonal was meant.

Nothing fails, and the loss goes down. But the average over all pairs is smallest when every prediction is the mean of all
targets, so the model learns to ignore its input. `F.mse_loss` does the same; it only warns. Say `target.view_as(prediction)`,
assert that the shapes are equal, and sum over named dimensions: a wrong result of an unexpected shape gives itself away.

The picture is the table of squared differences; a good fit has a dark diagonal. The chart is the slope that the fit finds.
## Predict
Eight predictions of the shape (8, 1) equal their targets 0, 1, ..., 7, but the targets have the shape (8,).
What does F.mse_loss give?
## Look for
- [twelve] [[1], [2]] + [1, 2] sums to 12, where 6 was meant
- [given-away] summed over dimension 0 it is [5, 7], a shape that gives it away
- [refused] shapes (3, 2) and (3, 4) are refused
- [mse-warns] for eight perfect predictions F.mse_loss says 10.5 instead of 0, and only warns
- [table] targets (rows,) count as (1, rows): their difference from predictions (rows, 1) is a table of rows x rows
- [slope-0] the crossed loss finds slope 0 and predicts the mean of the targets for every input
- [slope-3] the paired loss finds slope 3
## Try next
`--targets column`: the targets keep their last dimension, shapes agree and there is no trap. The crossed loss finds slope 3.
refutes: table, slope-0
## Source
EffectivePyTorch, chapter "Broadcasting the good and the ugly", https://github.com/vahidk/EffectivePyTorch. Ours: the loss, the
fit and the picture.
"""

from typing import Literal

import torch
import torch.nn.functional as F

from tuilab import Lab


def crossed(prediction, target):  # (rows, 1), (rows,)
    return prediction - target  # (rows, rows)


def paired(prediction, target):
    return prediction - target.view_as(prediction)  # (rows, 1)


def fit(lab, difference, x, target, steps):
    """Fit slope and bias by gradient descent on the mean squared difference."""
    arm = difference.__name__
    slope = torch.full((1, 1), -1.0, device=x.device, requires_grad=True)
    bias = torch.zeros(1, device=x.device, requires_grad=True)
    for step in range(steps):
        prediction = x @ slope + bias  # (rows, 1)
        loss = difference(prediction, target).square().mean()
        error = paired(prediction, target).square().mean()  # what is really wrong, whatever is minimised
        lab.log(step, arm=arm, slope=slope.detach(), loss=loss.detach(), error=error.detach())
        if step % 10 == 0:
            table = (prediction - target.flatten()).square()  # every prediction against every target
            lab.image("squared differences, predictions down, targets across", table, arm=arm, step=step)
        gradients = torch.autograd.grad(loss, [slope, bias])
        with torch.no_grad():
            for weight, gradient in zip([slope, bias], gradients, strict=True):
                weight -= 0.1 * gradient
    return slope.item(), bias.item()


def run(
    lab: Lab,
    rows: int = 64,  # samples to fit, 2..1000
    steps: int = 100,  # of gradient descent, 1..10000
    targets: Literal["row", "column"] = "row",  # shape of the targets: (rows,) or (rows, 1)
) -> None:
    device = lab.device()

    lab.stage("two small tensors")
    table = torch.tensor([[1.0], [2.0]], device=device) + torch.tensor([1.0, 2.0], device=device)
    meant = torch.tensor([1.0, 2.0], device=device) + torch.tensor([1.0, 2.0], device=device)
    lab.claim("twelve", [table.sum().item(), meant.sum().item()], equals=[12, 6])
    lab.claim("given-away", table.sum(0), equals=[5, 7])
    lab.claim("refused", lab.raises(torch.add, torch.ones(3, 2), torch.ones(3, 4)) != "")
    truth = torch.arange(8.0, device=device)
    losses = []
    warned = lab.warns(lambda: losses.append(F.mse_loss(truth[:, None], truth)))  # (8, 1), (8,)
    lab.text("\n".join(warned), title="what F.mse_loss warns")
    lab.claim("mse-warns", [losses[0], len(warned)], equals=[10.5, 1], answers=losses[0])

    for metric, y in (("slope", "slope that is found"), ("loss", "loss that is minimised"), ("error", "error of the fit")):
        lab.axes(metric, x="step of gradient descent", y=y)
    lab.stage("fitting 3 x + 1")
    x = torch.linspace(-1.7, 1.7, rows, device=device)[:, None]  # (rows, 1)
    target = 3 * x + 1 if targets == "column" else (3 * x + 1).flatten()
    lab.claim("table", list(crossed(x, target).shape), equals=[rows, rows])
    found = {difference: fit(lab, difference, x, target, steps) for difference in (crossed, paired)}
    lab.claim("slope-0", found[crossed], equals=[0, target.mean().item()], tolerance=0.001)
    lab.claim("slope-3", found[paired][0], equals=3, tolerance=0.001)
