"""Tensors on the GPUs of `tests/fakes/cuda.py`: they hold no numbers, and what is done with them takes as long as SPEEDS say.

An operator is one kernel, of which the memory sets the pace; a product of matrices has the pace of its precision; a copy
between the host and a GPU that of pinned memory, or of memory that is not, which the host waits for. They take memory of the
GPU while they are there. Not modelled: caches, kernels that are too small to fill a GPU, copies beside kernels.
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
        gpu, size = self.model.gpus[index], like.numel() * like.element_size()
        if gpu.allocated + size > gpu.room:
            raise torch.OutOfMemoryError(f"CUDA out of memory. Tried to allocate {size} bytes.")
        gpu.allocate(size)
        weakref.finalize(self, gpu.allocate, -size)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Take copies before torch does, which looks for the driver first; and what needs no kernel."""
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
        tensors = [one for one in tree_leaves((args, kwargs)) if isinstance(one, torch.Tensor)]
        (index, *_) = {one.device.index for one in tensors if isinstance(one, OnGpu)}
        name = func.__name__.partition(".")[0]
        with cls.model.on(index):
            cls.model.work(1e9 * cls._seconds(name, tensors))
        if name.endswith("_"):
            return args[0]
        return kwargs["out"]  # what makes a tensor of its own is not modelled

    @staticmethod
    def _seconds(name: str, tensors: list[torch.Tensor]) -> float:
        if name == "mm":
            (rows, inner), columns = tensors[0].shape, tensors[1].shape[1]
            is_cut = tensors[0].dtype == torch.float32 and torch.backends.cuda.matmul.allow_tf32
            how = "ieee" if tensors[0].dtype == torch.float32 else str(tensors[0].dtype)
            return 2 * rows * inner * columns / SPEEDS["tf32" if is_cut else how]
        return sum(one.numel() * one.element_size() for one in tensors) / SPEEDS["memory"]

    @classmethod
    def _copy(
        cls, target: torch.Tensor, source: torch.Tensor, non_blocking: bool = False
    ) -> torch.Tensor:
        (index, *_) = {one.device.index for one in (target, source) if isinstance(one, OnGpu)}
        (*ours,) = (one for one in (target, source) if not isinstance(one, OnGpu))
        with cls.model.on(index):
            if not ours:
                cls.model.work(1e9 * cls._seconds("copy_", [target, source]))
                return target
            is_pinned = ours[0].data_ptr() in cls.pinned
            rate = SPEEDS[
                f"{'pinned' if is_pinned else 'pageable'} {'back' if ours[0] is target else 'to'}"
            ]
            cls.model.work(1e9 * source.numel() * source.element_size() / rate)
            if not (non_blocking and is_pinned):
                cls.model.current_stream().synchronize()
        return target


def give_tensors(patch: pytest.MonkeyPatch, cuda: "FakeCuda") -> None:
    """Let torch make tensors on the GPUs of a model."""
    OnGpu.model, OnGpu.pinned = cuda, set()
    for name in ("empty", "ones", "zeros"):
        patch.setattr(torch, name, _maker(cuda, getattr(torch, name)))


def _maker(cuda: "FakeCuda", make: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def made(
        *size: Any, device: Any = "cpu", pin_memory: bool = False, **more: Any
    ) -> torch.Tensor:
        where = torch.device(device)
        if where.type == "cuda":
            cuda.touch("a tensor")
            return OnGpu(make(*size, device="meta", **more), cuda.index_of(where))
        found = make(*size, device=where, **more)
        if pin_memory:
            OnGpu.pinned.add(found.data_ptr())
            weakref.finalize(found, OnGpu.pinned.discard, found.data_ptr())
        return found

    return made
