"""Add up what you log, weight it by rows, and read it every 20 steps.

A training loop that prints `loss.item()` in each step pays for it on a GPU. At this call the CPU
waits until the GPU has computed the loss, and queues nothing meanwhile (see sync-count). Each
further number that is read, such as the norm of a gradient, adds another wait. If you train on a
CPU, a read costs next to nothing. But some numbers are expensive to compute: histograms read every
weight and every gradient again. The `watch` functions of experiment trackers log such histograms.

There are two ways to log less often. The first way logs the loss of every 20th step and ignores the
other 19. This log is as noisy as a single batch, and it never shows a bad batch in between. The
second way adds up the losses on the device and logs their mean every 20 steps. It needs only one
read in 20 steps as well. The noise of the mean is smaller by about the square root of 20. A NaN in
any of the 20 losses makes the mean NaN, so you see it.

A mean of batch means is wrong if the batches have different sizes. The last batch of an evaluation
is often smaller, and then each row of this batch counts more than a row of another batch. Add up
the losses of rows, and divide once by the number of rows. A log file needs care as well. Python
keeps written lines in a buffer until the buffer is full, and a process that is killed loses these
lines.

The net of this lesson classifies random points by a fixed rule, with some wrong labels. One batch
contains a NaN, and its step is skipped. The chart shows the loss of every 20th step and the mean of
20 steps.

In practice: create `total = torch.zeros((), device=device)` before the loop, and write `total +=
loss.detach()` in each step. Every 20 steps, log `total.item() / 20` and call `total.zero_()`. In an
evaluation add `loss.detach() * len(x)` for each batch, and divide the total by the number of rows.
Log histograms every few hundred steps. Open a log file with `buffering=1`, so that each line is
written at once.
## Predict
An evaluation has 129 rows in batches of 64, and averages the mean losses of the batches. How many
times as much as the first row does the last row count?
## Look for
- [reads] a loop that reads the loss, the hits and 8 gradient norms in each step makes 200 reads in
  20 steps
- [stacked] a loop that adds up the loss, the hits and 8 gradient norms in a tensor makes 1 read in
  20 steps
- [same] reading 10 numbers in each step, or their sums once every 20 steps, gives the same means to
  1e-4
- [gpu] on a GPU, reading numbers in each step makes torch report at least 10 times as many waits as
  reading sums in every 20th step
- [weights] in a mean of batch means of 129 rows in batches of 64, the last row counts 64 times as
  much as the first
- [mean-off] for 129 rows in batches of 64, the mean of the batches' accuracies is off by at least
  0.02
- [row-sums] for 129 rows in batches of 64, sums over rows, divided once by the number of rows, give
  the mean over all rows to 1e-6
- [noise] the standard deviation of the loss of every 20th step is at least 2.5 times that of the
  mean of 20 steps
- [bad-batch] if 1 of 1000 losses is NaN, 1 of 50 means of 20 steps is NaN, and no loss of a 20th
  step
- [buffered] after 100 short rows are written to an open csv file, the file has 0 bytes without
  buffering=1, and all bytes with it
- [item-time] on a CPU, a training step with loss.item() takes at most 1.2 times as long as a step
  that reads nothing
- [histogram-time] a training step with a histogram of each weight and gradient takes at least 1.3
  times as long as a step without histograms
- [rare-time] 20 training steps take at least 1.3 times as long with histograms in each step as with
  histograms in the last step
## Try next
`--every 1`: each step is logged, so each mean is the loss of a single step. refutes: stacked,
noise, bad-batch
`--drop-last`: the last batch, with its single row, is left out, so all batches have the same size.
refutes: weights, mean-off
## Source
- "[CLI] Wandb Taking significantly long time to execute code",
  https://github.com/wandb/wandb/issues/2268: `watch` with `log_freq=10` reads all weights every 10
  steps, and its default is 1000.
- PyTorch documentation, "Avoid unnecessary CPU-GPU synchronization" in the performance tuning
  guide, https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html.
- Ours: the counts, the noise, the means and the buffer.
"""

import csv
import math
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
import torch.nn.functional as F
from torch import nn
from torch.overrides import TorchFunctionMode

from tuilab import Lab

WIDTH = 64
CLASSES = 8
BATCH = 64
WINDOW = 20  # steps
CURVE_STEPS = 1000
BAD_STEP = 710  # not the last step of its 20
EVALUATED_ROWS = 129  # 2 batches and 1 row


