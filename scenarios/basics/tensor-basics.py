"""Know when a tensor shares memory with a NumPy array, and check its dtype.

Data often starts in NumPy and ends in PyTorch, and most of the two behaves alike. Shapes follow the
same rules: (3, 5) @ (5, 4) is (3, 4), and operands of a sum need shapes that broadcast. The source
adds a (3, 5) to a (5, 4), which no rule allows. The rank is the length of the shape: 0 for a
scalar, 3 for a picture, 4 for a batch of pictures.

The dtype differs. A Python number with a point becomes float32, but NumPy draws float64. A tensor
keeps the dtype of its array. The layers of torch are float32, and a product of the two dtypes
raises an error. The source wants a table from `np.random.normal([3, 5])`, but this call takes the
size from `size=[3, 5]`. The listing also lacks `import numpy as np`.

Memory differs as well. `torch.tensor(array)` copies the numbers, so the tensor
ignores later writes to the array. `torch.from_numpy(array)` uses the memory of the array, so
writes show on both sides. `torch.as_tensor(array)` shares if dtype and device allow it. Both ways
are right. A bug begins if you expect the other one.

The way back, `.numpy()`, shares memory as well. It raises an error where NumPy cannot follow: for a
tensor that requires a gradient, and for a tensor on a GPU.

In practice: convert once, with the dtype of the model:
`torch.from_numpy(array).to(torch.float32)`. Copy with `torch.tensor(array)` if the array is written
again later. Back to NumPy: `tensor.detach().cpu().numpy()`.
## Predict
How many numbers does `np.random.normal([3, 5])` draw?
## Look for
- [ranks] a scalar, a vector, a matrix and a picture have 0, 1, 2 and 3 dimensions
- [product] the product of a (3, 5) and a (5, 4) has the shape (3, 4)
- [sum] as in the source, the sum of a (3, 5) and a (5, 4) raises a RuntimeError
- [no-import] as in the source, the call of np.random.normal without an import of NumPy raises a
  NameError
- [normal] np.random.normal([3, 5]) has the shape (2,): the list is the mean, not the size
- [default] torch.tensor(0.5) and zeros are float32, and torch.tensor(1) is int64
- [float64] a tensor of NumPy's random numbers is float64, and a float32 layer raises a RuntimeError
  for it
- [kept] after a 7 was written to an array of zeros, its copy by torch.tensor still shows 0
- [shared] after a 7 was written to an array of zeros, its tensor by torch.from_numpy shows 7
- [bytes] torch.tensor allocates as many bytes as the array has, and torch.from_numpy 0
- [back] a 7 that was written to a tensor shows in its .numpy()
- [gradient] .numpy() of a tensor that requires a gradient raises a RuntimeError
- [gpu] .numpy() of a tensor on a GPU raises a TypeError
## Try next
`--convert as_tensor`: the tensor shares memory, because the dtype stays the same. refutes: kept,
bytes
`--sized`: size=[3, 5], as the source means it. refutes: normal
`--to float32`: the conversion that a layer needs. Now the layer takes the numbers. refutes: float64
## Source
- EffectivePyTorch, chapter "PyTorch basics", https://github.com/vahidk/EffectivePyTorch. Three of
  its lines fail or do something else: the sum, the missing import, the table.
- A note on torch.cuda.amp (in Chinese), section "amp.autocast",
  https://blog.csdn.net/weixin_37804469/article/details/129733868: the default dtype.
- Ours: shared memory and the count of bytes.
"""

from typing import Literal

import numpy as np
import torch

from tuilab import Lab


def shown_after_a_write(convert):
    """Return what a tensor shows of an array of zeros that becomes 7 after the conversion."""
    array = np.zeros(3, dtype=np.float32)
    tensor = convert(array)
    array[0] = 7
    return tensor[0].item()


def bytes_allocated(convert, array):
    """Return how many new bytes the tensor of an array has."""
    address = array.__array_interface__["data"][0]
    tensor = convert(array)
    if tensor.data_ptr() == address:
        return 0
    return tensor.untyped_storage().nbytes()


