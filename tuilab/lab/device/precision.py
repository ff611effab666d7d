"""Switch between exact float32 and TF32 on GPUs."""

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

PRECISIONS = ("ieee", "tf32")


@contextlib.contextmanager
def precision(name: str) -> Iterator[None]:
    """Use exact float32 ("ieee") or TF32 ("tf32") for products and convolutions in a `with` block.

    No GPU is asked anything.
    """
    matmul: Any = torch.backends.cuda.matmul  # the switches of torch have no types
    cudnn: Any = torch.backends.cudnn
    newer = (matmul, cudnn.conv, cudnn.rnn)
    previous = [backend.fp32_precision for backend in newer]
    try:
        older = matmul.allow_tf32, cudnn.allow_tf32
    except RuntimeError:  # torch refuses the older switches after the newer ones were used
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
