"""Save only the first product of a block in its checkpoint: half the memory.

A checkpoint drops the tensors that its block saves for backward, and computes the block again. To
repeat a matrix product is expensive; to repeat a norm or an activation is cheap. A selective
checkpoint asks a policy, which is a function of yours, about each operator. Results that the policy
saves go to a cache, and the repetition reads them from the cache. All other operators run again.

The block of this lesson is LayerNorm, Linear to four times the width, GELU, and Linear back.
Without a checkpoint the block keeps ten activations of its width. Two are its input and the output
of the norm. The input and the output of the GELU take four each. The result of the first product is
four activations large, and that of the second product one. Backward does not need the result of the
second product, so saving it wastes memory. The repetition stops before the second product anyway.

Two properties surprise users. Saved results are not saved tensors of autograd, so hooks for saved
tensors do not see the cache. To see it, measure the bytes in use. A policy that names an operator
which the block never calls saves nothing, without an error. A Linear with a bias calls `addmm`, not
`mm`.

Freed memory allows a larger batch. A GPU then does more work for each operator that it starts, so
it waits less. If a small batch already keeps the GPU busy, the gain is small, but the arithmetic is
still repeated.

In practice: pass `use_reentrant=False` and
`context_fn=partial(create_selective_checkpoint_contexts, policy)` to `checkpoint`. Save the
products whose results backward needs, but not the last product of a block. Print the operators of
one step to learn their names. If memory is more important than time, use full checkpoints.
## Predict
Without a checkpoint a block keeps ten activations of its width, and in a full checkpoint only its
input. How many activations does it keep if a policy saves the results of both products?
## Look for
- [plain] after forward, a transformer MLP block without a checkpoint holds 10 activations of its
  width, to 1 %
- [full] in a full checkpoint, the MLP block holds 1 activation
- [products] with a policy that saves the results of both of its products, the MLP block holds 6
  activations
- [first] with a policy that saves the result of its first product only, the MLP block holds 5
  activations
- [repeated] backward repeats one product of each block in a full checkpoint, and none without one
  or if a policy saves the first product
- [cheap] backward computes each norm and each GELU again in full checkpoints, and if a policy saves
  products
- [wrong-name] with a policy that saves only aten.mm, which the MLP block never calls, the block
  holds 1 activation and repeats one product
- [hooks] hooks for saved tensors see 1 activation of each block, whatever the policy saves
- [gradients] the gradients are bitwise equal with each policy, with full checkpoints and without
  checkpoints
- [batch] with 1 MiB for each block, full checkpoints allow at least 3.5 times as many rows in a
  batch as no checkpoints
- [batch-first] with 1 MiB for each block, checkpoints that save the first product allow at least
  1.6 times as many rows as none
- [use] with the largest batch in 1 MiB for each block, full checkpoints process at least 2.5 times
  as many rows for each called operator
## Try next
`--whole`: the repetition runs to the end of the block. The last product is computed again, unless
its result was saved. refutes: repeated, wrong-name
`--blocks 1`: all layers of a single block are in memory during its backward, with a checkpoint as
well as without.
refutes: batch, batch-first, use
## Source
- `create_selective_checkpoint_contexts` in the documentation of `torch.utils.checkpoint`,
  https://docs.pytorch.org/docs/stable/checkpoint.html: policies.
- "28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 8,
  https://www.toymoban.com/news/detail-808122.html: the freed memory allows a larger batch, which
  makes better use of the device.
- Ours: the bytes, the repeated operators, and the product that is saved in vain.
"""

from functools import partial

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
    set_checkpoint_early_stop,
)

from tuilab import Lab

WIDTH = 64
MIB = 1024 * 1024
ADDMM = torch.ops.aten.addmm.default
MM = torch.ops.aten.mm.default


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):  # (rows, width)
        wide = self.up(self.norm(x))  # (rows, 4 * width)
        return x + self.down(F.gelu(wide))


def save_first_product(context, operator, *args, **kwargs):
    """Save a product with more outputs than inputs: the first of a block."""
    if operator is ADDMM:
        _, _, weight = args  # (inputs, outputs)
        if weight.shape[1] > weight.shape[0]:
            return CheckpointPolicy.MUST_SAVE
    return CheckpointPolicy.PREFER_RECOMPUTE


POLICIES = {  # a list names the operators to save
    "products": [ADDMM],
    "first": save_first_product,
    "wrong name": [MM],
}
CHOICES = ("plain", "full", *POLICIES)


def forward(net, x, choice):  # (rows, width)
    if choice == "plain":
        return net(x)
    options = {}
    if choice in POLICIES:
        policy = POLICIES[choice]
        options["context_fn"] = partial(create_selective_checkpoint_contexts, policy)
    for block in net:
        x = checkpoint(block, x, use_reentrant=False, **options)
    return x


