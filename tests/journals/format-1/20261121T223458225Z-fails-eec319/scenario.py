"""A run of every kind of record that fails at its end.

It prints, shows a text, a picture and a file, measures memory, calls a function in a process of its own and diverges.

## Predict
After how many steps is the loss no longer finite?

## Look for
- the loss is finite after 20 steps
- three is one and two
- there is a second GPU

## Try next
`--rate 0.5` converges.

## Source
Ours.
"""

import sys

import torch

from tuilab import Lab


def double(lab: Lab, number: int) -> int:
    lab.log(0, number=number)
    return 2 * number


def run(
    lab: Lab,
    rate: float = 20.0,  # of the descent, 0.01..100
) -> None:
    lab.stage("showing")
    print("to stdout: 1 2 3")
    print("to stderr: \x1b[31mred\x1b[0m", file=sys.stderr)
    lab.text("a  b\n1  2", title="a table")
    lab.image("a ramp", torch.arange(12.0).reshape(3, 4))
    lab.artifact("note.txt", "kept with the run\n")
    lab.claim("there is a second GPU", lacks="a second GPU")
    lab.claim("three is one and two", 1 + 2, equals=3)
    with lab.memory("square", arm="one") as memory:
        torch.ones(100, 100).square()
    lab.log(0, peak_bytes=memory.peak_bytes or 0)
    print(lab.arm("doubled", double, 21, env={"OMP_NUM_THREADS": "1"})())

    lab.stage("descending")
    x = torch.tensor(1.0)
    for step in range(30):
        x = x - rate * 2 * x
        lab.log(step, loss=(x * x).item())
        lab.progress(step + 1, 30)
    if not torch.isfinite(x * x):
        raise ValueError("the loss is not finite")
    lab.claim("the loss is finite after 20 steps", True)
