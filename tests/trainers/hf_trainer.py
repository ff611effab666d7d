"""The Trainer of transformers on a tiny GPT-2 of random weights: it owns the loop, and wraps optimizer and loader."""

import os
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # before transformers is loaded; nothing is looked up

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments


class Tokens(torch.utils.data.Dataset[dict[str, torch.Tensor]]):
    """Rows that count upwards, modulo 32."""

    def __len__(self) -> int:
        return 256

    def __getitem__(self, row: int) -> dict[str, torch.Tensor]:
        tokens = (torch.arange(16) + row) % 32
        return {"input_ids": tokens, "labels": tokens}


def main() -> None:
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=32,
        n_positions=16,
        n_embd=32,
        n_layer=2,
        n_head=2,
        bos_token_id=0,
        eos_token_id=0,
    )
    with tempfile.TemporaryDirectory() as folder:
        options = TrainingArguments(
            folder,
            max_steps=30,
            per_device_train_batch_size=8,
            gradient_accumulation_steps=2,
            learning_rate=3e-3,
            logging_steps=10,
            report_to="none",
            save_strategy="no",
            disable_tqdm=True,
            use_cpu=True,
            seed=0,
        )
        Trainer(model=GPT2LMHeadModel(config), args=options, train_dataset=Tokens()).train()


if __name__ == "__main__":
    main()
