"""Under no_grad a net keeps nothing; net.eval() and .detach() save nothing.

In training every layer leaves something for backward: a Linear its input, a GELU its input. So all activations of the net live
at once. Under `torch.no_grad()` nothing is recorded. The same operators run and give the same bits, and each activation
dies when the next one is there. What is saved in time is the recording, and fetching fresh memory for every layer.
`net.eval()` is no substitute: it changes dropout and batch norm, and records as before. Nor is `net(x).detach()`, which lets go
of the graph only after the peak. And a log that adds up losses keeps the graph of each step; `loss.item()` keeps a number.
As a decorator it stands with or without brackets. On a generator the decorator turns recording on again at each `yield`.
A `with` inside a generator does not: whoever consumes it has recording off, and gets no gradients.
`inference_mode` drops the version counts of its tensors, too. Backward can never keep them, and outside it nobody can write
to them.
## Predict
A net has 12 Linears and 12 GELUs, and all activations are of one size. How many live at its peak under no_grad?
## Look for
- [kept] recorded, the net keeps 2 activations for each of its blocks; without gradients 0
- [peak] recorded, its peak is 2 activations for each block; without gradients 2 in all
- [same] both call the same operators and give the same bits
- [forms] the decorator with brackets, the one without, and inference_mode keep 0
- [substitutes] net.eval() and net(x).detach() have the peak of training
- [losses] the sum of four losses holds 8 activations for each block; the sum of their items holds 0
- [generator] in the loop over a generator recording is on behind a decorator, and off behind a `with` inside it
- [inference] a tensor of inference_mode is refused by a recorded product and by a write; that of no_grad is not
- [parameter] under no_grad a new nn.Parameter requires a gradient, and a product of it does not
- [integer] as in the source torch.tensor([1], requires_grad=True) is refused
## Try next
`--mode eval`: the net is in evaluation mode, and everything is kept. refutes: kept, peak
`--mode detach`: the result is let go of, and the peak was there before. refutes: kept, peak, same
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 3,
https://www.toymoban.com/news/detail-808122.html: no_grad, as a block and as a decorator. Its example asks an integer tensor
for a gradient. Ours: the count of activations, what is no substitute, and the generator.
"""

from functools import partial
from typing import Literal

import torch
from torch import nn

from tuilab import Lab


def recorded(net, x):
    return net(x)


def in_block(net, x):
    with torch.no_grad():
        return net(x)


def evaluated(net, x):
    return net.eval()(x)


def detached(net, x):
    return net.train()(x).detach()


@torch.no_grad()
def decorated():
    yield


def with_block():
    with torch.no_grad():
        yield


def sum_of_losses(net, x, number):  # of four steps
    return sum(number(net(x).square().mean()) for _ in range(4))


FORMS = {"recorded": recorded, "no_grad": in_block, "eval": evaluated, "detach": detached}
FORMS |= {"@no_grad()": torch.no_grad()(recorded), "@no_grad": torch.no_grad(recorded)}  # as the line above a function
FORMS |= {"inference_mode": torch.inference_mode()(recorded)}


def run(
    lab: Lab,
    blocks: int = 12,  # of Linear and GELU, 1..1000
    mode: Literal["no_grad", "eval", "detach"] = "no_grad",  # what is called "without gradients"
) -> None:
    with lab.device():
        net = nn.Sequential(*[layer for _ in range(blocks) for layer in (nn.Linear(256, 256), nn.GELU())])
        x, weight = torch.randn(256, 256), torch.ones(256, requires_grad=True)  # x is as large as each activation

    lab.axes("live_bytes", x="births and deaths of tensors", y="bytes that live")
    lab.stage("one forward")
    for arm in ("recorded", mode):
        with lab.memory("forward", arm=arm, timeline=True):
            FORMS[arm](net, x)
    counted = {name: lab.count(form, net, x) for name, form in FORMS.items()}
    kept = {name: one.saved_bytes / x.nbytes for name, one in counted.items()}
    peaks = {name: one.peak_bytes / x.nbytes for name, one in counted.items()}
    lab.bars("activations that live at the peak", peaks)
    lab.claim("kept", [kept["recorded"], kept[mode]], equals=[2 * blocks, 0])
    lab.claim("peak", [peaks["recorded"], peaks[mode]], equals=[2 * blocks, 2], answers=peaks[mode])
    plain, off = counted["recorded"], counted[mode]
    lab.claim("same", plain.calls == off.calls and torch.equal(plain.value, off.value))
    lab.claim("forms", [kept[name] for name in ("@no_grad()", "@no_grad", "inference_mode")], equals=[0, 0, 0])
    lab.claim("substitutes", [peaks["eval"], peaks["detach"]], equals=[2 * blocks] * 2)
    held = [lab.count(sum_of_losses, net, x, number).live_bytes // x.nbytes for number in (torch.clone, torch.Tensor.item)]
    lab.claim("losses", held, equals=[8 * blocks, 0])

    lab.stage("what is refused")
    is_on = [torch.is_grad_enabled() for form in (decorated, with_block) for _ in form()]
    lab.claim("generator", is_on, equals=[True, False])
    uses = [(torch.mul, weight, counted[form].value) for form in ("inference_mode", "no_grad")]
    uses += [(torch.Tensor.add_, counted[form].value, 1) for form in ("inference_mode", "no_grad")]
    raised = [lab.raises(*use) for use in uses]
    integer = lab.raises(partial(torch.tensor, [1], requires_grad=True))
    rows = zip(("inference: product", "no_grad: product", "inference: write", "no_grad: write"), raised, strict=True)
    lab.table("what raises", [*rows, ("integers: requires_grad", integer)], head=("tensor and use", "raises"))
    lab.claim("inference", [*map(bool, raised)], equals=[True, False, True, False])
    lab.claim("integer", integer.partition(":")[0], equals="RuntimeError")
    with torch.no_grad():
        made = nn.Parameter(torch.ones(2))
        lab.claim("parameter", [made.requires_grad, (2 * made).requires_grad], equals=[True, False])