def error_kind(lab, function, *args):
    """Return the kind of exception that a call raises, or an empty text."""
    return lab.raises(function, *args).partition(":")[0]


def claim_shapes(lab, device):
    lab.stage("shapes")
    examples = [torch.tensor(3.0), torch.zeros(5), torch.zeros(3, 5), torch.zeros(3, 32, 32)]
    ranks = [example.dim() for example in examples]
    lab.claim("ranks", ranks, equals=[0, 1, 2, 3])
    x = torch.randn(3, 5, device=device)
    y = torch.randn(5, 4, device=device)
    product = x @ y
    lab.claim("product", list(product.shape), equals=[3, 4])
    lab.claim("sum", error_kind(lab, torch.add, x, y), equals="RuntimeError")


def claim_dtypes(lab, device, sized, dtype):
    lab.stage("numbers of Python and of NumPy")
    imported = {"torch": torch}  # by the listing of the source
    error = error_kind(lab, eval, "torch.tensor(np.random.normal([3, 5]))", imported)
    lab.claim("no-import", error, equals="NameError")

    if sized:
        drawn = np.random.normal(size=[3, 5])
    else:
        drawn = np.random.normal([3, 5])
    lab.claim("normal", list(drawn.shape), equals=[2], answers=drawn.size)

    tensors = [torch.tensor(0.5), torch.zeros(3), torch.tensor(1)]
    dtypes = [str(tensor.dtype) for tensor in tensors]
    lab.claim("default", dtypes, equals=["torch.float32", "torch.float32", "torch.int64"])

    numbers = torch.tensor(np.random.normal(size=[3, 5])).to(device, dtype)
    layer = torch.nn.Linear(5, 4, device=device)
    measured = [str(numbers.dtype), error_kind(lab, layer, numbers)]
    lab.claim("float64", measured, equals=["torch.float64", "RuntimeError"])


def claim_memory(lab, convert, largest):
    lab.axes("made_bytes", x="numbers in the array", y="allocated for the tensor", log="x")
    make = getattr(torch, convert)
    lab.claim("kept", shown_after_a_write(make), equals=0)
    lab.claim("shared", shown_after_a_write(torch.from_numpy), equals=7)
    for power in lab.sweep(range(8, largest + 1), "sizes"):
        array = np.ones(2**power, dtype=np.float32)
        made = bytes_allocated(make, array)
        shared = bytes_allocated(torch.from_numpy, array)
        lab.log(2**power, arm=convert, made_bytes=made)
        lab.log(2**power, arm="from_numpy", made_bytes=shared)
    lab.claim("bytes", [made, shared], equals=[array.nbytes, 0])


def claim_way_back(lab, device):
    lab.stage("the way back")
    tensor = torch.zeros(3)
    array = tensor.numpy()
    tensor[0] = 7
    lab.claim("back", array[0], equals=7)
    weight = torch.ones(3, requires_grad=True)
    lab.claim("gradient", error_kind(lab, weight.numpy), equals="RuntimeError")
    if device.type != "cuda":
        lab.claim("gpu", lacks="a CUDA device")
        return
    on_gpu = torch.ones(3, device=device)
    lab.claim("gpu", error_kind(lab, on_gpu.numpy), equals="TypeError")


def run(
    lab: Lab,
    convert: Literal["tensor", "as_tensor"] = "tensor",  # the function that makes a tensor
    sized: bool = False,  # draw with size=[3, 5]
    to: Literal["float64", "float32"] = "float64",  # dtype of NumPy's numbers for the layer
    largest: int = 22,  # the largest array has two to this power numbers, 10..28 (quick 16)
) -> None:
    device = lab.device()
    claim_shapes(lab, device)
    claim_dtypes(lab, device, sized, getattr(torch, to))
    claim_memory(lab, convert, largest)
    claim_way_back(lab, device)
