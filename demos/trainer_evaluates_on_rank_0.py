"""transformers' Trainer; a callback evaluates every eight steps, on the main process only."""

import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)


class Rows(torch.utils.data.Dataset):
    def __init__(self, length):
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        return {
            "input_ids": torch.randint(0, 90, (12,)),
            "attention_mask": torch.ones(12, dtype=torch.long),
            "labels": torch.tensor(index % 2),
        }


class EvaluateOften(TrainerCallback):
    trainer = None

    def on_step_end(self, args, state, control, **kwargs):
        if state.is_world_process_zero:
            print(f"step {state.global_step}", flush=True)
        if state.global_step % 8 == 0 and state.is_world_process_zero:
            self.trainer.evaluate()


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
        save_strategy="no",
        logging_steps=1000,
    )
    callback = EvaluateOften()
    trainer = Trainer(
        BertForSequenceClassification(config),
        settings,
        train_dataset=Rows(100_000),
        eval_dataset=Rows(64),
        callbacks=[callback],
    )
    callback.trainer = trainer
    trainer.train()


if __name__ == "__main__":
    main()
