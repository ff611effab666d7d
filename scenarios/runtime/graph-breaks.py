"""Keep prints and .item() out of compiled functions: each one splits the graph.

torch.compile does not read your source. It follows the bytecode of a call, with tensors that have a
shape but no numbers. It writes down each operator until the function returns: a graph, for which a
backend then writes kernels. Sometimes Python needs a number: for `.item()`, for a print, or for
`if y.sum() > 0`. The graph ends there and is compiled. Python does this one thing with real
numbers, and a new graph begins after it. No error is raised, and the values stay right. But no
kernel spans the break, and on a GPU Python waits there until all queued work is done.

A break inside a loop costs more. torch.compile cannot continue in the middle of a loop, so it gives
up the whole function. It may still compile functions of yours that this function calls, but no
layers of torch. A net that prints in the loop over its layers has no graph left.

Most breaks can be avoided, because they need no number. Divide by the tensor, not by its `.item()`.
Choose with `torch.where` instead of `if`. Print after the function has returned. Graphs are counted
here before a backend gets them, so the lesson needs no C++ compiler.

In practice: compile with `torch.compile(f, fullgraph=True)`. It raises an error at the first break,
and names the line. `torch._dynamo.explain(f)(x)` lists all breaks of a call.
## Predict
A function of eight operators prints in three places between them. Into how many graphs is it
compiled?
## Look for
- [prints] a function of 8 operators with 3 prints between them becomes 4 graphs of 2 operators
- [broken] .item(), a print and an if on a sum make 2 graphs each
- [mended] a tensor instead of .item(), torch.where instead of if, and no print make 1 graph each
- [shape] an if on the shape leaves 1 graph
- [helper] a print in a function that is called breaks the caller as well: at least 2 graphs
- [loop] a net of 8 layers in a loop is 1 graph, and with a print at one of the layers 0 graphs
- [same] compiled, all ten functions return the same values as uncompiled, bit for bit
- [fullgraph] with fullgraph=True the print raises Unsupported
- [explain] for 3 prints torch._dynamo.explain lists 3 breaks
## Try next
`--prints 1`: one break and two graphs, of 2 and 6 operators. refutes: prints, explain
## Source
The documentation of torch.compile,
https://docs.pytorch.org/docs/stable/torch.compiler.html. Ours: the counts, and the loop.
"""

import contextlib
import io
import logging
from functools import partial

import torch
from torch import nn
from torch._dynamo import explain

from tuilab import Lab

SCALINGS = (
    ".item()",
    "a tensor instead",
    "if on a sum",
    "torch.where instead",
    "if on a shape",
)


def chain(x, prints):  # eight operators
    x = (x + 1).sin()
    if prints > 0:
        print(x)
    x = (x + 1).sin()
    if prints > 1:
        print(x)
    x = (x + 1).sin()
    if prints > 2:
        print(x)
    return (x + 1).sin()


def call_chain(x):
    return chain(x.exp(), 1).sqrt()


def scale(x, how):
    y = x.exp()
    if how == ".item()":
        y = y / y.sum().item()
    if how == "a tensor instead":
        y = y / y.sum()
    if how == "torch.where instead":
        y = torch.where(y.sum() > 9, y + 1, y)
    if how == "if on a sum" and y.sum() > 9:
        y = y + 1
    if how == "if on a shape" and x.shape[0] > 4:
        y = y + 1
    return y.sqrt()


def apply_layers(x, layers, printing=None):
    for number, layer in enumerate(layers):
        x = layer(x).relu()
        if number == printing:
            print(x)
    return x


class OperatorCounter:
    """A backend that writes no kernels, and counts the operators of each graph that it gets."""

    def __init__(self):
        self.sizes = []

    def __call__(self, graph, examples):
        size = 0
        for node in graph.graph.nodes:
            if node.op.startswith("call"):
                size += 1
        self.sizes.append(size)
        return graph


def count_operators(function, x):
    """Return the operators of each graph, and whether the compiled call returns the same values."""
    torch.compiler.reset()
    counter = OperatorCounter()
    compiled = torch.compile(function, backend=counter)
    with contextlib.redirect_stdout(io.StringIO()):  # of the functions that print
        is_same = torch.equal(compiled(x), function(x))
    return counter.sizes, is_same


def count_breaks(function, x):
    torch.compiler.reset()
    with contextlib.redirect_stdout(io.StringIO()):
        explanation = explain(function)(x)
    return explanation.graph_break_count


def build_cases(device):
    layers = [nn.Linear(8, 8, device=device) for _ in range(8)]
    cases = {}
    for how in SCALINGS:
        cases[how] = partial(scale, how=how)
    cases["print"] = partial(chain, prints=1)
    cases["no print"] = partial(chain, prints=0)
    cases["print in a function called"] = call_chain
    cases["8 layers in a loop"] = partial(apply_layers, layers=layers)
    cases["print in that loop"] = partial(apply_layers, layers=layers, printing=3)
    return cases


def compile_chains(lab, x, prints):
    """Compile the chain with more and more prints."""
    lab.axes("graphs", x="prints between the operators", y="graphs")
    for count in lab.sweep(range(prints + 1), "more and more prints"):
        sizes, _ = count_operators(partial(chain, prints=count), x)
        lab.log(count, graphs=len(sizes))
    lab.claim("prints", sizes, equals=[2, 2, 2, 2], answers=len(sizes))
    lab.claim("explain", count_breaks(partial(chain, prints=prints), x), equals=3)


def compile_cases(lab, x, cases):
    graphs = {}
    are_same = []
    rows = []
    for name in lab.sweep(cases, "ten functions"):
        sizes, is_same = count_operators(cases[name], x)
        graphs[name] = len(sizes)
        are_same.append(is_same)
        operators = " + ".join(str(size) for size in sizes)
        rows.append([name, len(sizes), operators or "nothing compiled"])
    lab.table("graphs", rows, head=("with", "graphs", "operators in each"))

    broken = [graphs[".item()"], graphs["print"], graphs["if on a sum"]]
    lab.claim("broken", broken, equals=[2, 2, 2])
    mended = [graphs["a tensor instead"], graphs["no print"], graphs["torch.where instead"]]
    lab.claim("mended", mended, equals=[1, 1, 1])
    lab.claim("shape", graphs["if on a shape"], equals=1)
    lab.claim("helper", graphs["print in a function called"], at_least=2)
    lab.claim("loop", [graphs["8 layers in a loop"], graphs["print in that loop"]], equals=[1, 0])
    lab.claim("same", are_same, equals=[True] * 10)


def run(
    lab: Lab,
    prints: int = 3,  # between the operators of the chain, 0..3
) -> None:
    # Dynamo logs a warning for .item(), which is the subject here.
    logging.getLogger("torch._dynamo").setLevel(logging.ERROR)
    x = torch.rand(8, device=lab.device())
    compile_chains(lab, x, prints)
    cases = build_cases(x.device)
    compile_cases(lab, x, cases)
    whole = torch.compile(cases["print"], backend="eager", fullgraph=True)
    lab.claim("fullgraph", "Unsupported" in lab.raises(whole, x))
