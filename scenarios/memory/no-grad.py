"""Evaluate under torch.no_grad(): less memory, less time. net.eval() saves neither.

In training, each layer keeps tensors for backward. A Linear keeps its input, and so does a GELU. At
the end of forward all activations of the net are alive at the same time. Evaluation needs no
gradients, but PyTorch records them unless you switch it off.

Under `torch.no_grad()` the same operators run and give the same bits, but nothing is kept. Each
activation is freed as soon as the next layer has used it. This also saves time, for two reasons.
First, autograd creates no node for an operator, which matters if the tensors are small. Second, an
activation reuses the memory of an earlier one. A recorded forward needs new memory for each
activation, and on a CPU the operating system clears new memory first. On a GPU the caching
allocator of PyTorch keeps the memory, so on a GPU only the first reason is left.

Two habits are no substitute. `net.eval()` changes dropout and batch norm, but autograd records as
before. `net(x).detach()` drops the graph, but only after the peak. A sum of losses has a related
problem: it keeps the graph of each loss. A sum of `loss.item()` is a number and keeps no graph.

The decorator `@torch.no_grad` works with or without brackets. If it decorates a generator, the loop
that reads the generator records as usual. A `with` block inside of the generator stays active
during each `yield`, so this loop records nothing. `torch.inference_mode()` records nothing either.
Tensors that it makes have no version counter, which counts writes. So autograd refuses to save
these tensors for backward later, and outside of the mode they cannot be changed in place.

In practice: put `with torch.no_grad():` around the evaluation, next to `net.eval()`. Use
`torch.inference_mode()` if no later computation with gradients needs the outputs.
## Predict
A net has 12 Linears and 12 GELUs, and all activations have the same size. How many activations are
alive at the peak of a forward under no_grad? Do not count the input of the net.
## Look for
- [kept] a recorded forward keeps 2 activations for each block of Linear and GELU, and a forward
  without gradients keeps 0
- [peak] a recorded forward has a peak of 2 activations for each block of Linear and GELU, and a
  forward without gradients of 2 in all
- [same] a forward without gradients calls the same operators as a recorded one, and gives the same
  bits
- [forms] no_grad as a decorator with and without brackets keeps 0 activations, and inference_mode
  keeps 0
- [substitutes] net.eval() and net(x).detach() have the peak of a recorded forward
- [losses] the sum of four losses keeps 8 activations for each block of Linear and GELU, and the sum
  of their loss.item() keeps 0
- [generator] a loop over a generator with the decorator no_grad records, and a loop over a
  generator with a no_grad block does not
- [inference] a recorded product and a write in place raise an error for a tensor from
  inference_mode, and none for a tensor from no_grad
- [parameter] under no_grad a new nn.Parameter p requires a gradient, and 2 * p does not
- [integer] an integer tensor cannot require a gradient: torch.tensor([1], requires_grad=True)
  raises a RuntimeError
- [time] on a CPU a recorded forward with activations of 1 KiB takes at least 1.05 times as long as
  one without gradients
- [large-time] on a CPU a recorded forward with activations of 1 MiB takes at least 1.1 times as
  long as one without gradients
- [gpu-time] on a GPU a recorded forward with activations of 1 KiB takes at least 1.05 times as long
  as one without gradients
- [gpu-large-time] on a GPU a recorded forward with activations of 64 MiB takes at most 1.1 times as
  long as one without gradients
## Try next
`--mode eval`: the net is in evaluation mode, and all activations are kept. The times become the
same. refutes: kept, peak
`--mode detach`: the result is detached, but the peak came before. refutes: kept, peak, same
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 3,
https://www.toymoban.com/news/detail-808122.html: no_grad as a block and as a decorator is faster
and needs less memory. Its example asks an integer tensor for a gradient. Ours: the counts, the
bounds of the times, the substitutes, and the generator.
"""

from typing import Literal

import torch
from torch import nn

from tuilab import Lab

WIDTH = 256
LOSSES = 4
GPU_WIDTH = 1024  # activations of 64 MiB: the GPU computes for longer than the CPU records


def build_net(blocks, width, device):
    layers = []
    for _ in range(blocks):
        layers += [nn.Linear(width, width), nn.GELU()]
    return nn.Sequential(*layers).to(device)


def recorded(net, x):  # (rows, width) -> (rows, width)
    return net(x)


def in_block(net, x):
    with torch.no_grad():
        return net(x)


@torch.no_grad()
def with_brackets(net, x):
    return net(x)


@torch.no_grad
def without_brackets(net, x):
    return net(x)


@torch.inference_mode()
def in_inference_mode(net, x):
    return net(x)


def evaluated(net, x):
    net.eval()
    return net(x)


def detached(net, x):
    net.train()
    return net(x).detach()


FORMS = {
    "recorded": recorded,
    "no_grad": in_block,
    "@no_grad()": with_brackets,
    "@no_grad": without_brackets,
    "inference_mode": in_inference_mode,
    "eval": evaluated,
    "detach": detached,
}


def sum_losses(net, x):
    total = 0.0
    for _ in range(LOSSES):
        loss = net(x).square().mean()
        total += loss
    return total


def sum_items(net, x):
    total = 0.0
    for _ in range(LOSSES):
        loss = net(x).square().mean()
        total += loss.item()
    return total


@torch.no_grad()
def decorated_generator():
    yield


