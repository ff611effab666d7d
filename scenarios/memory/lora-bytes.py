"""Use LoRA to save optimizer state: it saves no activation memory and little time.

LoRA freezes the weight W of a linear layer, and trains two thin matrices A and B next to it. The
layer then returns x W + x A B. The rank is the width of x A. With rank 8 and layers of width 256, A
and B together have 1/16 of the numbers of W. Gradients and the two moments of Adam exist only for
trained weights, so they shrink by the same factor. This is the memory that LoRA saves, and it often
decides if a large model fits.

The tensors that autograd keeps for backward do not shrink. The gradient of A needs the input x of
the layer, as the gradient of W does in full training. The gradient of B needs x A as well. Both
tensors grow with the batch. If a step with LoRA runs out of memory, use fewer tokens or
checkpointing; a smaller rank hardly helps. If A is frozen as well (LoRA-FA), the layer keeps only x
A. Dropout in front of A is usual, and autograd also keeps the mask of the dropout.

The step is not much faster either. A layer has three matrix products: the output, the gradient of
the input, and the gradient of W. LoRA leaves out only the gradient of W. So a step has at most 1.5
times fewer operations, and the small products with A and B take extra time. After training, A B can
be added to W, and the layer is as cheap as before.

B begins with zeros, so at first the net gives the output of the frozen weights. Because B is 0, the
gradient of A is 0 in the first step.

In practice: full training with Adam in float32 needs 16 bytes for each weight, plus the kept
activations. LoRA needs little more than 4 bytes for each frozen weight in float32, or 2 in
bfloat16. If the activations need more than the rest, use checkpointing or shorter sequences before
you use LoRA. Merge A B into W before you deploy.
## Predict
LoRA of rank 8 trains 1/16 as many numbers as full training. How many percent of the bytes that full
training keeps for backward does LoRA keep?
## Look for
- [trained] in 4 layers of width 256, LoRA of rank 8 trains 16,384 numbers instead of 262,144
- [adam] in 4 layers of width 256, LoRA of rank 8 needs 196,608 bytes for gradients and Adam's
  moments instead of 3,145,728
- [kept] LoRA of rank 8 keeps 101.6 % of the bytes that full training keeps for backward
- [total] for 512 tokens, weights, gradients, Adam's moments and kept tensors take 5.3125 MiB with
  LoRA of rank 8, instead of 8 MiB
- [forward] the forward with LoRA of rank 8 takes 1.0625 times the floating-point operations of the
  plain net
- [work] forward and backward with LoRA of rank 8 take 1.3 to 1.5 times fewer operations than full
  training
- [dropout] dropout in front of A raises the bytes that LoRA keeps for backward by at least 5 %
- [frozen-a] with A frozen, LoRA of rank 8 keeps at most 60 % of the bytes that full training keeps
  for backward
- [start] before the first step, the net with LoRA gives the output of the net without LoRA bit for
  bit
- [first-step] in the first step the gradients of all A are 0, and those of all B are not
- [merged] with A B added to W, the net takes as many operations as the plain net, and gives the
  output of LoRA to 1e-5
## Try next
`--rank 128`: A and B together are as large as W, so LoRA only adds bytes and operations.
refutes: trained, adam, kept, total, forward, work, frozen-a
`--tokens 4096`: the kept bytes are eight times as many. With LoRA of rank 8 the total is 2.25 MiB
smaller, but full training now needs 36 MiB. refutes: total
## Source
- E. Hu and others, "LoRA: Low-Rank Adaptation of Large Language Models",
  https://arxiv.org/abs/2106.09685.
- "Memory Inefficiency for LoRA & DoRA during fine-tuning",
  https://github.com/huggingface/peft/issues/2196: more memory for activations than in full
  training. Ours: the counts.
"""

import copy

import torch
import torch.nn.functional as F
from torch import nn

from tuilab import Lab

LAYERS = 4
WIDTH = 256


class LoraLinear(nn.Module):
    """A frozen linear layer with a trained update of a low rank."""

    def __init__(self, linear, rank, dropout):
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.dropout = nn.Dropout(dropout)
        self.a = nn.Parameter(torch.randn(rank, WIDTH) / WIDTH**0.5)
        self.b = nn.Parameter(torch.zeros(WIDTH, rank))

    def forward(self, x):  # (tokens, width)
        low = F.linear(self.dropout(x), self.a)  # (tokens, rank)
        return self.linear(x) + F.linear(low, self.b)

    @torch.no_grad()
    def merge(self):
        """Return one plain layer with the same output."""
        merged = copy.deepcopy(self.linear)
        merged.weight += self.b @ self.a
        return merged


def build_net(device):
    layers = []
    for _ in range(LAYERS):
        layers.append(nn.Linear(WIDTH, WIDTH, bias=False))
        layers.append(nn.GELU())
    return nn.Sequential(*layers).to(device)


def add_lora(net, rank, dropout=0.0):
    """Return a copy of the net with LoRA in each linear layer."""
    layers = []
    for layer in copy.deepcopy(net):
        if isinstance(layer, nn.Linear):
            layer = LoraLinear(layer, rank, dropout).to(layer.weight.device)
        layers.append(layer)
    return nn.Sequential(*layers)


