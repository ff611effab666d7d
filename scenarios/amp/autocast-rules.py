"""Put forward and loss inside autocast, and leave the parameters in float32.

Autocast chooses a dtype for each operator. Your code does not show the choice, so three mistakes
stay unnoticed. The loss is outside the block, the net was cast as well, or an operator loses
digits.

Products of matrices and convolutions read 16-bit copies of their operands. Operators in a second
list need range or digits and get float32 copies, for example mse_loss and prod. Most other
operators are in no list. They compute in the widest dtype of their operands: the mean of a 16-bit
tensor has 16 bits. Softmax, sum, exp and layer_norm are in the float32 list of CUDA, and not in
that of the CPU. `binary_cross_entropy` is refused on CUDA; use `binary_cross_entropy_with_logits`.

Each copy is one more operator. Autocast keeps the copies of parameters until the block ends. In
backward a gradient goes back through the copy, so it gets the dtype of its parameter.

A loss outside the block computes in the 16 bits that it gets. Inside, mse_loss computes in float32
if you call it by its name. The same loss written as a product and a mean is in no list. A float32
layer outside the block refuses a 16-bit input.

The sources are wrong in three places. One says that parameters and gradients are half under
autocast. That describes `net.half()`. Another lists sum, mean and prod for float32: mean is in no
list, and sum only in that of CUDA. And `torch.cuda.amp.autocast`, which they import, is deprecated.

In practice: write `with torch.autocast("cuda", torch.bfloat16):` around forward and loss, and call
losses of `torch.nn.functional`. Name the dtype, because the default differs between devices. Do
not call `net.half()` or `net.bfloat16()` as well. Run backward and the optimizer after the block.
## Predict
One block of autocast calls a Linear with a bias twice, with the same float32 input. How many copies
to 16 bits does autocast make?
## Look for
- [matmul] inside autocast a product of matrices is 16-bit, for float32 and for 16-bit operands
- [convolution] inside autocast a convolution is 16-bit, for float32 and for 16-bit operands
- [add] inside autocast the sum of two float32 tensors is float32, and so is the sum of a 16-bit
  and a float32 tensor
- [parameters] after training with autocast the parameters are float32
- [gradients] after a backward with autocast the gradients are float32
- [mean] inside autocast the mean of a 16-bit tensor is 16-bit
- [widened] inside autocast mse_loss and prod of 16-bit tensors are float32
- [cpu-list] inside autocast on a CPU softmax, sum, exp and layer_norm of a 16-bit tensor are 16-bit
- [cuda-list] inside autocast on CUDA softmax, sum, exp and layer_norm of a 16-bit tensor are
  float32
- [default-dtype] without a dtype autocast uses bfloat16 on a CPU and float16 on CUDA
- [copies] the first call of a Linear in a block makes 3 copies (input, weight, bias), and the
  second call 1 (input)
- [inside] inside autocast mse_loss is 90000 for 16-bit predictions that are 300 off
- [outside] outside autocast mse_loss of the same predictions is 90112 in bfloat16
- [by-hand] inside autocast (error * error).mean() of the same predictions is 90112 in bfloat16
- [refused] outside autocast a float32 Linear refuses a 16-bit input
- [other-device] autocast for another kind of device leaves the product in float32
- [deprecated] autocast and GradScaler of torch.cuda.amp and of torch.cpu.amp warn with a
  FutureWarning
## Try next
`--weights half`: `net.to(torch.bfloat16)`, which one source describes. Parameters and gradients
are 16-bit, only the input is copied, and the layer takes 16-bit input outside the block.
refutes: parameters, gradients, copies, refused
`--dtype float16`: 90000 is larger than 65504, the largest float16 number, so two of the three
losses are inf. refutes: outside, by-hand
## Source
- EffectivePyTorch, chapter "Faster training with automatic mixed precision",
  https://github.com/vahidk/EffectivePyTorch.
- A note on torch.cuda.amp (in Chinese), section "amp.autocast",
  https://blog.csdn.net/weixin_37804469/article/details/129733868: gradients in half precision.
- "Faster and Memory-Efficient PyTorch models using AMP and Tensor Cores", section on how to use
  Tensor Cores,
  https://towardsdatascience.com/faster-and-memory-efficient-pytorch-models-using-amp-50fd3c8dd7fe:
  convolutions in FP16, softmax in FP32.
- "Training tricks" (in Chinese, after https://github.com/owenliang/torch-thins), section
  "Automatic mixed precision": sum, mean and prod need float32.
- Ours: both lists, the copies, the loss outside and by hand.
"""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import nn

from tuilab import Lab


def convolve(a, b):  # (4, 4), (4, 4) -> (1, 1, 1, 1)
    return F.conv2d(a[None, None], b[None, None])


OPERATORS = {
    "a @ b": lambda a, b: a @ b,
    "conv2d(a, b)": convolve,
    "a + b": lambda a, b: a + b,
    "a + float32": lambda a, b: a + b.float(),
    "mean(a)": lambda a, b: a.mean(),
    "mse_loss(a, b)": F.mse_loss,
    "prod(a)": lambda a, b: a.prod(),
}
IN_THE_LIST_OF_CUDA = {  # CUDA computes these in float32, and a CPU in the dtype that it gets
    "softmax(a)": lambda a, b: a.softmax(-1),
    "sum(a)": lambda a, b: a.sum(),
    "exp(a)": lambda a, b: a.exp(),
    "layer_norm(a)": lambda a, b: F.layer_norm(a, a.shape[-1:]),
}


def name_of(dtype):
    return str(dtype).removeprefix("torch.")


