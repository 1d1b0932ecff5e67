from functools import partial

from transformers import Trainer
from transformers import TrainingArguments as TA


def my_collate(batch, tok):
    return tok([b["prompt"] + b["answer"] for b in batch], return_tensors="pt")


def main(model, tok, ds):
    collator = partial(my_collate, tok=tok)
    trainer = Trainer(
        model=model,
        args=TA(output_dir="o"),
        train_dataset=ds,
        data_collator=collator,
    )
    trainer.train()
