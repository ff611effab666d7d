"""Pad the vocabulary to a multiple of 64, and mask the padding.

GPT-2 has a vocabulary of 50257 tokens, an odd number. nanoGPT makes it 50304, a multiple of 64. Its
author reports that training became about 25 % faster. The new rows cost operations and mean
nothing. This lesson shows why the rows pay on a GPU, and how they change the loss.

Tensor Cores read 16 bytes at a time: 8 numbers of float16, 4 of float32, 16 of int8. If the rows
of a matrix have a multiple of 8 float16 numbers, each row begins at such a place. Old libraries
used no Tensor Cores for other sizes. Since cuBLAS 11 they do, with smaller and slower copies. So
on a GPU of today such a product takes 1.5 to 3 times as long. A CPU repacks its blocks in any
case.

Zeros that are appended to the inner dimension of a product change nothing. Zeros in an output
layer are classes of their own. An untrained net gives them a share of the probability. So the
loss is too large, and sampling can return a token that does not exist. Training pushes the share
to 0, because no label names them. A bias of -inf removes them from the start.

"16 bits take half the memory, so double the batch" is true for what grows with the batch. Weights,
gradients and both moments of Adam stay in float32, with 16 bytes for each parameter. Autocast adds
a copy of 2 bytes.

In practice: choose hidden sizes, batch and vocabulary as multiples of 64. If you pad the output
layer, give it a bias of -inf there, or cut the logits before the loss and before sampling:
`logits[..., :vocabulary]`.
## Predict
The output layer of an untrained net has 127 classes, and one class of zeros is added. What share of
the probability does this class get, in percent?
## Look for
- [aligned] of 1024 float16 rows all begin on 16 bytes with 1024 or 1032 numbers in a row, and 128
  with 1023 or 1025
- [zeros] a product of whole numbers that is padded from 127 on all sides and cut back is equal to
  the last bit
- [untrained] an untrained net gives one padded class next to 127 others 0.6 to 0.9 % of the
  probability
- [classes] 127 classes that are padded with zeros have a loss that is larger by 0.005 or more
- [masked] with a bias of -inf on the padding, loss and gradient are right to 1e-6, and the gradient
  of the padding is 0
- [learned] after 200 steps the losses of the padded net, without and with the bias, are at most
  0.001 from the loss of 127 classes
- [batch] twice the batch with autocast keeps as many bytes as the batch in float32, and 2 bytes
  for each weight behind the first layer
- [tensor-cores] on a GPU a float16 product of size n - 1 takes at least 1.5 times as long as a
  product of size n
- [units] on a GPU a product of size n in IEEE float32 takes at least 1.2 times as long as a float16
  product of size n - 1
- [vocabulary] on a GPU forward and backward of an output layer of 50257 classes in bfloat16 take at
  least 1.25 times as long as with 50304
- [cpu] on a CPU a float32 product of size n - 1 takes at most 1.5 times as long as a product of
  size n
## Try next
`--multiple 1`: nothing is padded. refutes: classes, untrained
`--multiple 64`: 128 bytes, which the largest GPUs like best. From 1025 to 1088 a fifth is added to
the operations, as the chart shows.
## Source
- "28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 22,
  https://www.toymoban.com/news/detail-808122.html: multiples of 8, half the memory, twice the
  batch.
- A. Karpathy, February 2023, on https://github.com/karpathy/nanoGPT: a vocabulary of 50304 instead
  of 50257 makes training about 25 % faster.
- Ours: where rows begin, what padding costs and breaks, and which bytes are not halved.
"""

from functools import partial
from statistics import median

import torch
import torch.nn.functional as F
from torch import nn

from tuilab import Lab

CLASSES = 127
STEPS = 200
TOKENS = 4096  # of the output layer of GPT-2 that is timed
HIDDEN = 768
SIZES = [*range(17, 64, 4), *range(65, 256, 12), *range(257, 1026, 48)]


def pad(x, multiple):  # (rows, columns), zeros at the end of both
    rows, columns = x.shape
    return F.pad(x, (0, -columns % multiple, 0, -rows % multiple))