def lora_layers(net):
    return [layer for layer in net if isinstance(layer, LoraLinear)]


def merge_lora(net):
    layers = []
    for layer in net:
        if isinstance(layer, LoraLinear):
            layer = layer.merge()
        layers.append(layer)
    return nn.Sequential(*layers)


def train_step(net, x):
    """Make one step of Adam, and return the optimizer."""
    trained = [weight for weight in net.parameters() if weight.requires_grad]
    optimizer = torch.optim.Adam(trained, lr=1e-3)
    net(x).square().mean().backward()
    optimizer.step()
    return optimizer


def sum_bytes(tensors):
    return sum(tensor.nbytes for tensor in tensors)


def count_trained(net):
    return sum(weight.numel() for weight in net.parameters() if weight.requires_grad)


def count_training_bytes(net, x):
    """Return the bytes of the gradients and of the moments of Adam after a step."""
    net = copy.deepcopy(net)
    optimizer = train_step(net, x)
    tensors = []
    for weight, state in optimizer.state.items():
        tensors += [weight.grad, state["exp_avg"], state["exp_avg_sq"]]
    return sum_bytes(tensors)


def count_kept_bytes(lab, net, x, name):
    with lab.memory("forward", arm=name, model=net) as memory:
        net(x)
    return memory.saved_bytes


def log_totals(lab, nets, tokens, device):
    """Return the bytes of weights, gradients, Adam and kept tensors, for each net."""
    lab.axes("total_bytes", x="tokens", y="weights, gradients, Adam, kept tensors")
    totals = {}
    for size in lab.sweep([tokens // 8, tokens // 4, tokens // 2, tokens], "numbers of tokens"):
        x = torch.randn(size, WIDTH).to(device)
        for name, net in nets.items():
            weights = sum_bytes(net.parameters())
            training = count_training_bytes(net, x)
            kept = count_kept_bytes(lab, net, x, name)
            totals[name] = weights + training + kept
            lab.log(size, arm=name, total_bytes=totals[name])
    return totals


def claim_bytes(lab, full, lora, x):
    trained = [count_trained(lora), count_trained(full)]
    lab.claim("trained", trained, equals=[16_384, 262_144])
    training = [count_training_bytes(lora, x), count_training_bytes(full, x)]
    lab.claim("adam", training, equals=[196_608, 3_145_728], unit="B")
    kept = [count_kept_bytes(lab, lora, x, "LoRA"), count_kept_bytes(lab, full, x, "full")]
    percent = 100 * kept[0] / kept[1]
    lab.claim("kept", percent, equals=101.5625, unit="%", answers=True)
    return kept


def claim_variants(lab, full, rank, kept, x):
    with_dropout = add_lora(full, rank, dropout=0.1)
    dropout_kept = count_kept_bytes(lab, with_dropout, x, "LoRA with dropout")
    lab.claim("dropout", dropout_kept / kept[0], at_least=1.05)
    frozen_a = add_lora(full, rank)
    for layer in lora_layers(frozen_a):
        layer.a.requires_grad_(False)
    frozen_kept = count_kept_bytes(lab, frozen_a, x, "LoRA with A frozen")
    lab.claim("frozen-a", frozen_kept / kept[1], at_most=0.6)


def claim_work(lab, full, lora, x):
    plain = lab.count(full, x, backward=True)
    counted = lab.count(lora, x, backward=True)
    lab.claim("forward", counted.flops / plain.flops, equals=1.0625)
    plain_work = plain.flops + plain.backward.flops
    work = counted.flops + counted.backward.flops
    lab.claim("work", plain_work / work, between=(1.3, 1.5))


def claim_steps(lab, full, lora, x):
    lab.claim("start", torch.equal(full(x), lora(x)))
    lora = copy.deepcopy(lora)
    train_step(lora, x)
    a_norms = torch.stack([layer.a.grad.norm() for layer in lora_layers(lora)])
    b_norms = torch.stack([layer.b.grad.norm() for layer in lora_layers(lora)])
    is_zero = [a_norms.max().item() == 0, b_norms.min().item() == 0]
    lab.claim("first-step", is_zero, equals=[True, False])

    merged = merge_lora(lora)
    merged_work = lab.count(merged, x).flops
    plain_work = lab.count(full, x).flops
    output = lora(x)
    distance = (merged(x) - output).norm() / output.norm()
    lab.claim("merged", [merged_work / plain_work, distance.item() <= 1e-5], equals=[1, True])


def run(
    lab: Lab,
    rank: int = 8,  # of A and B, 1..256
    tokens: int = 512,  # in the batch, 64..8192
) -> None:
    device = lab.device()
    full = build_net(device)
    lora = add_lora(full, rank)
    totals = log_totals(lab, {"full": full, "LoRA": lora}, tokens, device)
    mib = [totals["LoRA"] / 2**20, totals["full"] / 2**20]
    lab.claim("total", mib, equals=[5.3125, 8], unit="MiB")

    x = torch.randn(tokens, WIDTH).to(device)
    lab.stage("bytes")
    kept = claim_bytes(lab, full, lora, x)
    claim_variants(lab, full, rank, kept, x)
    lab.stage("operations and steps")
    claim_work(lab, full, lora, x)
    claim_steps(lab, full, lora, x)
