"""Convert model and images to channels_last, and check that the format survives.

A batch of images is (N, C, H, W) to the program, whatever its format. In memory, either the planes
of the channels lie one after another, or, in channels_last, all channels of a pixel lie side by
side. Only the strides differ. A convolution multiplies all channels of a pixel by its weights, so
its fast kernels want the channels side by side. If they get planes, they reorder the numbers
first, and reorder the result back.

Operators pass the format on. Most keep it, and a convolution creates it if its weights have it.
Some operators lose the format, and the operators behind them compute on planes without a warning.
`.contiguous()` means planes, and `flatten` copies into planes. In `x + y` the first operand
decides. With one channel, both formats are the same memory, and torch answers yes to both. Tensors
with 5 dimensions have `torch.channels_last_3d`.

On a GPU the gain belongs to the Tensor Cores, so this lesson times bfloat16 there. In IEEE float32
few kernels exist for channels_last, and the format can even cost time. On a CPU it times float32.
The source calls the format beta, in words of 2020. No claim can test the
status of a feature.

In practice: call `model.to(memory_format=torch.channels_last)` once, and
`images.to(device, memory_format=torch.channels_last)` for each batch. Train under
`torch.autocast("cuda", torch.bfloat16)`. Check in the middle of the net with
`x.is_contiguous(memory_format=torch.channels_last)`.
## Predict
A (2, 3, 4, 4) batch is in channels_last. How many places apart in memory are neighbours in a row
of one channel?
## Look for
- [strides] for a (2, 3, 4, 4) batch the strides (48, 16, 4, 1) become (48, 1, 12, 3), and all
  numbers stay equal
- [kept] conv, batch norm, max-pool, relu, clone, x + y with y in planes, and cat keep the format
- [lost] contiguous, flatten, layer norm, softmax, y + x with y in planes, and stack lose the format
- [weights] a convolution creates the format from planes only if its weights are in channels_last
- [view] in channels_last view(2, -1) raises a RuntimeError
- [one-channel] a batch with one channel is contiguous in both formats, and to() and contiguous()
  give it different strides
- [dimensions] channels_last refuses 3 and 5 dimensions, and channels_last_3d gives a
  (2, 3, 4, 4, 4) tensor the strides (192, 1, 48, 12, 3)
- [inference] without gradients four convolutions (float32 on a CPU, bfloat16 on a GPU) take at
  least 1.1 times as long in planes
- [training] on a GPU a step of training under bfloat16 autocast takes at least 1.2 times as long
  in planes
## Try next
`--channels 1`: with one channel both formats are the same memory. refutes: strides, view
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tip 7,
https://www.toymoban.com/news/detail-808122.html: the format is for 4 dimensions, together with AMP.
Ours: which operators keep the format, and which lose it.
"""

from functools import partial

import torch
from torch import nn

from tuilab import Lab

LAST = torch.channels_last
LAYOUTS = {"planes": torch.contiguous_format, "last": LAST}
SIZES_CPU = {"width": 32, "batch": 8, "side": 32, "dtype": torch.float32, "same": 1e-4}  # on a CPU
SIZES_GPU = {"width": 256, "batch": 64, "side": 56, "dtype": torch.bfloat16, "same": 1e-2}


def places_of(x):
    """Return where in memory each number of the first image lies."""
    places = torch.arange(x.numel()).as_strided(x.shape, x.stride())
    return places[0].flatten().tolist()


def is_last(x):
    return x.is_contiguous(memory_format=LAST) and not x.is_contiguous()


def build_net(width, layout, device, dtype):
    torch.manual_seed(0)
    layers = []
    channels = 3
    for _ in range(4):
        layers.append(nn.Conv2d(channels, width, 3, padding=1, bias=False))
        layers.append(nn.BatchNorm2d(width))
        layers.append(nn.ReLU())
        channels = width
    return nn.Sequential(*layers).to(device, dtype, memory_format=layout)


@torch.no_grad()
def infer(net, x):  # (batch, 3, side, side) -> (batch, width, side, side)
    return net(x)


def train(net, x):
    with torch.autocast(x.device.type, torch.bfloat16):
        loss = net(x).float().square().mean()
    loss.backward()


def start_inference(layout, sizes, images, device):
    net = build_net(sizes["width"], layout, device, sizes["dtype"]).eval()
    return partial(infer, net, images.to(device, sizes["dtype"], memory_format=layout))


def start_training(layout, sizes, images, device):
    net = build_net(sizes["width"], layout, device, torch.float32)
    return partial(train, net, images.to(device, memory_format=layout))


