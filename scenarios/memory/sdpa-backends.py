"""Use fused attention, and ask for its kernel by name: the fallback is silent.

Attention that is written out computes a table with a score for each query and each key. For T rows
the table has T * T numbers in each head, and its softmax is kept for backward. A fused kernel
computes the table in tiles, and never has the whole table in memory. It keeps queries, keys,
values, the output and, for each row, the logarithm of the sum of exponentials. Backward computes
the tiles again from these. With rows of width D, a fused kernel keeps 4 * D + 1 numbers for each
row of a head. The written-out form keeps 3 * D + T.

`F.scaled_dot_product_attention` chooses the kernel. A call that no fused kernel can compute goes to
the written-out form, which is called "math". The numbers are right and there is no warning, but no
memory is saved. On a CPU five kinds of calls fall back. They have dropout, a mask that needs a
gradient, no batch dimension, or values that are wider than the queries. The fifth kind has a last
dimension with another stride than 1. If you name the kernel with `sdpa_kernel`, such a call raises
an error, and a warning gives the reason.

A GPU has three fused kernels. Flash and cuDNN compute in 16 bits only, so float32 goes to the third
one, the memory-efficient kernel, without a warning. In 16 bits all three keep the same tensors, in
half the bytes. Fewer calls fall back than on a CPU, because dropout, masks and wider values have a
fused kernel. "math" converts 16 bits to float32, so 16 bits save no memory there.

With `is_causal=True` nothing more is kept for backward. The same mask as a tensor is kept. On a
GPU, Flash accepts no mask tensor, so such a call needs another kernel. `nn.MultiheadAttention` uses
the written-out form unless you pass `need_weights=False`.

In practice: train under autocast or in bfloat16, and pass `is_causal=True` in place of a mask. Run
one step of your model under `with sdpa_kernel([SDPBackend.FLASH_ATTENTION,
SDPBackend.CUDNN_ATTENTION]):`. It raises an error at the first call that neither Flash nor cuDNN
can compute.
## Predict
For 1024 rows of width 64 in float32, attention that is written out keeps more bytes for backward
than fused attention. How many times as many bytes does it keep?
## Look for
- [written] for T rows of width D in float32, attention that is written out keeps 3 D + T numbers
  for each row of a head
- [fused] for T rows of width D in float32, fused attention keeps 4 D + 1 numbers for each row of a
  head
- [math] the kernel "math" keeps as many bytes as attention that is written out
- [half] for T rows of width D in float16, fused attention keeps 8 D + 4 bytes for each row of a
  head
- [math-half] the kernel "math" keeps as many bytes in float16 as in float32
- [same] output and gradients of attention, written out and fused, agree with float64 to 1e-5 of
  the largest number
- [peak] for 512 rows the peak of a step with fused attention is at most a quarter of the peak with
  attention that is written out
- [fallback] on a CPU five calls fall back to "math": dropout, a mask with a gradient, no batch,
  values wider than queries, another stride
- [silent] on a CPU the five calls that fall back to "math" give 0 warnings
- [asked] on a CPU, sdpa_kernel(FLASH_ATTENTION) with dropout raises a RuntimeError, and the last
  warning names dropout
- [causal] for 256 rows in float32, is_causal=True keeps 0 bytes more, and the same mask as a tensor
  keeps 262,144 bytes more
- [module] nn.MultiheadAttention calls a fused kernel only with need_weights=False
- [gpu-flash] on an NVIDIA GPU Flash accepts float16 and refuses float32
- [gpu-cudnn] on an NVIDIA GPU cuDNN accepts float16 and refuses float32
- [gpu-efficient] on an NVIDIA GPU the memory-efficient kernel accepts float16 and float32
- [gpu-flash-kept] on an NVIDIA GPU in float16, Flash keeps 8 D + 4 bytes for each row of width D,
  plus 0 to 512
- [gpu-cudnn-kept] on an NVIDIA GPU in float16, cuDNN keeps 8 D + 4 bytes for each row of width D,
  plus 0 to 512
- [gpu-efficient-kept] on an NVIDIA GPU in float16, the memory-efficient kernel keeps 8 D + 4 bytes
  for each row of width D, plus 0 to 512
- [gpu-math-kept] on an NVIDIA GPU in float16, "math" keeps 12 D + 4 T bytes for each of T rows,
  plus 0 to 512
- [gpu-choice] on an NVIDIA GPU torch chooses Flash or cuDNN in float16, and the memory-efficient
  kernel in float32
- [gpu-silent] on an NVIDIA GPU, if Flash and "math" are allowed, float32 falls back to "math" with
  0 warnings
- [gpu-fallback] on an NVIDIA GPU in float16, two of nine calls fall back to "math": no batch, and
  another stride in the last dimension
- [gpu-mask] on an NVIDIA GPU a call with a mask in float16 goes to cuDNN or the memory-efficient
  kernel
- [gpu-time] on an NVIDIA GPU "math" takes at least 2 times as long as the kernel that torch
  chooses, for 2048 rows in float16
## Try next
`--second math`: the second form is "math" in place of fused attention, and keeps the whole table as
well. refutes: fused, half, peak, causal
## Source
Documentation of `torch.nn.functional.scaled_dot_product_attention`,
https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html:
three implementations, which are chosen by the inputs. Ours: the bytes, the lists of calls that fall
back, and the bound of the time.
"""

