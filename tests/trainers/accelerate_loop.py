"""A loop with accelerate: the optimizer and the loader are wrapped, and a step is passed over while gradients add up."""

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main() -> None:
    torch.manual_seed(0)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    x = torch.randn(320, 16)
    loader = DataLoader(
        TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8
    )  # 40 batches an epoch
    net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
    net, optimizer, loader = accelerator.prepare(net, optimizer, loader)
    step = 0
    for _ in range(2):
        for inputs, targets in loader:
            with accelerator.accumulate(net):
                loss = (net(inputs) - targets).square().mean()
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(net.parameters(), 1.0)
                    step += 1
                optimizer.step()  # called for each batch, and for every other one it does nothing
                optimizer.zero_grad()
        accelerator.print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
