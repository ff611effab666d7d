"""Do not double the batch for mixed precision: not all that a net keeps is halved.

Your batch does not fit into memory, and mixed precision is said to need half. So you double the
batch, and it still does not fit. This lesson counts the bytes that a VGG keeps for backward.

Autocast runs the convolutions in 16 bits, so their outputs take half. Two parts do not. A max-pool
keeps a 64-bit index for each of its outputs, in every precision. And autocast keeps a 16-bit copy
of the weights. Weights, gradients and the moments of Adam stay in float32. A net that is cast as a
whole needs half for them as well. (The source calls this arm FP16. Here it is bfloat16.)

A seed changes the accuracy by some percent, so one run cannot show that two precisions learn
equally well. Here each precision trains with three seeds, on pictures that are made of patterns
and noise.

The source measured that the time falls, "but not much", and quotes NVIDIA with a factor of 3. The
two have different baselines in mind today. Against IEEE float32, which uses no Tensor Cores, a
factor of 3 is possible. But since Ampere torch runs convolutions in TF32 by default, so you gain
less than 2 times.

In practice: use `torch.autocast("cuda", torch.bfloat16)`, and find the batch size by trying:
`torch.cuda.max_memory_allocated()` shows the peak of a step. Expect less than twice the batch.
Compare times with TF32, which you have anyway.
## Predict
How many times the bytes that one batch keeps for backward in float32 does twice the batch keep with
mixed precision?
## Look for
- [saved] at the largest batch mixed precision keeps 0.57 to 0.6 of the bytes of float32
- [double] twice the batch in mixed precision keeps 1.12 to 1.2 times the bytes of one batch in
  float32
- [indices] a max-pool from 4 x 4 to 2 x 2 numbers keeps 96 bytes in float32 and 64 in bfloat16: 32
  are indices in both
- [weights] after training with autocast, weights and gradients are float32
- [learn] the mean accuracy of three seeds is at least 0.9 in float32, with autocast, and cast as a
  whole
- [same] the three mean accuracies differ by at most 0.05
- [faster] on a GPU a step in IEEE float32 takes at least 3 times as long as a step with autocast
- [falls] on a GPU with TF32 a step in TF32 takes at least 1.1 times as long as a step with autocast
- [not-much] on a GPU with TF32 a step in TF32 takes at most 2 times as long as a step with autocast
## Try next
`--average`: an average needs no index, so little more than half is kept. refutes: saved, double
`--signal 0`: the pictures are noise alone, and nothing is learned. refutes: learn
## Source
"Faster and Memory-Efficient PyTorch models using AMP and Tensor Cores", section on benchmarks,
https://towardsdatascience.com/faster-and-memory-efficient-pytorch-models-using-amp-50fd3c8dd7fe:
VGG16 on CIFAR with apex, for several batch sizes, on a Titan RTX, which has no TF32. It says that
the time falls, but not much, and gives NVIDIA's factor of 3. Ours: a VGG11, bytes, seeds and TF32.
"""

from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from tuilab import Lab

ARMS = ("float32", "autocast", "cast")
CHANNELS = (1, 2, 4, 4, 8, 8, 8, 8)  # of the convolutions of a VGG11, times its width
POOLED = (0, 1, 3, 5, 7)  # a pool follows these convolutions
LEARNING_WIDTH = 4  # of the nets that learn
CPU_WIDTH = 8  # of the nets that are counted and timed
GPU_WIDTH = 64  # the same on a GPU: VGG's


def build_net(width, average):
    layers = []
    inputs = 3
    for number, factor in enumerate(CHANNELS):
        outputs = factor * width
        layers.append(nn.Conv2d(inputs, outputs, 3, padding=1, bias=False))
        layers.append(nn.BatchNorm2d(outputs, momentum=0.3))
        layers.append(nn.ReLU(inplace=True))
        if number in POOLED:
            pool = nn.AvgPool2d(2) if average else nn.MaxPool2d(2)
            layers.append(pool)
        inputs = outputs
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(inputs, 10))


class VggTrial:
    """A net and its optimizer in one precision."""

    def __init__(self, lab, arm, device, width, average, seed=0):
        torch.manual_seed(seed)
        self.lab = lab
        self.precision = "tf32" if arm == "tf32" else "ieee"  # of float32 on a GPU
        self.dtype = torch.bfloat16 if arm == "cast" else torch.float32
        self.net = build_net(width, average).to(device, self.dtype)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=0.003)
        self.is_autocast = arm == "autocast"

    def forward(self, x):  # (batch, 3, 32, 32) -> (batch, 10)
        with torch.autocast(x.device.type, torch.bfloat16, enabled=self.is_autocast):
            return self.net(x.to(self.dtype))

    def step(self, x, labels):
        with self.lab.precision(self.precision):
            loss = F.cross_entropy(self.forward(x).float(), labels)
            self.optimizer.zero_grad()
            loss.backward()
        self.optimizer.step()
        return loss.detach()

    @torch.no_grad()
    def accuracy(self, x, labels):
        self.net.eval()
        predictions = self.forward(x).argmax(1)
        return (predictions == labels).float().mean().item()


