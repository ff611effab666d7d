"""A trainer that has a say in its own end: hooks for exceptions, signals and the exit; --end chooses how it ends."""

import argparse
import atexit
import os
import signal
import sys
from types import FrameType, TracebackType

import torch

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument(
    "--end",
    choices=["last", "raise", "term", "interrupt"],
    default="last",
    help="what happens at step 20",
)
args = parser.parse_args()


def tell_exception(
    kind: type[BaseException], problem: BaseException, _: TracebackType | None
) -> None:
    print(f"own hook: {kind.__name__}: {problem}", flush=True)


def save_and_leave(number: int, _: FrameType | None) -> None:
    print(f"own handler: {signal.Signals(number).name} at step {step}, saved", flush=True)
    sys.exit(0)


sys.excepthook = tell_exception
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
    signal.signal(number, save_and_leave)
atexit.register(print, "own exit", flush=True)

torch.manual_seed(0)
net = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for step in range(1, 31):
    x = torch.randn(32, 16)
    loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(f"step {step} loss {loss.item():.4f}", flush=True)
    if step == 20 and args.end == "raise":
        raise RuntimeError("the loss is a number")
    if step == 20 and args.end in ("term", "interrupt"):
        os.kill(os.getpid(), signal.SIGTERM if args.end == "term" else signal.SIGINT)
