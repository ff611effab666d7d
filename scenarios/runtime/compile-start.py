"""Count the calls before you compile: the first call costs thousands of steps.

`torch.compile(net)` compiles nothing yet. The first call of the compiled net traces the Python code
into a graph, and writes C++ or Triton code that another compiler translates. This takes seconds to
minutes. Each later call saves only a part of a step. So a long training earns this price back, but
a test, a notebook or a short evaluation may not.

Three things change the price. The first is the size of the graph. A net of equal blocks can be
compiled block by block: call `block.compile()` for each block. Blocks of one class share their
graphs, so the price does not grow with the depth. In training the blocks share two graphs: the
input of the first block needs no gradient, and the inputs of the others do. But a step then calls
each compiled block from Python. Each call checks the guards of the block: the conditions under
which its graph is valid. Write each block as a class of your own. If the block is an
`nn.Sequential` of torch's own layers, `.compile()` compiles nothing and does not warn, because
torch.compile skips the code of `torch.nn`.

The second is a changed shape: the first call with another shape compiles the whole graph again. The
usual case is the last batch of the first epoch, if it is smaller. `torch._dynamo.mark_dynamic(x,
0)` before the first call declares that the first dimension of x varies. This mark is strict: if a
comparison such as `len(x) == 32` is true and so fixes the size, the first call raises an error.
`maybe_mark_dynamic` raises no error, but a new size can then compile again.

The third is the cache directory of the kernels. If a second process has the same code, version of
torch and hardware, it reads the kernels from this directory, and only traces again.

The lesson counts graphs and operators with a backend that writes no kernels. With `--compile` it
also measures the price with kernels.

In practice: divide the time of the first call by the time that a compiled call saves. Compile if
you make more calls than this. Compile repeated blocks one by one. Mark the batch dimension with
`mark_dynamic`. Set `TORCHINDUCTOR_CACHE_DIR` to a directory that outlives the job.
## Predict
A net of 12 blocks, each a class with 4 operators, is compiled block by block. How many operators
are compiled in the first training step?
## Look for
- [lazy] torch.compile() makes 0 graphs, the first call makes 1, and a second call with the same
  shape makes none
- [whole] compiled as a whole, a net of n blocks with 4 operators each becomes 1 graph of 4n
  operators
- [by-block] block by block, the first training step compiles 2 graphs of 4 operators each, for 2
  blocks and for 12
- [by-block-eval] block by block without gradients, the first call of a net of 12 blocks compiles 1
  graph of 4 operators
- [shape] a smaller batch compiles all operators again: 48 for a whole net of 12 blocks, and 8 block
  by block
- [marked] with mark_dynamic on the batch dimension, four batch sizes make 1 graph, and without
  mark_dynamic they make 2
- [strict] if `x.shape[0] == 32` is true in the first call, mark_dynamic leads to a
  ConstraintViolationError, and maybe_mark_dynamic does not
- [sequential] for an nn.Sequential of torch's own layers, net.compile() makes 0 graphs, and
  torch.compile(net) makes 1
- [same] with a backend that writes no kernels, compiled calls return the values of the uncompiled
  net bit for bit
- [trace-time] a first compiled call of one operator takes at least 50 times as long as a later
  call, even if no kernels are written
- [cache] a first compiled call takes at least twice as long with an empty cache directory as with
  the kernels in that directory
- [break-even] with an empty cache directory, a first compiled call takes longer than the time that
  1000 later calls save
- [cached-break-even] with the kernels in the cache directory, a first compiled call takes longer
  than the time that 100 later calls save
## Try next
`--blocks 1`: nothing is repeated, and one graph has all operators. refutes: shape
`--cut whole`: the net is always compiled as a whole, so no block shares a graph. refutes: by-block,
by-block-eval, shape
`--compile`: kernels are written as well, so that the cache and the calls to break even can be
measured. This takes 20 to 90 seconds, and needs a C++ compiler.
## Source
- "Reducing torch.compile cold start compilation time with regional compilation",
  https://docs.pytorch.org/tutorials/recipes/regional_compilation.html: compile a repeated block,
  not the whole net.
- "Compile Time Caching in torch.compile",
  https://docs.pytorch.org/tutorials/recipes/torch_compile_caching_tutorial.html: the caches.
- Ours: the counts, the shapes, the Sequential that is skipped, and the calls to break even.
"""

