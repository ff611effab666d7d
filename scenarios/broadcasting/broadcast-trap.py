"""Check shapes before you subtract: (n, 1) minus (n,) makes a table (n, n).

A model returns predictions (n, 1), and a file of labels gives targets (n,). Their difference is not
n numbers but n * n: each prediction minus each target. The loss averages the whole table, although
only the diagonal was meant.

The reason is how broadcasting aligns shapes. It starts from the right, and puts a 1 in front if a
dimension is missing. Then it stretches every dimension of size 1. This makes `x + bias` short. It
also makes (n,) a row (1, n), and a row and a column are stretched to a table.

No error is raised, and the loss decreases. But the average over all pairs is smallest if every
prediction is the mean of all targets, so the model learns to ignore its input. `F.mse_loss` only
warns. The picture of this lesson shows the squared differences: a good fit has a dark diagonal. The
chart shows the slope that the fit finds.

In practice: write `assert prediction.shape == target.shape` before the loss, or use
`target.view_as(prediction)`. Name the dimension in each reduction: then a wrong result has an
unexpected shape. In tests, turn the warning of `F.mse_loss` into an error.
## Predict
Eight predictions of the shape (8, 1) equal their targets 0, 1, ..., 7, but the targets have the
shape (8,). What does F.mse_loss give?
## Look for
- [twelve] all numbers of [[1], [2]] + [1, 2] sum to 12, and those of [1, 2] + [1, 2] to 6
- [given-away] [[1], [2]] + [1, 2] summed over dimension 0 is [5, 7], where one number was expected
- [refused] adding tensors of the shapes (3, 2) and (3, 4) raises an error
- [mse-warns] for eight perfect predictions (8, 1) and targets (8,) F.mse_loss returns 10.5 instead
  of 0, with one warning
- [table] predictions (rows, 1) minus targets (rows,) make a table (rows, rows)
- [slope-0] with targets (rows,) for predictions (rows, 1) a fit of 3x + 1 has the slope 0 and the
  mean of the targets as bias
- [slope-3] with targets of the shape of the predictions a fit of 3x + 1 has the slope 3
## Try next
`--targets column`: the targets keep their last dimension, so the shapes are equal and the crossed
loss also finds the slope 3. refutes: table, slope-0
## Source
EffectivePyTorch, chapter "Broadcasting the good and the ugly",
https://github.com/vahidk/EffectivePyTorch. Ours: the loss, the fit and the picture.
"""

from typing import Literal

import torch
import torch.nn.functional as F

from tuilab import Lab

RATE = 0.1  # of gradient descent
PICTURE = "squared differences, predictions down, targets across"


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
        fitted = prediction.detach()
        error = paired(fitted, target).square().mean()  # of the fit, whatever is minimised
        lab.log(step, arm=arm, slope=slope.detach(), loss=loss.detach(), error=error)
        if step % 10 == 0:
            table = (fitted - target.flatten()).square()  # (rows, rows)
            lab.image(PICTURE, table, arm=arm, step=step)
        slope_gradient, bias_gradient = torch.autograd.grad(loss, [slope, bias])
        with torch.no_grad():
            slope -= RATE * slope_gradient
            bias -= RATE * bias_gradient
    return slope.item(), bias.item()


def claim_small_tensors(lab, device):
    lab.stage("two small tensors")
    row = torch.tensor([1.0, 2.0], device=device)
    column = torch.tensor([[1.0], [2.0]], device=device)
    table = column + row  # (2, 2)
    sums = [table.sum().item(), (row + row).sum().item()]
    lab.claim("twelve", sums, equals=[12, 6])
    lab.claim("given-away", table.sum(0), equals=[5, 7])
    error = lab.raises(torch.add, torch.ones(3, 2), torch.ones(3, 4))
    lab.claim("refused", error != "")


def claim_mse_loss(lab, device):
    target = torch.arange(8.0, device=device)  # (8,)
    prediction = target[:, None]  # (8, 1)
    losses = []

    def call():
        losses.append(F.mse_loss(prediction, target))

    warnings = lab.warns(call)
    lab.text("\n".join(warnings), title="what F.mse_loss warns")
    lab.claim("mse-warns", [losses[0], len(warnings)], equals=[10.5, 1], answers=losses[0])


def run(
    lab: Lab,
    rows: int = 64,  # samples to fit, 2..1000
    steps: int = 100,  # of gradient descent, 1..10000
    targets: Literal["row", "column"] = "row",  # shape of the targets: (rows,) or (rows, 1)
) -> None:
    device = lab.device()
    claim_small_tensors(lab, device)
    claim_mse_loss(lab, device)

    lab.axes("slope", x="step of gradient descent", y="slope that is found")
    lab.axes("loss", x="step of gradient descent", y="loss that is minimised")
    lab.axes("error", x="step of gradient descent", y="error of the fit")
    lab.stage("fitting 3x + 1")
    x = torch.linspace(-1.7, 1.7, rows, device=device)[:, None]  # (rows, 1)
    target = 3 * x + 1
    if targets == "row":
        target = target.flatten()
    lab.claim("table", list(crossed(x, target).shape), equals=[rows, rows])
    crossed_fit = fit(lab, crossed, x, target, steps)
    paired_slope, _ = fit(lab, paired, x, target, steps)
    lab.claim("slope-0", crossed_fit, equals=[0, target.mean().item()], tolerance=0.001)
    lab.claim("slope-3", paired_slope, equals=3, tolerance=0.001)
