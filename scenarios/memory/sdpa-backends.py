"""Fused attention keeps no table of T * T numbers for backward, until it falls back in silence.

Attention written out makes a table of every query against every key, T * T for each head, and its softmax is kept for backward.
A fused kernel works through the table in tiles. For each row it keeps its output and one number, the logarithm of the sum of
exponentials; backward makes the tiles again from these. So for T rows of width D it keeps T * (4 * D + 1) numbers a head, and
what is written out T * (3 * D + T). For T up to D that is the smaller one, and from D + 2 on the larger.

`F.scaled_dot_product_attention` chooses. What its fused kernels cannot do goes to the written-out form, and nobody is told: the
numbers are right, and the memory is gone. On a CPU that is dropout, a mask that wants a gradient, a missing batch dimension,
values of another width, and a layout with another stride; the kernels of a GPU have a list of their own. Ask for one with
`sdpa_kernel`, and it raises, and warns of the reason. `is_causal=True` costs nothing; the same mask as a tensor is kept.
`nn.MultiheadAttention` asks for the whole table unless you say `need_weights=False`.

All counts here are those of the kernel of a CPU, also with a GPU. On a GPU the fused kernels are Flash (16 bits only),
memory-efficient and cuDNN. They keep other numbers: measure yours with `torch.cuda.max_memory_allocated`.
## Predict
For 1024 rows of width 64, how many times the bytes of fused attention does attention written out keep for backward?
## Look for
- [written] written out, it keeps 3 D + T numbers for each row of a head, at every T
- [fused] fused, it keeps 4 D + 1
- [math] the backend "math" keeps what the written-out form keeps
- [same] output and gradients of both agree with float64 to 1e-5 of the largest
- [peak] at 512 rows, q, k and v not counted, the peak of a step with the fused form is at most a quarter
- [fallback] five calls leave the fused kernel: dropout, mask with gradient, no batch, wide values, other stride
- [asked] asked for by name, the fused kernel raises a RuntimeError for dropout, and the last warning names dropout
- [causal] is_causal keeps nothing more; the same mask as a tensor is kept once, T * T numbers for all heads
- [module] nn.MultiheadAttention calls the fused kernel only with need_weights=False
## Try next
`--second math`: the second arm is the written-out form as well. refutes: fused, peak, causal
## Source
Today's practice, after the documentation of `torch.nn.functional.scaled_dot_product_attention`,
https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html. Ours: the count of bytes
and the list of what falls back.
"""

from functools import partial
from typing import Literal

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from tuilab import Lab

HEADS, WIDTH = 4, 64
FUSED = "aten._scaled_dot_product_flash_attention_for_cpu"


def written_out(q, k, v):  # each (batch, HEADS, T, WIDTH)
    return (q @ k.transpose(-1, -2) / WIDTH**0.5).softmax(-1) @ v  # the softmax is (batch, HEADS, T, T)


def attention(q, k, v, backend=None, **options):
    if backend is None:
        return F.scaled_dot_product_attention(q, k, v, **options)
    with sdpa_kernel(backend):
        return F.scaled_dot_product_attention(q, k, v, **options)


def inputs(rows):
    return [torch.randn(1, HEADS, rows, WIDTH, requires_grad=True) for _ in range(3)]


def step(form, qkv):
    output = form(*qkv)
    return [output, *torch.autograd.grad(output.square().sum(), qkv)]


def run(lab: Lab, second: Literal["fused", "math"] = "fused") -> None:  # the arm beside the written-out form
    math = partial(attention, backend=SDPBackend.MATH)
    arms = {"written out": written_out, "second": math if second == "math" else attention}

    lab.axes("kept_bytes", x="rows T", y="kept for backward", log="xy")
    kept = {"written out": [], "second": [], "math": []}
    for rows in lab.sweep([64, 128, 256, 512, 1024], "rows"):
        qkv = inputs(rows)
        for arm, form in {**arms, "math": math}.items():
            nbytes = lab.count(form, *qkv).saved_bytes
            kept[arm].append(nbytes / 4 / HEADS / rows)
            lab.log(rows, arm=arm, kept_bytes=nbytes)
    lab.claim("written", kept["written out"], equals=[3 * WIDTH + rows for rows in (64, 128, 256, 512, 1024)])
    lab.claim("fused", kept["second"], equals=[4 * WIDTH + 1] * 5, answers=kept["written out"][-1] / kept["second"][-1])
    lab.claim("math", kept["math"] == kept["written out"])

    lab.stage("a step of 512 rows")
    qkv = inputs(512)
    right = step(written_out, [tensor.detach().double().requires_grad_() for tensor in qkv])
    counted = [lab.count(step, form, qkv) for form in arms.values()]
    pairs = [pair for one in counted for pair in zip(one.value, right, strict=True)]
    lab.claim("same", max((ours - exact).abs().max() / exact.abs().max() for ours, exact in pairs), at_most=1e-5)
    lab.claim("peak", counted[1].peak_bytes / counted[0].peak_bytes, at_most=1 / 4)

    lab.stage("what falls back")
    q, k, v = inputs(256)
    mask = torch.zeros(256, 256, requires_grad=True)
    cases = {
        "plain": (attention, q, k, v),
        "dropout": (partial(attention, dropout_p=0.1), q, k, v),
        "mask with gradient": (partial(attention, attn_mask=mask), q, k, v),
        "no batch": (attention, q[0], k[0], v[0]),
        "wide values": (attention, q, k, torch.cat([v, v], -1)),
        "other stride": (attention, q.transpose(-1, -2).contiguous().transpose(-1, -2), k, v),
        "is_causal": (partial(attention, is_causal=True), q, k, v),
        "mask": (partial(attention, attn_mask=mask.detach()), q, k, v),
        "shorter keys": (attention, q, k[:, :, :128], v[:, :, :128]),
    }
    fell = {name: FUSED not in lab.count(*case).calls for name, case in cases.items()}
    lab.table("attention on a CPU", [*fell.items()], head=("call", "falls back"))
    fallen = ["dropout", "mask with gradient", "no batch", "wide values", "other stride"]
    lab.claim("fallback", [name for name, is_fallen in fell.items() if is_fallen], equals=fallen)
    refusals, dropout = [], partial(attention, backend=SDPBackend.FLASH_ATTENTION, dropout_p=0.1)
    warned = lab.warns(lambda: refusals.append(lab.raises(dropout, q, k, v)))
    lab.text("\n".join(refusals + warned), title="asked for by name, with dropout")
    lab.claim("asked", ["RuntimeError" in refusals[0], "dropout" in str(warned[-1:])], equals=[True, True])
    form, causal = arms["second"], torch.full((256, 256), float("-inf")).triu(1)
    masks = {}, {"is_causal": True}, {"attn_mask": causal}
    saved = [lab.count(partial(form, **options), q, k, v).saved_bytes for options in masks]
    lab.claim("causal", [saved[1] - saved[0], saved[2] - saved[0]], equals=[0, 4 * 256 * 256], unit="B")
    module, x = nn.MultiheadAttention(256, HEADS, batch_first=True), torch.randn(1, 256, 256)
    called = [lab.count(partial(module, x, x, x, need_weights=weights)).calls[FUSED] for weights in (True, False)]
    lab.claim("module", called, equals=[0, 1])
