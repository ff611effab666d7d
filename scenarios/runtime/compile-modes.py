"""Pass dynamic=True to torch.compile if sizes vary; dynamic=False gives up after 8.

A compiled graph is valid for the situation in which it was made: dtypes, devices, sizes, Python
arguments, train or eval, gradients or none. These conditions are its guards, and every call checks
them. If no graph fits, the function is compiled again, and your step waits for seconds or minutes.

From sizes torch.compile learns. By default a dimension that has changed becomes a symbol, and the
next graph is for all its values. `dynamic=True` begins with symbols. `dynamic=False` makes a graph
for each size. A batch of 1 always needs a graph of its own, because size 1 broadcasts.

Two limits are in `torch._dynamo.config`. `recompile_limit` counts the graphs of a function.
`accumulated_recompile_limit` also counts those for other objects, such as other copies of a module.
Calls beyond a limit run uncompiled, and only the log says so. With `fullgraph=True` they raise an
error.

A mode is a set of options. "reduce-overhead" adds CUDA graphs, so on a CPU it is the default by
another name. It helps a GPU that waits for launches. "max-autotune" times several kernels and takes
the fastest. The lesson counts graphs with a backend that writes no kernels. `--compile` also writes
kernels: it counts them in a new cache directory, and then times them with your usual cache.

In practice: drop the last batch (`drop_last=True`), or pass `dynamic=True` if sizes vary. Run a few
steps under `TORCH_LOGS=recompiles`; it names the guard that failed. If you need many fixed sizes,
set `torch._dynamo.config.recompile_limit = 64`. Try `mode="reduce-overhead"` if steps are short and
sizes fixed.
## Predict
`torch.compile(net)` gets batches of 32 rows, and of 7 at the end of each epoch. How many graphs
does it make in three epochs?
## Look for
- [epochs] three epochs with a smaller last batch make 2 graphs
- [automatic] twelve sizes make 2 graphs, one for the first size and one for all others
- [symbols] with dynamic=True twelve sizes make 1 graph
- [limit] with dynamic=False twelve sizes make 8 graphs
- [limits] the limits of torch are 8 graphs for a function, and 256 with those for other objects
- [raised] with dynamic=False and a recompile_limit of 64, twelve sizes make 12 graphs
- [accumulated] with dynamic=False and an accumulated_recompile_limit of 5, twelve sizes make 5
  graphs
- [fullgraph] with fullgraph=True the call beyond the limit raises FailOnRecompileLimitHit
- [again] a size that was there before makes no graph with any of the three settings of dynamic
- [one] a batch of 1 makes another graph, also with dynamic=True
- [states] train, eval, and eval without gradients make a graph each, and none when they come back
- [same] compiled calls return the values of the uncompiled function bit for bit
- [modes] CUDA graphs are an option of reduce-overhead and of max-autotune, and not of default
- [kernel] in each of three modes a chain of 8 pointwise operators becomes 1 kernel
- [warm] when each mode is compiled again, the kernel comes from the cache directory
- [compiled-time] a chain of 8 pointwise operators takes at least twice as long as the compiled
  chain
- [gpu-graphs-time] on a GPU a compiled net of 16 small layers takes at least 1.3 times as long
  without reduce-overhead
## Try next
`--sizes 4`: dynamic=False stays below its limit. refutes: limit
`--compile`: kernels as well, which takes 30 to 120 seconds, and needs a C++ compiler.
## Source
- The documentation of torch.compile,
  https://docs.pytorch.org/docs/stable/generated/torch.compile.html: dynamic and the modes.
- Ours: the counts of graphs and kernels, the two limits, and the times.
"""

import contextlib
import logging
import os
import tempfile
import time

import torch
import torch._dynamo.config as dynamo
from torch import nn
from torch._dynamo.utils import counters
from torch._inductor import config, list_mode_options, metrics

from tuilab import Lab

MODES = ("default", "reduce-overhead", "max-autotune")
ARMS = {"automatic": None, "dynamic": True, "static": False}  # the values of dynamic


class GraphCounter:
    """A backend that writes no kernels, and counts the graphs that it gets."""

    def __init__(self):
        self.graphs = 0

    def __call__(self, graph, examples):
        self.graphs += 1
        return graph


