"""The same work twice, on a box that others use.

## Look for
- [slower] an arm is slower than itself
"""

import torch

from tuilab import Lab


def run(lab: Lab) -> None:
    a = torch.rand(128, 128)
    lab.claim_ratio("slower", "left/right", at_least=1.03)
    lab.race(left=lambda: a @ a, right=lambda: a @ a, same=0.0, seconds=0.3)
