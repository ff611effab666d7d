"""One print or .item() splits a compiled function in two; inside a loop it leaves the function uncompiled.

torch.compile does not read your source. It follows the bytecode of a call, with tensors that have a shape but no numbers, and
writes down each operator until the function returns: a graph, for which a backend then writes kernels. Where Python needs a
number, there is none: `.item()` wants it, print wants it, `if y.sum() > 0` wants it to know where to go on. So the graph ends
there. It is compiled, Python does that one thing with real numbers, and a new graph begins behind it. No error is raised, the
values stay right. But no kernel spans the break, and on a GPU Python waits there until all is computed.

In a loop it is worse: torch.compile cannot go on in the middle of one, and gives up the whole function. It may still compile
functions of yours that this one calls, but no layers of torch: a net that prints in the loop over its layers has no graph left.

Most breaks need no number. Divide by the tensor, not by its `.item()`. Choose with torch.where. Print when the function has
returned. `fullgraph=True` raises at the first break and names the line; `torch._dynamo.explain(f)(x)` lists them all. Graphs
are counted here before a backend gets them, so no C++ compiler is needed.
## Predict
A function of eight operators prints in three places between them. Into how many graphs is it compiled?
## Look for
- [prints] with 3 prints on its way a function of 8 operators is 4 graphs of 2
- [broken] .item(), a print and an if on a sum make two graphs each
- [mended] a tensor for .item(), torch.where for the if, and the print moved out: one graph each
- [shape] an if on the shape leaves one graph
- [helper] a print in a function that is called breaks the caller as well: at least two graphs
- [loop] a net of 8 layers in a loop is one graph; with a print at one of them it is none
- [same] compiled, all return bitwise what they return as they are
- [fullgraph] fullgraph=True raises Unsupported for the print
## Try next
`--prints 1`: one break and two graphs, of 2 and 6 operators. refutes: prints
## Source
The documentation of torch.compile, https://docs.pytorch.org/docs/stable/torch.compiler.html. Ours: the counts, and the loop.
"""

import contextlib
import io
import logging
from functools import partial

import torch
from torch import nn

from tuilab import Lab


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


def scaled(x, how):
    y = x.exp()
    if how == ".item()":
        y = y / y.sum().item()
    if how == "a tensor instead":
        y = y / y.sum()
    if how == "torch.where instead":
        y = torch.where(y.sum() > 9, y + 1, y)
    if (how == "if on a sum" and y.sum() > 9) or (how == "if on a shape" and x.shape[0] > 4):
        y = y + 1
    return y.sqrt()


def net(x, layers, printing=None):
    for number, layer in enumerate(layers):
        x = layer(x).relu()
        if number == printing:
            print(x)
    return x


def graphs_of(f, x):
    """The number of operators in each graph of a call, and whether it returns what it does without torch.compile."""
    sizes = []

    def backend(graph, examples):  # compiles nothing
        sizes.append(sum(node.op.startswith("call") for node in graph.graph.nodes))
        return graph

    torch.compiler.reset()
    with contextlib.redirect_stdout(io.StringIO()):
        return sizes, torch.equal(torch.compile(f, backend=backend)(x), f(x))


def run(
    lab: Lab,
    prints: int = 3,  # between the operators of the chain, 0..3
) -> None:
    logging.getLogger("torch._dynamo").setLevel(logging.ERROR)  # it warns of .item() on stderr, which is the subject here
    x = torch.rand(8, device=lab.device())
    lab.axes("graphs", x="prints on the way", y="graphs")
    for count in lab.sweep(range(prints + 1), "more and more prints"):
        sizes, _ = graphs_of(partial(chain, prints=count), x)
        lab.log(count, graphs=len(sizes))
    lab.claim("prints", sizes, equals=[2] * 4, answers=len(sizes))
    layers = [nn.Linear(8, 8, device=x.device) for _ in range(8)]
    ways = (".item()", "a tensor instead", "if on a sum", "torch.where instead", "if on a shape")
    cases = {way: partial(scaled, how=way) for way in ways} | {
        "print": partial(chain, prints=1),
        "no print": partial(chain, prints=0),
        "print in a function called": lambda x: chain(x.exp(), 1).sqrt(),
        "8 layers in a loop": partial(net, layers=layers),
        "print in that loop": partial(net, layers=layers, printing=3),
    }
    found = {name: graphs_of(f, x) for name, f in zip(cases, lab.sweep(cases.values(), "ten functions"), strict=True)}
    number = {name: len(sizes) for name, (sizes, _) in found.items()}
    rows = [(name, len(sizes), " + ".join(map(str, sizes)) or "nothing compiled") for name, (sizes, _) in found.items()]
    lab.table("graphs", rows, head=("with", "graphs", "operators in each"))
    lab.claim("broken", [number[name] for name in (".item()", "print", "if on a sum")], equals=[2] * 3)
    lab.claim("mended", [number[name] for name in ("a tensor instead", "no print", "torch.where instead")], equals=[1] * 3)
    lab.claim("shape", number["if on a shape"], equals=1)
    lab.claim("helper", number["print in a function called"], at_least=2)
    lab.claim("loop", [number["8 layers in a loop"], number["print in that loop"]], equals=[1, 0])
    lab.claim("same", [is_same for _, is_same in found.values()], equals=[True] * 10)
    lab.claim("fullgraph", "Unsupported" in lab.raises(torch.compile(cases["print"], backend="eager", fullgraph=True), x))