def count_graphs(function, calls, dynamic=None, fullgraph=False):
    """Return the number of graphs after each call, and whether all calls return the right value."""
    torch.compiler.reset()
    counter = GraphCounter()
    compiled = torch.compile(function, backend=counter, dynamic=dynamic, fullgraph=fullgraph)
    counts = []
    are_same = True
    for arguments in calls:
        is_same = torch.equal(compiled(*arguments), function(*arguments))
        are_same = are_same and is_same
        counts.append(counter.graphs)
    return counts, are_same


def change_state(net, x):
    """Yield the arguments of a call in each of three states, and then in each again."""
    for is_training, has_gradients in [(True, True), (False, True), (False, False)] * 2:
        net.train(is_training)
        with torch.set_grad_enabled(has_gradients):
            yield (x,)


def batches_of(batch_sizes, device):
    """Return the arguments of a call for each batch size."""
    calls = []
    for size in batch_sizes:
        calls.append((torch.randn(size, 16, device=device),))
    return calls


def count_by_dynamic(lab, net, sizes):
    """Count graphs for more and more sizes, then for the first size again, and then for size 1."""
    device = lab.device()
    calls = batches_of([*range(100, 100 + sizes), 100, 1], device)
    lab.axes("graphs", x="sizes seen", y="graphs that were made")
    new_graphs = {}  # after all sizes, by the first size again, by size 1
    are_same = True
    for name in lab.sweep(ARMS, "more and more sizes"):
        counts, is_same = count_graphs(net, calls, ARMS[name])
        are_same = are_same and is_same
        for call in range(sizes):
            lab.log(call + 1, arm=name, graphs=counts[call])
        after_sizes, after_again, after_one = counts[sizes - 1 :]
        new_graphs[name] = (after_sizes, after_again - after_sizes, after_one - after_again)

    lab.claim("automatic", new_graphs["automatic"][0], equals=2)
    lab.claim("symbols", new_graphs["dynamic"][0], equals=1)
    lab.claim("limit", new_graphs["static"][0], equals=8)
    lab.claim("again", [counts[1] for counts in new_graphs.values()], equals=[0, 0, 0])
    lab.claim("one", [new_graphs["automatic"][2], new_graphs["dynamic"][2]], equals=[1, 1])
    return are_same


def try_limits(lab, net):
    lab.stage("the two limits")
    limits = [dynamo.recompile_limit, dynamo.accumulated_recompile_limit]
    lab.claim("limits", limits, equals=[8, 256])
    calls = batches_of(range(100, 112), lab.device())
    with dynamo.patch(recompile_limit=64):
        raised, _ = count_graphs(net, calls, dynamic=False)
    lab.claim("raised", raised[-1], equals=12)
    with dynamo.patch(accumulated_recompile_limit=5):
        accumulated, _ = count_graphs(net, calls, dynamic=False)
    lab.claim("accumulated", accumulated[-1], equals=5)
    error = lab.raises(count_graphs, net, calls, False, True)
    lab.claim("fullgraph", error.partition(":")[0], equals="FailOnRecompileLimitHit")


def count_epochs_and_states(lab, net):
    lab.stage("epochs and states")
    calls = batches_of((32, 32, 7) * 3, lab.device())
    counts, is_same_in_epochs = count_graphs(net, calls)
    lab.claim("epochs", counts[-1], equals=2, answers=True)
    x = torch.randn(32, 16, device=lab.device())
    counts, is_same_in_states = count_graphs(net, change_state(net, x))
    lab.claim("states", counts, equals=[1, 2, 3, 3, 3, 3])
    return is_same_in_epochs and is_same_in_states


def chain(x):  # eight operators
    for _ in range(4):
        x = (x + 1).sin()
    return x


@contextlib.contextmanager
def new_cache_directory():
    before = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        yield
    if before is None:
        del os.environ["TORCHINDUCTOR_CACHE_DIR"]
    else:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = before


