"""A loop as timm writes it: its model, its optimizer, its schedule, and an average of the weights."""

import sys
from unittest.mock import MagicMock

import torch

try:
    import torchvision  # noqa: F401
except (
    ImportError,
    RuntimeError,
):  # the build on PyPI does not load beside a torch without CUDA; a model needs only its names
    for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
        del sys.modules[name]
    for name in (
        "",
        ".datasets",
        ".models.feature_extraction",
        ".ops.misc",
        ".transforms.functional",
        ".transforms",
        ".utils",
    ):
        sys.modules["torchvision" + name] = MagicMock(
            FrozenBatchNorm2d=type("FrozenBatchNorm2d", (), {})
        )

import timm
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler
from timm.utils import ModelEmaV3


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    net = timm.create_model("test_resnet", num_classes=10)
    optimizer = create_optimizer_v2(net, opt="lamb", lr=1e-2, weight_decay=0.05)
    schedule = CosineLRScheduler(
        optimizer, t_initial=30, warmup_t=5, warmup_lr_init=1e-3, t_in_epochs=False
    )
    average = ModelEmaV3(net, decay=0.9)
    x, y = torch.randn(16, 3, 32, 32), torch.arange(16) % 10
    for step in range(1, 31):
        loss = torch.nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update(net, step=step)
        schedule.step_update(step)
        if step % 10 == 0:
            print(
                f"step {step} loss {loss.item():.4f} lr {optimizer.param_groups[0]['lr']:.5f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
