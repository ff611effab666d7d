"""Copy new inputs into a CUDA graph's tensor: a replay sees addresses, not names.

A step of many small kernels is as slow as the CPU that launches them. A CUDA graph records all
launches once, with the addresses of their tensors, and replays them with a single launch. That is
fast, but a replay is not your program, and it never reports that it computes something old.

No Python runs in a replay. A new tensor under the old name is not seen, because the graph reads
the old address. A number of Python keeps the value that it had, and an `if` keeps its branch. The
result has one address as well, so the next replay overwrites it. A weight that is changed in place
is seen, and a weight that is replaced is not. Random numbers are an exception: torch advances the
generator in each replay, so dropout keeps changing.

Before the recording, the step must run a few times on a side stream, because the first calls
allocate memory and load libraries. During the recording nothing may wait for the GPU: `.item()`
raises an error there. All shapes are fixed. An optimizer inside a graph needs `capturable=True`.

On a GPU the lesson records a real graph. Without a GPU it uses a tape, a model of a graph. The tape
notes each operator with its tensors, calls it again, and writes the result to the old address. The
claims are the same for both. Only a GPU shows launches and time. The chart shows the size of each
result: a flat line has not seen its inputs.

In practice: try `torch.compile(mode="reduce-overhead")` first, which records graphs and copies the
inputs. By hand, use `torch.cuda.make_graphed_callables`. With `torch.cuda.graph`, call
`static_x.copy_(x)` before `graph.replay()`, and `y.clone()` for each result that you keep. Pad the
last batch to the recorded size.
## Predict
20 inputs are copied in and replayed one by one, and a list keeps what each replay returns. How many
of its 20 results are right in the end?
## Look for
- [assigned] of 20 new inputs that are assigned to the variable, replays see 0
- [copied] of 20 new inputs that are copied into the recorded tensor, replays see 20
- [python] 40 replays call the Python function 0 times
- [result] of 20 results that a list keeps, 1 is right, because each replay overwrites the result
- [number] a Python number that changes after the recording is not seen by a replay
- [weights] a replay sees weights from load_state_dict, but not with assign=True
- [dropout] two replays of dropout give different results
- [shape] copy_ refuses a batch of 5 rows for a recorded batch of 8, and spreads a batch of 1 row
  over all 8
- [launches] on a GPU the step makes at least 15 times as many launches as a replay
- [faster] on a GPU the step takes at least 1.5 times as long as a replay
## Try next
`--assign`: nothing is copied, as if the name of the variable were enough. refutes: copied
## Source
Today's practice, after the notes on CUDA in PyTorch's manual, "CUDA Graphs",
https://docs.pytorch.org/docs/stable/notes/cuda.html. Ours: the tape, and the counts of inputs,
results and launches.
"""

from functools import partial

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from tuilab import Lab

INPUTS = 20
LAYERS = 20
WARM_UP_CALLS = 3