def keepers(planes, convolution):
    """Return operators that keep channels_last, by name."""
    return {
        "conv": convolution,
        "batch norm": nn.BatchNorm2d(8).to(planes.device),
        "max-pool": nn.MaxPool2d(2),
        "relu": torch.relu,
        "clone": torch.clone,
        "x + planes": lambda x: x + planes,
        "cat": lambda x: torch.cat([x, x], 1),
    }


def losers(planes):
    """Return operators that lose channels_last, by name."""
    return {
        "contiguous": torch.Tensor.contiguous,
        "flatten": lambda x: x.flatten(1).view(x.shape),
        "layer norm": nn.LayerNorm([8, 4, 4]).to(planes.device),
        "softmax": lambda x: x.softmax(1),
        "planes + x": lambda x: planes + x,
        "stack": lambda x: torch.stack([*x]),
    }


def claim_strides(lab, channels, device):
    lab.axes("place", x="number, in the order of the program", y="place in memory", log="")
    planes = torch.randn(2, channels, 4, 4, device=device)
    last = planes.to(memory_format=LAST)
    for name, images in {"planes": planes, "channels_last": last}.items():
        for number, place in enumerate(places_of(images)):
            lab.log(number, arm=name, place=place)
    measured = [list(planes.stride()), list(last.stride()), torch.equal(planes, last)]
    expected = [[48, 16, 4, 1], [48, 1, 12, 3], True]
    lab.claim("strides", measured, equals=expected, answers=last.stride(-1))
    error = lab.raises(last.view, 2, -1)
    lab.claim("view", error.partition(":")[0], equals="RuntimeError")


def claim_dimensions(lab, device):
    gray = torch.randn(2, 1, 4, 4, device=device)
    are_contiguous = [gray.is_contiguous(), gray.is_contiguous(memory_format=LAST)]
    by_to = gray.to(memory_format=LAST).stride()
    by_contiguous = gray.contiguous(memory_format=LAST).stride()
    lab.claim("one-channel", [*are_contiguous, by_to != by_contiguous], equals=[True] * 3)

    refused = []
    for count in (3, 4, 5):
        x = torch.ones([2] * count, device=device)
        if lab.raises(partial(x.to, memory_format=LAST)):
            refused.append(count)
    volume = torch.ones(2, 3, 4, 4, 4, device=device).to(memory_format=torch.channels_last_3d)
    measured = [refused, list(volume.stride())]
    lab.claim("dimensions", measured, equals=[[3, 5], [192, 1, 48, 12, 3]])


def claim_operators(lab, device):
    planes = torch.randn(2, 8, 4, 4, device=device)
    convolution = nn.Conv2d(8, 8, 3).to(device)
    keep = keepers(planes, convolution)
    lose = losers(planes)
    kept = {}
    for name, function in {**keep, **lose}.items():
        kept[name] = is_last(function(planes.to(memory_format=LAST)))
    lab.table("a batch in channels_last", list(kept.items()), head=("operator", "keeps it"))
    lab.claim("kept", [name for name in keep if kept[name]], equals=list(keep))
    lab.claim("lost", [name for name in lose if not kept[name]], equals=list(lose))

    from_planes = is_last(convolution(planes))
    from_last = is_last(convolution.to(memory_format=LAST)(planes))
    lab.claim("weights", [from_planes, from_last], equals=[False, True])


def run(
    lab: Lab,
    channels: int = 3,  # of the batch whose strides are shown, 1..64
) -> None:
    device = lab.device()
    on_gpu = device.type == "cuda"
    lacks = "" if on_gpu else "a CUDA device"
    sizes = SIZES_GPU if on_gpu else SIZES_CPU

    @lab.once
    def exact():
        lab.stage("strides, and who keeps them")
        claim_strides(lab, channels, device)
        claim_dimensions(lab, device)
        claim_operators(lab, device)

    images = torch.randn(sizes["batch"], 3, sizes["side"], sizes["side"])
    lab.claim_ratio("inference", "planes/last", at_least=1.1)
    lab.claim_ratio("training", "train_planes/train_last", at_least=1.2, lacks=lacks)
    inference, training = {}, {}
    for name, layout in LAYOUTS.items():
        inference[name] = partial(start_inference, layout, sizes, images, device)
        training[f"train_{name}"] = partial(start_training, layout, sizes, images, device)
    lab.stage("inference")
    lab.race(**inference, factories=True, same=sizes["same"], seconds=0.5)
    lab.stage("training")
    lab.race(**training, factories=True, lacks=lacks)
