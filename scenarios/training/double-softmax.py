"""Return logits from a classifier: F.cross_entropy applies the softmax itself.

Many nets end with a softmax, because the outputs should be probabilities. `F.cross_entropy` and
`nn.CrossEntropyLoss` expect logits and apply the softmax themselves. So the softmax is applied
twice. No error is raised, the loss falls, and the net learns something: this mistake can stay in
a training script for a long time.

The second softmax sees numbers between 0 and 1. With k classes, its largest possible output is
e / (e + k - 1). So the loss has a lowest value that the net cannot pass. The gradient is smaller
as well, because it passes through both softmaxes. The derivative of a softmax is p * (1 - p),
which is close to 0 if the net is confident. So the net learns slowly, and from a confident
mistake it hardly learns at all.

The lesson trains the same net with and without the softmax on the same data: ten groups of
points, one for each class. The size of the difference depends on the net, the data and the
learning rate. The lowest possible loss does not.

In practice: end the net with a linear layer, and pass its output to `F.cross_entropy`. Call
`logits.softmax(-1)` only where you need probabilities, for example to show them. If the training
loss of a net with 10 classes gets stuck near 1.46, look for a second softmax.
## Predict
What is the lowest loss that cross_entropy(softmax(logits)) can reach with 1000 classes?
## Look for
- [thousand] if the logit of the right class is 1000 and all others are 0,
  cross_entropy(softmax(logits)) is 5.9095 for 1000 classes
- [floor] for such logits it is 0.3133 for 2 classes and 1.4612 for 10; cross_entropy(logits) is
  0 for 2, 10 and 1000 classes
- [formula] for k classes, cross_entropy(softmax(logits)) of such logits is ln(e + k - 1) - 1
- [first-gradient] at the start of the training, the gradient with the second softmax has at most
  a fifth of the norm of the gradient without it
- [confident-mistake] for the logits [20, 0] and class 1, the gradient has a norm of 1.41; with
  the second softmax its norm is below 1e-6
- [trained-loss] after 200 steps with 10 classes, the loss with the second softmax is above
  1.4612, and the loss without it is below 0.2
- [accuracy] after 200 steps the net without the second softmax classifies at least 2 percentage
  points more of the points correctly
- [same-answer] for 1000 random rows, the class with the largest logit is also the class with the
  largest probability
## Try next
`--logits`: the net returns logits, as it should, so nothing limits its loss. refutes: thousand,
floor, formula, first-gradient, confident-mistake, trained-loss, accuracy
`--steps 20`: both nets are still at the beginning. refutes: trained-loss
## Source
PyTorch documentation, `torch.nn.CrossEntropyLoss`,
https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html: the input is
expected to contain unnormalized logits. Ours: the lowest loss, the gradients and the training.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

from tuilab import Lab

CLASSES = 10
POINTS = 1000
RATE = 0.1


def make_points(device):  # -> (1000, 2), (1000,)
    """Return points around ten places on a circle, and the class of each point."""
    classes = torch.arange(POINTS) % CLASSES
    angles = classes * (2 * math.pi / CLASSES)
    centres = torch.stack([angles.cos(), angles.sin()], dim=1)  # (1000, 2)
    points = centres + 0.1 * torch.randn(POINTS, 2)
    return points.to(device), classes.to(device)


def build_net(device):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, CLASSES))
    return net.to(device)


def loss_of_logits(logits, classes):
    return F.cross_entropy(logits, classes)


def loss_of_probabilities(logits, classes):
    return F.cross_entropy(logits.softmax(-1), classes)


def lowest_loss(loss_function, class_count, device):
    """Return the loss of a net that is entirely sure of the right class."""
    logits = torch.zeros(1, class_count, dtype=torch.float64, device=device)
    logits[0, 0] = 1000.0
    right_class = torch.tensor([0], device=device)
    return loss_function(logits, right_class).item()


def gradient_of_confident_mistake(loss_function, device):
    logits = torch.tensor([[20.0, 0.0]], dtype=torch.float64, device=device, requires_grad=True)
    right_class = torch.tensor([1], device=device)
    loss_function(logits, right_class).backward()
    return logits.grad.norm().item()


def gradient_norm(net):
    norms = [parameter.grad.norm() for parameter in net.parameters()]
    return torch.stack(norms).norm().item()


def train(lab, arm, loss_function, points, classes, steps):
    """Return the norm of the first gradient, the last loss, and the accuracy in percent."""
    net = build_net(points.device)
    optimizer = torch.optim.SGD(net.parameters(), lr=RATE, momentum=0.9)
    first_norm = 0.0
    for step in lab.steps(steps, f"training with {arm}"):
        logits = net(points)  # (1000, 10)
        loss = loss_function(logits, classes)
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            first_norm = gradient_norm(net)
        optimizer.step()
        hits = (logits.argmax(1) == classes).float().mean()
        lab.log(step, arm=arm, loss=loss.detach(), accuracy_percent=100 * hits)
    return first_norm, loss.item(), 100 * hits.item()


def claim_lowest_losses(lab, second_loss, device):
    lab.stage("the lowest possible loss")
    class_counts = [2, 10, 1000]
    second_losses = []
    usual_losses = []
    formula_errors = []
    for count in class_counts:
        lowest = lowest_loss(second_loss, count, device)
        second_losses.append(round(lowest, 4))
        usual_losses.append(lowest_loss(loss_of_logits, count, device))
        formula_errors.append(abs(lowest - (math.log(math.e + count - 1) - 1)))
    lowest_losses = [second_losses[:2], usual_losses]
    lab.claim("floor", lowest_losses, equals=[[0.3133, 1.4612], [0, 0, 0]])
    lab.claim("formula", max(formula_errors), at_most=1e-6)
    lab.claim("thousand", second_losses[-1], equals=5.9095, answers=True)
    names = [f"{count} classes" for count in class_counts]
    bars = dict(zip(names, second_losses, strict=True))
    lab.bars("lowest possible loss with a second softmax", bars)


def run(
    lab: Lab,
    steps: int = 200,  # of each training, 5..2000
    logits: bool = False,  # the second net returns logits as well
) -> None:
    device = lab.device()
    lab.axes("loss", x="step", y="loss")
    lab.axes("accuracy_percent", x="step", y="correct points")
    second_loss = loss_of_logits if logits else loss_of_probabilities

    claim_lowest_losses(lab, second_loss, device)
    usual_gradient = gradient_of_confident_mistake(loss_of_logits, device)
    second_gradient = gradient_of_confident_mistake(second_loss, device)
    lab.claim(
        "confident-mistake", [round(usual_gradient, 2), second_gradient < 1e-6], equals=[1.41, True]
    )

    points, classes = make_points(device)
    usual_norm, usual_loss, usual_accuracy = train(
        lab, "logits", loss_of_logits, points, classes, steps
    )
    second_norm, last_loss, second_accuracy = train(
        lab, "softmax, then cross_entropy", second_loss, points, classes, steps
    )
    lab.claim("first-gradient", second_norm / usual_norm, at_most=0.2)
    lab.claim("trained-loss", [last_loss > 1.4612, usual_loss < 0.2], equals=[True, True])
    lab.claim("accuracy", usual_accuracy - second_accuracy, at_least=2, unit="%")

    rows = torch.randn(1000, CLASSES, device=device)
    is_same = torch.equal(rows.argmax(1), rows.softmax(1).argmax(1))
    lab.claim("same-answer", is_same)