class Tape(TorchDispatchMode):
    """A model of a graph: it notes the operators that are called, with their tensors."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = operator(*args, **kwargs)
        self.calls.append((operator, args, kwargs, result))
        return result

    def replay(self):
        for operator, args, kwargs, result in self.calls:
            result.copy_(operator(*args, **kwargs))  # to the old address


class Recording:
    """A graph or a tape, with the tensor that its result is written to."""

    def __init__(self, graph, y):
        self.graph = graph
        self.y = y

    def replay(self):
        self.graph.replay()
        return self.y


def record(step, x):
    if x.is_cuda:
        return record_graph(step, x)
    with Tape() as tape:
        y = step(x)
    return Recording(tape, y)


def record_graph(step, x):
    cuda = torch.get_device_module(x.device)
    side_stream = cuda.Stream(x.device)
    side_stream.wait_stream(cuda.current_stream(x.device))
    with cuda.stream(side_stream):
        for _ in range(WARM_UP_CALLS):
            step(x)
    cuda.current_stream(x.device).wait_stream(side_stream)
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        y = step(x)
    return Recording(graph, y)


class Step:
    """A forward pass of many small operators. It counts its calls."""

    def __init__(self, device):
        layers = []
        for _ in range(LAYERS):
            layers.append(nn.Linear(32, 32))
        self.net = nn.ModuleList(layers).to(device).requires_grad_(False)
        self.old_weights = {}
        self.calls = 0
        self.rate = 1.0

    def __call__(self, x):  # (8, 32) -> (8, 32)
        self.calls += 1
        for layer in self.net:
            x = x + F.gelu(layer(x))
        return x * self.rate

    def load_scaled_weights(self, factor, assign):
        weights = {}
        self.old_weights = self.net.state_dict()  # a graph still reads them where they are
        for name, weight in self.old_weights.items():
            weights[name] = factor * weight
        self.net.load_state_dict(weights, assign=assign)


def is_near(y, expected):
    return ((y - expected).norm() / expected.norm()).item() <= 1e-5


def count_launches(call):
    with torch.profiler.profile() as profile:
        call()
        torch.accelerator.synchronize()
    return sum(event.count for event in profile.key_averages() if "Launch" in event.key)


def run(
    lab: Lab,
    assign: bool = False,  # assign new inputs to the variable, and never copy them
) -> None:
    device = lab.device()
    lacks = "" if device.type == "cuda" else "a CUDA device"
    step = Step(device)
    batches = []
    expected = []
    for number in range(INPUTS):
        batch = (1 + number) * torch.randn(8, 32, device=device)
        batches.append(batch)
        expected.append(step(batch))

    recorded_x = torch.ones(8, 32, device=device)
    x = recorded_x
    recording = record(step, x)
    calls_before = step.calls

    lab.axes("result_size", x="input", y="norm of the result", log="y")
    seen = {"assigned": 0, "copied": 0}
    for number in lab.steps(INPUTS, "new inputs"):
        lab.log(number, arm="the step", result_size=expected[number].norm())
        x = batches[number]  # another tensor under the old name
        y = recording.replay()
        seen["assigned"] += is_near(y, expected[number])
        lab.log(number, arm="assigned, replayed", result_size=y.norm())
        if not assign:
            recorded_x.copy_(x)
        y = recording.replay()
        seen["copied"] += is_near(y, expected[number])
        lab.log(number, arm="copied, replayed", result_size=y.norm())
        recorded_x.fill_(1)
    lab.claim("assigned", seen["assigned"], equals=0)
    lab.claim("copied", seen["copied"], equals=INPUTS)
    lab.claim("python", step.calls - calls_before, equals=0)

    lab.stage("what a replay sees")
    results = []
    for batch in batches:
        recorded_x.copy_(batch)
        results.append(recording.replay())
    right = 0
    for number in range(INPUTS):
        right += is_near(results[number], expected[number])
    lab.claim("result", right, equals=1, answers=True)

    step.rate = 2.0
    lab.claim("number", is_near(recording.replay(), step(recorded_x)), equals=False)
    step.rate = 1.0

    are_seen = []
    for is_assigned in (False, True):
        step.load_scaled_weights(1.1, is_assigned)
        are_seen.append(is_near(recording.replay(), step(recorded_x)))
    lab.claim("weights", are_seen, equals=[True, False])

    dropout = record(nn.Dropout(0.5), recorded_x)
    first = dropout.replay().clone()
    lab.claim("dropout", torch.equal(first, dropout.replay()), equals=False)

    error = lab.raises(recorded_x.copy_, batches[0][:5])
    recorded_x.copy_(batches[0][:1])
    row_counts = [error.partition(":")[0], len(recorded_x.unique(dim=0))]
    lab.claim("shape", row_counts, equals=["RuntimeError", 1])

    lab.claim_ratio("faster", "step/replay", at_least=1.5, lacks=lacks)
    if lacks:
        lab.claim("launches", lacks=lacks)
        return
    replay_launches = count_launches(recording.replay)
    step_launches = count_launches(partial(step, recorded_x))
    blind = "" if replay_launches else "a profiler that sees launches"
    lab.claim("launches", step_launches / max(replay_launches, 1), at_least=15, lacks=blind)
    lab.stage("timing")
    lab.race(step=partial(step, recorded_x), replay=recording.replay, seconds=0.5)
