"""To save memory, ask what each operator keeps: its input, its output or nothing.

For backward, an operator keeps the tensors that appear in the formula of its derivative. The square
z = y ** 2 has the derivative 2 * y, so it keeps its input y. The sigmoid p = sigmoid(z) has the
derivative p * (1 - p), so it keeps its output p, and z is freed. The subtraction y = x - 2 has the
derivative 1 and keeps nothing.

The experiment has the chain `y = x - 2; z = y ** 2; p = sigmoid(z)`. The source of this chain says
that y and z are kept. That is right if the chain ends with a SiLU, because the derivative of a SiLU
is computed from its input.

A tensor that is kept must not change. Autograd counts the writes into each tensor, and backward
raises an error if a kept tensor was written to. All other tensors may be overwritten: after a write
into z the gradient is still right. So a ReLU can work in place after a Linear, which does not keep
its output. After a sigmoid it causes an error in backward. Backward frees the kept tensors while it
runs, so a second backward through the same graph raises an error.

Instead of keeping y, backward can compute x - 2 again. A checkpoint does this, but it must contain
the operator that keeps y, which is the square. The checkpoint then keeps x, which costs nothing if
x is in memory anyway. A checkpoint around the subtraction alone saves nothing: the square still
keeps y, and the checkpoint keeps x as well. The gain is the memory between forward and backward.
The peak of this short chain stays the same: backward of the square needs the most memory, and y has
been computed again by then.

In practice: write `nn.ReLU(inplace=True)` after a Linear or a convolution. Put a cheap operator
into a checkpoint together with the next operator that keeps its output. To see what your net keeps,
print `tensor.shape` in the hooks of `torch.autograd.graph.saved_tensors_hooks`.
## Predict
Each of x, y, z and p has 1,048,576 numbers in float32, which is 4 MiB. How many MiB does the graph
of this chain keep for backward?
## Look for
- [kept] the chain y = x - 2, z = y ** 2, p = sigmoid(z) keeps y and p
- [bytes] for 1,048,576 numbers in x, in float32, the chain keeps 8,388,608 bytes
- [write] backward of the chain raises an error after a write into y or p, and gives the right
  gradient after one into x or z
- [live] of the tensors y, z and p, 2 are alive when the chain returns p, and 1 if no gradient is
  recorded
- [once] a second backward through the same graph raises a RuntimeError
- [after] after the backward of the chain 2 tensors are alive: p and the gradient of x
- [recompute] with a checkpoint around x - 2 and the square, the chain keeps x and p
- [recompute-live] with a checkpoint around x - 2 and the square, 1 of the tensors y, z and p is
  alive when the chain returns p
- [recompute-peak] the peak of the chain with its backward is 5 tensors, without a checkpoint and
  with one around x - 2 and the square
- [recompute-calls] the backward of the chain computes x - 2 0 times, and 1 time with a checkpoint
  around x - 2 and the square
- [recompute-gradient] with a checkpoint around x - 2 and the square, the gradient of x is the same
  bit for bit
- [recompute-alone] with a checkpoint around x - 2 alone, the chain keeps x, y and p
- [nothing] of 13 operators these keep neither input nor output: x-2, -x, mean
- [input] of 13 operators these keep their input: x**2, gelu, silu, sin, log
- [output] of 13 operators these keep their output: relu, sigmoid, tanh, exp, sqrt
- [relu-in-place] backward through a ReLU in place works after a Linear, and raises an error after a
  sigmoid
## Try next
`--last silu`: the derivative of a SiLU is computed from its input, so the chain keeps y and z, as
the source says. These take as many bytes as y and p, but p is alive as well. refutes: kept, live,
write, recompute, recompute-live, recompute-alone
`--last neg`: the operator -z keeps nothing, so only y is kept. refutes: kept, bytes, write,
recompute, recompute-alone
## Source
"Training tricks" (in Chinese, after https://github.com/owenliang/torch-thins), section "Activation
checkpointing": the chain, and the advice to compute x - 2 again. Ours: the writes, the table of
operators, the bytes, and where the checkpoint must end.
"""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

from tuilab import Lab

SIZE = 1 << 20  # numbers in x


def subtract_two(x):
    return x - 2


def square_of_difference(x):
    return subtract_two(x) ** 2


UNARY = {
    "x-2": subtract_two,
    "-x": torch.neg,
    "mean": torch.mean,
    "x**2": torch.square,
    "gelu": F.gelu,
    "silu": F.silu,
    "sin": torch.sin,
    "log": torch.log,
    "relu": torch.relu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "exp": torch.exp,
    "sqrt": torch.sqrt,
}
LAST = {"sigmoid": torch.sigmoid, "silu": F.silu, "neg": torch.neg}


def chain(last, x):  # all (SIZE,)
    y = subtract_two(x)
    z = y**2
    p = last(z)
    return {"x": x, "y": y, "z": z, "p": p}


def chain_with_checkpoint(last, x):
    z = checkpoint(square_of_difference, x, use_reentrant=False)
    p = last(z)
    return {"x": x, "z": z, "p": p}


def chain_with_small_checkpoint(last, x):
    y = checkpoint(subtract_two, x, use_reentrant=False)
    z = y**2
    p = last(z)
    return {"x": x, "y": y, "z": z, "p": p}


def end_of(form, last, x):
    return form(last, x)["p"]


def operator(function, x):
    x = x.clone()
    return {"input": x, "output": function(x)}


