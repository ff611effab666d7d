"""A faster arm that computes something else."""

import torch

from tuilab import Lab


def run(lab: Lab) -> None:
    a = torch.rand(128, 128)
    lab.claim("the trick is twice as fast", ratio="product/trick", at_least=2)
    lab.race(product=lambda: a @ a, trick=lambda: a * a, same=1e-6, seconds=0.2)