class ReadCounter(TorchFunctionMode):
    """Counts the calls that bring a value of a tensor to Python."""

    READS = (torch.Tensor.item, torch.Tensor.tolist, torch.Tensor.__float__)

    def __init__(self):
        super().__init__()
        self.reads = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function in self.READS:
            self.reads += 1
        return function(*args, **(kwargs or {}))


class Training:
    """A net with its optimizer, and random batches of points."""

    def __init__(self, device):
        torch.manual_seed(0)
        layers = [nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH), nn.Tanh()]
        layers += [nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, CLASSES)]
        self.net = nn.Sequential(*layers).to(device)
        self.parameters = list(self.net.parameters())  # 8 tensors
        self.optimizer = torch.optim.SGD(self.parameters, lr=0.1)
        self.rule = torch.randn(WIDTH, CLASSES).to(device)
        self.device = device
        self.batch = self.draw(BATCH)

    def draw(self, rows):
        """Return points and their labels, of which a fifth is wrong."""
        x = torch.randn(rows, WIDTH).to(self.device)
        labels = (x @ self.rule).argmax(1)
        is_wrong = torch.rand(rows).to(self.device) < 0.2
        return x, torch.where(is_wrong, (labels + 1) % CLASSES, labels)

    def step(self, batch=None):
        """Train once, and return the loss and the number of hits as tensors."""
        x, labels = batch or self.batch
        self.optimizer.zero_grad()
        output = self.net(x)  # (rows, classes)
        loss = F.cross_entropy(output, labels)
        loss.backward()
        self.optimizer.step()
        return loss.detach(), (output.argmax(1) == labels).sum()

    def gradient_norms(self):
        return [parameter.grad.norm() for parameter in self.parameters]

    def histograms(self):
        counts = []
        for parameter in self.parameters:
            counts.append(torch.histc(parameter.detach(), 64).tolist())
            counts.append(torch.histc(parameter.grad, 64).tolist())
        return counts


def train_silently(training):
    for _ in range(WINDOW):
        training.step()


def read_loss(training):
    for _ in range(WINDOW):
        loss, _ = training.step()
        loss.item()


def read_each_step(training):
    """Return the means of what each step logs."""
    sums = [0.0] * 10
    for _ in range(WINDOW):
        loss, hits = training.step()
        tensors = [loss, hits, *training.gradient_norms()]
        for index, tensor in enumerate(tensors):
            sums[index] += tensor.item()
    return [total / WINDOW for total in sums]


def add_up(training, every):
    """Return the means of the same numbers, read once after `every` steps."""
    means = []
    total = torch.zeros(10, device=training.device)
    for number in range(1, WINDOW + 1):
        loss, hits = training.step()
        total += torch.stack([loss, hits, *training.gradient_norms()])
        if number % every == 0:
            means.append((total / every).tolist())
            total.zero_()
    return means


def make_histograms(training, is_each_step):
    for number in range(1, WINDOW + 1):
        training.step()
        if is_each_step or number == WINDOW:
            training.histograms()


def count_reads(function, *args):
    """Return the number of reads, and what the function returns."""
    with ReadCounter() as counter:
        result = function(*args)
    return counter.reads, result


def count_warnings(lab, device, function, *args):
    """Return how often torch warns that a call waited for the GPU."""
    module = torch.get_device_module(device)  # torch.cuda

    def call():
        module.set_sync_debug_mode("warn")
        function(*args)
        module.set_sync_debug_mode("default")

    return len([text for text in lab.warns(call) if "synchronizing CUDA" in text])


def claim_reads(lab, device, every):
    lab.stage("reads in 20 steps")
    each_reads, each_means = count_reads(read_each_step, Training(device))
    rare_reads, rare_means = count_reads(add_up, Training(device), every)
    lab.bars("reads in 20 steps", {"each step": each_reads, "added up": rare_reads})
    lab.claim("reads", each_reads, equals=200)
    lab.claim("stacked", rare_reads, equals=1)
    difference = torch.tensor(each_means) - torch.tensor(rare_means).mean(0)
    lab.claim("same", difference.abs().max(), at_most=1e-4)
    if device.type != "cuda":
        lab.claim("gpu", lacks="a CUDA device")
        return
    each_warnings = count_warnings(lab, device, read_each_step, Training(device))
    rare_warnings = count_warnings(lab, device, add_up, Training(device), every)
    lab.claim("gpu", each_warnings / max(rare_warnings, 1), at_least=10)


