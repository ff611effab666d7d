"""A tensor is numpy's array with a dtype to watch and memory that it may share.

Shapes follow numpy: (3, 5) @ (5, 4) is (3, 4), and what is added must have the same shape or broadcast. The example of the
source adds a (3, 5) to a (5, 4), which no rule allows. A rank is only the length of the shape: a scalar has none, a picture
three, a batch of pictures four.

A number of Python with a point becomes float32, which a note on AMP calls FloatTensor; a tensor made of an array keeps the
array's dtype. numpy draws float64, layers of torch are float32, and a product of the two is refused. The source means to draw
a table with `np.random.normal([3, 5])`. But the first argument of numpy's function is the mean, so it draws two numbers, one
around 3 and one around 5. `size=[3, 5]` draws the table.

`torch.tensor(array)` copies: whatever is written to the array later, the tensor keeps its values. `torch.from_numpy(array)`
makes a tensor over the array's own memory, takes no new byte, and shows whatever is written there. `torch.as_tensor` shares
where it can. Both ways are right; a bug begins where one was thought to be the other.

The way back, `.numpy()`, shares memory as well. So it is refused where numpy could not follow: for a tensor that requires a
gradient (say `.detach()` first), and for one on a GPU (say `.cpu()` first).
## Predict
array = np.zeros(3), tensor = torch.from_numpy(array), and then array[0] = 7. What is tensor[0]?
## Look for
- [ranks] a scalar, a vector, a matrix and a picture have 0, 1, 2 and 3 dimensions
- [product] (3, 5) @ (5, 4) has the shape (3, 4)
- [sum] as in the source, (3, 5) + (5, 4) is refused
- [normal] np.random.normal([3, 5]) has the shape (2,)
- [default] a tensor of 0.5 is float32, and so are zeros; one of 1 is int64
- [float64] a tensor made of numpy's random numbers is float64, and a float32 layer refuses it
- [kept] after a 7 was written to the array, the tensor that was made of it shows 0 still
- [shared] a tensor that was made with torch.from_numpy shows the 7
- [bytes] making the tensor takes as many bytes as the array has, torch.from_numpy takes none
- [back] a 7 written to a tensor is seen in its .numpy()
- [gradient] .numpy() of a tensor that requires a gradient is refused
- [gpu] .numpy() of a tensor on a GPU is refused
## Try next
`--convert as_tensor`: shares memory where the dtype may stay as it is. refutes: kept, bytes
`--sized`: size=[3, 5], as it was meant. refutes: normal
`--to float32`: the conversion that a layer needs; now it takes the numbers. refutes: float64
## Source
- EffectivePyTorch, chapter "PyTorch basics", https://github.com/vahidk/EffectivePyTorch.
- A note on torch.cuda.amp (in Chinese), section "amp.autocast",
  https://blog.csdn.net/weixin_37804469/article/details/129733868: the default dtype.
- Ours: shared memory and the count of bytes.
"""

from typing import Literal

import numpy as np
import torch

from tuilab import Lab


def after_a_seven(convert):
    """What a tensor shows of an array that changes after it was made."""
    array = np.zeros(3, dtype=np.float32)
    tensor = convert(array)
    array[0] = 7
    return tensor[0].item()


def bytes_made(convert, array):
    before = array.__array_interface__["data"][0]
    tensor = convert(array)
    return 0 if tensor.data_ptr() == before else tensor.untyped_storage().nbytes()


def refusal(lab, f, *args):
    """The kind of exception that a call ends with, or nothing."""
    return lab.raises(f, *args).partition(":")[0]


def run(
    lab: Lab,
    convert: Literal["tensor", "as_tensor"] = "tensor",  # the function of torch that makes a tensor of an array
    sized: bool = False,  # draw with size=[3, 5]
    to: Literal["float64", "float32"] = "float64",  # dtype of numpy's numbers when they meet the layer
    largest: int = 22,  # the largest array has two to this power numbers, 10..28 (quick 16)
) -> None:
    device = lab.device()
    make = getattr(torch, convert)

    lab.stage("shapes")
    examples = [torch.tensor(3.0), torch.zeros(5), torch.zeros(3, 5), torch.zeros(3, 32, 32)]
    lab.claim("ranks", [example.dim() for example in examples], equals=[0, 1, 2, 3])
    x, y = torch.randn(3, 5, device=device), torch.randn(5, 4, device=device)
    lab.claim("product", list((x @ y).shape), equals=[3, 4])
    lab.claim("sum", refusal(lab, torch.add, x, y), equals="RuntimeError")

    lab.stage("numbers of Python and of numpy")
    plain = [str(tensor.dtype) for tensor in (torch.tensor(0.5), torch.zeros(3), torch.tensor(1))]
    lab.claim("default", plain, equals=["torch.float32", "torch.float32", "torch.int64"])
    drawn = np.random.normal(size=[3, 5]) if sized else np.random.normal([3, 5])
    lab.claim("normal", list(drawn.shape), equals=[2])
    numbers = torch.tensor(np.random.normal(size=[3, 5])).to(device, getattr(torch, to))
    layer = torch.nn.Linear(5, 4, device=device)
    lab.claim("float64", [str(numbers.dtype), refusal(lab, layer, numbers)], equals=["torch.float64", "RuntimeError"])

    lab.axes("made_bytes", x="numbers in the array", y="made for the tensor", log="x")
    lab.claim("kept", after_a_seven(make), equals=0)
    lab.claim("shared", after_a_seven(torch.from_numpy), equals=7, answers=True)
    for power in lab.sweep(range(8, largest + 1), "sizes"):
        array = np.ones(2**power, dtype=np.float32)
        made = [bytes_made(way, array) for way in (make, torch.from_numpy)]
        for arm, count in zip((convert, "from_numpy"), made, strict=True):
            lab.log(2**power, arm=arm, made_bytes=count)
    lab.claim("bytes", made, equals=[array.nbytes, 0])

    lab.stage("the way back")
    tensor = torch.zeros(3)
    seen = tensor.numpy()
    tensor[0] = 7
    lab.claim("back", seen[0], equals=7)
    lab.claim("gradient", refusal(lab, torch.ones(3, requires_grad=True).numpy), equals="RuntimeError")
    lacks = "" if device.type == "cuda" else "a CUDA device"
    lab.claim("gpu", refusal(lab, torch.ones(3, device=device).numpy), equals="TypeError", lacks=lacks)
