import torch
from transformers import Trainer, TrainingArguments


def collate(rows):
    return {"pixel_values": torch.stack([r["image"] for r in rows])}


args = TrainingArguments(output_dir="o")
trainer = Trainer(model=None, args=args, train_dataset=[], data_collator=collate)
