"""A faster arm that computes something else.

## Look for
- [faster] the trick is twice as fast
"""

import torch

from tuilab import Lab


def run(lab: Lab) -> None:
    a = torch.rand(128, 128)
    lab.claim_ratio("faster", "product/trick", at_least=2)
    lab.race(product=lambda: a @ a, trick=lambda: a * a, same=1e-6, seconds=0.2)
