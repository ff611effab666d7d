"""Know the line of your own loop behind each flag of a Lightning Trainer.

Lightning hides the training loop behind flags such as `accumulate_grad_batches=16`,
`gradient_clip_val=0.1` and `precision="bf16-mixed"`. If a run behaves strangely, you have to know
what these flags do. Here the same training is written as one plain loop, and both give the same
weights, bit for bit. The flags are a division of the loss and an `if`, a call of
`clip_grad_norm_`, and a `with torch.autocast`. The Trainer saves you mistakes, such as clipping
each batch instead of the accumulated gradient.

Two cases surprise. First, an epoch can end in the middle of an accumulation. The Trainer then
steps with the batches so far, and still divides by the full number. So this step is short, and
each batch of the epoch counts the same. Second, the Trainer has no float16 autocast on a CPU. If
you ask for 16 bits there, you get bfloat16, and only a warning says so.

The source imports its profilers from `pytorch_lightning.profiler`. That module is gone; they are
in `pytorch_lightning.profilers`. That the code becomes shorter and easier to maintain is a matter
of taste, which no claim tests.

In practice: set `limit_train_batches` to a multiple of `accumulate_grad_batches`, so that no step
is short. Write `precision="bf16-mixed"` instead of `precision=16`, so that every device uses the
same dtype.
## Predict
Gradients are accumulated over 4 batches, and an epoch has 9. What percentage of the gradient of
the ninth batch is in the last step?
## Look for
- [rest] of 9 batches over 4 the last batch makes a third step, with bitwise a quarter of its
  gradient
- [clip] with a clipping norm of 0.1 no step has a gradient with a norm above 0.1001
- [clip-each] clipping each batch to 0.1 instead of the accumulated gradient changes the weights
- [mixed] under bfloat16 autocast the net returns bfloat16, and its gradients are float32
- [same] the Trainer ends with bitwise the weights of the loop in five cases: plain, accumulated,
  with a rest, clipped, mixed
- [trainer-steps] 64 batches, 64 batches over 16, and 9 batches over 4 make 64, 4 and 3 steps of
  the Trainer
- [cpu-16] with precision="16-mixed" on a CPU the net returns bfloat16
- [sixteen] precision=16, as the source writes it, becomes "bf16-mixed" on a CPU
- [moved] importing pytorch_lightning.profiler raises a ModuleNotFoundError
- [report] SimpleProfiler(dirpath, filename="perf") writes fit-perf.txt, and counts 10 calls or
  more for each batch
- [advanced] the summary of AdvancedProfiler counts "function calls", as those of cProfile do
## Try next
`--every 1`: nothing is accumulated, and each batch is a step. refutes: trainer-steps
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tips 10, 12, 13
and 22, https://www.toymoban.com/news/detail-808122.html: four flags and two profilers. The import
of the profilers is out of date. Ours: the loop, clipping, and the rest of an epoch.
"""

import importlib
import logging
import math
import os
import tempfile
import warnings

import torch
from torch import nn
from torch.utils.data import DataLoader

from tuilab import Lab

WITH_TRAINER = ("same", "trainer-steps", "cpu-16", "sixteen", "moved", "report", "advanced")


def build_net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1))


def build_optimizer(net):
    return torch.optim.SGD(net.parameters(), lr=0.1)


def loss_of(net, x, y):  # (rows, 16), (rows, 1)
    output = net(x)  # (rows, 1)
    net.output_dtype = output.dtype
    return (output.float() - y).square().mean()


def flat_gradient(net):  # (all weights)
    return torch.cat([weight.grad.flatten() for weight in net.parameters()])


def flat_weights(net):
    return torch.cat([weight.detach().flatten() for weight in net.parameters()])


class Loop:
    """A training loop with the options that the flags of the Trainer have."""

    def __init__(self, every=1, clip=math.inf, clip_each=math.inf, dtype=None):
        self.every = every  # accumulate_grad_batches
        self.clip = clip  # gradient_clip_val
        self.clip_each = clip_each  # the same for each batch, which no flag does
        self.dtype = dtype  # precision
        self.net = build_net()
        self.gradients = []  # of each step

    def train(self, lab, arm, batches):
        optimizer = build_optimizer(self.net)
        for number, (x, y) in enumerate(batches, 1):
            with torch.autocast("cpu", self.dtype, enabled=self.dtype is not None):
                loss = loss_of(self.net, x, y)
            lab.log(number, arm=arm, loss=loss)
            (loss / self.every).backward()
            nn.utils.clip_grad_norm_(self.net.parameters(), self.clip_each)
            is_last = number == len(batches)
            if number % self.every == 0 or is_last:
                nn.utils.clip_grad_norm_(self.net.parameters(), self.clip)
                self.gradients.append(flat_gradient(self.net))
                optimizer.step()
                optimizer.zero_grad()


def train_by_loop(lab, arm, batches, **options):
    loop = Loop(**options)
    loop.train(lab, arm, batches)
    return loop


