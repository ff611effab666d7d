"""Let a column broadcast instead of repeating it: half the bytes, the same bits.

Code often repeats a column before it adds it to a table, because the shapes should be equal. It
need not: broadcasting stretches each dimension of size 1. So a column (rows, 1) fits a table (rows,
columns), and `a + b` gives exactly the numbers of `a + b.repeat(1, columns)`.

`repeat` writes a copy for each column of the table, and the sum then reads all copies. Broadcasting
writes no copy. It gives the stretched dimension the stride 0, so all columns are the same memory.
`b.expand(rows, columns)` returns such a view, which takes no memory either.
A write in place into this view is refused, because one write would change many elements. If you
need to write, make the copies first with `clone`.

The backward of a stretched dimension is a sum. So the gradient of the column is a column again, and
each of its numbers is a sum over a row of the table. A product keeps its two factors for backward:
a column if the column was broadcast, a whole table if it was repeated.

In practice: write `a + b` and `a * b` without `repeat` or `tile`. If a function needs equal
shapes, pass `b.expand_as(a)`. Use `repeat` only for copies that you write to.
## Predict
a is a table (256, 1024), b a column (256, 1). After (a + b).sum().backward(), what is each number
in the gradient of b?
## Look for
- [valid] (3, 2) + (3, 1) has the shape (3, 2)
- [equal] for a column b, a + b and a + b.repeat(1, columns) are the same bit for bit
- [operators] a + b calls 1 operator, and a + b.repeat(1, columns) calls 2
- [bytes] a + b.repeat(1, columns) allocates twice as many bytes as a + b
- [peak] at the peak of a + b.repeat(1, columns) twice as many new bytes are alive as at that of
  a + b
- [stride] b.expand(rows, columns) of a column b has the strides 1 and 0
- [written] a write in place into b.expand(rows, columns) raises a RuntimeError
- [gradient] the gradient of (a + b).sum() for the column b has the shape of b, and each number in
  it is the number of columns
- [gradients] a + b and a + b.repeat(1, columns) give the same gradients bit for bit
- [saved] for backward a * b keeps the table a and the column b; a * b.repeat(1, columns) keeps two
  tables
## Try next
`--tile expand`: the view replaces the repeated column. refutes: bytes, peak, saved
`--clone`: the write goes to a copy of the view, where each column has its own memory.
refutes: written
## Source
EffectivePyTorch, chapter "Broadcasting the good and the ugly",
https://github.com/vahidk/EffectivePyTorch: (3, 2) + (3, 1), and that the tiled tensor is not
stored. Ours: the bytes, the strides and backward.
"""

from typing import Literal

import torch

from tuilab import Lab


def repeated(b, columns):
    return b.repeat(1, columns)  # (rows, 1) -> (rows, columns), written out


def expanded(b, columns):
    return b.expand(-1, columns)  # the same shape, a view


TILES = {"repeat": repeated, "expand": expanded}


def add(a, b):  # (rows, columns), (rows, 1) or (rows, columns)
    return a + b


def multiply(a, b):
    return a * b


def tiled(operation, tile):
    """Return the operation with its second argument made as wide as the first."""

    def operation_with_tile(a, b):
        return operation(a, tile(b, a.shape[1]))

    return operation_with_tile


def count_broadcast_and_tiled(lab, operation, tile, a, b):
    """Return the costs of the operation with broadcasting, and of its tiled form."""
    with_broadcast = lab.count(operation, a, b, backward=True)
    with_tile = lab.count(tiled(operation, tile), a, b, backward=True)
    return with_broadcast, with_tile


def claim_view(lab, b, columns, is_cloned):
    lab.stage("the view")
    view = b.detach().expand(-1, columns)
    lab.claim("stride", list(view.stride()), equals=[1, 0])
    target = view
    if is_cloned:
        target = view.clone()
    error = lab.raises(target.add_, 1)
    lab.claim("written", error.partition(":")[0], equals="RuntimeError")


def claim_gradients(lab, plain, with_tile, b, columns):
    lab.stage("backward")
    gradients = {}
    for gradient in plain.backward.value:
        gradients[gradient.shape] = gradient
    column = gradients[b.shape]
    ends = [column.min().item(), column.max().item()]
    lab.claim("gradient", ends, equals=[columns, columns], answers=column.max())

    are_equal = []
    for gradient in with_tile.backward.value:
        are_equal.append(torch.equal(gradient, gradients[gradient.shape]))
    lab.claim("gradients", are_equal, equals=[True, True])


def run(
    lab: Lab,
    rows: int = 256,  # of the table, 2..100000
    columns: int = 1024,  # of the table, 8..100000 (quick 256)
    tile: Literal["repeat", "expand"] = "repeat",  # what replaces broadcasting
    clone: bool = False,  # copy the view before the write
) -> None:
    device = lab.device()
    small = torch.ones(3, 2, device=device) + torch.ones(3, 1, device=device)
    lab.claim("valid", list(small.shape), equals=[3, 2])

    lab.axes("made_bytes", x="columns of the table", y="allocated by the sum")
    lab.axes("saved_bytes", x="columns of the table", y="kept by the product")
    b = torch.randn(rows, 1, device=device, requires_grad=True)
    widths = [columns * part // 8 for part in range(1, 9)]
    for width in lab.sweep(widths, "widths"):
        a = torch.randn(rows, width, device=device, requires_grad=True)
        sums = count_broadcast_and_tiled(lab, add, TILES[tile], a, b)
        products = count_broadcast_and_tiled(lab, multiply, TILES[tile], a, b)
        for index, arm in enumerate(("broadcast", tile)):
            made_bytes = sums[index].born_bytes
            saved_bytes = products[index].saved_bytes
            lab.log(width, arm=arm, made_bytes=made_bytes, saved_bytes=saved_bytes)

    plain, with_tile = sums  # of the whole table
    bars = {"broadcast": plain.born_bytes, tile: with_tile.born_bytes}
    lab.bars("bytes of the sum", bars, unit="B")
    lab.claim("equal", torch.equal(plain.value, with_tile.value))
    lab.claim("operators", [plain.operators, with_tile.operators], equals=[1, 2])
    lab.claim("bytes", with_tile.born_bytes / plain.born_bytes, equals=2)
    lab.claim("peak", with_tile.peak_bytes / plain.peak_bytes, equals=2)
    saved = [count.saved_bytes for count in products]
    column_and_table = 4 * rows * (columns + 1)
    two_tables = 8 * rows * columns
    lab.claim("saved", saved, equals=[column_and_table, two_tables], unit="B")

    claim_view(lab, b, columns, clone)
    claim_gradients(lab, plain, with_tile, b, columns)
