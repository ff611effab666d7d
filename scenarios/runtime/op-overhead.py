"""A call for one number takes as long as a call for a thousand: small tensors pay by the call.

Before an operator touches a number, Python reads its arguments, the dispatcher finds the kernel for device,
dtype and layout, the allocator makes a tensor and, if an input requires a gradient, autograd a node; on a GPU
a kernel is launched. That takes a microsecond or several, and nothing of it depends on how many numbers there
are. So the time of a call over its size is a flat line that later becomes a ramp. On the flat part smaller
tensors save nothing, and only fewer calls help. On the ramp the bytes count.

The first chart shows both. A view is a call without any work: it stays on the floor at every size. Where `add` leaves the
floor depends on the box: at some ten thousand numbers on one core, far later on a GPU, which works on many at once and is
launched from the same slow Python.

Three ways to fewer calls: one call for the whole instead of one for each piece; a batch instead of a loop over its rows; one
operator of the library instead of the formula written out. The third saves bytes as well, because each step of a formula
writes its result to memory and the next one reads it again.
## Predict
Adding 1 to 65,536 numbers in pieces of 64: how many times as long does it take as adding 1 to all of them in one call?
## Look for
- [pieces] adding 1 to 65,536 numbers takes 1025 operators in pieces of 64, and 1 whole
- [same-bytes] the results of both ways have the same bytes
- [views] five kinds of views are each one operator, and none makes a byte
- [rows] a layer that is called for 64 rows one by one calls 127 operators more, for as many floating-point operations
- [written-out] layer norm written out is 9 operators that make at least 5 times the bytes of its input
- [one-call] F.layer_norm is 1 operator that makes less than 1.1 times the bytes of its input
- [backward] the backward of what is written out calls at least 5 times as many operators as that of F.layer_norm
- [same-numbers] written out or in one call, output and gradients are the same to 1e-3
- [thousand] adding 1 to 1024 numbers takes at most twice as long as adding 1 to one number
- [whole] adding 1 to 65,536 numbers in pieces of 64 takes at least 10 times as long as in one call
## Try next
`--piece 16384`: 4 pieces and the call that splits. So few calls cost little, and [whole] is REFUTED. refutes: pieces
`--numbers 1000000`: a call for a million has work to do, and the claim [thousand] is REFUTED on a CPU.
## Source
EffectivePyTorch, chapter "Optimizing runtime with TorchScript", https://github.com/vahidk/EffectivePyTorch: many operators on
small tensors are inefficient. Ours: the size below which that holds, and all counts.
"""

import torch
import torch.nn.functional as F
from torch.utils.benchmark import Timer

from tuilab import Lab

VIEWS = {
    "x[0]": lambda x: x[0],
    "x[1:9]": lambda x: x[1:9],
    "x.t()": lambda x: x.t(),
    "x.view(-1)": lambda x: x.view(-1),
    "x.expand(2, -1, -1)": lambda x: x.expand(2, -1, -1),
}


def in_pieces(x, piece):  # (numbers,) -> some of (piece,)
    return [part + 1 for part in x.split(piece)]


def row_by_row(x, weight, bias):  # (rows, width) -> some of (1, units)
    return [F.linear(row, weight, bias) for row in x.split(1)]


def written_out(x, scale, shift):  # (rows, width), (width,), (width,)
    centred = x - x.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    return centred / (variance + 1e-5).sqrt() * scale + shift


def one_call(x, scale, shift):
    return F.layer_norm(x, scale.shape, scale, shift)


def run(
    lab: Lab,
    piece: int = 64,  # numbers in a piece of 65,536, 1..65536
    numbers: int = 1024,  # of the call that races with a call for one number, 1..10000000
) -> None:
    device = lab.device()
    x = torch.randn(2**16, device=device)

    @lab.once
    def exact():
        lab.axes("call_ms", x="numbers in the tensor", y="one call", log="xy")
        for power in lab.sweep(range(0, 21, 2), "calls for more and more numbers"):
            tensor = torch.ones(2**power, device=device)
            for arm, call in {"view": "tensor.view(-1)", "add": "tensor + 1", "exp": "tensor.exp()"}.items():
                timer = Timer(call, globals={"tensor": tensor})
                lab.log(2**power, arm=arm, call_ms=1e3 * timer.blocked_autorange(min_run_time=0.01).median)

        lab.stage("counting operators and bytes")
        parts, whole = lab.count(in_pieces, x, piece), lab.count(torch.add, x, 1)
        lab.claim("pieces", [parts.operators, whole.operators], equals=[1025, 1])
        lab.claim("same-bytes", [parts.born_bytes, whole.born_bytes], equals=[x.nbytes] * 2, unit="B")
        table = x.view(256, 256)
        views = [lab.count(view, table) for view in VIEWS.values()]
        lab.claim("views", [[view.operators, view.born_bytes] for view in views], equals=[[1, 0]] * 5)
        weight, bias, batch = torch.randn(128, 256, device=device), torch.zeros(128, device=device), table[:64]
        rows, at_once = (lab.count(layer, batch, weight, bias) for layer in (row_by_row, F.linear))
        more = [rows.operators - at_once.operators, rows.flops - at_once.flops]
        lab.claim("rows", more, equals=[127, 0])  # two a row, and the call that splits

        leaves = [tensor.requires_grad_() for tensor in (table.clone(), torch.ones_like(table[0]), torch.zeros_like(table[0]))]
        formula, library = (lab.count(norm, *leaves, backward=True) for norm in (written_out, one_call))
        counted = {"pieces": parts, "whole": whole, "row by row": rows, "batch": at_once}
        counted |= {"layer norm written out": formula, "F.layer_norm": library}
        lab.bars("operators", {name: one.operators for name, one in counted.items()})
        lab.bars("bytes made", {name: one.born_bytes for name, one in counted.items()}, unit="B")
        lab.claim("written-out", [formula.operators, formula.born_bytes >= 5 * table.nbytes], equals=[9, True])
        lab.claim("one-call", [library.operators, library.born_bytes < 1.1 * table.nbytes], equals=[1, True])
        lab.claim("backward", formula.backward.operators / library.backward.operators, at_least=5)
        pairs = zip([formula.value, *formula.backward.value], [library.value, *library.backward.value], strict=True)
        lab.claim("same-numbers", max((ours - theirs).abs().max() for ours, theirs in pairs), at_most=1e-3)

    lab.stage("timing")
    one, many = x[:1].clone(), torch.ones(numbers, device=device)
    lab.claim_ratio("thousand", "many/one", at_most=2)
    lab.claim_ratio("whole", "pieces/whole", at_least=10, answers=True)
    lab.race(many=lambda: many + 1, one=lambda: one + 1, pieces=lambda: in_pieces(x, piece), whole=lambda: x + 1, seconds=0.3)
