"""channels_last changes how a batch of images lies in memory, not its numbers; one operator in the middle can undo it.

An image batch is (N, C, H, W) to the program. In memory the planes of the channels lie one after another, or, in channels_last,
all channels of a pixel: only the strides tell. A convolution multiplies all channels of a pixel with its weights, and its
kernels want them side by side. Given planes, they sort the numbers first and sort the result back.
Convert the model and the input once: `x.to(memory_format=torch.channels_last)`. Operators hand the format on: most keep it, and
a convolution makes it if its weights have it. Some do not, and what follows goes back to planes in silence. `.contiguous()`
means planes. `flatten` copies into planes, and `view` refuses. Of `x + y` the first decides. With one channel both formats are
the same memory, and torch says yes to both. 5 dimensions have channels_last_3d. The source calls it beta; it is old by now.
## Predict
A (2, 3, 4, 4) batch is in channels_last. How many places apart in memory are neighbours in a row of one channel?
## Look for
- [strides] strides (48, 16, 4, 1) become (48, 1, 12, 3), and all numbers stay equal
- [kept] convolution, batch norm, max-pool, relu, clone, x + y with y in planes and cat keep the format
- [lost] contiguous, flatten, layer norm, softmax, y + x and stack lose it
- [weights] a convolution whose weights are in channels_last makes the format from planes
- [view] view(2, -1) raises a RuntimeError
- [one-channel] with one channel both questions are answered True, and to() and contiguous() leave different strides
- [dimensions] 3 and 5 dimensions are refused, and 5 become (192, 1, 48, 12, 3) with channels_last_3d
- [inference] without gradients float32 convolutions in planes take at least 1.1 times as long
- [training] on a GPU a step of training with autocast in planes takes at least 1.2 times as long
## Try next
`--channels 1`: one channel, for which both formats are the same memory. refutes: strides, view
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 7,
https://www.toymoban.com/news/detail-808122.html. Ours: which operators keep the format, and which lose it.
"""

from functools import partial

import torch
from torch import nn

from tuilab import Lab

LAST = torch.channels_last


def places(x):  # where in memory each number of the first image lies
    return torch.arange(x.numel()).as_strided(x.shape, x.stride())[0].flatten().tolist()


def is_last(x):
    return x.is_contiguous(memory_format=LAST) and not x.is_contiguous()


def build_net(width, layout, device):
    torch.manual_seed(0)
    layers = []
    for before in (3, width, width, width):
        layers += [nn.Conv2d(before, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
    return nn.Sequential(*layers).to(device, memory_format=layout)


@torch.no_grad()
def infer(net, x):  # (batch, 3, side, side) -> (batch, width, side, side)
    return net(x)


def train(net, x):
    with torch.autocast(x.device.type, torch.bfloat16):
        loss = net(x).float().square().mean()
    loss.backward()


def run(
    lab: Lab,
    channels: int = 3,  # of the batch whose strides are told, 1..64
) -> None:
    device = lab.device()
    on_gpu = device.type == "cuda"
    layouts = {"planes": torch.contiguous_format, "last": LAST}

    @lab.once
    def exact():
        lab.stage("strides, and who keeps them")
        lab.axes("place", x="number, in the order of the program", y="place in memory", log="")
        x = torch.randn(2, channels, 4, 4, device=device)
        last = x.to(memory_format=LAST)
        for name, images in {"planes": x, "channels_last": last}.items():
            for number, place in enumerate(places(images)):
                lab.log(number, arm=name, place=place)
        told = [list(x.stride()), list(last.stride()), torch.equal(x, last)]
        lab.claim("strides", told, equals=[[48, 16, 4, 1], [48, 1, 12, 3], True], answers=last.stride(-1))
        lab.claim("view", lab.raises(last.view, 2, -1).partition(":")[0], equals="RuntimeError")
        one = torch.randn(2, 1, 4, 4, device=device)
        strides = {one.to(memory_format=LAST).stride(), one.contiguous(memory_format=LAST).stride()}
        both = [one.is_contiguous(), one.is_contiguous(memory_format=LAST), len(strides)]
        lab.claim("one-channel", both, equals=[True, True, 2])
        refused = [n for n in (3, 4, 5) if lab.raises(partial(torch.ones([2] * n).to, memory_format=LAST))]
        volume = torch.ones(2, 3, 4, 4, 4).to(memory_format=torch.channels_last_3d)
        lab.claim("dimensions", [refused, list(volume.stride())], equals=[[3, 5], [192, 1, 48, 12, 3]])

        planes = torch.randn(2, 8, 4, 4, device=device)
        convolution = nn.Conv2d(8, 8, 3).to(device)
        keep = {"conv": convolution, "batch norm": nn.BatchNorm2d(8).to(device), "max-pool": nn.MaxPool2d(2)}
        keep |= {"relu": torch.relu, "clone": torch.clone}
        keep |= {"x + planes": lambda x: x + planes, "cat": lambda x: torch.cat([x, x], 1)}
        lose = {"contiguous": torch.Tensor.contiguous, "flatten": lambda x: x.flatten(1).view(x.shape)}
        lose |= {"layer norm": nn.LayerNorm([8, 4, 4]).to(device), "softmax": lambda x: x.softmax(1)}
        lose |= {"planes + x": lambda x: planes + x, "stack": lambda x: torch.stack([*x])}
        kept = {name: is_last(f(planes.to(memory_format=LAST))) for name, f in {**keep, **lose}.items()}
        lab.table("a batch in channels_last", [*kept.items()], head=("operator", "keeps it"))
        lab.claim("kept", [name for name in keep if kept[name]], equals=[*keep])
        lab.claim("lost", [name for name in lose if not kept[name]], equals=[*lose])
        made = [is_last(convolution(planes)), is_last(convolution.to(memory_format=LAST)(planes))]
        lab.claim("weights", made, equals=[False, True])

    images = torch.randn(64, 3, 56, 56) if on_gpu else torch.randn(8, 3, 32, 32)

    def start(step, layout):
        net = build_net(256 if on_gpu else 32, layout, device).train(step is train)
        return partial(step, net, images.to(device, memory_format=layout))

    lacks = "" if on_gpu else "a CUDA device"
    lab.claim_ratio("inference", "planes/last", at_least=1.1)
    lab.claim_ratio("training", "train_planes/train_last", at_least=1.2, lacks=lacks)
    with lab.precision("ieee"):
        lab.race(**{arm: partial(start, infer, form) for arm, form in layouts.items()}, factories=True, same=1e-4, seconds=0.5)
    lab.race(**{f"train_{arm}": partial(start, train, form) for arm, form in layouts.items()}, factories=True, lacks=lacks)
