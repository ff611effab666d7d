"""Train on sentences of another length in each step, with a model that is compiled for one length.

Planted slowness: `dynamic=False` makes torch.compile compile anew for each length that it meets.
Remedy: `dynamic=True` (treatment `compile=dynamic`), which compiles once for all lengths.
"""

import argparse

import torch
from torch import nn

torch._dynamo.config.recompile_limit = 1000  # else torch gives up after 8 lengths


class Tagger(nn.Module):
    """A model that reads words one by one."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(100, 32)
        self.tags = nn.Linear(32, 10)

    def forward(self, sentence):
        return self.tags(torch.tanh(self.words(sentence)))


parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=60)
args = parser.parse_args()

torch.set_num_threads(1)
torch.manual_seed(0)
model = torch.compile(Tagger(), backend="aot_eager", dynamic=False)  # needs no C++ compiler
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

for step in range(args.steps):
    length = 16 + step
    sentence = torch.randint(100, (length,))
    loss = nn.functional.cross_entropy(model(sentence), sentence % 10)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(f"step {step} loss {loss.item():.4f}")
