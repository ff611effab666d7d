"""Broadcasting is a repeat that nobody stores: the same sum with half the bytes.

A column (rows, 1) fits a table (rows, columns): its dimension of size 1 is stretched. The result is that of `b.repeat(1,
columns)`, to the last bit. But repeat writes the column down as often as there are columns, and the sum reads that.
Broadcasting sets a stride: along a stretched dimension it is 0, and every column is the same memory.

`b.expand(rows, columns)` returns such a view, which takes no bytes. So a repeat in front of an operator can be left out or be
an expand. Only where somebody writes to the copies must they exist: in place an expanded tensor is refused, as one write
would show in many places.

Backward has it the other way round. What was stretched is summed, so the gradient of the column is a column again. For a
product the factors are saved: of the column as many bytes as it has, of the repeated one as many as of the table.
## Predict
a is a table (256, 1024), b a column (256, 1). After (a + b).sum().backward(), what is each number in the gradient of b?
## Look for
- [valid] (3, 2) + (3, 1) has the shape (3, 2)
- [equal] a + b and a + b.repeat(1, columns) are the same bit for bit
- [operators] they call 1 and 2 operators
- [bytes] the repeated form makes twice as many bytes
- [peak] of the repeated form twice as many bytes live at once
- [stride] b.expand(rows, columns) has the strides 1 and 0
- [written] a write into it is refused
- [gradient] the gradient of b is a column, each number of it the count of columns
- [gradients] both forms give the same gradients bit for bit
- [saved] a * b saves the table and the column, the repeated form two tables
## Try next
`--tile expand`: the view in place of the repeat. refutes: bytes, peak, saved
`--clone`: written to a copy of the view, whose columns are memory of their own. refutes: written
## Source
EffectivePyTorch, chapter "Broadcasting the good and the ugly", https://github.com/vahidk/EffectivePyTorch: (3, 2) + (3, 1),
and that the tile is not stored. Ours: the bytes, the strides and backward.
"""

from typing import Literal

import torch

from tuilab import Lab


def repeated(b, columns):
    return b.repeat(1, columns)  # (rows, 1) -> (rows, columns), written down


def expanded(b, columns):
    return b.expand(-1, columns)  # the same shape, a view


TILES = {"repeat": repeated, "expand": expanded}


def add(a, b):
    return a + b


def multiply(a, b):
    return a * b


def tiled(f, tile):
    """The function with its second argument made as wide as the first before it is called."""
    return lambda a, b: f(a, tile(b, a.shape[1]))


def run(
    lab: Lab,
    rows: int = 256,  # of the table, 2..100000
    columns: int = 1024,  # of the table, 8..100000 (quick 256)
    tile: Literal["repeat", "expand"] = "repeat",  # what stands in for broadcasting
    clone: bool = False,  # copy the view before somebody writes to it
) -> None:
    device = lab.device()
    make = TILES[tile]
    small = torch.ones(3, 2, device=device) + torch.ones(3, 1, device=device)
    lab.claim("valid", list(small.shape), equals=[3, 2])

    lab.axes("made_bytes", x="columns of the table", y="made by the sum")
    lab.axes("saved_bytes", x="columns of the table", y="saved by the product")
    for width in lab.sweep([columns * part // 8 for part in range(1, 9)], "widths"):
        a = torch.randn(rows, width, device=device, requires_grad=True)
        b = torch.randn(rows, 1, device=device, requires_grad=True)
        sums = [lab.count(f, a, b, backward=True) for f in (add, tiled(add, make))]
        products = [lab.count(f, a, b) for f in (multiply, tiled(multiply, make))]
        for arm, of_sum, of_product in zip(("broadcast", tile), sums, products, strict=True):
            lab.log(width, arm=arm, made_bytes=of_sum.born_bytes, saved_bytes=of_product.saved_bytes)
    plain, with_tile = sums
    lab.claim("equal", torch.equal(plain.value, with_tile.value))
    lab.claim("operators", [plain.operators, with_tile.operators], equals=[1, 2])
    lab.claim("bytes", with_tile.born_bytes / plain.born_bytes, equals=2)
    lab.claim("peak", with_tile.peak_bytes / plain.peak_bytes, equals=2)
    lab.claim("saved", [count.saved_bytes for count in products], equals=[4 * rows * (columns + 1), 8 * rows * columns])

    lab.stage("the view")
    view = b.detach().expand(rows, columns)
    lab.claim("stride", list(view.stride()), equals=[1, 0])
    lab.claim("written", lab.raises((view.clone() if clone else view).add_, 1).partition(":")[0], equals="RuntimeError")
    lab.bars("bytes of the sum", {"broadcast": plain.born_bytes, tile: with_tile.born_bytes}, unit="B")

    lab.stage("backward")
    by_shape = [{tuple(gradient.shape): gradient for gradient in count.backward.value} for count in sums]
    column = by_shape[0][rows, 1]
    lab.claim("gradient", [column.min().item(), column.max().item()], equals=[columns, columns], answers=column.max())
    lab.claim("gradients", all(torch.equal(by_shape[0][shape], by_shape[1][shape]) for shape in by_shape[0]))