import math
from functools import partial
from typing import Literal

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from tuilab import Lab

HEADS = 4
WIDTH = 64
ROWS = [64, 128, 256, 512, 1024]
KERNELS = {
    "aten._scaled_dot_product_flash_attention_for_cpu": "fused",
    "aten._scaled_dot_product_flash_attention": "flash",
    "aten._scaled_dot_product_cudnn_attention": "cudnn",
    "aten._scaled_dot_product_efficient_attention": "efficient",
}
GPU_BACKENDS = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "math": SDPBackend.MATH,
}
FUSED_ROW_BYTES = 8 * WIDTH + 4  # q, k, v and the output in 16 bits, and a number in float32


def written_out(q, k, v):  # each (batch, HEADS, rows, WIDTH)
    scores = q @ k.transpose(-1, -2) / WIDTH**0.5  # (batch, HEADS, rows, rows)
    return scores.softmax(-1) @ v


def attention(q, k, v, backend=None, **options):
    if backend is None:
        return F.scaled_dot_product_attention(q, k, v, **options)
    with sdpa_kernel(backend):
        return F.scaled_dot_product_attention(q, k, v, **options)


def make_inputs(rows, dtype=torch.float32, device="cpu", batch=1):
    tensors = []
    for _ in range(3):
        tensor = torch.randn(batch, HEADS, rows, WIDTH, dtype=dtype, device=device)
        tensors.append(tensor.requires_grad_())
    return tensors


def step(form, q, k, v):
    output = form(q, k, v)
    gradients = torch.autograd.grad(output.square().sum(), (q, k, v))
    return [output, *gradients]


def largest_error(tensors, expected_tensors):
    """Return the largest error, relative to the largest number of its tensor."""
    errors = []
    for tensor, expected in zip(tensors, expected_tensors, strict=True):
        error = (tensor - expected).abs().max() / expected.abs().max()
        errors.append(error.item())
    return max(errors)


def kernel_of(lab, call):
    """Return the name of the fused kernel that a call uses, or "math"."""
    calls = lab.count(call).calls
    for operator, kernel in KERNELS.items():
        if calls[operator] > 0:
            return kernel
    return "math"


def row_bytes(lab, form, rows, dtype=torch.float32):
    """Return the bytes that are kept for each row of a head."""
    counted = lab.count(form, *make_inputs(rows, dtype))
    return counted.saved_bytes / HEADS / rows


def claim_kept_bytes(lab, second):
    lab.axes("kept_bytes", x="rows T", y="kept for backward", log="xy")
    math_form = partial(attention, backend=SDPBackend.MATH)
    forms = {"written out": written_out, "second": second, "math": math_form}
    kept = {"written out": [], "second": [], "math": []}  # numbers for each row of a head
    for rows in lab.sweep(ROWS, "rows"):
        for name, form in forms.items():
            nbytes = row_bytes(lab, form, rows)
            kept[name].append(nbytes / 4)
            lab.log(rows, arm=name, kept_bytes=nbytes * HEADS * rows)
    ratio = kept["written out"][-1] / kept["second"][-1]
    expected = [3 * WIDTH + rows for rows in ROWS]
    lab.claim("written", kept["written out"], equals=expected)
    lab.claim("fused", kept["second"], equals=[4 * WIDTH + 1] * 5, answers=ratio)
    lab.claim("math", kept["math"] == kept["written out"])

    half_bytes = []
    math_half_bytes = []
    for rows in ROWS:
        half_bytes.append(row_bytes(lab, second, rows, torch.float16))
        math_half_bytes.append(row_bytes(lab, math_form, rows, torch.float16))
    lab.claim("half", half_bytes, equals=[FUSED_ROW_BYTES] * 5)
    math_bytes = [4 * number for number in kept["math"]]
    lab.claim("math-half", math_half_bytes, equals=math_bytes)