def train_by_trainer(lightning, batches, **flags):
    """Return the net and the number of steps that the Trainer made."""

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = build_net()

        def training_step(self, batch, _):
            x, y = batch
            return loss_of(self.net, x, y)

        def configure_optimizers(self):
            return build_optimizer(self.net)

    module = Module()
    trainer = lightning.Trainer(
        max_epochs=1,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        **flags,
    )
    trainer.fit(module, DataLoader(batches, batch_size=None))
    return module.net, trainer.global_step


def gradient_of_ninth(lab, batches):
    """Return the gradient of the ninth batch, after two steps over four batches each."""
    net = train_by_loop(lab, "without the rest", batches[:8], every=4).net
    x, y = batches[8]
    loss_of(net, x, y).backward()
    return flat_gradient(net)


def claim_profilers(lab, lightning, batches):
    error = lab.raises(importlib.import_module, "pytorch_lightning.profiler")
    lab.claim("moved", error.partition(":")[0], equals="ModuleNotFoundError")
    with tempfile.TemporaryDirectory() as folder:
        simple = lightning.profilers.SimpleProfiler(dirpath=folder, filename="perf")
        train_by_trainer(lightning, batches, profiler=simple)
        files = os.listdir(folder)
    calls = 0
    for durations in simple.recorded_durations.values():
        calls += len(durations)
    lab.claim("report", [*files, calls >= 10 * len(batches)], equals=["fit-perf.txt", True])

    advanced = lightning.profilers.AdvancedProfiler()
    advanced.start("forward")
    advanced.stop("forward")
    lab.claim("advanced", "function calls" in advanced.summary())


def run(
    lab: Lab,
    every: int = 16,  # batches for a step where gradients are accumulated, 1..64
) -> None:
    batches = []
    for x in torch.randn(64, 32, 16):  # 64 batches of 32 rows
        batches.append((x, x[:, :4].sum(1, keepdim=True)))
    cases = {  # the data, the options of the loop, and the flags of the Trainer
        "plain": (batches, {}, {}),
        "accumulated": (batches, {"every": every}, {"accumulate_grad_batches": every}),
        "with a rest": (batches[:9], {"every": 4}, {"accumulate_grad_batches": 4}),
        "clipped": (batches, {"clip": 0.1}, {"gradient_clip_val": 0.1}),
        "mixed": (batches, {"dtype": torch.bfloat16}, {"precision": "16-mixed"}),
    }

    lab.stage("the loop")
    lab.axes("loss", x="batch", y="loss", log="y")
    loops = {}
    for name, (data, options, _) in cases.items():
        loops[name] = train_by_loop(lab, name, data, **options)

    last_gradient = gradient_of_ninth(lab, batches)
    steps = loops["with a rest"].gradients
    is_quarter = torch.equal(steps[-1], last_gradient / 4)
    percent = 100 * float(steps[-1].norm() / last_gradient.norm())
    lab.claim("rest", [len(steps), is_quarter], equals=[3, True], answers=percent)

    norms = [gradient.norm() for gradient in loops["clipped"].gradients]
    lab.claim("clip", max(norms), at_most=0.1001)
    once = train_by_loop(lab, "clipped once a step", batches, every=4, clip=0.1)
    each = train_by_loop(lab, "clipped each batch", batches, every=4, clip_each=0.1)
    lab.claim("clip-each", not torch.equal(flat_weights(once.net), flat_weights(each.net)))
    mixed = loops["mixed"]
    dtypes = [str(mixed.net.output_dtype), str(mixed.gradients[0].dtype)]
    lab.claim("mixed", dtypes, equals=["torch.bfloat16", "torch.float32"])

    lab.stage("the Trainer")
    logging.disable(logging.WARNING)  # Lightning advertises
    warnings.simplefilter("ignore")  # Lightning warns of what is not set
    error = lab.raises(importlib.import_module, "pytorch_lightning")
    if error:
        for key in WITH_TRAINER:
            lab.claim(key, lacks=f"the package lightning, pip install lightning: {error}")
        return

    lightning = importlib.import_module("pytorch_lightning")
    nets = {}
    counts = {}
    for name, (data, _, flags) in cases.items():
        nets[name], counts[name] = train_by_trainer(lightning, data, **flags)
    are_same = []
    for name in cases:
        ours = flat_weights(loops[name].net)
        theirs = flat_weights(nets[name])
        are_same.append(torch.equal(ours, theirs))
    lab.claim("same", are_same, equals=[True] * 5)
    first_counts = [counts["plain"], counts["accumulated"], counts["with a rest"]]
    lab.claim("trainer-steps", first_counts, equals=[64, 4, 3])
    lab.claim("cpu-16", str(nets["mixed"].output_dtype), equals="torch.bfloat16")
    sixteen = lightning.Trainer(precision=16, accelerator="cpu", logger=False)
    lab.claim("sixteen", sixteen.precision, equals="bf16-mixed")
    claim_profilers(lab, lightning, batches)
