"""The second batch size compiles a net again, the third does not; dynamic=False compiles for each size, and gives up after 8.

A compiled graph holds for what was so when it was made: types, devices, sizes, Python arguments, train or eval, gradients or
none. These are its guards, and every call checks them. Where one fails, the function is compiled again. From sizes
torch.compile learns: the dimension that has changed becomes a symbol, and the second graph is for all its values. So an epoch
with a smaller last batch costs two graphs, once. `dynamic=True` begins with symbols and needs one. A batch of 1 is a graph of
its own either way, because size 1 broadcasts. `dynamic=False` makes a graph for each size, up to a limit of 8 for a function
(`recompile_limit`; `accumulated_recompile_limit` is 256): sizes that come later run uncompiled, and only the log says so.

A graph costs seconds once a backend writes kernels for it: that is left to `--compile`, and one that writes none is enough to
count. A mode is a set of options: "reduce-overhead" is CUDA graphs, so on a CPU it is the default by another name, and
"max-autotune" tries kernels one against the other. Kernels are kept in a cache directory, here a temporary one.
## Predict
`torch.compile(net)` gets batches of 32 rows, and 7 at the end of each epoch. How many graphs are made in three epochs?
## Look for
- [epochs] three epochs with a smaller last batch make 2 graphs
- [automatic] twelve sizes make 2 graphs, one for the first and one for all others
- [symbols] with dynamic=True they make 1
- [limit] with dynamic=False they make 8
- [again] a size that was there before makes none in any of the three
- [one] a batch of 1 makes another graph, also with dynamic=True
- [states] train, eval, and eval without gradients make a graph each, and none when they come back
- [same] compiled calls return bitwise what the function returns
- [modes] CUDA graphs are an option of reduce-overhead and of max-autotune, not of default
- [kernel] in each of three modes a chain of eight pointwise operators is compiled to one kernel
- [warm] compiled once more, each is read from the cache directory, and none is made
## Try next
`--sizes 4`: dynamic=False stays below its limit. refutes: limit
`--compile`: kernels as well, and the seconds that they take: 10 to 60, where there is a C++ compiler.
## Source
The documentation of torch.compile, https://docs.pytorch.org/docs/stable/generated/torch.compile.html. Ours: the counts.
"""

import logging
import os
import tempfile
import time

import torch
from torch import nn
from torch._dynamo.utils import counters
from torch._inductor import config, list_mode_options, metrics

from tuilab import Lab

MODES = ("default", "reduce-overhead", "max-autotune")


def graphs_after(f, calls, dynamic=None):
    """How many graphs there are after each call, and whether it returns what f does."""
    made, counts, same = [], [], []
    torch.compiler.reset()
    compiled = torch.compile(f, backend=lambda graph, examples: made.append(graph) or graph, dynamic=dynamic)  # no kernels
    for args in calls:
        same.append(torch.equal(compiled(*args), f(*args)))
        counts.append(len(made))
    return counts, all(same)


def in_states(net, x):
    for is_training, has_gradients in [(True, True), (False, True), (False, False)] * 2:
        net.train(is_training)
        with torch.set_grad_enabled(has_gradients):
            yield (x,)


def chain(x):
    for _ in range(4):
        x = (x + 1).sin()
    return x


def kernels_of(lab, mode, x):
    torch.compiler.reset()
    metrics.reset()
    counters.clear()
    began, raised = time.perf_counter(), lab.raises(torch.compile(chain, mode=mode), x)
    seconds, cache = time.perf_counter() - began, counters["inductor"]
    return [metrics.generated_kernel_count, cache["fxgraph_cache_hit"], cache["fxgraph_cache_miss"]], seconds, raised


def run(
    lab: Lab,
    sizes: int = 12,  # different batch sizes, 2..64
    compile: bool = False,  # kernels as well, which takes 10 to 60 seconds and a C++ compiler
) -> None:
    logging.getLogger("torch._dynamo").setLevel(logging.ERROR)  # the limit is told on stderr, and is the subject here
    net = nn.Sequential(nn.Linear(16, 16), nn.Dropout(0), nn.Linear(16, 16)).to(lab.device())
    rows = {size: (torch.randn(size, 16, device=lab.device()),) for size in (1, 7, 32, *range(100, 100 + sizes))}

    lab.axes("graphs", x="sizes seen", y="graphs that were made")
    arms, found = {"automatic": None, "dynamic": True, "static": False}, []
    for name, dynamic in zip(arms, lab.sweep(arms.values(), "more and more sizes"), strict=True):
        found.append(graphs_after(net, [rows[size] for size in (*range(100, 100 + sizes), 100, 1)], dynamic))
        for call, graphs in enumerate(found[-1][0][:sizes]):
            lab.log(call + 1, arm=name, graphs=graphs)
    automatic, symbols, fixed = (counts[sizes - 1 :] for counts, _ in found)  # after all sizes, the first again, and 1
    lab.claim("automatic", automatic[0], equals=2)
    lab.claim("symbols", symbols[0], equals=1)
    lab.claim("limit", fixed[0], equals=8)
    lab.claim("again", [counts[1] - counts[0] for counts in (automatic, symbols, fixed)], equals=[0] * 3)
    lab.claim("one", [counts[2] - counts[1] for counts in (automatic, symbols)], equals=[1, 1])
    lab.stage("epochs and states")
    found += [graphs_after(net, [rows[size] for size in (32, 32, 7) * 3]), graphs_after(net, in_states(net, *rows[32]))]
    lab.claim("epochs", found[3][0][-1], equals=2, answers=True)
    lab.claim("states", found[4][0], equals=[1, 2, 3, 3, 3, 3])
    lab.claim("same", all(is_same for _, is_same in found))
    lab.claim("modes", ["triton.cudagraphs" in list_mode_options(mode) for mode in MODES], equals=[False, True, True])
    turns = [f"{mode}{again}" for again in ("", ", again") for mode in MODES] if compile else []
    config.compile_threads = 1  # no process beside this one
    with tempfile.TemporaryDirectory() as own:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = own
        made = {turn: kernels_of(lab, turn.split(",")[0], *rows[32]) for turn in lab.sweep(turns, "kernels")}
    if compile:
        lab.bars("seconds of the first call", {turn: seconds for turn, (_, seconds, _) in made.items()})
    counts, raised = [count for count, _, _ in made.values()], "".join(raised for _, _, raised in made.values())
    lacks = raised and f"a torch.compile that works: apt install g++ python3-dev ({raised[:200]})"
    lacks = lacks if compile else "--compile"
    lab.claim("kernel", [count[0] for count in counts[:3]], equals=[1] * 3, lacks=lacks)
    lab.claim("warm", [count[1:] for count in counts[3:]], equals=[[1, 0]] * 3, lacks=lacks)