def claim_step(lab, second):
    lab.stage("a step of 512 rows")
    qkv = make_inputs(512)
    exact_qkv = [tensor.detach().double().requires_grad_() for tensor in qkv]
    expected = step(written_out, *exact_qkv)
    plain_step = lab.count(step, written_out, *qkv)
    second_step = lab.count(step, second, *qkv)
    plain_error = largest_error(plain_step.value, expected)
    second_error = largest_error(second_step.value, expected)
    lab.claim("same", max(plain_error, second_error), at_most=1e-5)
    lab.claim("peak", second_step.peak_bytes / plain_step.peak_bytes, at_most=1 / 4)


def make_calls(q, k, v):
    """Return nine calls of attention by name."""
    mask = torch.zeros(q.shape[2], k.shape[2], dtype=q.dtype, device=q.device)
    trained_mask = mask.clone().requires_grad_()
    wide = torch.cat([v, v], -1)
    columns = q.transpose(-1, -2).contiguous().transpose(-1, -2)  # stride 1 along the rows
    return {
        "plain": partial(attention, q, k, v),
        "dropout": partial(attention, q, k, v, dropout_p=0.1),
        "mask with gradient": partial(attention, q, k, v, attn_mask=trained_mask),
        "no batch": partial(attention, q[0], k[0], v[0]),
        "wide values": partial(attention, q, k, wide),
        "other stride": partial(attention, columns, k, v),
        "is_causal": partial(attention, q, k, v, is_causal=True),
        "mask": partial(attention, q, k, v, attn_mask=mask),
        "shorter keys": partial(attention, q, k[:, :, :128], v[:, :, :128]),
    }


def find_fallen(lab, calls, title):
    """Return the names of the calls that use no fused kernel."""
    rows = []
    fallen = []
    for name, call in calls.items():
        kernel = kernel_of(lab, call)
        rows.append((name, kernel))
        if kernel == "math":
            fallen.append(name)
    lab.table(title, rows, head=("call", "kernel"))
    return fallen


def claim_fallback(lab):
    lab.stage("calls that fall back")
    q, k, v = make_inputs(256)
    calls = make_calls(q, k, v)
    fallen = find_fallen(lab, calls, "attention on a CPU")
    expected = ["dropout", "mask with gradient", "no batch", "wide values", "other stride"]
    lab.claim("fallback", fallen, equals=expected)
    warnings = []
    for name in fallen:
        warnings += lab.warns(calls[name])
    lab.claim("silent", len(warnings), equals=0)

    errors = []

    def ask_for_flash():
        call = partial(attention, backend=SDPBackend.FLASH_ATTENTION, dropout_p=0.1)
        errors.append(lab.raises(call, q, k, v))

    warnings = lab.warns(ask_for_flash)
    lab.text("\n".join(errors + warnings), title="asked for Flash, with dropout")
    is_named = "dropout" in str(warnings[-1:])
    lab.claim("asked", ["RuntimeError" in errors[0], is_named], equals=[True, True])


def claim_masks(lab, second):
    q, k, v = make_inputs(256)
    mask = torch.full((256, 256), float("-inf")).triu(1)
    with_causal = partial(second, is_causal=True)
    with_mask = partial(second, attn_mask=mask)
    plain_bytes = lab.count(second, q, k, v).saved_bytes
    causal_bytes = lab.count(with_causal, q, k, v).saved_bytes - plain_bytes
    mask_bytes = lab.count(with_mask, q, k, v).saved_bytes - plain_bytes
    lab.claim("causal", [causal_bytes, mask_bytes], equals=[0, 4 * 256 * 256], unit="B")

    module = nn.MultiheadAttention(256, HEADS, batch_first=True)
    x = torch.randn(1, 256, 256)
    kernels = []
    for needs_weights in (True, False):
        call = partial(module, x, x, x, need_weights=needs_weights)
        kernels.append(kernel_of(lab, call))
    lab.claim("module", kernels, equals=["math", "fused"])


