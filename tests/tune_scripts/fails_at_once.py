"""Fail before the first step, as a script does whose data are not there."""

import torch

torch.manual_seed(0)
print("loading data")
torch.load("no-such-folder/data.pt")