def dtypes_of_results(operators, a, half):
    """Return, for each operator, the dtypes of its results for float32 and 16-bit operands."""
    dtypes = {}
    with torch.autocast(a.device.type, half):
        for name, operator in operators.items():
            of_float32 = operator(a, a)
            of_half = operator(a.to(half), a.to(half))
            dtypes[name] = [name_of(of_float32.dtype), name_of(of_half.dtype)]
    return dtypes


def claim_dtypes(lab, a, half):
    lab.stage("the table of dtypes")
    dtype = name_of(half)
    dtypes = dtypes_of_results(OPERATORS, a, half)
    of_list = dtypes_of_results(IN_THE_LIST_OF_CUDA, a, half)
    rows = []
    for name, (of_float32, of_half) in {**dtypes, **of_list}.items():
        rows.append((name, of_float32, of_half))
    title = f"dtype of the result on {a.device.type}, by that of a and b"
    lab.table(title, rows, head=("operator", "float32", dtype))

    lab.claim("matmul", dtypes["a @ b"], equals=[dtype, dtype])
    lab.claim("convolution", dtypes["conv2d(a, b)"], equals=[dtype, dtype])
    sums = [dtypes["a + b"][0], dtypes["a + float32"][1]]
    lab.claim("add", sums, equals=["float32", "float32"])
    lab.claim("mean", dtypes["mean(a)"][1], equals=dtype)
    widened = [dtypes["mse_loss(a, b)"][1], dtypes["prod(a)"][1]]
    lab.claim("widened", widened, equals=["float32", "float32"])

    of_half = [after for _, after in of_list.values()]
    if a.device.type == "cuda":
        lab.claim("cpu-list", lacks="--device cpu")
        lab.claim("cuda-list", of_half, equals=["float32"] * 4)
    else:
        lab.claim("cpu-list", of_half, equals=[dtype] * 4)
        lab.claim("cuda-list", lacks="a CUDA device")


def claim_default_dtype(lab, a):
    defaults = {}
    for kind in ("cpu", "cuda"):
        defaults[kind] = name_of(torch.get_autocast_dtype(kind))
    with torch.autocast(a.device.type):
        product = a @ a
    measured = [defaults["cpu"], defaults["cuda"], name_of(product.dtype)]
    on_this_device = "float16" if a.device.type == "cuda" else "bfloat16"
    lab.claim("default-dtype", measured, equals=["bfloat16", "float16", on_this_device])


def claim_step(lab, a, half, weights):
    lab.stage("a step")
    net = nn.Linear(4, 1).to(a.device)
    if weights == "half":
        net.to(half)
    with torch.autocast(a.device.type, half):
        first = lab.count(net, a).calls["aten._to_copy"]
        second = lab.count(net, a).calls["aten._to_copy"]
        loss = F.mse_loss(net(a), a[:, :1])  # (4, 1), (4, 1)
    loss.backward()
    lab.claim("copies", [first, second], equals=[3, 1], answers=first + second)

    weight_dtypes = [name_of(weight.dtype) for weight in net.parameters()]
    gradient_dtypes = [name_of(weight.grad.dtype) for weight in net.parameters()]
    lab.claim("parameters", weight_dtypes, equals=["float32", "float32"])
    lab.claim("gradients", gradient_dtypes, equals=["float32", "float32"])
    error = lab.raises(net, a.to(half))
    lab.claim("refused", error.startswith("RuntimeError: mat1 and mat2"))


def squared_error(prediction, target):
    error = prediction - target
    return (error * error).mean()


def claim_losses(lab, device, half):
    lab.axes("ratio", x="how far predictions are off", y="loss / square of that, 1 is right")
    target = torch.zeros(4, 1, device=device, dtype=half)
    for distance in lab.sweep(range(10, 301, 10), "errors"):
        prediction = target + distance
        losses = {}
        with torch.autocast(device.type, half):
            losses["inside"] = F.mse_loss(prediction, target)
            losses["by-hand"] = squared_error(prediction, target)
        losses["outside"] = F.mse_loss(prediction, target)
        for name, loss in losses.items():
            lab.log(distance, arm=name, ratio=loss.float() / distance**2)
    lab.claim("inside", losses["inside"], equals=90000)  # the last distance is 300
    lab.claim("outside", losses["outside"], equals=90112)
    lab.claim("by-hand", losses["by-hand"], equals=90112)


def claim_other_device(lab, a):
    other = "cpu" if a.device.type == "cuda" else "cuda"
    products = []

    def multiply():
        with torch.autocast(other, torch.bfloat16):
            products.append(a @ a)

    warnings = lab.warns(multiply)
    title = f"autocast({other!r}) where the tensors are on {a.device.type}"
    lab.text("\n".join(warnings) or "no warning", title=title)
    lab.claim("other-device", name_of(products[0].dtype), equals="float32")


def claim_deprecated(lab):
    categories = []
    for kind in ("cuda", "cpu"):
        amp = torch.get_device_module(kind).amp  # torch.cuda.amp, torch.cpu.amp
        for old_name in (amp.autocast, amp.GradScaler):
            warning = lab.warns(old_name)[0]
            categories.append(warning.partition(":")[0])
    lab.claim("deprecated", categories, equals=["FutureWarning"] * 4)


def run(
    lab: Lab,
    dtype: Literal["bfloat16", "float16"] = "bfloat16",  # the 16 bits
    weights: Literal["float32", "half"] = "float32",  # dtype of the net's parameters
) -> None:
    device = lab.device()
    half = getattr(torch, dtype)
    a = torch.ones(4, 4, device=device)
    claim_dtypes(lab, a, half)
    claim_default_dtype(lab, a)
    claim_step(lab, a, half, weights)
    claim_losses(lab, device, half)
    claim_other_device(lab, a)
    claim_deprecated(lab)
