"""Everything that a run can show.

A run with a loss that ends in Inf and NaN, two arms, memory, pictures, texts, and races with their controls in every repeat.

## Predict
How many times as long do two products take as one?
## Look for
- two products take at least 1.5 times as long as one
- a product and a copy of it differ by at least 1.3 times
- thirty steps at a learning rate of 3 end in nan
- the picture has a hole
- four GPUs are faster than one
## Try next
`--rate 0.1`: the loss falls, and the third claim is REFUTED.
## Source
Made for the tests.
"""

import math

import torch

from tuilab import Lab


def descend(lab: Lab, arm: str, rate: float) -> float:
    x = torch.tensor(10.0)
    for step in range(30):
        loss = (x**4).item()
        lab.log(step, arm=arm, loss=loss, x=x.item())
        x = x - rate * 4 * x**3
        lab.progress(step + 1, 30)
    return loss


def run(
    lab: Lab,
    rate: float = 3.0,  # learning rate of the bold arm, 0.0001..10
) -> None:
    torch.manual_seed(lab.repeat)
    lab.stage("descending")
    descend(lab, "careful", 0.0005)
    lab.claim("thirty steps at a learning rate of 3 end in nan", descend(lab, "bold", rate), equals=math.nan)

    lab.stage("memory")
    net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    for arm, rows in (("small batch", 64), ("large batch", 256)):
        with lab.memory("step", arm=arm, model=net, timeline=True):
            net(torch.rand(rows, 64)).sum().backward()

    lab.stage("pictures")
    board = torch.arange(64.0).reshape(8, 8)
    lab.image("ramp", board)
    board[3, 3] = math.nan
    lab.image("ramp with a hole", board, arm="holed")
    lab.claim("the picture has a hole", int(board.isnan().sum()), equals=1)
    lab.text("a table\n  one   1\n  two   2\nand a word in Greek: λόγος", title="a text")
    lab.text("no title, and a control character: \x1b[31m")
    lab.claim("four GPUs are faster than one", lacks="four GPUs")

    lab.stage("races")
    lab.claim("two products take at least 1.5 times as long as one", ratio="two/one", at_least=1.5)
    lab.claim("a product and a copy of it differ by at least 1.3 times", ratio="copy/one", at_least=1.3)
    a = torch.rand(128, 128)
    lab.race(one=lambda: a @ a, two=lambda: a @ a @ a, copy=lambda: a @ a, seconds=0.15)
