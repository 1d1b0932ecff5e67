import os

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

from callbacks import MemoryCallback, SpeedCallback
from corpus import SpanDataset


class RankTrainer(Trainer):
    """Every rank reads its own source, so batches are not dispatched."""

    def get_train_dataloader(self):
        return torch.utils.data.DataLoader(
            self.train_dataset, batch_size=self.args.per_device_train_batch_size)


def main():
    rank = int(os.environ.get("RANK", 0))
    config = GPT2Config(vocab_size=512, n_positions=64, n_embd=64, n_layer=2, n_head=2,
                        bos_token_id=0, eos_token_id=0)
    args = TrainingArguments(
        output_dir="out",
        max_steps=200000,
        per_device_train_batch_size=4,
        learning_rate=5e-4,
        use_cpu=True,
        ddp_backend="gloo",
        save_strategy="no",
        logging_steps=50,
        report_to=[],
        disable_tqdm=True,
    )
    data = SpanDataset(rank, config.vocab_size, 32)
    trainer = RankTrainer(
        model=GPT2LMHeadModel(config), args=args, train_dataset=data,
        callbacks=[MemoryCallback(), SpeedCallback()])
    trainer.train()


if __name__ == "__main__":
    main()