def lacks_gpu_kernels(device):
    if device.type != "cuda" or torch.version.hip:
        return "an NVIDIA GPU"
    capability = torch.get_device_module(device).get_device_capability(device)
    if capability < (8, 0):
        return "a GPU of compute capability 8.0, such as an A100"
    return ""


def claim_gpu_backends(lab, device):
    lab.stage("kernels of the GPU")
    rows = 1024
    qkv = make_inputs(rows, device=device)
    half_qkv = make_inputs(rows, torch.float16, device)
    expected_bytes = dict.fromkeys(GPU_BACKENDS, FUSED_ROW_BYTES)
    expected_bytes["math"] = 4 * (3 * WIDTH + rows)

    table = []
    accepted = {}
    for name, backend in GPU_BACKENDS.items():
        half_error = lab.raises(attention, *half_qkv, backend)
        float_error = lab.raises(attention, *qkv, backend)
        accepted[name] = [half_error == "", float_error == ""]
        excess_bytes = math.inf
        if not half_error:
            saved_bytes = lab.count(attention, *half_qkv, backend).saved_bytes
            excess_bytes = saved_bytes - HEADS * rows * expected_bytes[name]
        lab.claim(f"gpu-{name}-kept", excess_bytes, between=(0, 512), unit="B")
        table.append((name, *accepted[name], excess_bytes))
    head = ("kernel", "float16", "float32", "bytes above the formula")
    lab.table("attention on the GPU", table, head=head)
    lab.claim("gpu-flash", accepted["flash"], equals=[True, False])
    lab.claim("gpu-cudnn", accepted["cudnn"], equals=[True, False])
    lab.claim("gpu-efficient", accepted["efficient"], equals=[True, True])


def claim_gpu_choice(lab, device):
    lab.stage("the choice on the GPU")
    qkv = make_inputs(256, device=device)
    half_qkv = make_inputs(256, torch.float16, device)
    half_kernel = kernel_of(lab, partial(attention, *half_qkv))
    float_kernel = kernel_of(lab, partial(attention, *qkv))
    is_fast = half_kernel in ("flash", "cudnn")
    lab.claim("gpu-choice", [is_fast, float_kernel], equals=[True, "efficient"])

    allowed = [SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]
    call = partial(attention, *qkv, backend=allowed)
    lab.claim("gpu-silent", [kernel_of(lab, call), len(lab.warns(call))], equals=["math", 0])
    calls = make_calls(*half_qkv)
    fallen = find_fallen(lab, calls, "attention on the GPU, in float16")
    lab.claim("gpu-fallback", fallen, equals=["no batch", "other stride"])
    lab.claim("gpu-mask", kernel_of(lab, calls["mask"]) in ("cudnn", "efficient"))


def race_on_gpu(lab, device):
    lab.stage("timing on the GPU")
    qkv = make_inputs(2048, torch.float16, device, batch=8)
    math_form = partial(attention, backend=SDPBackend.MATH)
    lab.claim_ratio("gpu-time", "math/chosen", at_least=2)
    lab.race(
        math=lambda: step(math_form, *qkv),
        chosen=lambda: step(attention, *qkv),
        seconds=0.5,
    )


GPU_CLAIMS = [
    "gpu-flash",
    "gpu-cudnn",
    "gpu-efficient",
    "gpu-flash-kept",
    "gpu-cudnn-kept",
    "gpu-efficient-kept",
    "gpu-math-kept",
    "gpu-choice",
    "gpu-silent",
    "gpu-fallback",
    "gpu-mask",
]


def run(
    lab: Lab,
    second: Literal["fused", "math"] = "fused",  # the form next to the one that is written out
) -> None:
    device = lab.device()
    second_form = attention
    if second == "math":
        second_form = partial(attention, backend=SDPBackend.MATH)
    lacks = lacks_gpu_kernels(device)

    @lab.once
    def exact():
        claim_kept_bytes(lab, second_form)
        claim_step(lab, second_form)
        claim_fallback(lab)
        claim_masks(lab, second_form)
        if lacks:
            for key in GPU_CLAIMS:
                lab.claim(key, lacks=lacks)
            return
        claim_gpu_backends(lab, device)
        claim_gpu_choice(lab, device)

    if lacks:
        lab.claim_ratio("gpu-time", "math/chosen", at_least=2, lacks=lacks)
        return
    race_on_gpu(lab, device)
