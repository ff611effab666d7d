"""How GPUs multiply float32: as it is, or cut to TF32."""

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

PRECISIONS = ("ieee", "tf32")


@contextlib.contextmanager
def precision(name: str) -> Iterator[None]:
    """Let GPUs multiply and convolve float32 as it is ("ieee") or cut to TF32 ("tf32") meanwhile; asks no GPU anything."""
    matmul: Any = torch.backends.cuda.matmul  # torch does not tell the types of its switches
    cudnn: Any = torch.backends.cudnn
    newer = (matmul, cudnn.conv, cudnn.rnn)
    previous = [backend.fp32_precision for backend in newer]
    try:
        older = matmul.allow_tf32, cudnn.allow_tf32
    except (
        RuntimeError
    ):  # a scenario that has used the newer switches: torch reads the older ones no more
        older = None
    if older:
        matmul.allow_tf32 = cudnn.allow_tf32 = name == "tf32"
    for backend in newer:
        backend.fp32_precision = name
    try:
        yield
    finally:
        if older:
            matmul.allow_tf32, cudnn.allow_tf32 = older
        for backend, precision_before in zip(newer, previous, strict=True):
            backend.fp32_precision = precision_before
