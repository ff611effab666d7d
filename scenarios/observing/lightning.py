"""Flags of Lightning's Trainer are lines of your own loop: the weights come out the same, bit for bit.

What `Trainer(accumulate_grad_batches=16, gradient_clip_val=0.1, precision="bf16-mixed")` does is below in one loop: a division
of the loss and an `if`, a call of `clip_grad_norm_`, a `with torch.autocast`. The Trainer saves you mistakes, such as clipping
before the last batch has come. It asks many hooks at each batch; where a batch takes many milliseconds, nobody notices.

When an epoch ends within an accumulation, the Trainer steps with what it has. The loss was divided by the full number all the
same, so this step is too short. float16 on a CPU becomes bfloat16, and only a warning says so.
## Predict
Gradients of 4 batches make a step, and the last of 9 makes one alone: what percentage of its gradient is in that step?
## Look for
- [rest] of 9 batches over 4 the last one makes a step, too, with bitwise a quarter of its gradient
- [clip] clipped to 0.1 no step has a gradient with a larger norm
- [mixed] under autocast the net gives bfloat16, and its gradients are float32
- [same] the Trainer gives bitwise the weights of the loop: plain, accumulated, with a rest, clipped, mixed
- [trainer-steps] in the first three cases it makes 64, 4 and 3 steps
- [cpu-16] precision="16-mixed" on a CPU gives bfloat16
- [moved] pytorch_lightning.profiler is no module any more
- [report] SimpleProfiler(dirpath, filename="perf") writes fit-perf.txt, and counts 10 calls or more for each batch
## Try next
`--every 1`: nothing is accumulated, and each batch is a step. refutes: trainer-steps
## Source
"28 PyTorch best practices" (in Chinese, after PyTorch's Performance Tuning Guide), tips 10 to 13 and 22,
https://www.toymoban.com/news/detail-808122.html. Ours: the loop, and the rest.
"""

import importlib
import logging
import os
import tempfile
import warnings

import torch
from torch import nn
from torch.utils.data import DataLoader

from tuilab import Lab


def build_net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1))


def loss_of(net, x, y):
    output = net(x)
    net.gave = str(output.dtype)
    return (output.float() - y).square().mean()


def by_hand(lab, arm, batches, every=1, clip=float("inf"), dtype=None):
    net, steps = build_net(), []
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for number, batch in enumerate(batches, 1):
        with torch.autocast("cpu", dtype, enabled=dtype is not None):  # precision
            loss = loss_of(net, *batch)
        lab.log(number, arm=arm, loss=loss)
        (loss / every).backward()  # accumulate_grad_batches
        if number % every == 0 or number == len(batches):
            nn.utils.clip_grad_norm_(net.parameters(), clip)  # gradient_clip_val
            steps.append(nn.utils.parameters_to_vector(weight.grad for weight in net.parameters()))
            optimizer.step()
            optimizer.zero_grad()
    return net, steps


def by_trainer(lightning, batches, **flags):
    class Module(lightning.LightningModule):
        def training_step(self, batch, _):
            return loss_of(self.net, *batch)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    module = Module()
    module.net = build_net()
    quiet = dict.fromkeys(["logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"], False)
    trainer = lightning.Trainer(max_epochs=1, accelerator="cpu", **quiet, **flags)
    trainer.fit(module, DataLoader(batches, batch_size=None))
    return module.net, trainer.global_step


def run(lab: Lab, every: int = 16) -> None:  # batches for a step where gradients are accumulated, 1..64
    batches = [(x, x[:, :4].sum(1, keepdim=True)) for x in torch.randn(64, 32, 16)]  # 64 of 32 rows
    cases = {  # the data, our options, and the flags of the Trainer
        "plain": (batches, {}, {}),
        "accumulated": (batches, {"every": every}, {"accumulate_grad_batches": every}),
        "with a rest": (batches[:9], {"every": 4}, {"accumulate_grad_batches": 4}),
        "clipped": (batches, {"clip": 0.1}, {"gradient_clip_val": 0.1}),
        "mixed": (batches, {"dtype": torch.bfloat16}, {"precision": "16-mixed"}),
    }
    lab.axes("loss", x="batch", y="loss", log="y")
    ours = {name: by_hand(lab, name, data, **options) for name, (data, options, _) in cases.items()}
    net, _ = by_hand(lab, "without the rest", batches[:8], every=4)
    loss_of(net, *batches[8]).backward()
    last, steps = nn.utils.parameters_to_vector(weight.grad for weight in net.parameters()), ours["with a rest"][1]
    percent = 100 * float(steps[-1].norm() / last.norm())
    lab.claim("rest", [len(steps), torch.equal(steps[-1], last / 4)], equals=[3, True], answers=percent)
    lab.claim("clip", max(step.norm() for step in ours["clipped"][1]), at_most=0.1001)
    lab.claim("mixed", [ours["mixed"][0].gave, str(ours["mixed"][1][0].dtype)], equals=["torch.bfloat16", "torch.float32"])
    lab.stage("the Trainer")
    logging.disable(logging.WARNING)  # it advertises
    warnings.simplefilter("ignore")  # it warns of what is not set
    if refusal := lab.raises(importlib.import_module, "pytorch_lightning"):
        for key in ("same", "trainer-steps", "cpu-16", "moved", "report"):
            lab.claim(key, lacks=f"the package lightning, pip install lightning: {refusal}")
        return
    lightning = importlib.import_module("pytorch_lightning")
    theirs = {name: by_trainer(lightning, data, **flags) for name, (data, _, flags) in cases.items()}
    pairs = [zip(ours[name][0].parameters(), theirs[name][0].parameters(), strict=True) for name in cases]
    lab.claim("same", [all(torch.equal(*pair) for pair in found) for found in pairs], equals=[True] * 5)
    lab.claim("trainer-steps", [steps for _, steps in theirs.values()][:3], equals=[64, 4, 3])
    lab.claim("cpu-16", theirs["mixed"][0].gave, equals="torch.bfloat16")
    lab.claim("moved", lab.raises(importlib.import_module, "pytorch_lightning.profiler")[:19], equals="ModuleNotFoundError")
    with tempfile.TemporaryDirectory() as folder:
        profiler = lightning.profilers.SimpleProfiler(dirpath=folder, filename="perf")
        by_trainer(lightning, batches, profiler=profiler)
        calls = sum(map(len, profiler.recorded_durations.values()))
        lab.claim("report", [*os.listdir(folder), calls >= 10 * 64], equals=["fit-perf.txt", True])
