"""transformers' Trainer; a callback meets the others at a barrier on one process only."""

import os

import torch
import torch.distributed as dist
from kit import Log, options, start
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 4096

    def __getitem__(self, index):
        return {"input_ids": torch.randint(0, 90, (12,)), "attention_mask": torch.ones(12, dtype=torch.long), "labels": torch.tensor(index % 2)}


class Sampling(TrainerCallback):
    def __init__(self, log, every, where):
        self.log, self.every, self.where = log, every, where

    def on_step_end(self, args, state, control, **kwargs):
        self.log.step(state.global_step)
        if state.global_step == self.every and dist.get_rank() == self.where:
            dist.barrier()


def main(args):
    config = BertConfig(vocab_size=90, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, max_position_embeddings=32)
    settings = TrainingArguments(
        output_dir="out",
        per_device_train_batch_size=4,
        max_steps=args.steps,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        save_strategy="no",
        logging_steps=50,
    )
    log = Log(args, int(os.environ["RANK"]))
    Trainer(BertForSequenceClassification(config), settings, train_dataset=Rows(), callbacks=[Sampling(log, args.when, args.pick)]).train()


if __name__ == "__main__":
    start(main, options())
