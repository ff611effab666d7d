"""Small arrays as pictures: one byte a cell, so that a record holds them."""

import base64
import math
from typing import Any

import torch

from tuilab.lab.given import told
from tuilab.record.events import ImageShown

_LIMIT = 128  # rows and columns


def image_shown(title: str, cells: Any, arm: str, step: int) -> ImageShown:
    """Return the record of an array as a picture; of a large one every n-th cell."""
    array = _array(cells)
    stride = [math.ceil(size / _LIMIT) or 1 for size in array.shape]
    array = array[:: stride[0], :: stride[1]]
    finite = array[array.isfinite()]
    low, high = (finite.min().item(), finite.max().item()) if finite.numel() else (0.0, 0.0)
    unit = 2.0 if high - low == math.inf else 1.0  # so that the difference is a number
    span = high / unit - low / unit
    scaled = (array / unit - low / unit) / span * 254 if span > 0 else array * 0
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


def _array(cells: Any) -> torch.Tensor:
    """Return the cells as numbers in rows and columns."""
    try:
        array = torch.as_tensor(cells).detach()
        if array.is_complex():
            raise TypeError("they are complex")
        array = array.to("cpu", torch.float64)
    except Exception as problem:
        raise TypeError(f"cells takes rows of numbers, not {told(cells)}: {problem}") from problem
    if array.ndim != 2 or array.layout is not torch.strided:
        raise ValueError(f"cells takes an image of 2 dimensions, not of {array.ndim}")
    return array