def names_of_kept(form, *args):
    """Return the names of the tensors that autograd keeps while `form` makes them."""
    kept = []

    def pack(tensor):
        kept.append(tensor.data_ptr())
        return tensor

    def unpack(tensor):
        return tensor

    with saved_tensors_hooks(pack, unpack):
        tensors = form(*args)
    names = [name for name, tensor in tensors.items() if tensor.data_ptr() in kept]
    return " ".join(names)


def gradient_of(form, last, x):
    (gradient,) = torch.autograd.grad(end_of(form, last, x).sum(), x)
    return gradient


def gradient_after_write(last, x, name):
    """Write into a tensor of the chain before backward."""
    tensors = chain(last, x)
    with torch.no_grad():
        tensors[name].add_(1)
    (gradient,) = torch.autograd.grad(tensors["p"].sum(), x)
    return gradient


def outcome_of_write(last, x, name):
    expected = gradient_of(chain, last, x)
    x = x.detach().clone().requires_grad_()
    try:
        gradient = gradient_after_write(last, x, name)
    except RuntimeError:  # autograd noticed the write into a tensor that it keeps
        return "refused"
    return "the same" if torch.equal(gradient, expected) else "another"


def backward_twice(x):
    total = x.square().sum()
    total.backward()
    total.backward()


def backward_through_relu_in_place(layer, device):
    x = torch.ones(4, 8, device=device, requires_grad=True)
    torch.relu_(layer(x)).sum().backward()


def claim_peaks(lab, last, x):
    lab.axes("live_bytes", x="allocations and releases", y="bytes alive")
    lab.stage("the chain")
    peaks = []
    for arm, form in {"recorded": chain, "checkpoint": chain_with_checkpoint}.items():
        with lab.memory("chain", arm=arm, timeline=True) as memory:
            gradient_of(form, last, x)
        peaks.append(memory.peak_bytes // x.nbytes)
    lab.claim("recompute-peak", peaks, equals=[5, 5])
    with lab.memory("chain", arm="no gradient", timeline=True), torch.no_grad():
        end_of(chain, last, x).sum()


def claim_chain(lab, last, x):
    lab.claim("kept", names_of_kept(chain, last, x), equals="y p")
    counted = lab.count(end_of, chain, last, x, backward=True)
    kept_mib = counted.saved_bytes / 2**20
    lab.claim("bytes", counted.saved_bytes, equals=2 * 4 * SIZE, unit="B", answers=kept_mib)
    with torch.no_grad():
        without_gradient = lab.count(end_of, chain, last, x)
    alive = [counted.live_bytes / x.nbytes, without_gradient.live_bytes / x.nbytes]
    lab.claim("live", alive, equals=[2, 1])
    lab.claim("after", counted.backward.live_bytes / x.nbytes, equals=2)
    return counted.backward.calls["aten.sub"]


def claim_recompute(lab, last, x, subtractions):
    lab.stage("computing x - 2 again")
    lab.claim("recompute", names_of_kept(chain_with_checkpoint, last, x), equals="x p")
    kept = names_of_kept(chain_with_small_checkpoint, last, x)
    lab.claim("recompute-alone", kept, equals="x y p")
    counted = lab.count(end_of, chain_with_checkpoint, last, x, backward=True)
    lab.claim("recompute-live", counted.live_bytes / x.nbytes, equals=1)
    calls = [subtractions, counted.backward.calls["aten.sub"]]
    lab.claim("recompute-calls", calls, equals=[0, 1])
    gradient = gradient_of(chain_with_checkpoint, last, x)
    lab.claim("recompute-gradient", torch.equal(gradient, gradient_of(chain, last, x)))


def claim_writes(lab, last, x):
    lab.stage("writes")
    outcomes = {name: outcome_of_write(last, x, name) for name in "xyzp"}
    lab.table("gradient after a write", list(outcomes.items()), head=("write into", "gradient"))
    expected = ["the same", "refused", "the same", "refused"]
    lab.claim("write", list(outcomes.values()), equals=expected)
    lab.claim("once", lab.raises(backward_twice, x).partition(":")[0], equals="RuntimeError")

    is_refused = []
    for layer in (nn.Linear(8, 8, device=x.device), torch.sigmoid):
        error = lab.raises(backward_through_relu_in_place, layer, x.device)
        is_refused.append(error != "")
    lab.claim("relu-in-place", is_refused, equals=[False, True])


def claim_operators(lab, x):
    lab.stage("operators")
    names = {"nothing": [], "input": [], "output": []}
    rows = []
    for name, function in UNARY.items():
        kept = names_of_kept(operator, function, x) or "nothing"
        names[kept].append(name)
        rows.append((name, kept))
    title = "what an operator keeps of its input and its output"
    lab.table(title, rows, head=("operator", "keeps"))
    lab.claim("nothing", " ".join(names["nothing"]), equals="x-2 -x mean")
    lab.claim("input", " ".join(names["input"]), equals="x**2 gelu silu sin log")
    lab.claim("output", " ".join(names["output"]), equals="relu sigmoid tanh exp sqrt")


def run(lab: Lab, last: Literal["sigmoid", "silu", "neg"] = "sigmoid") -> None:  # ends the chain
    x = torch.linspace(-1, 5, SIZE, device=lab.device()).requires_grad_()
    last = LAST[last]
    claim_peaks(lab, last, x)
    subtractions = claim_chain(lab, last, x)
    claim_recompute(lab, last, x, subtractions)
    claim_writes(lab, last, x)
    claim_operators(lab, x)
