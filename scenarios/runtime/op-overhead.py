"""Give each call enough numbers: a call for one takes as long as for a thousand.

A net of many small operators spends most of its time on calls. Python reads the arguments, the
dispatcher finds the kernel for device, dtype and layout, and the allocator makes a tensor. If an
input requires a gradient, autograd also records a node. On a GPU the CPU launches a kernel. All
this takes a microsecond or several, whatever the number of elements.

So the time of a call over its size is a flat line that later becomes a ramp. On the flat part
smaller tensors save nothing, and only fewer calls help. On the ramp the bytes count. The first
chart shows both parts. A view is a call without any work: it stays on the floor at every size. The
place where `add` leaves the floor depends on the machine. On one core it is at some ten thousand
numbers. On a GPU it comes far later, because a GPU works on many numbers at once and is launched
from the same slow Python.

Three changes reduce the calls. Call once for the whole, not for each piece. Compute a batch, not
each of its rows. Take one operator of the library, not the written-out formula. The third change
also saves bytes, because each step of a formula writes its result to memory, and the next step
reads it again. A node of autograd is paid only if it is recorded: not for data, and not under
`torch.no_grad()`.

In practice: batch before you compute (`torch.stack`, then one call), and use `F.layer_norm` and the
like. Evaluate under `torch.no_grad()`. If a profile shows many kernels of a few microseconds, try
`torch.compile` or CUDA graphs.
## Predict
How many times as long does it take to add 1 to 65,536 numbers in pieces of 64 as in one call?
## Look for
- [pieces] adding 1 to 65,536 numbers takes 1025 operators in pieces of 64, and 1 operator in one
  call
- [same-bytes] in pieces or in one call, the results have the same bytes
- [views] each of five kinds of views is 1 operator that makes no bytes
- [rows] a layer that is called for 64 rows one by one calls 127 operators more, for as many
  floating-point operations
- [written-out] layer norm written out is 9 operators that make at least 5 times the bytes of its
  input
- [one-call] F.layer_norm is 1 operator that makes less than 1.1 times the bytes of its input
- [backward] the backward of the written-out layer norm calls at least 5 times as many operators as
  that of F.layer_norm
- [same-numbers] written out or in one call, output and gradients of layer norm are the same to 1e-3
- [nodes] x + 1 records no node for data, 2 nodes if x requires a gradient, and none under no_grad
- [thousand] adding 1 to 1024 numbers takes at most twice as long as adding 1 to one number
- [whole] adding 1 to 65,536 numbers in pieces of 64 takes at least 10 times as long as in one call
- [node-time] adding 1 to one number that requires a gradient takes at least 1.1 times as long as
  without
## Try next
`--piece 16384`: 4 pieces and the call that splits. So few calls cost little, and [whole] is
REFUTED. refutes: pieces
`--numbers 1000000`: a call for a million has work to do, and [thousand] is REFUTED on a CPU.
## Source
EffectivePyTorch, chapter "Optimizing runtime with TorchScript",
https://github.com/vahidk/EffectivePyTorch: many operators on small tensors are inefficient. Ours:
the size below which this is so, and all counts.
"""

import torch
import torch.nn.functional as F
from torch.utils.benchmark import Timer

from tuilab import Lab

CALLS = {"view": "tensor.view(-1)", "add": "tensor + 1", "exp": "tensor.exp()"}

VIEWS = {
    "x[0]": lambda x: x[0],
    "x[1:9]": lambda x: x[1:9],
    "x.t()": lambda x: x.t(),
    "x.view(-1)": lambda x: x.view(-1),
    "x.expand(2, -1, -1)": lambda x: x.expand(2, -1, -1),
}


def add_one(x):
    return x + 1


def add_in_pieces(x, piece):  # (numbers,) -> some of (piece,)
    return [part + 1 for part in x.split(piece)]


def apply_row_by_row(x, weight, bias):  # (rows, width) -> some of (1, units)
    return [F.linear(row, weight, bias) for row in x.split(1)]


def write_out_norm(x, scale, shift):  # (rows, width), (width,), (width,)
    centred = x - x.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    return centred / (variance + 1e-5).sqrt() * scale + shift


def call_norm(x, scale, shift):
    return F.layer_norm(x, scale.shape, scale, shift)


def measure_calls(lab, device):
    lab.axes("call_ms", x="numbers in the tensor", y="one call", log="xy")
    for power in lab.sweep(range(0, 21, 2), "calls for more and more numbers"):
        tensor = torch.ones(2**power, device=device)
        for name, call in CALLS.items():
            timer = Timer(call, globals={"tensor": tensor})
            call_ms = 1e3 * timer.blocked_autorange(min_run_time=0.01).median
            lab.log(2**power, arm=name, call_ms=call_ms)