def count_aligned_rows(width, device):
    """Return how many of 1024 float16 rows begin on 16 bytes."""
    aligned = 0
    for row in torch.empty(1024, width, dtype=torch.float16, device=device):
        if row.data_ptr() % 16 == 0:
            aligned += 1
    return aligned


def measure_rows(lab, device):
    aligned = []
    bars = {}
    for width in (1023, 1024, 1025, 1032):
        aligned.append(count_aligned_rows(width, device))
        bars[f"{width} float16"] = aligned[-1]
    lab.bars("of 1024 rows begin on 16 bytes", bars)
    lab.claim("aligned", aligned, equals=[128, 1024, 128, 1024])


def count_added_operations(lab, multiple):
    """Log by how much padding makes a product of n x n larger. Meta tensors compute nothing."""
    lab.axes("added_percent", x="size n", y="operations added by padding", log="xy")
    for n in lab.sweep(SIZES, "sizes"):
        x = torch.empty(n, n, device="meta")
        padded = pad(x, multiple)
        ratio = lab.count(torch.mm, padded, padded).flops / lab.count(torch.mm, x, x).flops
        lab.log(n, added_percent=100 * (ratio - 1))


def compare_products(lab, device, multiple):
    a = torch.randint(-8, 9, (127, 127)).float().to(device)
    b = torch.randint(-8, 9, (127, 127)).float().to(device)
    product = pad(a, multiple) @ pad(b, multiple)
    lab.claim("zeros", torch.equal(product[:127, :127], a @ b))


def measure_loss(hidden, weight, labels, bias=None):  # (rows, 64), (classes, 64), (rows,)
    """Return the loss, the gradient of the weight, and the probability of the padding."""
    weight = weight.detach().requires_grad_()
    logits = F.linear(hidden, weight, bias)  # (rows, classes)
    loss = F.cross_entropy(logits, labels)
    (gradient,) = torch.autograd.grad(loss, weight)
    padding = logits.softmax(1)[:, CLASSES:].sum(1).mean()
    return loss.item(), gradient, padding.item()