import contextlib
import logging
import math
import os
import tempfile
import time
import types
import warnings
from functools import partial
from typing import Literal

import torch
import torch.nn.functional as F
from torch import nn
from torch._dynamo import mark_dynamic, maybe_mark_dynamic
from torch.utils.benchmark import Timer

from tuilab import Lab

WIDTH = 64
ROWS = 32


class Block(nn.Module):
    """A block of four operators."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH)
        self.second = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):  # (rows, width)
        return x + self.second(F.gelu(self.first(x)))


class Net(nn.Module):
    def __init__(self, blocks):
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(blocks)])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


class GraphCounter:
    """A backend that writes no kernels, and counts the graphs and operators that it gets."""

    def __init__(self):
        self.graphs = 0
        self.operators = 0

    def __call__(self, graph, examples):
        self.graphs += 1
        for node in graph.graph.nodes:
            self.operators += node.op == "call_function"
        return graph

    def read(self):
        return [self.graphs, self.operators]


def compile_net(net, cut, backend):
    """Compile a net as a whole or block by block, and return the function to call."""
    if cut == "whole":
        return torch.compile(net, backend=backend)
    for block in net.blocks:
        block.compile(backend=backend)
    return net


def count_compiled(blocks, cut, batches, has_gradients=True):
    """Return graphs and operators after each batch, and whether the values are the same."""
    torch.compiler.reset()
    net = Net(blocks)
    with torch.set_grad_enabled(has_gradients):
        expected = [net(batch) for batch in batches]
        counter = GraphCounter()
        compiled = compile_net(net, cut, counter)
        counts = [counter.read()]
        are_same = True
        for batch, value in zip(batches, expected, strict=True):
            is_same = torch.equal(compiled(batch), value)
            are_same = are_same and is_same
            counts.append(counter.read())
    return counts, are_same


def claim_counts(lab, blocks, cut):
    lab.stage("whole, and block by block")
    x = torch.randn(ROWS, WIDTH)
    small = x[:7]
    whole, is_same = count_compiled(blocks, "whole", [x, x, small])
    lab.claim("lazy", [graphs for graphs, _ in whole[:3]], equals=[0, 1, 1])
    lab.claim("whole", whole[1], equals=[1, 4 * blocks])

    two, _ = count_compiled(2, cut, [x])
    many, _ = count_compiled(12, cut, [x])
    answer = many[1][1]
    lab.claim("by-block", [two[1], many[1]], equals=[[2, 8], [2, 8]], answers=answer)
    inferred, _ = count_compiled(12, cut, [x], has_gradients=False)
    lab.claim("by-block-eval", inferred[1], equals=[1, 4])

    parts, is_same_by_part = count_compiled(blocks, cut, [x, x, small])
    again = [counts[3][1] - counts[2][1] for counts in (whole, parts)]
    lab.claim("shape", again, equals=[48, 8])
    lab.claim("same", is_same and is_same_by_part)


def draw_depths(lab):
    lab.axes("operators", x="blocks", y="operators that are compiled")
    x = torch.randn(ROWS, WIDTH)
    for blocks in lab.sweep([1, 2, 4, 8], "deeper and deeper nets"):
        for cut in ("whole", "blocks"):
            counts, _ = count_compiled(blocks, cut, [x])
            lab.log(blocks, arm=cut, operators=counts[1][1])


def count_marked(mark):
    """Return how many graphs four batch sizes make, if the first batch is marked."""
    torch.compiler.reset()
    counter = GraphCounter()
    compiled = torch.compile(Block(), backend=counter)
    for size in (32, 7, 9, 100):
        batch = torch.randn(size, WIDTH)
        mark(batch)
        compiled(batch)
    return counter.graphs


def mark_nothing(batch):
    return batch


def mark_batch(batch):
    mark_dynamic(batch, 0)


def double_full_batch(x):
    return 2 * x if x.shape[0] == ROWS else x


def call_marked(mark):
    """Call a function that compares the size of the batch with a number."""
    torch.compiler.reset()
    batch = torch.randn(ROWS, WIDTH)
    mark(batch, 0)
    return torch.compile(double_full_batch, backend=GraphCounter())(batch)


def claim_marks(lab):
    lab.stage("marked dimensions")
    graphs = [count_marked(mark) for mark in (mark_batch, mark_nothing)]
    lab.claim("marked", graphs, equals=[1, 2])
    errors = []
    for mark in (mark_dynamic, maybe_mark_dynamic):
        errors.append(lab.raises(call_marked, mark).partition(":")[0])
    lab.claim("strict", errors, equals=["ConstraintViolationError", ""])


def build_sequential():
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, WIDTH))


def claim_sequential(lab):
    lab.stage("nn.Sequential")
    torch.compiler.reset()
    x = torch.randn(ROWS, WIDTH)
    in_place = GraphCounter()
    net = build_sequential()
    net.compile(backend=in_place)
    net(x)
    wrapped = GraphCounter()
    torch.compile(build_sequential(), backend=wrapped)(x)
    lab.claim("sequential", [in_place.graphs, wrapped.graphs], equals=[0, 1])


def double(x):
    return 2 * x


def call_first_time(x):
    """Compile and call a copy of the function: torch finds no graph for its code."""
    copy = types.FunctionType(double.__code__.replace(), double.__globals__)
    return torch.compile(copy, backend=GraphCounter())(x)


@contextlib.contextmanager
def cache_directory(folder):
    before = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
    yield
    if before is None:
        del os.environ["TORCHINDUCTOR_CACHE_DIR"]
    else:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = before


@torch.no_grad()
def call_net(net, x):
    return net(x)


def measure_call_s(net, x):
    timer = Timer("call(net, x)", globals={"call": call_net, "net": net, "x": x})
    return timer.blocked_autorange(min_run_time=0.5).median


def time_first_calls(lab, net, x):
    """Compile a net twice, in a new cache directory; return the seconds, the net and an error."""
    from torch._inductor import config  # imported here: only --compile needs it

    config.compile_threads = 1  # no further process
    seconds = {}
    with tempfile.TemporaryDirectory() as folder, cache_directory(folder):
        for cache in lab.sweep(["empty cache", "filled cache"], "kernels"):
            torch.compiler.reset()
            compiled = torch.compile(net)
            began = time.perf_counter()
            error = lab.raises(call_net, compiled, x)
            seconds[cache] = time.perf_counter() - began
            if error:
                break
    return seconds, compiled, error


def claim_price(lab, blocks):
    net = Net(blocks)
    x = torch.randn(ROWS, WIDTH)
    call_net(net, x)
    seconds, compiled, error = time_first_calls(lab, net, x)
    if error:
        skip_price(lab, f"a torch.compile that works: apt install g++ python3-dev ({error[:200]})")
        return
    lab.bars("seconds of the first call", seconds)
    saved_s = measure_call_s(net, x) - measure_call_s(compiled, x)
    lab.text(f"{1e6 * saved_s:.1f} µs", title="a compiled call saves")
    calls = {}
    for cache, first_s in seconds.items():
        calls[cache] = first_s / saved_s if saved_s > 0 else math.inf
    lab.claim("cache", seconds["empty cache"] / seconds["filled cache"], at_least=2)
    lab.claim("break-even", calls["empty cache"], at_least=1000, unit="calls")
    lab.claim("cached-break-even", calls["filled cache"], at_least=100, unit="calls")


def skip_price(lab, lacks):
    for key in ("cache", "break-even", "cached-break-even"):
        lab.claim(key, lacks=lacks)


def run(
    lab: Lab,
    blocks: int = 12,  # blocks of the net, 1..64
    cut: Literal["blocks", "whole"] = "blocks",  # what is compiled at once, where blocks are meant
    compile: bool = False,  # kernels as well: 20 to 90 seconds, and a C++ compiler
) -> None:
    logging.getLogger("torch._guards").setLevel(logging.CRITICAL)  # an error is made on purpose
    # torch looks at the gradient of each input, also of the result of a block
    warnings.filterwarnings("ignore", "The .grad attribute of a Tensor that is not a leaf")

    @lab.once
    def exact():
        draw_depths(lab)
        claim_counts(lab, blocks, cut)
        claim_marks(lab)
        claim_sequential(lab)
        if compile:
            claim_price(lab, blocks)
        else:
            skip_price(lab, "--compile")

    torch.compiler.reset()
    x = torch.randn(ROWS, WIDTH)
    compiled = torch.compile(double, backend=GraphCounter())
    lab.stage("timing")
    lab.claim_ratio("trace-time", "first/later", at_least=50)
    lab.race(
        first=partial(call_first_time, x),
        later=partial(compiled, x),
        seconds=0.1,
        device=torch.device("cpu"),
    )
