"""Teach a tiny classifier of texts with the Trainer; the collator tokenises, so that the longest text of a batch sets its length."""

import argparse

import torch
from datasets import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

LETTERS = "abcdefghijklmnopqrstuvwxyz "


def train_set(rows=400):
    return Dataset.from_dict({"text": [f"row {row} tells of {'many ' * (row % 5)}things" for row in range(rows)], "label": [row % 2 for row in range(rows)]})


def collate(rows):
    lines = [[LETTERS.find(letter) + 2 for letter in row["text"].lower()] for row in rows]
    longest = max(map(len, lines))
    ids = torch.tensor([line + [0] * (longest - len(line)) for line in lines])
    return {"input_ids": ids, "attention_mask": (ids != 0).long(), "labels": torch.tensor([row["label"] for row in rows])}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--max_train_samples", type=int, default=400)
    args = parser.parse_args()
    tiny = BertConfig(vocab_size=32, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64, max_position_embeddings=96)
    arguments = TrainingArguments(
        output_dir="out",
        per_device_train_batch_size=8,
        max_steps=6,
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        dataloader_num_workers=2,
    )
    trainer = Trainer(model=BertForSequenceClassification(tiny), args=arguments, train_dataset=train_set(args.max_train_samples), data_collator=collate)
    trainer.train()


if __name__ == "__main__":
    main()
