"""A CUDA graph replays addresses, not your program: copy new inputs into the old tensor.

A step of many small kernels is as slow as the CPU that launches them. A CUDA graph records the launches once, with addresses of
all tensors, and replays them with one. No Python runs in a replay. So a new tensor under the old name is not seen, and what is
written into the recorded one is; an `if` goes where it went, and a number stays. The result has one address, too: the next
replay writes over it. A weight that is changed in place is seen, and one that is replaced is not: the graph reads the memory
where it was. Random numbers go on, so dropout differs in every replay. In the recording nothing may wait for the GPU.
On a GPU a real graph is recorded. Without one there is a tape, a model of it: it notes each operator with its tensors, calls it
again, and writes the result where it was. Both are held to the same claims; only a GPU shows launches and time.
## Predict
20 inputs are copied in and replayed, one by one, and a list keeps what each replay returns. How many of its results are right?
## Look for
- [assigned] of 20 new inputs that are assigned to the name, 0 are seen
- [copied] of 20 that are copied into the recorded tensor, all 20 give the result of the step
- [python] in 40 replays the step is called 0 times
- [result] of 20 results that are kept in a list, 1 is right, the last: each replay writes over the one before
- [number] a number that the step multiplies by, changed after the recording, is not seen
- [weights] load_state_dict is seen, and with assign=True it is not
- [dropout] two replays with dropout differ
- [launches] on a GPU a replay takes at most 3 launches, and the step at least 40
- [faster] on a GPU the step takes at least 1.5 times as long as a replay
## Try next
`--assign`: nothing is copied, as if the name were enough. refutes: copied
## Source
Today's practice, after the notes on CUDA in PyTorch's manual, "CUDA Graphs",
https://docs.pytorch.org/docs/stable/notes/cuda.html. Ours: the tape and what is baked in.
"""

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from tuilab import Lab


class Tape(TorchDispatchMode):  # a model of a graph: what was called, and with which tensors
    calls = ()

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        result = operator(*args, **(kwargs or {}))
        self.calls += ((operator, args, kwargs or {}, result),)
        return result

    def replay(self):
        for operator, args, kwargs, result in self.calls:
            result.copy_(operator(*args, **kwargs))  # to the old address


def record(step, x):  # returns what replays step(x) and returns the tensor of its result
    if x.is_cuda:
        gpu, y = torch.get_device_module(x.device), step(x)  # torch.cuda; the first call makes the libraries ready
        graph = gpu.CUDAGraph()
        with gpu.graph(graph):
            y = step(x)
    else:
        with Tape() as graph:
            y = step(x)
    return lambda: (graph.replay(), y)[1]


def launches(f):
    with torch.profiler.profile() as profile:
        f()
        torch.accelerator.synchronize()
    return sum(event.count for event in profile.key_averages() if "Launch" in event.key)


class Step:
    def __init__(self, device):
        self.net = nn.ModuleList(nn.Linear(32, 32) for _ in range(20)).to(device).requires_grad_(False)
        self.calls, self.rate = 0, 1.0

    def __call__(self, x):  # x (8, 32)
        self.calls += 1
        for layer in self.net:
            x = x + nn.functional.gelu(layer(x))
        return x * self.rate


def is_near(y, right):
    return ((y - right).norm() / right.norm()).item() <= 1e-5


def run(lab: Lab, assign: bool = False) -> None:  # new inputs to the name, and never copy them
    device = lab.device()
    lacks = "" if device.type == "cuda" else "a CUDA device"
    step, batches = Step(device), torch.randn(20, 8, 32, device=device)
    x = recorded = torch.ones(8, 32, device=device)
    replay = record(step, x)
    rights, calls, seen = [step(batch) for batch in batches], step.calls, {"assigned": 0, "copied": 0}
    lab.axes("seen", x="new inputs", y="of them seen")
    for number in lab.steps(20, "new inputs"):
        x = batches[number]
        for arm in seen:
            if arm == "copied" and not assign:
                recorded.copy_(x)
            seen[arm] += is_near(replay(), rights[number])
            lab.log(number, arm=arm, seen=seen[arm])
    lab.claim("assigned", seen["assigned"], equals=0)
    lab.claim("copied", seen["copied"], equals=20)
    lab.claim("python", step.calls - calls, equals=0)

    kept = [(recorded.copy_(batch), replay())[1] for batch in batches]
    lab.claim("result", sum(map(is_near, kept, rights)), equals=1, answers=True)
    step.rate = 2.0
    lab.claim("number", is_near(replay(), step(recorded)), equals=False)
    step.rate, found = 1.0, []
    for how in (False, True):
        state = step.net.state_dict()  # which keeps the old weights
        step.net.load_state_dict({name: 1.1 * weight for name, weight in state.items()}, assign=how)
        found.append(is_near(replay(), step(recorded)))
    lab.claim("weights", found, equals=[True, False])
    drop = record(nn.Dropout(0.5), recorded)
    lab.claim("dropout", torch.equal(drop().clone(), drop()), equals=False)
    counted = [0] if lacks else [launches(replay), launches(lambda: step(recorded))]
    blind = lacks or ("" if any(counted) else "a profiler that sees launches")
    lab.claim("launches", [counted[0] <= 3, counted[-1] >= 40], equals=[True, True], lacks=blind)
    lab.claim_ratio("faster", "step/replay", at_least=1.5, lacks=lacks)
    if not lacks:
        lab.race(step=lambda: step(recorded), replay=replay, seconds=0.5)
