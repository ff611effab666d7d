"""Train a tiny transformer, character by character, on its own source: nanoGPT in one screen, that downloads nothing.

The last tenth of the text is kept back: a loss of its own tells how well the net guesses what it has not seen.

    python examples/train_gpt.py
    python examples/train_gpt.py --accumulate 4 --clip 0.5
"""

import argparse
import os
import time
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional


def knobs() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--steps", type=int, default=200, help="optimizer steps")
    add("--lr", type=float, default=3e-3, help="of AdamW after ten steps of warm-up; a wider net wants less")
    add("--batch", type=int, default=8, help="pieces of text in one forward")
    add("--accumulate", type=int, default=1, help="forwards for each step: a larger batch for the memory of a small one")
    add("--clip", type=float, default=1.0, help="the largest norm of the gradient; 0 leaves it as it is")
    add("--context", type=int, default=48, help="characters that the net sees; attention grows with their square")
    add("--width", type=int, default=64, help="numbers for a character, a multiple of 16")
    add("--layers", type=int, default=2, help="blocks one after another")
    add("--precision", choices=["fp32", "bf16"], default="fp32", help="bf16 casts a lot, which a small net on a CPU may feel")
    add("--compile", action="store_true", help="fuse the net's small operators; the first step then takes half a minute")
    add("--threads", type=int, default=os.environ.get("OMP_NUM_THREADS", 1), help="of the CPU; a busy box slows two")
    add("--device", default="auto", help="auto takes the GPU where there is one; or cpu, cuda, cuda:1")
    add("--seed", type=int, default=0, help="the same seed, the same losses, on the same box")
    return parser.parse_args()


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.heads = width // 16
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.queries_keys_values, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:  # (B, T, width)
        parts = self.queries_keys_values(self.before_attention(x)).chunk(3, dim=-1)
        q, k, v = (part.unflatten(-1, (self.heads, 16)).transpose(1, 2) for part in parts)  # (B, heads, T, 16)
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)  # (B, heads, T, 16)
        x = x + self.out(seen.transpose(1, 2).flatten(2))
        return x + self.mlp(self.before_mlp(x))  # type: ignore[no-any-return]


class GPT(nn.Module):
    def __init__(self, characters: int, context: int, width: int, layers: int) -> None:
        super().__init__()
        self.of_character, self.of_place = nn.Embedding(characters, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width) for _ in range(layers)))
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, characters))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:  # both (B, T); y is x, one character on
        places = torch.arange(x.shape[1], device=x.device)
        logits = self.head(self.blocks(self.of_character(x) + self.of_place(places)))  # (B, T, characters)
        return functional.cross_entropy(logits.flatten(0, 1), y.flatten())


def pieces(text: Tensor, count: int, length: int, device: torch.device) -> tuple[Tensor, Tensor]:
    starts = torch.randint(len(text) - length, (count,)).tolist()
    x = torch.stack([text[start : start + length] for start in starts])
    y = torch.stack([text[start + 1 : start + length + 1] for start in starts])
    return x.to(device), y.to(device)  # (B, T) each


def main() -> None:
    args = knobs()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    device = torch.device(("cuda" if torch.cuda.is_available() else "cpu") if args.device == "auto" else args.device)

    source = Path(__file__).read_text()
    characters = sorted(set(source))
    text = torch.tensor([characters.index(character) for character in source])
    learned, kept = text[: -len(text) // 10], text[-len(text) // 10 :]
    net = GPT(len(characters), args.context, args.width, args.layers).to(device)
    loss_of = torch.compile(net) if args.compile else net
    optimizer = torch.optim.AdamW(net.parameters(), args.lr)
    warm_up = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.1, total_iters=10)
    mixed = torch.autocast(device.type, torch.bfloat16, enabled=args.precision == "bf16")
    print(f"{sum(weight.numel() for weight in net.parameters())} weights on {device}, {len(text)} characters", flush=True)

    began = time.perf_counter()
    for step in range(1, args.steps + 1):
        optimizer.zero_grad()
        for _ in range(args.accumulate):
            with mixed:
                loss = loss_of(*pieces(learned, args.batch, args.context, device))
            (loss / args.accumulate).backward()  # the gradients add up to that of the mean
        if args.clip:
            nn.utils.clip_grad_norm_(net.parameters(), args.clip)
        optimizer.step()
        warm_up.step()
        if step % 10 == 0 or step == args.steps:  # .item() waits for the GPU, so not at each step
            print(f"step {step}/{args.steps} loss {loss.item():.3f}", flush=True)
        if step % 100 == 0:
            with torch.no_grad(), mixed:
                unseen = loss_of(*pieces(kept, 32, args.context, device))
            print(f"step {step}/{args.steps} loss of text not trained on {unseen.item():.3f}", flush=True)
    print(f"{(time.perf_counter() - began) / args.steps * 1e3:.1f} ms a step")


if __name__ == "__main__":
    main()