def train(hidden, weight, labels, bias=None):
    """Return the loss of each step of Adam."""
    weight = weight.clone().requires_grad_()
    optimizer = torch.optim.Adam([weight], lr=0.01)
    losses = []
    for _ in range(STEPS):
        loss = F.cross_entropy(F.linear(hidden, weight, bias), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses


def compare_vocabularies(lab, device, multiple):
    """Compare 127 classes with the same classes and padding, untrained and trained."""
    lab.stage("a padded vocabulary")
    lab.axes("excess", x="step of Adam", y="loss minus that of 127 classes", log="")
    lab.axes("loss", x="step of Adam", y="cross entropy", log="y")
    hidden = torch.randn(256, 64).to(device)
    weight = (0.05 * torch.randn(CLASSES, 64)).to(device)
    teacher = torch.randn(CLASSES, 64).to(device)
    labels = (hidden @ teacher.T).argmax(1)
    padded = pad(weight, multiple)
    is_class = torch.arange(len(padded), device=device) < CLASSES
    bias = torch.where(is_class, 0.0, -torch.inf)

    exact_loss, exact_gradient, _ = measure_loss(hidden, weight, labels)
    padded_loss, _, share = measure_loss(hidden, padded, labels)
    masked_loss, gradient, _ = measure_loss(hidden, padded, labels, bias)
    lab.claim("untrained", 100 * share, between=(0.6, 0.9), unit="%", answers=True)
    lab.claim("classes", padded_loss - exact_loss, at_least=0.005)
    loss_error = abs(masked_loss - exact_loss)
    gradient_error = (gradient[:CLASSES] - exact_gradient).abs().max().item()
    are_right = max(loss_error, gradient_error) <= 1e-6
    is_padding_still = (gradient[CLASSES:] == 0).all().item()
    lab.claim("masked", [are_right, is_padding_still], equals=[True, True])

    exact = train(hidden, weight, labels)
    curves = {
        "padded": train(hidden, padded, labels),
        "padded and masked": train(hidden, padded, labels, bias),
    }
    last = []
    for arm, losses in curves.items():
        for step in range(STEPS):
            lab.log(step, arm=arm, excess=losses[step] - exact[step], loss=losses[step])
        last.append(abs(losses[-1] - exact[-1]).item())
    lab.claim("learned", last, at_most=0.001)


def count_kept_bytes(lab, net, x, is_amp):
    with torch.autocast(x.device.type, torch.bfloat16, enabled=is_amp):
        return lab.count(net, x).saved_bytes


def compare_batches(lab, device):
    lab.stage("what 16 bits halve")
    x = torch.randn(512, 256).to(device)
    layers = []
    for _ in range(4):
        layers.append(nn.Linear(256, 256))
        layers.append(nn.ReLU())
    net = nn.Sequential(*layers).to(device)
    of_two = count_kept_bytes(lab, net, torch.cat([x, x]), is_amp=True)
    of_one = count_kept_bytes(lab, net, x, is_amp=False)
    lab.claim("batch", of_two - of_one, equals=2 * 3 * 256 * 256, unit="B")


def race_products(lab, device, n, lacks_units):
    lab.stage("timing products")
    on_gpu = device.type == "cuda"
    lacks_cpu = "--device cpu" if on_gpu else ""
    lab.claim_ratio("tensor-cores", "below/even", at_least=1.5, lacks=lacks_units)
    lab.claim_ratio("units", "float32/below", at_least=1.2, lacks=lacks_units)
    lab.claim_ratio("cpu", "below/even", at_most=1.5, lacks=lacks_cpu)
    dtype = torch.float16 if on_gpu else torch.float32
    sides = {"below": n - 1, "even": n, "above": n + 1, "eight": n + 8}
    functions = {}
    for arm, side in sides.items():
        x = torch.randn(side, side).to(device, dtype)
        functions[arm] = partial(torch.mm, x, x)
    if on_gpu:
        x = torch.randn(n, n).to(device)
        functions["float32"] = partial(torch.mm, x, x)
    with lab.precision("ieee"):
        race = lab.race(**functions, seconds=0.5)
    rates = {}
    for arm, side in sides.items():
        rates[f"n = {side}"] = 2 * side**3 / median(race.step_s[arm]) / 1e9
    name = str(dtype).removeprefix("torch.")
    lab.bars(f"rate of a product in {name}, GFLOP/s", rates)


def start_output_layer(device, classes):
    """Return a function that runs an output layer of GPT-2 forward and backward."""
    hidden = torch.randn(TOKENS, HIDDEN, device=device, dtype=torch.bfloat16, requires_grad=True)
    weight = torch.randn(classes, HIDDEN, device=device, dtype=torch.bfloat16, requires_grad=True)
    upstream = torch.randn(TOKENS, classes, device=device, dtype=torch.bfloat16)

    def step():
        logits = F.linear(hidden, weight)  # (TOKENS, classes)
        return torch.autograd.grad(logits, (hidden, weight), upstream)

    return step


def race_output_layers(lab, device, lacks):
    lab.stage("timing output layers")
    lab.claim_ratio("vocabulary", "gpt2/padded", at_least=1.25, lacks=lacks)
    lab.race(
        gpt2=partial(start_output_layer, device, 50257),
        padded=partial(start_output_layer, device, 50304),
        factories=True,
        seconds=0.5,
        lacks=lacks,
    )


def run(
    lab: Lab,
    size: int = 0,  # n of the products that race; 0 is 256 on a CPU and 8192 on a GPU, 0..32768
    multiple: int = 8,  # to which sizes are padded, 1..64
) -> None:
    device = lab.device()
    lacks_float16 = "a CUDA device"
    lacks_bfloat16 = lacks_float16
    n = size or 256
    if device.type == "cuda":
        lacks_float16 = lab.lacks_units(torch.float16)
        lacks_bfloat16 = lab.lacks_units(torch.bfloat16)
        n = size or 8192

    @lab.once
    def exact():
        compare_vocabularies(lab, device, multiple)
        count_added_operations(lab, multiple)
        measure_rows(lab, device)
        compare_products(lab, device, multiple)
        compare_batches(lab, device)

    race_products(lab, device, n, lacks_float16)
    race_output_layers(lab, device, lacks_bfloat16)
