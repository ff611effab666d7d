"""A recommendation model has less than one FLOP for each byte that it reads, and a larger batch does not change that.

A linear layer or a convolution uses each byte of its weights again for every row of the batch: 8 times the batch is 8 times the
FLOPs for each byte, and what computes fastest wins. A model such as DLRM looks up rows of large tables instead,
and adds them. Another sample has other rows, so bytes grow with the batch as FLOPs do. What is left is less than a FLOP a byte.
A core computes several times that while one byte comes from memory: it waits. So does a GPU; it reads faster than a CPU, if the
tables fit into its memory. Tables of hundreds of GB do not, and that is why small models with large tables train on CPUs.

How it is written decides how much is read. `nn.EmbeddingBag` makes a gradient as large as its table, unless you say
`sparse=True`: all rows are written, and the optimizer goes through all of them, for the few that the batch looked up. With it
the gradient has only these, and SGD and SparseAdam touch no others. torch's FLOP counter does not see the sums of a lookup.
## Predict
A model looks up rows of large tables. With 8 times the batch, how many times as many FLOPs has it for each byte of these rows?
## Look for
- [rows] 8 times the batch gives the model at most 1.1 times the FLOPs for each byte of rows that it reads
- [no-flops] torch counts no FLOPs for the lookups
- [one] the model has at most 1 FLOP for each of these bytes
- [conv] a convolution has at least 50 times as many for each byte of its image and its weights
- [dense] the gradient of the tables has as many bytes as the tables
- [sparse] with sparse=True it has the bytes of the rows that were read, and 8 more for the number of each
- [same] both have the same values
- [time] to look up rows of 256 MiB takes at least 1.5 times as long as the same number of rows of 128 KiB
## Try next
`--rows 2000`: small tables, and rows that a batch looks up again and again; refutes: rows, one
`--no-sparse`: the naive gradient in its place. refutes: sparse
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 18,
https://www.toymoban.com/news/detail-808122.html: a CPU suits small models and memory-bound models, such as DLRM; no numbers.
Ours: all counts, the gradients and the race.
"""

from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from tuilab import Lab

TABLES, WIDTH, LOOKUPS = 16, 32, 32  # the second: numbers in a row; the last: rows of a table for a sample


def look_up(tables, indices, sparse=False):
    return [F.embedding_bag(i, table, mode="sum", sparse=sparse) for table, i in zip(tables, indices, strict=True)]


def model(bottom, top, tables, numbers, indices):
    return top(torch.cat([bottom(numbers), *look_up(tables, indices)], 1))  # (batch, 1)


def batch_of(size, rows):
    return torch.rand(size, 13), torch.randint(rows, (TABLES, size, LOOKUPS))


def read_bytes(indices):
    """Bytes of the rows that a batch reads; a row that it looks up twice is read once."""
    return sum(len(i.unique()) for i in indices) * WIDTH * 4


def gradient_bytes(gradient):
    """Bytes of a gradient; of a sparse one, of its rows and their numbers, those of one row added up."""
    gradient = gradient.coalesce() if gradient.is_sparse else gradient
    return gradient.indices().nbytes + gradient.values().nbytes if gradient.is_sparse else gradient.nbytes


def run(
    lab: Lab,
    rows: int = 50_000,  # rows of a table, 1..10000000
    batch: int = 32,  # samples, 1..10000
    sparse: bool = True,  # the second gradient of the tables
    mib: int = 256,  # size of the table in the race in MiB, 1..100000
) -> None:
    @lab.once
    def exact():
        bottom, top = nn.Linear(13, WIDTH), nn.Sequential(nn.Linear((TABLES + 1) * WIDTH, 32), nn.ReLU(), nn.Linear(32, 1))
        layer, tables = top[0], [torch.randn(rows, WIDTH, requires_grad=True) for _ in range(TABLES)]
        lab.axes("flops_per_byte", x="samples in a batch", y="FLOPs a byte", log="xy")
        of_rows = []
        for size in lab.sweep([batch, 2 * batch, 4 * batch, 8 * batch], "batches"):
            numbers, indices = batch_of(size, rows)
            of_rows.append(lab.count(model, bottom, top, tables, numbers, indices).flops / read_bytes(indices))
            of_weights = lab.count(layer, torch.rand(size, layer.in_features)).flops / layer.weight.nbytes
            lab.log(size, arm="model, a byte of rows", flops_per_byte=of_rows[-1])
            lab.log(size, arm="linear layer, a byte of weights", flops_per_byte=of_weights)
        lab.claim("rows", of_rows[-1] / of_rows[0], at_most=1.1, answers=True)
        lab.claim("one", max(of_rows), at_most=1)
        conv, image = nn.Conv2d(64, 64, 3, padding=1), torch.rand(1, 64, 56, 56)
        of_conv = lab.count(conv, image).flops / (2 * image.nbytes + conv.weight.nbytes)  # read, written
        lab.claim("conv", of_conv / of_rows[0], at_least=50)

        lab.stage("gradients of the tables")
        _, indices = batch_of(batch, rows)
        dense, thin = (lab.count(partial(look_up, sparse=kind), tables, indices, backward=True) for kind in (False, sparse))
        lab.claim("no-flops", dense.flops, equals=0)
        lab.claim("dense", dense.backward.born_bytes, equals=sum(table.nbytes for table in tables), unit="B")
        kept = sum(map(gradient_bytes, thin.backward.value))
        lab.claim("sparse", kept, equals=read_bytes(indices) // (4 * WIDTH) * (4 * WIDTH + 8), unit="B")
        pairs = zip(dense.backward.value, thin.backward.value, strict=True)
        lab.claim("same", all(torch.equal(full.to_dense(), part.to_dense()) for full, part in pairs))
        lab.bars("gradients of the tables", {"dense": dense.backward.born_bytes, f"sparse={sparse}": kept}, unit="B")

    lab.stage("rows from memory against rows from a cache")
    table, near = torch.ones(mib << 13, WIDTH), torch.randint(1024, (1 << 15, LOOKUPS))  # a row has 128 bytes
    far = torch.randint(len(table), (1 << 15, LOOKUPS))
    lab.claim_ratio("time", "memory/cache", at_least=1.5)
    look = partial(F.embedding_bag, weight=table, mode="sum")
    lab.race(memory=lambda: look(far), cache=lambda: look(near), same=0.0, seconds=0.3)
