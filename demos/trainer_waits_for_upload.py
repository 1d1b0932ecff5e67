"""transformers' Trainer; after a checkpoint the main process waits until it was uploaded."""

import os
import time

import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        return {
            "input_ids": torch.randint(0, 90, (12,)),
            "attention_mask": torch.ones(12, dtype=torch.long),
            "labels": torch.tensor(index % 2),
        }


def wait_for_upload(folder):
    while not os.path.exists(f"{folder}/uploaded"):
        time.sleep(1)


class Upload(TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs):
        if state.is_world_process_zero:
            print(f"step {state.global_step}", flush=True)

    def on_save(self, args, state, control, **kwargs):
        if state.is_world_process_zero:
            wait_for_upload(f"{args.output_dir}/checkpoint-{state.global_step}")


def main():
    config = BertConfig(
        vocab_size=90,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=32,
    )
    settings = TrainingArguments(
        output_dir="out",
        per_device_train_batch_size=4,
        max_steps=10_000,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        save_strategy="steps",
        save_steps=8,
        logging_steps=1000,
    )
    trainer = Trainer(
        BertForSequenceClassification(config),
        settings,
        train_dataset=Rows(),
        callbacks=[Upload()],
    )
    trainer.train()


if __name__ == "__main__":
    main()
