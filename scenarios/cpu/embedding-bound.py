"""Make embedding gradients sparse, and buy bandwidth: lookups compute little.

A recommendation model such as DLRM looks up rows of large tables and adds them. On the hardware
that makes a network of convolutions fast, such a model often is not faster. The reason is the
number of FLOPs for each byte that it reads.

A linear layer or a convolution uses each byte of its weights again for every row of the batch. With
8 times the batch it has 8 times the FLOPs for each byte, so the fastest arithmetic wins. A lookup
is different: each sample has rows of its own, and a row is only added once. A core computes several
FLOPs while one byte arrives from memory, so it waits. A GPU waits as well, but its memory is faster
than that of a CPU. Tables of hundreds of GB do not fit into it, which is why such models are often
trained on CPUs.

How the lookup is written decides how much is read and written. By default `nn.EmbeddingBag` makes a
gradient as large as its table. All its rows are written, and the optimizer visits all rows, for the
few that the batch looked up. A sparse gradient contains only the rows of the batch. torch's FLOP
counter does not see the additions of a lookup.

If a GPU is there, its lookup is compared with a copy of as many bytes, and bars show both in GB/s.
A lookup reads 128 bytes at a time from random places, so it is slower than a copy.

In practice: build large tables with `nn.EmbeddingBag(rows, width, mode="sum", sparse=True)`, and
train them with `torch.optim.SparseAdam` or SGD. Give the dense layers an optimizer of their own,
because Adam refuses sparse gradients. Choose hardware for its GB/s, not for its TFLOP/s.
## Predict
A model looks up rows of large tables. With 8 times the batch, how many times as many FLOPs has it
for each byte of these rows?
## Look for
- [rows] with 8 times the batch, the model has at most 1.1 times the FLOPs for each byte of rows
- [no-flops] torch's counter finds 0 FLOPs in the lookups
- [one] the model has at most 1 FLOP for each byte of rows that it reads
- [conv] for each byte of image and weights, a convolution has at least 50 times as many FLOPs as
  the model for a byte of rows
- [dense] the default gradient of the tables has as many bytes as the tables
- [sparse] with sparse=True the gradient has the bytes of the rows that were read, and 8 more for
  the number of each row
- [same] the default gradient and the sparse gradient have the same values
- [optimizers] SGD and SparseAdam train with a sparse gradient, and Adam raises a RuntimeError
- [time] on a CPU, a lookup of rows from 256 MiB takes at least 1.5 times as long as of as many rows
  from 128 KiB
- [hbm] on a GPU, a lookup of rows from 1 GiB takes at most 3 times as long as a copy that moves as
  many bytes
## Try next
`--rows 2000`: small tables, whose rows a large batch looks up again. refutes: rows, one
`--no-sparse`: both gradients are dense, as by default. refutes: sparse
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 18,
https://www.toymoban.com/news/detail-808122.html: a CPU suits small models and memory-bound models,
such as DLRM, without numbers. Ours: all counts, the gradients and the races.
"""

import statistics
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from tuilab import Lab

TABLES = 16
WIDTH = 32  # numbers in a row
LOOKUPS = 32  # rows of a table for each sample
ROW_BYTES = 4 * WIDTH
CPU_SAMPLES = 1 << 15
GPU_SAMPLES = 1 << 18
GPU_TABLE_BYTES = 1 << 30  # several times the cache of any GPU


def look_up(tables, indices, sparse=False):
    """Return a tensor (batch, WIDTH) for each table."""
    sums = []
    for table, rows in zip(tables, indices, strict=True):
        sums.append(F.embedding_bag(rows, table, mode="sum", sparse=sparse))
    return sums


def predict(bottom, top, tables, numbers, indices):
    parts = [bottom(numbers), *look_up(tables, indices)]
    return top(torch.cat(parts, dim=1))  # (batch, 1)


def draw_batch(size, rows):
    numbers = torch.rand(size, 13)
    indices = torch.randint(rows, (TABLES, size, LOOKUPS))
    return numbers, indices


def count_read_rows(indices):
    """Return how many rows a batch reads; a row that it looks up twice is read once."""
    return sum(len(rows.unique()) for rows in indices)


def gradient_bytes(gradient):
    """Return the bytes of a gradient, or of the rows and row numbers of a sparse gradient."""
    if not gradient.is_sparse:
        return gradient.nbytes
    gradient = gradient.coalesce()  # adds up the gradients of a row
    return gradient.indices().nbytes + gradient.values().nbytes


def flops_per_byte_of_image(lab):
    conv = nn.Conv2d(64, 64, 3, padding=1)
    image = torch.rand(1, 64, 56, 56)
    nbytes = 2 * image.nbytes + conv.weight.nbytes  # the image is read, and another is written
    return lab.count(conv, image).flops / nbytes