def step(net, x, choice):
    forward(net, x, choice).sum().backward()


def count_backward(lab, net, output):
    """Return the costs of a backward; its value are the gradients of the weights."""
    return lab.count(torch.autograd.grad, output.sum(), list(net.parameters()))


def claim_held(lab, net, x):
    held = {}
    seen = {}
    for choice in CHOICES:
        lab.stage(f"forward: {choice}")
        counted = lab.count(forward, net, x, choice)
        held[choice] = counted.live_bytes / x.nbytes / len(net)
        seen[choice] = counted.saved_bytes / x.nbytes / len(net)
    lab.bars("activations that a block holds after forward", held)
    lab.claim("plain", held["plain"], equals=10, tolerance=0.1)
    lab.claim("full", held["full"], equals=1, tolerance=0.01)
    lab.claim("products", held["products"], equals=6, tolerance=0.01, answers=True)
    lab.claim("first", held["first"], equals=5, tolerance=0.01)
    del seen["plain"]
    lab.claim("hooks", list(seen.values()), equals=[1, 1, 1, 1])
    return held


def claim_repeated(lab, net, x, held):
    products = {}
    cheap = {}
    rows = []
    gradients = {}
    for choice in CHOICES:
        lab.stage(f"backward: {choice}")
        backward = count_backward(lab, net, forward(net, x, choice))
        norms = backward.calls["aten.native_layer_norm"]
        gelus = backward.calls["aten.gelu"]
        products[choice] = backward.calls["aten.addmm"]
        cheap[choice] = [norms, gelus]
        rows.append((choice, products[choice], norms, gelus))
        gradients[choice] = backward.value
    lab.table("computed again in backward", rows, head=("", "addmm", "norm", "GELU"))

    blocks = len(net)
    repeated = [products["full"], products["plain"], products["products"], products["first"]]
    lab.claim("repeated", repeated, equals=[blocks, 0, 0, 0])
    calls = [cheap["plain"], cheap["full"], cheap["products"], cheap["first"]]
    each = [blocks, blocks]
    lab.claim("cheap", calls, equals=[[0, 0], each, each, each])
    wrong = [held["wrong name"], products["wrong name"]]
    lab.claim("wrong-name", wrong, equals=[1, blocks], tolerance=0.01)
    same = []
    for choice in CHOICES:
        for gradient, plain in zip(gradients[choice], gradients["plain"], strict=True):
            same.append(torch.equal(gradient, plain))
    lab.claim("gradients", all(same))


def find_largest_batch(lab, net, choice, budget):
    """Return the most rows for which a step stays in a budget of bytes, weights not counted."""

    def fits(rows):
        net.zero_grad()
        x = torch.randn(rows, WIDTH).to(net[0].norm.weight)
        return lab.count(step, net, x, choice).peak_bytes <= budget

    return lab.limit(fits, 1, 4096)  # 4096 rows: the input of each block alone is 1 MiB


def claim_batch(lab, net, budget):
    batches = {}
    rows_per_operator = {}
    for choice in lab.sweep(["plain", "first", "full"], "the largest batch"):
        batch = find_largest_batch(lab, net, choice, budget)
        net.zero_grad()
        x = torch.randn(batch, WIDTH).to(net[0].norm.weight)
        operators = lab.count(step, net, x, choice).operators
        batches[choice] = batch
        rows_per_operator[choice] = batch / operators
    lab.bars(f"rows of a step in {budget // MIB} MiB", batches)
    lab.claim("batch", batches["full"] / batches["plain"], at_least=3.5)
    lab.claim("batch-first", batches["first"] / batches["plain"], at_least=1.6)
    use = rows_per_operator["full"] / rows_per_operator["plain"]
    lab.claim("use", use, at_least=2.5)


def run(
    lab: Lab,
    blocks: int = 8,  # residual blocks of two Linears, 1..128
    rows: int = 1024,  # of the batch, 64..65536 (quick 256)
    whole: bool = False,  # repeat each block to its end
) -> None:
    device = lab.device()
    net = nn.Sequential(*[Block() for _ in range(blocks)]).to(device)
    x = torch.randn(rows, WIDTH).to(device)
    lab.axes("live_bytes", x="tensors created and freed", y="memory in use")
    with set_checkpoint_early_stop(not whole):
        for choice in CHOICES:
            lab.stage(f"a step: {choice}")
            with lab.memory("step", arm=choice, timeline=True):
                step(net, x, choice)
            net.zero_grad()
        held = claim_held(lab, net, x)
        claim_repeated(lab, net, x, held)
        claim_batch(lab, net, blocks * MIB)