def mean_of_batch_means(values):  # (rows,)
    means = [batch.mean() for batch in values.split(BATCH)]
    return torch.stack(means).mean()


def mean_of_rows(values):
    total = torch.zeros((), device=values.device)
    rows = 0
    for batch in values.split(BATCH):
        total += batch.mean() * len(batch)  # a loss is the mean over its batch
        rows += len(batch)
    return total / rows


def claim_means(lab, training, is_last_dropped):
    rows = EVALUATED_ROWS
    if is_last_dropped:
        rows = rows // BATCH * BATCH
    x, labels = training.draw(rows)
    with torch.no_grad():
        hits = (training.net(x).argmax(1) == labels).float()  # (rows,)
    accuracy = hits.double().mean()
    lab.claim("mean-off", (mean_of_batch_means(hits) - accuracy).abs(), at_least=0.02)
    lab.claim("row-sums", (mean_of_rows(hits) - accuracy).abs(), at_most=1e-6)

    losses = torch.ones(rows, requires_grad=True)
    (weights,) = torch.autograd.grad(mean_of_batch_means(losses), losses)  # what each row counts
    ratio = weights[-1] / weights[0]
    lab.claim("weights", ratio, equals=64, tolerance=1e-4, answers=True)


def nan_loss(training, batch):
    """Return the loss of a batch with a NaN; its step is skipped, as GradScaler does."""
    x, labels = batch
    x[0, 0] = math.nan
    with torch.no_grad():
        return F.cross_entropy(training.net(x), labels)


def log_curves(lab, training, every):
    """Train, and return what a log has of every n-th step, and of the means of n steps."""
    lab.axes("logged_loss", x="step", y="loss in the log")
    sampled = []
    means = []
    total = torch.zeros((), device=training.device)
    for step in lab.steps(CURVE_STEPS, "two logs"):
        batch = training.draw(BATCH)
        if step == BAD_STEP:
            loss = nan_loss(training, batch)
        else:
            loss, _ = training.step(batch)
        total += loss
        if (step + 1) % every == 0:
            sampled.append(loss)
            means.append(total / every)
            lab.log(step + 1, arm="loss of one step", logged_loss=sampled[-1])
            lab.log(step + 1, arm="mean since the last log", logged_loss=means[-1])
            total.zero_()
    return torch.stack(sampled).cpu(), torch.stack(means).cpu()


def claim_curves(lab, training, every):
    sampled, means = log_curves(lab, training, every)
    bad_logs = [means.isnan().sum().item(), sampled.isnan().sum().item()]
    lab.claim("bad-batch", bad_logs, equals=[1, 0])
    is_used = means.isfinite()
    is_used[: len(means) // 2] = False  # the loss is still falling
    lab.claim("noise", sampled[is_used].std() / means[is_used].std(), at_least=2.5)


def written_share(buffering):
    """Return the share of 100 rows that is in the file before it is closed."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "log.csv"
        with path.open("w", buffering=buffering, newline="") as file:
            writer = csv.writer(file)
            for step in range(100):
                writer.writerow([step, 0.5])
            early_bytes = path.stat().st_size
        return early_bytes / path.stat().st_size


def run(
    lab: Lab,
    every: int = 20,  # steps from one log to the next, 1..20
    drop_last: bool = False,  # leave out the last batch of the evaluation
) -> None:
    device = lab.device()

    @lab.once
    def exact():
        claim_reads(lab, device, every)
        training = Training(device)
        claim_curves(lab, training, every)
        lab.stage("means, and a file")
        claim_means(lab, training, drop_last)
        lab.claim("buffered", [written_share(-1), written_share(1)], equals=[0, 1])

    lab.stage("timing")
    lacks = "" if device.type == "cpu" else "--device cpu"
    lab.claim_ratio("item-time", "item/silent", at_most=1.2, lacks=lacks)
    lab.claim_ratio("histogram-time", "histograms/silent", at_least=1.3)
    lab.claim_ratio("rare-time", "histograms/rare", at_least=1.3)

    def start(function, *args):
        return partial(function, Training(device), *args)

    lab.race(
        silent=lambda: start(train_silently),
        item=lambda: start(read_loss),
        histograms=lambda: start(make_histograms, True),
        rare=lambda: start(make_histograms, False),
        factories=True,
        seconds=0.2,
    )
