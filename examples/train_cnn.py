"""Train a small convolutional net on made-up images: an ordinary trainer to be watched, that downloads nothing.

Each of ten classes is a small tile; an image is a wall of them, moved, under noise.

    python examples/train_cnn.py
    python examples/train_cnn.py --workers 2 --precision bf16 --channels-last
"""

import argparse
import os
import time

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

CLASSES, SIDE = 10, 32


def knobs() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--steps", type=int, default=200, help="optimizer steps, one a batch")
    add("--lr", type=float, default=0.05, help="of SGD with momentum; 0.3 learns as well here, 3 hardly at all")
    add("--batch", type=int, default=64, help="images a step; more of them keep a GPU busier")
    add("--workers", type=int, default=0, help="processes that make images; 0 makes them between the steps")
    add("--wait", type=float, default=0, help="time that each image waits, as for a slow disk, in milliseconds")
    add("--threads", type=int, default=os.environ.get("OMP_NUM_THREADS", 1), help="of the CPU; a busy box slows two")
    add("--precision", choices=["fp32", "bf16"], default="fp32", help="bf16 casts a lot, which a small net on a CPU may feel")
    add("--channels-last", action="store_true", help="colours beside each other in memory, as many convolutions want them")
    add("--device", default="auto", help="auto takes the GPU where there is one; or cpu, cuda, cuda:1")
    add("--seed", type=int, default=0, help="the same seed, the same losses, on the same box")
    return parser.parse_args()


class Images(Dataset[tuple[Tensor, int]]):
    """Made when they are asked for, as a loader that decodes files would; the number of an image says all of it."""

    def __init__(self, count: int, seed: int, wait_s: float = 0) -> None:
        self.count, self.seed, self.wait_s = count, seed, wait_s
        self.tiles = torch.randn(CLASSES, 3, 4, 4, generator=torch.Generator().manual_seed(seed))

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> tuple[Tensor, int]:
        if self.wait_s:
            time.sleep(self.wait_s)
        chance = torch.Generator().manual_seed(self.seed + number)
        label, down, right = torch.randint(0, CLASSES, (3,), generator=chance).tolist()
        wall = self.tiles[label].roll((down, right), dims=(1, 2)).tile(1, SIDE // 4, SIDE // 4)
        return wall + 3 * torch.randn(3, SIDE, SIDE, generator=chance), label  # (3, SIDE, SIDE)


def build_net() -> nn.Module:
    def block(before: int, after: int) -> nn.Module:  # halves the side
        convolution = nn.Conv2d(before, after, kernel_size=3, stride=2, padding=1, bias=False)  # BatchNorm has a bias
        return nn.Sequential(convolution, nn.BatchNorm2d(after), nn.ReLU())

    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, CLASSES))
    return nn.Sequential(block(3, 16), block(16, 32), block(32, 64), head)  # (B, 3, SIDE, SIDE) -> (B, CLASSES)


def main() -> None:
    args = knobs()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    device = torch.device(("cuda" if torch.cuda.is_available() else "cpu") if args.device == "auto" else args.device)
    layout = torch.channels_last if args.channels_last else torch.contiguous_format

    images = Images(args.steps * args.batch, args.seed, args.wait / 1e3)  # enough for all steps: each image is seen once
    loader = DataLoader(images, args.batch, shuffle=True, num_workers=args.workers, pin_memory=device.type == "cuda")
    net = build_net().to(device, memory_format=layout)  # type: ignore[call-overload]  # torch's types lack the pair
    optimizer = torch.optim.SGD(net.parameters(), args.lr, momentum=0.9, weight_decay=1e-4)
    print(f"{sum(weight.numel() for weight in net.parameters())} weights on {device}", flush=True)

    began = time.perf_counter()
    for step, (x, y) in enumerate(loader, 1):
        x = x.to(device, memory_format=layout, non_blocking=True)  # (B, 3, SIDE, SIDE)
        y = y.to(device, non_blocking=True)  # (B,)
        with torch.autocast(device.type, torch.bfloat16, enabled=args.precision == "bf16"):
            logits = net(x)  # (B, CLASSES)
            loss = functional.cross_entropy(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0 or step == args.steps:  # .item() waits for the GPU, so not at each step
            accuracy = (logits.argmax(1) == y).float().mean().item()
            print(f"step {step}/{args.steps} loss {loss.item():.3f} acc {accuracy:.2f}", flush=True)
    print(f"{(time.perf_counter() - began) / args.steps * 1e3:.1f} ms a step")


if __name__ == "__main__":
    main()
