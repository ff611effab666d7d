"""Leave out inplace=True in ReLU: the peak of a training step stays the same.

Many published nets have `nn.ReLU(inplace=True)` after each convolution, to save memory. The idea is
that each layer then needs one tensor instead of two. But a step keeps only the tensors that
backward needs. A convolution keeps its input, and a ReLU keeps its output. Neither layer keeps the
output of the convolution, so this tensor is freed as soon as the ReLU is done. In place or not, one
tensor for each pair of layers stays. A batch norm between the two layers keeps its input. So a net
with norms keeps two tensors for each convolution, in place or not.

While a ReLU runs, its input and its output are both alive. In place, they are one tensor. This
lowers the peak of the forward by one tensor for the whole net, not by one for each layer. But the
peak of a training step comes later, when the backward has all kept tensors and adds gradients. In a
forward without gradients nothing is saved either, because each convolution needs its input and its
output at once. Other activations differ from ReLU. The derivative of SiLU needs its input, so
autograd copies the input before it is overwritten, and even the forward saves nothing. LeakyReLU,
ELU, SELU and CELU keep their input, but in place they keep their output instead. With these
activations, `inplace=True` saves one tensor for each layer.

The ReLU in place does help if your code holds the output of each convolution, for example in a
variable for each layer. But you can also reuse one variable, and then all these tensors but one are
freed.

Writing in place has risks. If autograd has kept the tensor, backward raises an error: a sigmoid
before the ReLU keeps its output. If only your own code uses the tensor again, there is no error. A
skip connection then adds the output of the ReLU instead of its input, and a ReLU as the first layer
overwrites the batch.

In practice: write `nn.ReLU()` and `nn.SiLU()` without `inplace=True`, and assign the result of each
layer to one variable, as in `x = F.relu(x)`. To lower the peak, use checkpointing (ckpt-segments)
or a smaller batch.
## Predict
A net has eight convolutions with a ReLU each, and each activation takes 0.5 MiB. By how many MiB
does inplace=True lower the peak of a training step?
## Look for
- [kept] with inplace=True, 8 convolutions with a ReLU each keep as many bytes for backward as
  without
- [forward] with inplace=True, the peak of a forward that keeps tensors for backward is one
  activation lower, for 2, 4 and 8 convolutions alike
- [step] with inplace=True, the peak of forward and backward of 8 convolutions with a ReLU each is
  the same to the byte as without
- [no-grad] with inplace=True, the peak of a forward under no_grad is the same to the byte as
  without
- [norm] with inplace=True and a batch norm after each convolution, the peak of forward and backward
  is the same to the byte as without
- [silu] with inplace=True, a net with SiLU has the same peak of forward and of the whole step to
  the byte as without
- [gradients] with inplace=True, the gradients are the same bit for bit as without
- [names] if the forward holds the output of each of 8 convolutions, inplace=True lowers its peak by
  8 activations
- [one-name] without inplace=True, the peak of a forward is 7 activations lower if it reuses one
  variable than if it holds 8 convolution outputs
- [sigmoid] a ReLU in place after a sigmoid raises a RuntimeError in backward
- [skip] relu(x) + x with a ReLU in place adds relu(x) instead of x, without an error
- [input] a ReLU in place as the first layer sets the negative numbers of the batch to 0
## Try next
`--no-inplace`: all layers write a new tensor, so nothing is saved and nothing is overwritten.
refutes: forward, names, sigmoid, skip, input
`--act silu`: autograd keeps the input of each SiLU, and copies it if the SiLU is in place.
refutes: forward, names, one-name
## Source
PyTorch documentation, "Autograd mechanics", "In-place operations with autograd",
https://docs.pytorch.org/docs/stable/notes/autograd.html: it discourages their use in most cases,
because they save little memory. Ours: the counts, the names and the skip connection.
"""

from typing import Literal

import torch
from torch import nn

from tuilab import Lab

BLOCKS = 8
CHANNELS = 16
SHAPE = (8, CHANNELS, 32, 32)  # of the batch and of each activation: 512 KiB
ACTIVATION = 8 * CHANNELS * 32 * 32 * 4  # bytes
ACTS = {"relu": nn.ReLU, "silu": nn.SiLU}


def build_net(blocks, act, inplace, device, norm=False):
    torch.manual_seed(0)
    layers = []
    for _ in range(blocks):
        layers.append(nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1))
        if norm:
            layers.append(nn.BatchNorm2d(CHANNELS))
        layers.append(ACTS[act](inplace=inplace))
    return nn.Sequential(*layers).to(device)


