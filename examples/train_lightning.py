"""Train a small net under Lightning, where the Trainer owns the loop: a trainer to be watched, that downloads nothing.

The rows are noise, and the class of a row is what another net of one layer, drawn once, says of it.

    python examples/train_lightning.py
    python examples/train_lightning.py --logger csv --accumulate 4 --clip 0.5
"""

import argparse
import logging
import os
import sys
import time
import warnings
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

try:
    import lightning
    from lightning.pytorch.loggers import CSVLogger
except ImportError as problem:
    sys.exit(f"train_lightning.py needs the package lightning, pip install lightning: {problem}")

FEATURES, CLASSES, ROWS = 64, 10, 8192


def knobs() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--steps", type=int, default=200, help="optimizer steps, over as many epochs as they need")
    add("--lr", type=float, default=1e-3, help="of AdamW; OneCycleLR rises to it and falls again")
    add("--batch", type=int, default=128, help="rows of a batch")
    add("--accumulate", type=int, default=1, help="batches for each step")
    add("--clip", type=float, default=1.0, help="the largest norm of the gradient; 0 leaves it as it is")
    add("--workers", type=int, default=0, help="processes that load; rows that lie in memory need none")
    add("--precision", choices=["fp32", "bf16"], default="fp32", help="bf16 casts a lot, which a small net on a CPU may feel")
    add("--logger", choices=["none", "csv"], default="none", help="csv writes what is logged under lightning_logs/")
    add("--progress", action="store_true", help="the bar of Lightning beside our lines")
    add("--threads", type=int, default=os.environ.get("OMP_NUM_THREADS", 1), help="of the CPU; a busy box slows two")
    add("--device", choices=["auto", "cpu", "cuda"], default="auto", help="auto takes the GPU where there is one")
    add("--seed", type=int, default=0, help="the same seed, the same losses, on the same box")
    return parser.parse_args()


class Classifier(lightning.LightningModule):
    def __init__(self, lr: float, steps: int) -> None:
        super().__init__()
        self.lr, self.steps, self.told = lr, steps, 0  # told: the last step with a line
        hidden = [nn.Linear(FEATURES, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU()]
        self.net = nn.Sequential(*hidden, nn.Linear(512, CLASSES))

    def training_step(self, batch: list[Tensor], _: int) -> Tensor:
        x, y = batch  # (B, FEATURES), (B,)
        logits = self.net(x)  # (B, CLASSES)
        loss = functional.cross_entropy(logits, y)
        self.log("loss", loss)
        self.log("acc", (logits.argmax(1) == y).float().mean())
        return loss

    def on_train_batch_end(self, *_: Any) -> None:
        step, logged = self.global_step, self.trainer.callback_metrics
        if step != self.told and (step % 10 == 0 or step == self.steps):  # not again for a batch that only accumulates
            self.told = step
            print(f"step {step}/{self.steps} loss {logged['loss']:.3f} acc {logged['acc']:.2f}", flush=True)

    def configure_optimizers(self) -> dict[str, Any]:
        optimizer = torch.optim.AdamW(self.parameters(), self.lr)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, self.lr, total_steps=self.steps)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def build_rows(seed: int) -> TensorDataset:
    chance = torch.Generator().manual_seed(seed)
    x = torch.randn(ROWS, FEATURES, generator=chance)
    y = (x @ torch.randn(FEATURES, CLASSES, generator=chance)).argmax(1)
    return TensorDataset(x, y)


def main() -> None:
    args = knobs()
    lightning.seed_everything(args.seed, verbose=False)
    torch.set_num_threads(args.threads)
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)  # it advertises
    warnings.filterwarnings("ignore", module="lightning")  # it wants more workers than rows in memory need
    loader = DataLoader(build_rows(args.seed), args.batch, shuffle=True, num_workers=args.workers)
    trainer = lightning.Trainer(
        max_steps=args.steps,
        max_epochs=-1,
        accelerator=args.device,
        devices=1,
        precision={"fp32": "32-true", "bf16": "bf16-mixed"}[args.precision],
        accumulate_grad_batches=args.accumulate,
        gradient_clip_val=args.clip or None,
        logger=CSVLogger(".") if args.logger == "csv" else False,
        log_every_n_steps=10,
        enable_checkpointing=False,
        enable_progress_bar=args.progress,
        enable_model_summary=False,
    )
    began = time.perf_counter()
    trainer.fit(Classifier(args.lr, args.steps), loader)
    print(f"{(time.perf_counter() - began) / args.steps * 1e3:.1f} ms a step, the start of Lightning included")


if __name__ == "__main__":
    main()
