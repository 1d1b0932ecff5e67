import argparse
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

from text import WORDS, build, encode


def collate(rows):
    width = max(len(r["input_ids"]) for r in rows)
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for k, r in enumerate(rows):
        n = len(r["input_ids"])
        ids[k, :n] = torch.tensor(r["input_ids"])
        mask[k, :n] = 1
    return {"input_ids": ids, "attention_mask": mask, "labels": ids.masked_fill(mask == 0, -100)}


def accuracy(prediction):
    logits, labels = prediction
    keep = labels[:, 1:] != -100
    return {"accuracy": float((logits[:, :-1] == labels[:, 1:])[keep].mean())}


class Cooldown(TrainerCallback):
    """Leaves the machine alone for a moment after a checkpoint, so that the backup job can copy it."""

    def __init__(self, seconds):
        self.seconds = seconds

    def on_save(self, args, state, control, **kwargs):
        time.sleep(self.seconds)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output_dir", default="runs/clm")
    opt = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    args = TrainingArguments(
        output_dir=opt.output_dir,
        use_cpu=True,
        ddp_find_unused_parameters=False,
        per_device_train_batch_size=8,
        per_device_eval_batch_size=16,
        gradient_accumulation_steps=2,
        learning_rate=5e-4,
        max_steps=100_000,
        eval_strategy="steps",
        eval_steps=100,
        save_strategy="steps",
        save_steps=150,
        save_total_limit=2,
        logging_steps=20,
        dataloader_num_workers=1,
        dataloader_persistent_workers=True,
        disable_tqdm=True,
        report_to=[],
    )
    train = build(6000, 1).map(encode, batched=True, remove_columns=["text"])
    held_out = build(480, 2).map(encode, batched=True, remove_columns=["text"])
    config = GPT2Config(vocab_size=len(WORDS) + 1, n_positions=64, n_embd=96, n_layer=3, n_head=4,
                        bos_token_id=0, eos_token_id=0)
    trainer = Trainer(
        model=GPT2LMHeadModel(config),
        args=args,
        train_dataset=train,
        eval_dataset=held_out,
        data_collator=collate,
        compute_metrics=accuracy,
        preprocess_logits_for_metrics=lambda logits, labels: logits.argmax(-1),
        callbacks=[Cooldown(2.0)],
    )
    trainer.train()
    trainer.save_model()


if __name__ == "__main__":
    main()
