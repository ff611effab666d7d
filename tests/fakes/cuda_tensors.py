"""Tensors on the GPUs of `tests/fakes/cuda.py`: they hold no numbers, and take time and memory.

SPEEDS has how long operators take. Each operator is one kernel and is limited by the memory of the
GPU; a product of matrices is limited by its precision. A copy between host and GPU has the speed of
pinned or of pageable memory; the host waits for pageable memory. Not modelled: caches, kernels that
are too small for a GPU, copies during kernels.
"""

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch.utils._pytree import tree_leaves

if TYPE_CHECKING:
    from tests.fakes.cuda import FakeCuda

SPEEDS = {  # floating point operations and bytes a second
    "ieee": 50e12, "tf32": 400e12, "torch.bfloat16": 800e12, "torch.float16": 790e12,
    "memory": 4e12, "pinned to": 55e9, "pinned back": 53e9, "pageable to": 12e9, "pageable back": 9e9,
}  # fmt: skip


class OnGpu(torch.Tensor):
    """A tensor on a GPU of the model."""

    model: "FakeCuda"
    pinned: set[int]

    @staticmethod
    def __new__(cls, like: torch.Tensor, index: int) -> "OnGpu":
        device = torch.device("cuda", index)
        return torch.Tensor._make_wrapper_subclass(
            cls, like.shape, dtype=like.dtype, strides=like.stride(), device=device
        )

    def __init__(self, like: torch.Tensor, index: int) -> None:
        gpu = self.model.gpus[index]
        size = like.numel() * like.element_size()  # bytes
        if gpu.allocated + size > gpu.room:
            raise torch.OutOfMemoryError(f"CUDA out of memory. Tried to allocate {size} bytes.")
        gpu.allocate(size)
        weakref.finalize(self, gpu.allocate, -size)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Handle copies before torch looks for the driver, and functions that need no kernel."""
        if func is torch.Tensor.copy_:
            return cls._copy(*args, **(kwargs or {}))
        if func is torch.empty_like:
            (like,) = args
            meta = torch.empty_strided(like.shape, like.stride(), dtype=like.dtype, device="meta")
            return OnGpu(meta, like.device.index)
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        leaves = tree_leaves((args, kwargs))
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        (index, *_) = {tensor.device.index for tensor in tensors if isinstance(tensor, OnGpu)}
        name = func.__name__.partition(".")[0]
        with cls.model.on(index):
            cls.model.work(1e9 * cls._seconds(name, tensors))
        if name.endswith("_"):
            return args[0]
        return kwargs["out"]  # operators that make a tensor are not modelled

    @staticmethod
    def _seconds(name: str, tensors: list[torch.Tensor]) -> float:
        """Return how long an operator takes."""
        if name == "mm":
            left, right = tensors[:2]
            rows, inner = left.shape
            columns = right.shape[1]
            return 2 * rows * inner * columns / SPEEDS[_precision(left.dtype)]
        size_bytes = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
        return size_bytes / SPEEDS["memory"]

    @classmethod
    def _copy(
        cls, target: torch.Tensor, source: torch.Tensor, non_blocking: bool = False
    ) -> torch.Tensor:
        on_gpu = target if isinstance(target, OnGpu) else source
        on_host = None
        if not isinstance(target, OnGpu):
            on_host = target
        elif not isinstance(source, OnGpu):
            on_host = source
        with cls.model.on(on_gpu.device.index):
            if on_host is None:
                cls.model.work(1e9 * cls._seconds("copy_", [target, source]))
                return target
            is_pinned = on_host.data_ptr() in cls.pinned
            memory = "pinned" if is_pinned else "pageable"
            direction = "back" if on_host is target else "to"
            bytes_per_s = SPEEDS[f"{memory} {direction}"]
            cls.model.work(1e9 * source.numel() * source.element_size() / bytes_per_s)
            if not (non_blocking and is_pinned):
                cls.model.current_stream().synchronize()
        return target


def give_tensors(patch: pytest.MonkeyPatch, cuda: "FakeCuda") -> None:
    """Let torch make tensors on the GPUs of a model."""
    OnGpu.model = cuda
    OnGpu.pinned = set()
    for name in ("empty", "ones", "zeros"):
        patch.setattr(torch, name, _maker(cuda, getattr(torch, name)))


def _precision(dtype: torch.dtype) -> str:
    """Return the key in SPEEDS of a product of matrices."""
    if dtype != torch.float32:
        return str(dtype)
    return "tf32" if torch.backends.cuda.matmul.allow_tf32 else "ieee"


def _maker(cuda: "FakeCuda", make: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Return a function of torch that makes tensors on the GPUs of a model as well."""

    def make_anywhere(
        *size: Any, device: Any = "cpu", pin_memory: bool = False, **more: Any
    ) -> torch.Tensor:
        place = torch.device(device)
        if place.type == "cuda":
            cuda.touch("a tensor")
            return OnGpu(make(*size, device="meta", **more), cuda.index_of(place))
        tensor = make(*size, device=place, **more)
        if pin_memory:
            OnGpu.pinned.add(tensor.data_ptr())
            weakref.finalize(tensor, OnGpu.pinned.discard, tensor.data_ptr())
        return tensor

    return make_anywhere
