"""Checkpoint layers with a large, cheap output and the layer that reads it.

A checkpoint keeps its input, drops the tensors that are saved inside, and computes them again in
backward. Two questions decide whether a checkpoint is useful. Does a layer next to the checkpoint
save the same tensor anyway? Then nothing is gained. Does the inside contain matrix products? Then
backward computes them again, and takes longer.

The block of this lesson is Linear, GELU, Linear, and keeps three activations: each Linear saves its
input, and the GELU saves its input.

- A checkpoint around the GELU alone drops nothing. The Linear after it saves the output of the
  GELU, and the checkpoint keeps the input.
- A checkpoint around the GELU and the Linear after it drops the output of the GELU. No product is
  repeated: a Linear saves its input and not its output, so the repetition stops before this Linear.
- A checkpoint around all three layers drops two of three activations. It repeats the first product.

The source names ReLU, sigmoid, tanh, upsampling, downsampling, and products with few inputs as
targets. ReLU, sigmoid and tanh save their output, which the Linear after them also saves. So a
checkpoint around such a layer alone costs memory. Upsampling is the best target: its output is four
times its input, and the layer after it saves this output. So the checkpoint must contain both. The
output of downsampling is small, so there is little to drop. A Linear from few features to many has
a large output, and its product is cheap.

Another source computes sigmoid((x - 2)²), and wants to compute x - 2 again instead of keeping it. A
checkpoint around x - 2 alone gains nothing, because the square saves that difference. The
checkpoint has to contain the square. Then the checkpoint keeps x in place of x - 2, which is a gain
only if x is in memory anyway.

In practice: include the layer that reads the large activation, and end the checkpoint after it. Put
activation functions, norms, dropout and upsampling into checkpoints. A large matrix product is free
only as the last operator of a checkpoint.
## Predict
For backward, an upsampling by 2 with a convolution keeps 4 times its input. How many times its
input does it keep with a checkpoint around the upsampling alone?
## Look for
- [none] without checkpoints a block of Linear, GELU, Linear keeps 3 activations for backward
- [alone] with a checkpoint around the GELU alone a block of Linear, GELU, Linear keeps 3
  activations
- [with-linear] with a checkpoint around GELU and last Linear a block of Linear, GELU, Linear keeps
  2 activations
- [block] with a checkpoint around all three layers a block of Linear, GELU, Linear keeps 1
  activation
- [free] checkpoints around a GELU, or a GELU and Linear, repeat no product; around Linear, GELU and
  Linear they repeat 1 for each block
- [gradients] the gradients are bitwise equal with each choice of checkpoints and without
  checkpoints
- [saves-output] a block of Linear, ReLU, Linear keeps 2 activations, and 3 with a checkpoint around
  the ReLU; so with sigmoid or tanh
- [upsampling] an upsampling by 2 with a convolution keeps 4 times its input, 5 times with a
  checkpoint around the upsampling, and 1 with both
- [downsampling] an average pooling by 2 with a convolution keeps 1.25 times its input, and 1 time
  with both in a checkpoint
- [difference] sigmoid((x - 2)²) adds 2 tensors to memory, 2 with x - 2 in a checkpoint, and 1 with
  the square in it as well
- [few-inputs] a checkpoint around Linear(4, 64), GELU and Linear(64, 64) keeps 4 of 132 numbers a
  row, and repeats 1/17 of their products
## Try next
`--activation relu`: a ReLU saves its output, which the Linear after it also saves. So a block keeps
2 activations without checkpoints. refutes: none
`--activation identity`: there is nothing to save and nothing to repeat between the Linears.
refutes: none, alone
## Source
- "28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 8,
  https://www.toymoban.com/news/detail-808122.html: the list of targets.
- "Training tricks" (in Chinese, after https://github.com/owenliang/torch-thins), section
  "Activation checkpointing": x - 2. It says that a sigmoid saves its input, but a sigmoid saves
  its output.
- Ours: the bytes that each choice keeps, and the products that it repeats.
"""

from typing import Literal

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from tuilab import Lab

ACTIVATIONS = {
    "gelu": nn.GELU,
    "relu": nn.ReLU,
    "sigmoid": nn.Sigmoid,
    "tanh": nn.Tanh,
    "identity": nn.Identity,
}
CHOICES = {  # the layers inside of the checkpoint: the first, and the first behind it
    "none": (0, 0),
    "alone": (1, 2),
    "with-linear": (1, 3),
    "block": (0, 3),
}


def forward_layers(layers, x, first, end):
    y = layers[:first](x)
    if first < end:
        y = checkpoint(layers[first:end], y, use_reentrant=False)
    return layers[end:](y)


def forward(net, x, first, end):  # (rows, width)
    for block in net:
        x = x + forward_layers(block, x, first, end)
    return x


def step(net, x, first, end):
    forward(net, x, first, end).sum().backward()


def build_net(blocks, width, activation):
    net = nn.Sequential()
    for _ in range(blocks):
        block = nn.Sequential(
            nn.Linear(width, width), ACTIVATIONS[activation](), nn.Linear(width, width)
        )
        net.append(block)
    return net


def gradients_of(net):
    gradients = []
    for weight in net.parameters():
        gradients.append(weight.grad)
    return gradients