def draw(count, signal, device):
    """Return pictures (count, 3, 32, 32) of ten classes, and their labels."""
    generator = torch.Generator().manual_seed(1)
    coarse = torch.randn(10, 3, 8, 8, generator=generator)
    patterns = F.interpolate(coarse, size=32, mode="bilinear")  # (10, 3, 32, 32)
    labels = torch.randint(10, (count,))
    pictures = signal * patterns[labels] + torch.randn(count, 3, 32, 32)
    return pictures.to(device), labels.to(device)


def count_kept_bytes(lab, device, width, average, batches):
    """Return the bytes that a forward keeps for backward, by arm and batch."""
    lab.axes("kept_bytes", x="batch", y="kept for backward", log="xy")
    kept = {}
    for batch in lab.sweep(batches, "batches"):
        x = torch.randn(batch, 3, 32, 32, device=device)
        for arm in ARMS:
            trial = VggTrial(lab, arm, device, width, average)
            kept[arm, batch] = lab.count(trial.forward, x).saved_bytes
            lab.log(batch, arm=arm, kept_bytes=kept[arm, batch])
    return kept


def count_pool_bytes(lab, device, dtype):
    x = torch.ones(1, 4, 4, device=device, dtype=dtype, requires_grad=True)
    return lab.count(nn.MaxPool2d(2), x).saved_bytes


def train(lab, trials, device, signal, seed):
    """Train one net for each arm on the same pictures, and return accuracies on new ones."""
    torch.manual_seed(seed)
    pictures, labels = draw(320, signal, device)
    new_pictures, new_labels = draw(256, signal, device)
    for step in range(20):
        rows = slice(16 * step, 16 * step + 16)
        for arm, trial in trials.items():
            loss = trial.step(pictures[rows], labels[rows])
            lab.log(20 * seed + step, arm=arm, loss=loss)
    accuracies = {}
    for arm, trial in trials.items():
        accuracies[arm] = trial.accuracy(new_pictures, new_labels)
    return accuracies


def claim_learning(lab, device, average, signal):
    lab.axes("loss", x="step of Adam, seed after seed", y="cross entropy", log="y")
    accuracies = {arm: [] for arm in ARMS}
    for seed in lab.sweep(range(3), "seeds"):
        trials = {}
        for arm in ARMS:
            trials[arm] = VggTrial(lab, arm, device, LEARNING_WIDTH, average, seed)
        for arm, accuracy in train(lab, trials, device, signal, seed).items():
            accuracies[arm].append(accuracy)

    dtypes = set()
    for weight in trials["autocast"].net.parameters():
        dtypes.add(weight.dtype)
        dtypes.add(weight.grad.dtype)
    lab.claim("weights", dtypes == {torch.float32})

    rows = []
    means = []
    for arm, of_seeds in accuracies.items():
        rows.append((arm, *of_seeds))
        means.append(sum(of_seeds) / 3)
    lab.table("accuracy", rows, head=("arm", "seed 0", "seed 1", "seed 2"))
    lab.claim("learn", means, at_least=0.9)
    lab.claim("same", max(means) - min(means), at_most=0.05)


def start(lab, arm, device, width, average, pictures, labels):
    """Return a function that trains a new net by one step."""
    trial = VggTrial(lab, arm, device, width, average)
    return partial(trial.step, pictures, labels)


def run(
    lab: Lab,
    average: bool = False,  # pool by averages, not by the largest
    signal: float = 1.4,  # size of the pattern under noise of 1, 0..2
) -> None:
    device = lab.device()
    on_gpu = device.type == "cuda"
    width = GPU_WIDTH if on_gpu else CPU_WIDTH
    batches = [4 * width, 8 * width, 16 * width, 32 * width]  # to 2048 on a GPU, as in the source

    @lab.once
    def exact():
        kept = count_kept_bytes(lab, device, width, average, batches)
        smaller, largest = batches[-2:]
        share = kept["autocast", largest] / kept["float32", largest]
        twice = kept["autocast", largest] / kept["float32", smaller]
        lab.claim("saved", share, between=(0.57, 0.6))
        lab.claim("double", twice, between=(1.12, 1.2), answers=True)
        pool_bytes = [
            count_pool_bytes(lab, device, torch.float32),
            count_pool_bytes(lab, device, torch.bfloat16),
        ]
        lab.claim("indices", pool_bytes, equals=[96, 64], unit="B")
        claim_learning(lab, device, average, signal)

    lacks = "a CUDA device"
    lacks_tf32 = lacks
    if on_gpu:
        lacks = lab.lacks_units(torch.bfloat16)
        lacks_tf32 = lacks or lab.lacks_units(torch.float32)
    lab.claim_ratio("faster", "float32/autocast", at_least=3, lacks=lacks)
    lab.claim_ratio("falls", "tf32/autocast", at_least=1.1, lacks=lacks_tf32)
    lab.claim_ratio("not-much", "tf32/autocast", at_most=2, lacks=lacks_tf32)
    arms = list(ARMS)
    if not lacks_tf32:
        arms.append("tf32")
    pictures, labels = draw(batches[2], signal, device)
    factories = {}
    for arm in arms:
        factories[arm] = partial(start, lab, arm, device, width, average, pictures, labels)
    lab.race(**factories, factories=True, lacks=lacks)