def hold_all(net, x):
    """Run the layers like a forward that has a name for the output of each convolution."""
    held = []
    for layer in net:
        if isinstance(layer, nn.Conv2d):
            x = layer(x)
            held.append(x)
        else:
            x = layer(x)
    return x


def add_skip(relu, x):
    """Return relu(x) + x; a ReLU in place has overwritten x before the sum."""
    return relu(x) + x


def count_step(lab, net, x):
    """Return the bytes that a forward keeps, and the peaks of forward and step in bytes."""
    counted = lab.count(net, x, backward=True)
    peak = max(counted.peak_bytes, counted.backward.peak_bytes)
    return counted.saved_bytes, counted.peak_bytes, peak


def gradients(net, x):
    net.zero_grad()
    net(x).square().mean().backward()
    return torch.cat([weight.grad.flatten() for weight in net.parameters()])


def log_step(lab, nets, x):
    lab.axes("live_bytes", x="births and deaths of tensors", y="live bytes of a training step")
    for arm, net in nets.items():
        with lab.memory("step", arm=arm, model=net, timeline=True):
            gradients(net, x)


def claim_peaks(lab, act, inplace, x):
    saved_on_forward = []
    for blocks in lab.sweep([2, 4, BLOCKS], "convolutions"):
        plain = count_step(lab, build_net(blocks, act, False, x.device), x)
        written = count_step(lab, build_net(blocks, act, inplace, x.device), x)
        saved_on_forward.append((plain[1] - written[1]) / ACTIVATION)
    lab.claim("forward", saved_on_forward, equals=[1, 1, 1])
    lab.claim("kept", written[0] - plain[0], equals=0, unit="B")
    less_mib = (plain[2] - written[2]) / 2**20
    lab.claim("step", less_mib, equals=0, unit="MiB", answers=True)

    plain = count_step(lab, build_net(BLOCKS, act, False, x.device, norm=True), x)
    written = count_step(lab, build_net(BLOCKS, act, inplace, x.device, norm=True), x)
    lab.claim("norm", plain[2] - written[2], equals=0, unit="B")
    plain = count_step(lab, build_net(BLOCKS, "silu", False, x.device), x)
    written = count_step(lab, build_net(BLOCKS, "silu", inplace, x.device), x)
    lab.claim("silu", [plain[1] - written[1], plain[2] - written[2]], equals=[0, 0], unit="B")


def claim_other_peaks(lab, plain, written, x):
    with torch.no_grad():
        plain_peak = lab.count(plain, x).peak_bytes
        written_peak = lab.count(written, x).peak_bytes
    lab.claim("no-grad", plain_peak - written_peak, equals=0, unit="B")
    plain_peak = lab.count(hold_all, plain, x).peak_bytes
    written_peak = lab.count(hold_all, written, x).peak_bytes
    lab.claim("names", (plain_peak - written_peak) / ACTIVATION, equals=BLOCKS)
    one_name_peak = lab.count(plain, x).peak_bytes
    lab.claim("one-name", (plain_peak - one_name_peak) / ACTIVATION, equals=BLOCKS - 1)
    lab.claim("gradients", torch.equal(gradients(plain, x), gradients(written, x)))


def claim_risks(lab, inplace, x):
    relu = nn.ReLU(inplace=inplace)
    behind_sigmoid = nn.Sequential(nn.Conv2d(CHANNELS, CHANNELS, 1), nn.Sigmoid(), relu)
    error = lab.raises(gradients, behind_sigmoid.to(x.device), x)
    lab.claim("sigmoid", error.partition(":")[0], equals="RuntimeError")

    positive = x.clamp(min=0)
    summed = add_skip(relu, x.clone())
    is_equal = [torch.equal(summed, positive + positive), torch.equal(summed, positive + x)]
    lab.claim("skip", is_equal, equals=[True, False])

    batch = x.clone()
    relu(batch)
    lab.claim("input", torch.equal(batch, positive))


def run(
    lab: Lab,
    act: Literal["relu", "silu"] = "relu",  # the activation behind each convolution
    inplace: bool = True,  # the second net writes in place
) -> None:
    x = torch.randn(SHAPE).to(lab.device())
    plain = build_net(BLOCKS, act, False, x.device)
    written = build_net(BLOCKS, act, inplace, x.device)
    log_step(lab, {"inplace=False": plain, f"inplace={inplace}, second net": written}, x)
    claim_peaks(lab, act, inplace, x)
    lab.stage("other peaks")
    claim_other_peaks(lab, plain, written, x)
    lab.stage("risks")
    claim_risks(lab, inplace, x)