def claim_choices(lab, net, x):
    unit = x.nbytes * len(net)  # an activation of each block
    flops_of_product = 2 * x.shape[0] * x.shape[1] ** 2
    kept = {}
    products = {}
    gradients = {}
    for choice, (first, end) in CHOICES.items():
        lab.stage(f"checkpoints: {choice}")
        net.zero_grad()
        with lab.memory("step", arm=choice, timeline=True) as memory:
            step(net, x, first, end)
        kept[choice] = memory.saved_bytes / unit
        gradients[choice] = gradients_of(net)
        net.zero_grad()
        products[choice] = lab.count(step, net, x, first, end).flops / flops_of_product
    lab.bars("activations that a block keeps for backward", kept)
    lab.claim("none", kept["none"], equals=3)
    lab.claim("alone", kept["alone"], equals=3)
    lab.claim("with-linear", kept["with-linear"], equals=2)
    lab.claim("block", kept["block"], equals=1)
    repeated = []
    for choice in ("alone", "with-linear", "block"):
        repeated.append(products[choice] - products["none"])
    lab.claim("free", repeated, equals=[0, 0, len(net)])
    same = []
    for choice in CHOICES:
        for gradient, plain in zip(gradients[choice], gradients["none"], strict=True):
            same.append(torch.equal(gradient, plain))
    lab.claim("gradients", all(same))


def count_kept(lab, layers, x, first, end):
    """Return the bytes that layers keep for backward, in units of their input."""
    return lab.count(forward_layers, layers, x, first, end).saved_bytes / x.nbytes


def claim_outputs(lab, device):
    """Count a block with layers that save their output."""
    x = torch.randn(8, 16, device=device)
    kept = []
    for activation in ("relu", "sigmoid", "tanh"):
        (block,) = build_net(1, 16, activation).to(device)
        without = count_kept(lab, block, x, 0, 0)
        alone = count_kept(lab, block, x, 1, 2)
        kept.append([without, alone])
    lab.claim("saves-output", kept, equals=[[2, 3]] * 3)


def claim_resampling(lab, device):
    lab.stage("upsampling and downsampling")
    x = torch.randn(2, 8, 16, 16, device=device, requires_grad=True)  # (pictures, channels, h, w)
    convolution = nn.Conv2d(8, 8, 3, padding=1)
    upsampling = nn.Upsample(scale_factor=2, mode="bilinear")
    layers = nn.Sequential(upsampling, convolution).to(device)
    kept = []
    for end in (0, 1, 2):  # no checkpoint, around the upsampling, around both
        kept.append(count_kept(lab, layers, x, 0, end))
    lab.claim("upsampling", kept, equals=[4, 5, 1], answers=kept[1])

    layers = nn.Sequential(nn.AvgPool2d(2), convolution).to(device)
    kept = []
    for end in (0, 2):
        kept.append(count_kept(lab, layers, x, 0, end))
    lab.claim("downsampling", kept, equals=[1.25, 1])


def difference(x):
    return x - 2


def squared_difference(x):
    return difference(x).square()


def chain(x, choice):  # (1024,)
    if choice == "difference":
        return checkpoint(difference, x, use_reentrant=False).square().sigmoid()
    if choice == "square":
        return checkpoint(squared_difference, x, use_reentrant=False).sigmoid()
    return squared_difference(x).sigmoid()


def claim_difference(lab, device):
    x = torch.randn(1024, device=device, requires_grad=True)
    held = []
    for choice in ("none", "difference", "square"):
        held.append(lab.count(chain, x, choice).live_bytes / x.nbytes)
    lab.claim("difference", held, equals=[2, 2, 1])


def claim_few_inputs(lab, device):
    lab.stage("a product with few inputs")
    layers = nn.Sequential(nn.Linear(4, 64), nn.GELU(), nn.Linear(64, 64)).to(device)
    x = torch.randn(8, 4, device=device, requires_grad=True)
    plain = lab.count(forward_layers, layers, x, 0, 0, backward=True)
    ckpt = lab.count(forward_layers, layers, x, 0, 3, backward=True)
    numbers = []
    for counted in (plain, ckpt):
        numbers.append(counted.saved_bytes / 4 / len(x))
    repeated = (ckpt.backward.flops - plain.backward.flops) / plain.flops
    lab.claim("few-inputs", [*numbers, repeated], equals=[132, 4, 1 / 17], tolerance=1e-12)


def run(
    lab: Lab,
    blocks: int = 8,  # residual blocks of two Linears, 1..128
    width: int = 64,  # features, 1..4096
    rows: int = 1024,  # rows of the batch, 1..65536 (quick 256)
    activation: Literal["gelu", "relu", "sigmoid", "tanh", "identity"] = "gelu",  # in the block
) -> None:
    device = lab.device()
    lab.axes("live_bytes", x="tensors created and freed", y="memory in use")
    net = build_net(blocks, width, activation).to(device)
    x = torch.randn(rows, width).to(device)
    claim_choices(lab, net, x)
    claim_outputs(lab, device)
    claim_resampling(lab, device)
    claim_difference(lab, device)
    claim_few_inputs(lab, device)