def log_flops_per_byte(lab, tables, sizes):
    """Return the FLOPs of the model for each byte of rows, for each size of the batch."""
    lab.axes("flops_per_byte", x="samples in a batch", y="FLOPs a byte", log="xy")
    bottom = nn.Linear(13, WIDTH)
    layer = nn.Linear((TABLES + 1) * WIDTH, 32)
    top = nn.Sequential(layer, nn.ReLU(), nn.Linear(32, 1))
    per_byte = []
    for size in lab.sweep(sizes, "batches"):
        numbers, indices = draw_batch(size, len(tables[0]))
        flops = lab.count(predict, bottom, top, tables, numbers, indices).flops
        per_byte.append(flops / (count_read_rows(indices) * ROW_BYTES))
        of_layer = lab.count(layer, torch.rand(size, layer.in_features)).flops
        lab.log(size, arm="model, a byte of rows", flops_per_byte=per_byte[-1])
        per_weight_byte = of_layer / layer.weight.nbytes
        lab.log(size, arm="linear layer, a byte of weights", flops_per_byte=per_weight_byte)
    return per_byte


def train_once(optimizer):
    """Make a step of this class of optimizers with a sparse gradient."""
    table = nn.EmbeddingBag(100, WIDTH, mode="sum", sparse=True)
    table(torch.zeros(1, LOOKUPS, dtype=torch.long)).sum().backward()
    optimizer(table.parameters(), lr=0.1).step()


def race_on_gpu(lab, device):
    """Compare a lookup with a copy of as many bytes, and show the GB/s of both."""
    table = torch.ones(GPU_TABLE_BYTES // ROW_BYTES, WIDTH, device=device)
    indices = torch.randint(len(table), (GPU_SAMPLES, LOOKUPS), device=device)
    read_bytes = indices.numel() * ROW_BYTES + indices.nbytes
    moved_bytes = read_bytes + GPU_SAMPLES * ROW_BYTES  # the sums are written
    half = torch.ones(moved_bytes // 8, device=device)  # float32; a copy reads and writes it
    arms = {
        "lookup": partial(F.embedding_bag, indices, table, mode="sum"),
        "copy": half.clone,
    }
    race = lab.race(**arms, seconds=0.3)
    speeds = {}
    for arm in arms:
        speeds[arm] = moved_bytes / statistics.median(race.step_s[arm]) / 1e9
    lab.bars("GB/s of the GPU's memory", speeds)


def run(
    lab: Lab,
    rows: int = 50_000,  # rows of a table, 1..10000000
    batch: int = 32,  # samples, 1..10000
    sparse: bool = True,  # the second gradient of the tables
    mib: int = 256,  # size of the table in the race on the CPU in MiB, 1..100000
) -> None:
    device = lab.device()

    @lab.once
    def exact():
        tables = []
        for _ in range(TABLES):
            tables.append(torch.randn(rows, WIDTH, requires_grad=True))
        per_byte = log_flops_per_byte(lab, tables, [batch, 2 * batch, 4 * batch, 8 * batch])
        lab.claim("rows", per_byte[-1] / per_byte[0], at_most=1.1, answers=True)
        lab.claim("one", max(per_byte), at_most=1)
        lab.claim("conv", flops_per_byte_of_image(lab) / per_byte[0], at_least=50)

        lab.stage("gradients of the tables")
        _, indices = draw_batch(batch, rows)
        look_up_sparse = partial(look_up, sparse=sparse)
        dense = lab.count(look_up, tables, indices, backward=True)
        thin = lab.count(look_up_sparse, tables, indices, backward=True)
        lab.claim("no-flops", dense.flops, equals=0)
        table_bytes = sum(table.nbytes for table in tables)
        dense_bytes = dense.backward.born_bytes
        lab.claim("dense", dense_bytes, equals=table_bytes, unit="B")
        thin_bytes = sum(gradient_bytes(gradient) for gradient in thin.backward.value)
        row_bytes = count_read_rows(indices) * (ROW_BYTES + 8)
        lab.claim("sparse", thin_bytes, equals=row_bytes, unit="B")
        is_same = True
        for full, part in zip(dense.backward.value, thin.backward.value, strict=True):
            is_same = is_same and torch.equal(full.to_dense(), part.to_dense())
        lab.claim("same", is_same)
        bars = {"dense": dense_bytes, f"sparse={sparse}": thin_bytes}
        lab.bars("gradients of the tables", bars, unit="B")

        errors = []
        for optimizer in (torch.optim.SGD, torch.optim.SparseAdam, torch.optim.Adam):
            errors.append(lab.raises(train_once, optimizer).partition(":")[0])
        lab.claim("optimizers", errors, equals=["", "", "RuntimeError"])

    lab.stage("rows from memory against rows from a cache")
    lab.claim_ratio("time", "memory/cache", at_least=1.5)
    lacks = "" if device.type == "cuda" else "a CUDA device"
    lab.claim_ratio("hbm", "lookup/copy", at_most=3, lacks=lacks)
    table = torch.ones((mib << 20) // ROW_BYTES, WIDTH)
    near = torch.randint(1024, (CPU_SAMPLES, LOOKUPS))  # rows of 128 KiB
    far = torch.randint(len(table), (CPU_SAMPLES, LOOKUPS))
    arms = {
        "memory": partial(F.embedding_bag, far, table, mode="sum"),
        "cache": partial(F.embedding_bag, near, table, mode="sum"),
    }
    lab.race(**arms, same=0.0, seconds=0.3, device=torch.device("cpu"))

    if lacks:
        return
    lab.stage("rows from the memory of the GPU against a copy")
    race_on_gpu(lab, device)
