"""A loss that overflows.

## Look for
- [nan] inf minus inf is nan
- [below] the loss ends below one
- [number] every loss is a number
"""

import math

import torch

from tuilab import Lab


def run(lab: Lab) -> None:
    x = torch.tensor(2.0)
    for step in range(12):
        lab.log(step, loss=x, step_size=1.0 / (step + 1))
        lab.progress(step + 1, 12)
        x = x * x if step < 8 else x - x
    lab.claim("nan", x, equals=math.nan)
    lab.claim("below", x, at_most=1)
    lab.claim("number", [x.item(), 2.0], between=(-1e308, 1e308))