def compile_in_modes(lab, x):
    """Compile the chain in each mode, twice. Return the counts, and what is missing."""
    kernels = []
    cache_counts = []  # in the second turn: graphs from the cache, graphs that were made
    seconds = {}
    with new_cache_directory():
        for turn in ("", ", again"):
            for mode in lab.sweep(MODES, "kernels" + turn):
                torch.compiler.reset()
                metrics.reset()
                counters.clear()
                began = time.perf_counter()
                error = lab.raises(torch.compile(chain, mode=mode), x)
                seconds[mode + turn] = time.perf_counter() - began
                if error:
                    return kernels, cache_counts, describe_error(error)
                cache = counters["inductor"]
                if turn:
                    hits_and_misses = [cache["fxgraph_cache_hit"], cache["fxgraph_cache_miss"]]
                    cache_counts.append(hits_and_misses)
                else:
                    kernels.append(metrics.generated_kernel_count)
    lab.bars("seconds of the first call", seconds)
    return kernels, cache_counts, ""


def describe_error(error):
    return f"a torch.compile that works: apt install g++ python3-dev ({error[:200]})"


def build_layers(device):  # 16 small layers: on a GPU a launch takes longer than a kernel
    layers = []
    for _ in range(16):
        layers.append(nn.Linear(64, 64))
        layers.append(nn.GELU())
    return nn.Sequential(*layers).to(device)


@torch.no_grad()
def run_net(net, x):  # (32, 64)
    return net(x).clone()  # the next replay of a CUDA graph overwrites the result


def time_compiled(lab):
    """Time the compiled chain, and the net with and without CUDA graphs."""
    device = lab.device()
    is_gpu = device.type == "cuda"
    numbers = 2**20
    if is_gpu:
        numbers = 2**26  # 256 MiB: larger than the caches of a GPU
    x = torch.randn(numbers, device=device)
    rows = torch.randn(32, 64, device=device)
    net = build_layers(device)

    torch.compiler.reset()
    compiled_chain = torch.compile(chain)
    compiled_net = torch.compile(net)
    graphed_net = torch.compile(net, mode="reduce-overhead")
    arms = {
        "chain": lambda: chain(x),
        "compiled chain": lambda: compiled_chain(x),
    }
    if is_gpu:
        arms["net"] = lambda: run_net(compiled_net, rows)
        arms["graphs"] = lambda: run_net(graphed_net, rows)

    error = lab.raises(compiled_chain, x)
    lacks = describe_error(error) if error else ""
    needs_gpu = "" if is_gpu else "a CUDA device"
    lab.claim_ratio("compiled-time", "chain/compiled chain", at_least=2, lacks=lacks)
    lab.claim_ratio("gpu-graphs-time", "net/graphs", at_least=1.3, lacks=lacks or needs_gpu)
    lab.race(**arms, seconds=0.4, lacks=lacks)


def run(
    lab: Lab,
    sizes: int = 12,  # different batch sizes, 2..64
    compile: bool = False,  # kernels as well: 30 to 120 seconds, and a C++ compiler
) -> None:
    logging.getLogger("torch._dynamo").setLevel(logging.ERROR)  # the limit is reached on purpose
    config.compile_threads = 1  # no further process
    device = lab.device()

    @lab.once
    def exact():
        net = nn.Sequential(nn.Linear(16, 16), nn.Dropout(0), nn.Linear(16, 16)).to(device)
        is_same = count_by_dynamic(lab, net, sizes)
        try_limits(lab, net)
        is_same_again = count_epochs_and_states(lab, net)
        lab.claim("same", is_same and is_same_again)

        have_graphs = []
        for mode in MODES:
            have_graphs.append("triton.cudagraphs" in list_mode_options(mode))
        lab.claim("modes", have_graphs, equals=[False, True, True])

        kernels = None
        cache_counts = None
        lacks = "--compile"
        if compile:
            x = torch.randn(32, 16, device=device)
            kernels, cache_counts, lacks = compile_in_modes(lab, x)
        lab.claim("kernel", kernels, equals=[1, 1, 1], lacks=lacks)
        lab.claim("warm", cache_counts, equals=[[1, 0], [1, 0], [1, 0]], lacks=lacks)

    lab.stage("timing")
    if compile:
        time_compiled(lab)
    else:
        lab.claim_ratio("compiled-time", "chain/compiled chain", at_least=2, lacks="--compile")
        lab.claim_ratio("gpu-graphs-time", "net/graphs", at_least=1.3, lacks="--compile")