def count_pieces(lab, x, piece):
    pieces = lab.count(add_in_pieces, x, piece)
    whole = lab.count(add_one, x)
    lab.claim("pieces", [pieces.operators, whole.operators], equals=[1025, 1])
    made = [pieces.born_bytes, whole.born_bytes]
    lab.claim("same-bytes", made, equals=[x.nbytes, x.nbytes], unit="B")
    return {"pieces": pieces, "whole": whole}


def count_views(lab, table):
    costs = []
    for view in VIEWS.values():
        counted = lab.count(view, table)
        costs.append([counted.operators, counted.born_bytes])
    lab.claim("views", costs, equals=[[1, 0]] * 5)


def count_rows(lab, batch):  # (64, 256)
    weight = torch.randn(128, 256, device=batch.device)
    bias = torch.zeros(128, device=batch.device)
    rows = lab.count(apply_row_by_row, batch, weight, bias)
    at_once = lab.count(F.linear, batch, weight, bias)
    more_operators = (
        rows.operators - at_once.operators
    )  # two for each row, and the call that splits
    more_flops = rows.flops - at_once.flops
    lab.claim("rows", [more_operators, more_flops], equals=[127, 0])
    return {"row by row": rows, "batch": at_once}


def count_norms(lab, table):  # (256, 256)
    x = table.clone().requires_grad_()
    scale = torch.ones_like(table[0]).requires_grad_()
    shift = torch.zeros_like(table[0]).requires_grad_()
    formula = lab.count(write_out_norm, x, scale, shift, backward=True)
    library = lab.count(call_norm, x, scale, shift, backward=True)
    makes_many = formula.born_bytes >= 5 * table.nbytes
    lab.claim("written-out", [formula.operators, makes_many], equals=[9, True])
    makes_few = library.born_bytes < 1.1 * table.nbytes
    lab.claim("one-call", [library.operators, makes_few], equals=[1, True])
    ratio = formula.backward.operators / library.backward.operators
    lab.claim("backward", ratio, at_least=5)

    differences = [(formula.value - library.value).abs().max()]
    gradients = zip(formula.backward.value, library.backward.value, strict=True)
    for of_formula, of_library in gradients:
        differences.append((of_formula - of_library).abs().max())
    lab.claim("same-numbers", max(differences), at_most=1e-3)
    return {"layer norm written out": formula, "F.layer_norm": library}


def count_nodes(lab, x):
    leaf = x.clone().requires_grad_()
    data = lab.count(add_one, x).nodes
    recorded = lab.count(add_one, leaf).nodes  # of the sum, and of the leaf
    with torch.no_grad():
        not_recorded = lab.count(add_one, leaf).nodes
    lab.claim("nodes", [data, recorded, not_recorded], equals=[0, 2, 0])


def run(
    lab: Lab,
    piece: int = 64,  # numbers in a piece of 65,536, 1..65536
    numbers: int = 1024,  # of the call that is compared with a call for one number, 1..10000000
) -> None:
    device = lab.device()
    x = torch.randn(2**16, device=device)

    @lab.once
    def exact():
        measure_calls(lab, device)
        lab.stage("counting operators and bytes")
        table = x.view(256, 256)
        counted = count_pieces(lab, x, piece)
        count_views(lab, table)
        counted |= count_rows(lab, table[:64])
        counted |= count_norms(lab, table)
        count_nodes(lab, x)
        operators = {}
        made_bytes = {}
        for name, count in counted.items():
            operators[name] = count.operators
            made_bytes[name] = count.born_bytes
        lab.bars("operators", operators)
        lab.bars("bytes made", made_bytes, unit="B")

    lab.stage("timing")
    one = x[:1].clone()
    leaf = x[:1].clone().requires_grad_()
    many = torch.ones(numbers, device=device)
    lab.claim_ratio("thousand", "many/one", at_most=2)
    lab.claim_ratio("whole", "pieces/whole", at_least=10, answers=True)
    lab.claim_ratio("node-time", "recorded/one", at_least=1.1)
    lab.race(
        many=lambda: many + 1,
        one=lambda: one + 1,
        recorded=lambda: leaf + 1,
        pieces=lambda: add_in_pieces(x, piece),
        whole=lambda: x + 1,
        seconds=0.3,
    )
