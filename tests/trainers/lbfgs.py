"""An optimizer that asks for the loss itself, through a closure, several times in one step."""

import torch

torch.manual_seed(0)
x = torch.randn(256, 8)
y = x @ torch.randn(8, 1) + 0.1 * torch.randn(256, 1)
net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
optimizer = torch.optim.LBFGS(net.parameters(), lr=0.5, max_iter=4, line_search_fn="strong_wolfe")
calls = 0


def closure() -> float:
    global calls
    calls += 1
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(net(x), y)
    loss.backward()
    return loss.item()


for step in range(1, 21):
    loss = optimizer.step(closure)
    if step % 10 == 0:
        print(f"step {step} loss {loss:.4f} after {calls} calls of the closure", flush=True)
