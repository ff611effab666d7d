"""Copy the best weights: a state_dict shares its memory with the model.

Many training loops keep the best weights in memory: `best = model.state_dict()` whenever the
validation loss improves, and `model.load_state_dict(best)` at the end. But `state_dict()` copies
nothing. Its tensors are the weights themselves, so the optimizer changes `best` in the next step.
At the end the model loads its own last weights, and the search for the best epoch was in vain.
Nothing warns about it, because the last weights are usually not bad.

`best = dict(model.state_dict())` and `model.state_dict().copy()` do not help: they copy the
dictionary and keep the tensors. `copy.deepcopy(model.state_dict())` copies the tensors.
`torch.save` also keeps the values, because it writes them to a file at once.

A related surprise is a saved slice. A view of a tensor shares its whole storage, and `torch.save`
writes storages. So a file with 1 of 1024 rows has the size of all rows.

In practice: keep the best weights with `copy.deepcopy(model.state_dict())`, or write them to a
file with `torch.save`. Save a part of a tensor as `x[:1].clone()`.
## Predict
A net trains on after its best step, with best = model.state_dict(). Which share of the values in
best is still the value of the best step, in percent?
## Look for
- [alias] all tensors of model.state_dict() have the memory of the parameters
- [best-kept] one step after `best = model.state_dict()`, 0 % of the values in best are those of
  the best step
- [shallow] dict(model.state_dict()) and model.state_dict().copy() also keep 0 % of these values
- [deep] one step after the best one, copy.deepcopy(model.state_dict()) keeps 100 % of the values
- [restored] a model that loads the deep copy at the end has the loss of the best step; a model
  that loads best has the loss of the last step
- [worse] the loss of the last step is at least 1.5 times the loss of the best step
- [saved-view] torch.save of 1 row of 1024 x 1024 float32 numbers writes more than 4 MiB
- [saved-clone] torch.save of a clone of this row writes less than 16 KiB
## Try next
`--how deepcopy`: best is a copy of its own. refutes: best-kept, restored
## Source
PyTorch tutorials, "Saving and Loading Models",
https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html: model.state_dict() returns a
reference to the state and not its copy. Ours: the training, the shallow copies and the files.
"""

import copy
import io
from typing import Literal

import torch
import torch.nn.functional as F
from torch import nn

from tuilab import Lab

BEST_STEP = 300
LATER_STEPS = 30  # at a learning rate that is too high


def share_memory(state, net):
    """Say whether each tensor of a state_dict lies in the memory of its parameter."""
    addresses = {name: weight.data_ptr() for name, weight in net.named_parameters()}
    return all(state[name].data_ptr() == addresses[name] for name in addresses)


def percent_equal(state, other):
    """Return the percentage of values that are the same bit for bit in both dictionaries."""
    same = 0
    count = 0
    for name, values in state.items():
        same += (values == other[name]).sum().item()
        count += values.numel()
    return 100 * same / count


def load_from_file(net):
    """Return the weights as torch.load reads them from a file, with memory of their own."""
    file = io.BytesIO()
    torch.save(net.state_dict(), file)
    file.seek(0)
    return torch.load(file)


def saved_bytes(tensor):
    file = io.BytesIO()
    torch.save(tensor, file)
    return len(file.getvalue())


def keep(net, how):
    """Return the weights in one of the ways that people keep them."""
    if how == "alias":
        return net.state_dict()
    return copy.deepcopy(net.state_dict())


def make_data(device):  # -> (256, 4), (256, 1)
    x = torch.randn(256, 4)
    y = x.square().sum(1, keepdim=True)
    return x.to(device), y.to(device)


def loss_of(net, x, y):
    return F.mse_loss(net(x), y)


class Training:
    """A training whose learning rate becomes too high after its best step."""

    def __init__(self, net, x, y):
        self.net = net
        self.x = x
        self.y = y
        self.optimizer = torch.optim.Adam(net.parameters(), lr=0.01)

    def step(self, number):
        """Train for a step and return the loss after it."""
        if number == BEST_STEP:
            self.optimizer.param_groups[0]["lr"] = 1.0
        self.optimizer.zero_grad()
        loss_of(self.net, self.x, self.y).backward()
        self.optimizer.step()
        with torch.no_grad():
            return loss_of(self.net, self.x, self.y).item()


def loss_with(net, state, x, y):
    """Return the loss of the net after it has loaded a state_dict."""
    net.load_state_dict(state)
    with torch.no_grad():
        return loss_of(net, x, y).item()


def claim_saved_files(lab):
    rows = torch.zeros(1024, 1024)
    lab.claim("saved-view", saved_bytes(rows[:1]) / 2**20, at_least=4, unit="MiB")
    lab.claim("saved-clone", saved_bytes(rows[:1].clone()) / 2**10, at_most=16, unit="KiB")


def run(
    lab: Lab,
    how: Literal["alias", "deepcopy"] = "alias",  # the way to keep the best weights
) -> None:
    device = lab.device()
    x, y = make_data(device)
    net = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 1)).to(device)
    training = Training(net, x, y)
    lab.axes("loss", x="step", y="loss", log="y")

    losses = []
    for number in lab.steps(BEST_STEP, "training"):
        losses.append(training.step(number))
        lab.log(number, loss=losses[-1])
    best = keep(net, how)
    kept = {
        "best": best,
        "dict": dict(net.state_dict()),
        "copy": net.state_dict().copy(),
        "deepcopy": copy.deepcopy(net.state_dict()),
    }
    written = load_from_file(net)
    lab.claim("alias", share_memory(net.state_dict(), net))

    for number in lab.steps(LATER_STEPS, "training on, with a rate that is too high"):
        losses.append(training.step(BEST_STEP + number))
        lab.log(BEST_STEP + number, loss=losses[-1])
        if number == 0:
            equal = {name: percent_equal(state, written) for name, state in kept.items()}
    lab.claim("best-kept", equal["best"], equals=0, unit="%", answers=True)
    lab.claim("shallow", [equal["dict"], equal["copy"]], equals=[0, 0], unit="%")
    lab.claim("deep", equal["deepcopy"], equals=100, unit="%")

    last_loss = losses[-1]
    best_loss = losses[BEST_STEP - 1]
    lab.claim("worse", last_loss / best_loss, at_least=1.5)
    loaded_best = loss_with(net, best, x, y)
    loaded_copy = loss_with(net, kept["deepcopy"], x, y)
    is_restored = [loaded_copy == best_loss, loaded_best == last_loss]
    lab.claim("restored", is_restored, equals=[True, True])
    bars = {"best step": best_loss, "deep copy, loaded": loaded_copy, "best, loaded": loaded_best}
    lab.bars("loss", bars)
    claim_saved_files(lab)
