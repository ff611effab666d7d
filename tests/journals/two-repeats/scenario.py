"""The same work twice, on a box that others use."""

import torch

from tuilab import Lab


def run(lab: Lab) -> None:
    a = torch.rand(128, 128)
    lab.claim("an arm is slower than itself", ratio="left/right", at_least=1.03)
    lab.race(left=lambda: a @ a, right=lambda: a @ a, same=0.0, seconds=0.3)
