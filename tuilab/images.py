"""Small arrays as pictures: one byte a cell, so that a record holds them."""

import base64
import math
from typing import Any

import torch

from tuilab.events import ImageShown

_LIMIT = 128  # rows and columns


def image_shown(title: str, cells: Any, arm: str, step: int) -> ImageShown:
    """Return the record of an array as a picture; of a large one every n-th cell."""
    array = torch.as_tensor(cells).detach().to("cpu", torch.float32)
    if array.ndim != 2:
        raise ValueError(f"an image has 2 dimensions, not {array.ndim}")
    stride = [math.ceil(size / _LIMIT) or 1 for size in array.shape]
    array = array[:: stride[0], :: stride[1]]
    finite = array[array.isfinite()]
    low, high = (finite.min().item(), finite.max().item()) if finite.numel() else (0.0, 0.0)
    scaled = (array - low) * (254 / (high - low) if high > low else 0)
    levels = torch.where(array.isfinite(), scaled, 255).to(torch.uint8)
    return ImageShown(
        title=title,
        rows=levels.shape[0],
        cols=levels.shape[1],
        cells=base64.b64encode(bytes(levels.flatten().tolist())).decode(),
        low=low,
        high=high,
        arm=arm,
        step=step,
    )
