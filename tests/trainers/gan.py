"""Two nets against each other, with an optimizer each: two steps of the critic to one of the maker."""

import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits

torch.manual_seed(0)
maker = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
critic = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
maker_optimizer = torch.optim.Adam(maker.parameters(), lr=1e-3, betas=(0.5, 0.999))
critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.999))
real, fake = torch.ones(64, 1), torch.zeros(64, 1)

for turn in range(1, 21):
    for _ in range(2):
        angle = 6.2832 * torch.rand(64)
        on_circle, made = (
            torch.stack([angle.cos(), angle.sin()], 1),
            maker(torch.randn(64, 4)).detach(),
        )
        critic_loss = binary_cross_entropy_with_logits(critic(on_circle), real)
        critic_loss = critic_loss + binary_cross_entropy_with_logits(critic(made), fake)
        critic_optimizer.zero_grad()
        critic_loss.backward()
        critic_optimizer.step()
    maker_loss = binary_cross_entropy_with_logits(critic(maker(torch.randn(64, 4))), real)
    maker_optimizer.zero_grad()
    maker_loss.backward()  # leaves gradients at the critic, too, which its next zero_grad takes away
    maker_optimizer.step()
    if turn % 10 == 0:
        print(
            f"turn {turn} critic {critic_loss.item():.4f} maker {maker_loss.item():.4f}", flush=True
        )
