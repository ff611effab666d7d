"""Put a checkpoint around what is cheap to compute and ends in a product of matrices.

A checkpoint keeps its input, drops what is saved inside, and computes it again in backward. What it drops is no gain if a
neighbour saves it anyway, and what it computes again is the price. Here a block is Linear, GELU, Linear, and keeps three
activations for backward: each Linear saves its input, the GELU saves its input.

- around the GELU alone: its input is kept as the input of the checkpoint, its output as the input of the Linear. Nothing is
  dropped.
- around the GELU and the Linear after it: the output of the GELU is dropped, and a GELU is cheap. The product is not repeated:
  a Linear saves no output, and the repetition stops as soon as it has what backward wants.
- around all three: two of three are dropped, and the first of forward's two products is computed again.

So choose activations, normalisations, dropouts, and resizing of pictures, together with the product that reads them.
Compilers and selective checkpointing follow the same rule: keep products, repeat what is done number by number.
## Predict
Without checkpoints a block keeps three activations. How many does it keep with a checkpoint around its GELU alone?
## Look for
- [none] without checkpoints a block keeps 3 activations
- [alone] with one around the activation a block keeps 3
- [with-linear] with one around the activation and the Linear after it a block keeps 2
- [block] with one around all three layers a block keeps 1
- [free] the first two repeat no product of matrices, the third one for each block
- [gradients] the gradients of all four are bitwise equal
## Try next
`--activation relu`: a ReLU saves its output, which the Linear saves as well: 2 a block without checkpoints. One around the ReLU
alone, a target that the source names, adds its input: it costs memory. So does one around a `sigmoid`. refutes: none
`--activation identity`: nothing to save and nothing to repeat between the Linears. refutes: none, alone
## Source
- "28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 8,
  https://www.toymoban.com/news/detail-808122.html: ReLU, Sigmoid, Tanh, up- and downsampling and products of a matrix and a
  vector are good targets.
- "Training tricks" (in Chinese, after https://github.com/owenliang/torch-thins), section "Activation checkpointing": it says
  that a sigmoid saves its input, but a sigmoid saves its output.
- Ours: the count of what each choice keeps and repeats.
"""

from typing import Literal

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from tuilab import Lab

ACTIVATIONS = {"gelu": nn.GELU, "relu": nn.ReLU, "sigmoid": nn.Sigmoid, "identity": nn.Identity}
CHOICES = {"none": (0, 0), "alone": (1, 2), "with-linear": (1, 3), "block": (0, 3)}  # first and last layer, the last exclusive


def forward(net, x, first, last):  # x (rows, width)
    for layers in net:
        y = layers[:first](x)
        y = checkpoint(layers[first:last], y, use_reentrant=False) if first < last else y
        x = x + layers[last:](y)
    return x


def step(net, x, first, last):
    forward(net, x, first, last).sum().backward()


def run(
    lab: Lab,
    blocks: int = 8,  # residual blocks of two Linears, 1..128
    width: int = 64,  # features, 1..4096
    rows: int = 1024,  # rows of the batch, 1..65536 (quick 256)
    activation: Literal["gelu", "relu", "sigmoid", "identity"] = "gelu",  # between the Linears
) -> None:
    device = lab.device()
    with device:
        make = ACTIVATIONS[activation]
        net = nn.Sequential(*[nn.Sequential(nn.Linear(width, width), make(), nn.Linear(width, width)) for _ in range(blocks)])
        x = torch.randn(rows, width)

    kept, products, gradients = {}, {}, {}
    for choice, (first, last) in CHOICES.items():
        lab.stage(f"checkpoints: {choice}")
        with lab.memory("step", arm=choice, timeline=True) as memory:
            step(net, x, first, last)
        kept[choice] = memory.saved_bytes / (4 * rows * width * blocks)
        gradients[choice] = [weight.grad for weight in net.parameters()]
        net.zero_grad()
        products[choice] = lab.count(step, net, x, first, last).flops / (2 * rows * width**2)
        net.zero_grad()
    lab.claim("none", kept["none"], equals=3)
    lab.claim("alone", kept["alone"], equals=3, answers=True)
    lab.claim("with-linear", kept["with-linear"], equals=2)
    lab.claim("block", kept["block"], equals=1)
    again = [products[choice] - products["none"] for choice in ("alone", "with-linear", "block")]
    lab.claim("free", again, equals=[0, 0, blocks])
    same = [torch.equal(*pair) for choice in CHOICES for pair in zip(gradients[choice], gradients["none"], strict=True)]
    lab.claim("gradients", all(same))
