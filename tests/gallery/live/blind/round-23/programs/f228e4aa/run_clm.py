import tempfile
import time

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

from watch import ActivationWatch


class Periodic(Dataset):
    def __init__(self, n=20000, length=24, vocab=120):
        self.n, self.length, self.vocab = n, length, vocab

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        ids = (torch.arange(self.length) * (1 + i % 7) + i) % self.vocab
        return {"input_ids": ids, "labels": ids.clone()}


class PacedTrainer(Trainer):
    def training_step(self, *args, **kwargs):
        time.sleep(0.15)
        return super().training_step(*args, **kwargs)


def main():
    torch.set_num_threads(1)
    config = GPT2Config(vocab_size=120, n_positions=64, n_embd=32, n_layer=4, n_head=2)
    args = TrainingArguments(
        output_dir=tempfile.mkdtemp(prefix="clm-"),
        use_cpu=True,
        ddp_backend="gloo",
        ddp_timeout=7200,
        per_device_train_batch_size=4,
        learning_rate=1e-3,
        max_steps=200000,
        logging_steps=10,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        dataloader_num_workers=0,
        seed=9,
    )
    trainer = PacedTrainer(model=GPT2LMHeadModel(config), args=args, train_dataset=Periodic(),
                           callbacks=[ActivationWatch()])
    trainer.train()


if __name__ == "__main__":
    main()
