"""transformers' Trainer on a tiny model: healthy, without any example, resumed after its end, or with a collator whose column is dropped."""

import argparse
import os

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments


class Lines(Dataset):
    def __init__(self, count, kind):
        self.count, self.kind = count, kind

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        tokens = torch.randint(0, 90, (16,))
        if self.kind == "text":
            return {"text": f"line {index}"}
        return {"input_ids": tokens, "labels": tokens.clone()}


def collate_text(rows):
    ids = [torch.tensor([ord(letter) % 90 for letter in row["text"].ljust(16)]) for row in rows]
    return {"input_ids": torch.stack(ids), "labels": torch.stack(ids)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", default="plain")
    parser.add_argument("--count", type=int, default=64)
    parser.add_argument("--max-steps", type=int, default=-1)
    parser.add_argument("--bar", type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=97, n_positions=32, n_embd=32, n_layer=1, n_head=2))
    training = TrainingArguments(
        "runs",
        per_device_train_batch_size=4,
        num_train_epochs=2,
        max_steps=args.max_steps,
        logging_steps=4,
        save_strategy="steps" if args.kind == "saves" else "no",
        save_steps=4,
        report_to=[],
        use_cpu=True,
        disable_tqdm=not args.bar,
    )
    data = Lines(args.count, args.kind)
    if args.kind == "text":
        import datasets

        data = datasets.Dataset.from_dict({"text": [f"line {index}" for index in range(args.count)]})
    trainer = Trainer(model, training, train_dataset=data, data_collator=collate_text if args.kind == "text" else None)
    trainer.train()
    if args.kind == "saves" and os.path.isdir("runs"):
        trainer.save_model("runs/final")
    print("saved to runs/final")


if __name__ == "__main__":
    main()