def generator_with_block():
    with torch.no_grad():
        yield


def is_recording_in_loop(generator):
    is_recording = None
    for _ in generator():
        is_recording = torch.is_grad_enabled()
    return is_recording


def multiply(weight, tensor):
    return weight * tensor  # for the gradient of the weight, autograd saves the tensor


def write(tensor):
    tensor.add_(1)


def integer_with_gradient():
    return torch.tensor([1], requires_grad=True)


def claim_memory(lab, net, x, mode):
    blocks = len(net) // 2
    lab.axes("live_bytes", x="allocations and releases", y="bytes alive")
    lab.stage("one forward")
    for arm in ("recorded", mode):
        with lab.memory("forward", arm=arm, timeline=True):
            FORMS[arm](net, x)

    counted = {}
    kept = {}
    peaks = {}
    for name, form in FORMS.items():
        counted[name] = lab.count(form, net, x)
        kept[name] = counted[name].saved_bytes / x.nbytes  # x is as large as each activation
        peaks[name] = counted[name].peak_bytes / x.nbytes
    lab.bars("activations alive at the peak", peaks)
    lab.claim("kept", [kept["recorded"], kept[mode]], equals=[2 * blocks, 0])
    compared_peaks = [peaks["recorded"], peaks[mode]]
    lab.claim("peak", compared_peaks, equals=[2 * blocks, 2], answers=peaks[mode])

    with_gradients = counted["recorded"]
    without = counted[mode]
    is_same_value = torch.equal(with_gradients.value, without.value)
    lab.claim("same", with_gradients.calls == without.calls and is_same_value)
    other_forms = [kept["@no_grad()"], kept["@no_grad"], kept["inference_mode"]]
    lab.claim("forms", other_forms, equals=[0, 0, 0])
    lab.claim("substitutes", [peaks["eval"], peaks["detach"]], equals=[2 * blocks, 2 * blocks])

    losses = lab.count(sum_losses, net, x).live_bytes // x.nbytes
    items = lab.count(sum_items, net, x).live_bytes // x.nbytes
    lab.claim("losses", [losses, items], equals=[LOSSES * 2 * blocks, 0])


def claim_limits(lab, device):
    lab.stage("generators and refusals")
    by_decorator = is_recording_in_loop(decorated_generator)
    by_block = is_recording_in_loop(generator_with_block)
    lab.claim("generator", [by_decorator, by_block], equals=[True, False])

    net = build_net(1, 8, device)
    x = torch.ones(4, 8, device=device)
    weight = torch.ones(8, device=device, requires_grad=True)
    errors = {}
    for form in ("inference_mode", "no_grad"):
        tensor = FORMS[form](net, x)
        errors[f"{form}: product"] = lab.raises(multiply, weight, tensor)
        errors[f"{form}: write"] = lab.raises(write, tensor)
    is_refused = [error != "" for error in errors.values()]
    lab.claim("inference", is_refused, equals=[True, True, False, False])

    integer_error = lab.raises(integer_with_gradient)
    errors["integers: requires_grad"] = integer_error
    lab.table("errors", list(errors.items()), head=("tensor and use", "error"))
    lab.claim("integer", integer_error.partition(":")[0], equals="RuntimeError")

    with torch.no_grad():
        parameter = nn.Parameter(torch.ones(2, device=device))
        double = 2 * parameter
    lab.claim("parameter", [parameter.requires_grad, double.requires_grad], equals=[True, False])


def race_forwards(lab, blocks, mode, device):
    is_cpu = device.type == "cpu"
    needs_cpu = "" if is_cpu else "--device cpu"
    needs_gpu = "a CUDA device" if is_cpu else ""
    without_gradients = FORMS[mode]

    lab.stage("timing small activations")
    net = build_net(blocks, 16, device)
    x = torch.randn(16, 16, device=device)
    lab.claim_ratio("time", "recorded/without", at_least=1.05, lacks=needs_cpu)
    lab.claim_ratio("gpu-time", "recorded/without", at_least=1.05, lacks=needs_gpu)
    lab.race(
        recorded=lambda: recorded(net, x),
        without=lambda: without_gradients(net, x),
        same=0.0,
        seconds=0.5,
    )

    lab.stage("timing large activations")
    width = 16  # an activation has 1 MiB
    if not is_cpu:
        width = GPU_WIDTH
    large_net = build_net(blocks, width, device)
    large_x = torch.randn(16384, width, device=device)
    large_ratio = "recorded_large/without_large"
    lab.claim_ratio("large-time", large_ratio, at_least=1.1, lacks=needs_cpu)
    lab.claim_ratio("gpu-large-time", large_ratio, at_most=1.1, lacks=needs_gpu)
    lab.race(
        recorded_large=lambda: recorded(large_net, large_x),
        without_large=lambda: without_gradients(large_net, large_x),
        same=0.0,
        seconds=0.5,
    )


def run(
    lab: Lab,
    blocks: int = 12,  # of Linear and GELU, 1..1000
    mode: Literal["no_grad", "eval", "detach"] = "no_grad",  # of the forward "without gradients"
) -> None:
    device = lab.device()

    @lab.once
    def exact():
        net = build_net(blocks, WIDTH, device)
        x = torch.randn(WIDTH, WIDTH, device=device)
        claim_memory(lab, net, x, mode)
        claim_limits(lab, device)

    race_forwards(lab, blocks, mode, device)
