"""Keep the products of matrices in a checkpoint: half the memory, and no product computed twice.

A checkpoint drops what its block keeps for backward and computes the block again. Repeating a product of matrices is dear, and
repeating norms and activations is cheap. A selective checkpoint asks a policy for every operator: what is to be saved goes to
a cache, which hands it out in the repetition. All else is computed again.
Here a block is LayerNorm, Linear to four times the width, GELU, Linear back. Plain, it keeps ten activations of the width: its
input, the output of the norm, four for the input and four for the output of the GELU. The outputs of the two products are five
of that width, and with the input of the block six live. But the last one is a waste. Backward does not need it, and
the repetition stops as soon as it has what backward needs. A policy that keeps the first product alone has five.
The cache is not made of saved tensors, and hooks of autograd do not see it: measure what lives. And a policy that names an
operator which is never called keeps nothing, and nobody tells: a Linear with a bias calls `addmm`, not `mm`.
## Predict
A block keeps ten activations of its width plain, and one in a full checkpoint. How many with both of its products kept?
## Look for
- [plain] plain, a block holds 10 activations behind forward, to 1 per cent
- [full] in a full checkpoint it holds 1
- [products] with both products kept it holds 6
- [first] with the first product kept it holds 5
- [repeated] a full checkpoint computes one product of each block again; plain, with both kept and with the first it is none
- [cheap] all three checkpoints compute each norm and each GELU again, and plain none
- [wrong-name] a policy that keeps aten.mm holds 1, and computes one product of each block again
- [hooks] hooks for saved tensors see 1 activation of a block in every checkpoint, whatever its policy
- [gradients] the gradients of all are bitwise those of the plain net
## Try next
`--whole`: the repetition goes on to the end of the block. The last product is computed again, where it was not kept.
refutes: repeated, wrong-name
`--blocks 1`: one block, and all is as with eight.
## Source
- Today's practice: `create_selective_checkpoint_contexts` of `torch.utils.checkpoint`,
  https://docs.pytorch.org/docs/stable/checkpoint.html.
- "28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 8,
  https://www.toymoban.com/news/detail-808122.html: it has checkpoints without a policy.
- Ours: what lives, what is repeated, and the waste.
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

ADDMM, MM = torch.ops.aten.addmm.default, torch.ops.aten.mm.default


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):  # (rows, width)
        return x + self.down(F.gelu(self.up(self.norm(x))))


def widening(context, operator, *args, **kwargs):
    """Keep a product whose result is wider than its input."""
    is_kept = operator is ADDMM and args[2].shape[1] > args[2].shape[0]
    return CheckpointPolicy.MUST_SAVE if is_kept else CheckpointPolicy.PREFER_RECOMPUTE


POLICIES = {"products": [ADDMM], "first": widening, "wrong name": [MM]}


def forward(net, x, choice):
    if choice == "plain":
        return net(x)
    options = {"context_fn": partial(create_selective_checkpoint_contexts, POLICIES[choice])} if choice in POLICIES else {}
    for block in net:
        x = checkpoint(block, x, use_reentrant=False, **options)
    return x


def run(
    lab: Lab,
    blocks: int = 8,  # residual blocks of two Linears, 1..128
    rows: int = 1024,  # of the batch, 64..65536 (quick 256)
    whole: bool = False,  # repeat each block to its end
) -> None:
    with lab.device():
        net, x = nn.Sequential(*[Block(64) for _ in range(blocks)]), torch.randn(rows, 64)

    lab.axes("live_bytes", x="births and deaths of tensors", y="bytes that live")
    held, seen, again, gradients = {}, {}, {}, {}
    for choice in ("plain", "full", "products", "first", "wrong name"):
        lab.stage(f"checkpoints: {choice}")
        with lab.memory("step", arm=choice, timeline=True), set_checkpoint_early_stop(not whole):
            forward(net, x, choice).sum().backward()
        net.zero_grad()
        with set_checkpoint_early_stop(not whole):
            counted = lab.count(forward, net, x, choice)
        held[choice], seen[choice] = (nbytes / x.nbytes / blocks for nbytes in (counted.live_bytes, counted.saved_bytes))
        backward = lab.count(torch.autograd.grad, counted.value.sum(), [*net.parameters()])
        again[choice] = [backward.calls[f"aten.{name}"] for name in ("addmm", "native_layer_norm", "gelu")]
        gradients[choice] = backward.value
    lab.bars("activations that a block holds behind forward", held)
    lab.table(
        "computed again in backward", [(choice, *calls) for choice, calls in again.items()], head=("", "addmm", "norm", "GELU")
    )
    lab.claim("plain", held["plain"], equals=10, tolerance=0.1)
    lab.claim("full", held["full"], equals=1, tolerance=0.01)
    lab.claim("products", held["products"], equals=6, tolerance=0.01, answers=True)
    lab.claim("first", held["first"], equals=5, tolerance=0.01)
    lab.claim("repeated", [again[choice][0] for choice in ("full", "plain", "products", "first")], equals=[blocks, 0, 0, 0])
    cheap = [again[choice][1:] for choice in ("plain", "full", "products", "first")]
    lab.claim("cheap", cheap, equals=[[0, 0], *[[blocks, blocks]] * 3])
    lab.claim("wrong-name", [held["wrong name"], again["wrong name"][0]], equals=[1, blocks], tolerance=0.01)
    lab.claim("hooks", [seen[choice] for choice in ("full", "products", "first", "wrong name")], equals=[1] * 4)
    same = [torch.equal(*pair) for choice in held for pair in zip(gradients[choice], gradients["plain"], strict=True)]
    lab.claim("gradients", all(same))
