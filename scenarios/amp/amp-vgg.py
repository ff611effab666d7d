"""Mixed precision keeps 58 % of a VGG's bytes for backward, not half, and learns as well as float32 over three seeds.

Autocast runs the convolutions in 16 bits, and what waits for backward shrinks to half, but not all of it: a max-pool keeps a
64-bit index for each of its outputs, and a 16-bit copy of the weights is kept as well. So twice the batch needs more room than
one did. Weights, gradients and moments of Adam stay in float32. A net that is cast as a whole, FP16 in the source, takes half.
A seed changes the accuracy by some percent, so one run shows nothing. The pictures are made here: patterns under noise.
## Predict
How many times the bytes of one batch in float32 does twice the batch keep for backward with mixed precision?
## Look for
- [saved] mixed precision keeps 0.57 to 0.6 of the bytes of float32 at the largest batch
- [double] twice the batch with it keeps 1.12 to 1.2 times the bytes of one in float32
- [indices] of 4 x 4 numbers a max-pool to 2 x 2 keeps 96 bytes in float32 and 64 in bfloat16: 32 are indices in both
- [weights] after training with autocast, weights and gradients are float32
- [learn] the mean accuracy of three seeds is at least 0.9 in float32, with autocast, and cast as a whole
- [same] the three means are within 0.05
- [faster] on a GPU a step in float32 takes at least 3 times as long as one with autocast
## Try next
`--average`: an average needs no index, and little more than half is kept. refutes: saved, double
`--signal 0`: noise alone, and nothing is learned. refutes: learn
## Source
"Faster and Memory-Efficient PyTorch models using AMP and Tensor Cores", section on benchmarks,
https://towardsdatascience.com/faster-and-memory-efficient-pytorch-models-using-amp-50fd3c8dd7fe: VGG16 on CIFAR with apex, for
several batch sizes, and NVIDIA's factor of 3. Ours: bytes and seeds.
"""

from functools import partial
from itertools import pairwise

import torch
from torch import nn

from tuilab import Lab

ARMS = ("float32", "autocast", "cast")


def build_net(width, average):  # a VGG11
    layers = []
    for number, (before, after) in enumerate(pairwise([3, *(part * width for part in (1, 2, 4, 4, 8, 8, 8, 8))])):
        layers += [
            nn.Conv2d(before, after, 3, padding=1, bias=False),
            nn.BatchNorm2d(after, momentum=0.3),
            nn.ReLU(inplace=True),
        ]
        layers += [nn.AvgPool2d(2) if average else nn.MaxPool2d(2)] if number in (0, 1, 3, 5, 7) else []
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(after, 10))


class Trial:
    def __init__(self, arm, device, width, average, seed=0):
        torch.manual_seed(seed)
        self.dtype = torch.bfloat16 if arm == "cast" else torch.float32
        self.net = build_net(width, average).to(device, self.dtype)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=0.003)
        self.autocast = torch.autocast(device.type, torch.bfloat16, enabled=arm == "autocast")

    def forward(self, x):  # (batch, 3, 32, 32) -> (batch, 10)
        return self.autocast(self.net)(x.to(self.dtype))

    def step(self, x, labels):
        loss = nn.functional.cross_entropy(self.forward(x).float(), labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def accuracy(self, x, labels):
        self.net.eval()
        return (self.forward(x).argmax(1) == labels).float().mean().item()


def draw(count, signal, device):  # pictures of ten classes, and their labels
    coarse = torch.randn(10, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    patterns = nn.functional.interpolate(coarse, size=32, mode="bilinear")
    labels = torch.randint(10, (count,))
    return (signal * patterns[labels] + torch.randn(count, 3, 32, 32)).to(device), labels.to(device)


def run(
    lab: Lab,
    average: bool = False,  # pool by averages, not by the largest
    signal: float = 1.4,  # size of the pattern under noise of 1, 0..2
) -> None:
    device = lab.device()
    width = 64 if device.type == "cuda" else 8  # of the net that is measured and timed, not of those that learn; VGG's is 64
    batches = [4 * width, 8 * width, 16 * width, 32 * width]  # up to 256 on a CPU and 2048 on a GPU, as in the source

    @lab.once
    def exact():
        lab.axes("kept_bytes", x="batch", y="kept for backward", log="xy")
        lab.axes("loss", x="step of Adam, seed after seed", y="cross entropy", log="y")
        kept, right = {}, {arm: [] for arm in ARMS}
        for batch in lab.sweep(batches, "batches"):
            x = torch.randn(batch, 3, 32, 32, device=device)
            for arm in ARMS:
                kept[arm, batch] = lab.count(Trial(arm, device, width, average).forward, x).saved_bytes
                lab.log(batch, arm=arm, kept_bytes=kept[arm, batch])
        lab.claim("saved", kept["autocast", batches[-1]] / kept["float32", batches[-1]], between=(0.57, 0.6))
        lab.claim("double", kept["autocast", batches[-1]] / kept["float32", batches[-2]], between=(1.12, 1.2), answers=True)
        cells = torch.ones(1, 4, 4, device=device, requires_grad=True)
        lab.claim("indices", [lab.count(nn.MaxPool2d(2), x).saved_bytes for x in (cells, cells.bfloat16())], equals=[96, 64])
        for seed in lab.sweep(range(3), "seeds"):
            torch.manual_seed(seed)
            known, unseen = draw(320, signal, device), draw(256, signal, device)
            trials = {arm: Trial(arm, device, 4, average, seed) for arm in ARMS}
            for step, batch in enumerate(zip(*(part.split(16) for part in known), strict=True)):
                for arm, trial in trials.items():
                    lab.log(20 * seed + step, arm=arm, loss=trial.step(*batch))
            right = {arm: [*right[arm], trial.accuracy(*unseen)] for arm, trial in trials.items()}
        weights = trials["autocast"].net.parameters()
        lab.claim("weights", {part.dtype for weight in weights for part in (weight, weight.grad)} == {torch.float32})
        lab.table("accuracy", [(arm, *found) for arm, found in right.items()], head=("arm", "seed 0", "seed 1", "seed 2"))
        means = [sum(found) / 3 for found in right.values()]
        lab.claim("learn", means, at_least=0.9)
        lab.claim("same", max(means) - min(means), at_most=0.05)

    lacks = lab.lacks_units(torch.bfloat16) if device.type == "cuda" else "a CUDA device"
    lab.claim_ratio("faster", "float32/autocast", at_least=3, lacks=lacks)
    batch = draw(batches[2], signal, device)
    arms = {arm: lambda arm=arm: partial(Trial(arm, device, width, average).step, *batch) for arm in ARMS}
    with lab.precision("ieee"):  # of itself a convolution in float32 would be one in TF32
        lab.race(**arms, factories=True, lacks=lacks)
